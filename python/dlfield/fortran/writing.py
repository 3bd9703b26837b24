"""The files of a library: the module, the glue, a header, and two ways to build them."""

from __future__ import annotations

import os
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dlfield.fortran.calls import find
from dlfield.fortran.glue import header, source
from dlfield.fortran.interface import module
from dlfield.fortran.names import check_functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["write_library"]


def write_library(targets: Sequence[str], library: str, out: Path) -> list[Path]:
    """Write the files of a library for functions, each ``package.module:name``.

    Returns the paths of the files. Raises ValueError for names that Fortran cannot have, TypeError
    for functions that are not declared, and ImportError for a Python that cannot be embedded.
    """
    functions = [find(target) for target in targets]
    check_functions(library, [one.name for one in functions])
    named = {one.name: target for one, target in zip(functions, targets, strict=True)}
    texts = {
        f"{library}.f90": module(library, functions),
        f"{library}.h": header(library, functions),
        f"{library}.c": source(library, functions, named, sys.executable, _folders(targets)),
        "CMakeLists.txt": _CMAKE.format(library=library, **_python()),
        "build.sh": _BUILD.format(library=library, **_python()),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text, "utf-8")
    return [out / name for name in texts]


def _folders(targets: Iterable[str]) -> str:
    """Return the folders from which the modules of functions were imported, as in PYTHONPATH."""
    return os.pathsep.join(dict.fromkeys(filter(None, map(_folder, targets))))


def _folder(target: str) -> str:
    spec = find_spec(target.partition(":")[0].partition(".")[0])
    package = [] if spec is None else list(spec.submodule_search_locations or ())
    own = spec.origin if spec is not None and spec.has_location else None
    place = package[0] if package else own
    return "" if place is None else str(Path(place).resolve().parent)


def _python() -> dict[str, str]:
    """Return where the header and the library of this Python are."""
    wanted = ("INCLUDEPY", "LIBDIR", "LDLIBRARY", "Py_ENABLE_SHARED", "PYTHONFRAMEWORK")
    found = {name: str(sysconfig.get_config_var(name) or "") for name in wanted}
    if found["Py_ENABLE_SHARED"] in ("", "0") and not found["PYTHONFRAMEWORK"]:
        raise ImportError(
            f"dlfield: needs a Python with a shared library, got {sys.executable} without; use "
            f"another, such as your system's, or configure it with --enable-shared"
        )
    version = sysconfig.get_config_var("LDVERSION") or sysconfig.get_python_version()
    return {"include": found["INCLUDEPY"], "folder": found["LIBDIR"], "python": f"python{version}"}


_BUILD = """\
#!/bin/sh
# Builds lib{library}.so. CC and FC are the compilers, CFLAGS and FFLAGS their options.
set -e
cd "$(dirname "$0")"
${{CC:-cc}} ${{CFLAGS:--O2}} -fPIC -c {library}.c -o {library}.o -I'{include}'
${{FC:-gfortran}} ${{FFLAGS:--O2}} -fPIC -shared {library}.f90 {library}.o -o lib{library}.so \\
    -L'{folder}' -l{python} -Wl,-rpath,'{folder}'
"""

_CMAKE = """\
# add_subdirectory(<this folder>), then target_link_libraries(<your program> {library})
cmake_minimum_required(VERSION 3.18)
project({library} LANGUAGES C Fortran)
add_library({library} SHARED {library}.f90 {library}.c)
set_target_properties({library} PROPERTIES Fortran_MODULE_DIRECTORY "${{CMAKE_CURRENT_BINARY_DIR}}")
target_include_directories({library} PRIVATE "{include}"
  PUBLIC "${{CMAKE_CURRENT_BINARY_DIR}}" "${{CMAKE_CURRENT_SOURCE_DIR}}")
target_link_directories({library} PUBLIC "{folder}")
target_link_libraries({library} PUBLIC {python})
set_target_properties({library} PROPERTIES BUILD_RPATH "{folder}" INSTALL_RPATH "{folder}")
"""
