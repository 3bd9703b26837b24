"""Compile what every stencil of gt4py.cartesian includes: ``python -m support.precompiled HEADER``.

The folder of the header has the compiled stencils, too, and the programs of gt4py.next. GT4Py does
not notice that a library, the compiler or its flags have changed: what is from before is removed.

With ``-include HEADER`` among its flags, g++ takes what was compiled in place of the text, if the
other flags are those of GT4Py's compilation, which are asked for here. Otherwise it reads the text:
nothing but the time depends on it.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pybind11
from gt4py.cartesian.backend.pyext_builder import get_gt_pyext_build_opts
from setuptools import distutils  # as GT4Py does: not that of Python

INCLUDED = (
    "chrono",
    "cstdint",
    "pybind11/pybind11.h",
    "pybind11/stl.h",
    "gridtools/common/array.hpp",
    "gridtools/sid/rename_dimensions.hpp",
    "gridtools/sid/sid_shift_origin.hpp",
    "gridtools/stencil/cartesian.hpp",
    "gridtools/stencil/cpu_ifirst.hpp",
    "gridtools/stencil/cpu_kfirst.hpp",
    "gridtools/stencil/global_parameter.hpp",
    "gridtools/stencil/positional.hpp",
    "gridtools/storage/adapter/python_sid_adapter.hpp",
)


#: Whose versions make compiled stencils others, and programs of gt4py.next.
LIBRARIES = ("dace", "gridtools_cpp", "gt4py", "numpy", "pybind11")
NEXT_LIBRARIES = (*LIBRARIES, "cmake", "nanobind", "ninja")


def keep_folder(folder, header):
    """Make the folder, and remove compiled programs that anything else has put there."""
    folder.mkdir(parents=True, exist_ok=True)
    keep(folder / ".gt_cache", folder / "filled_by.txt", LIBRARIES, given_flags(header))
    # The files that cmake writes beside a program have paths of this environment.
    keep(folder / ".gt4py_cache", folder / "next_filled_by.txt", NEXT_LIBRARIES, sys.prefix)


def keep(programs, file, libraries, more):
    """Remove a folder of programs, if a file does not say that the same has compiled them."""
    versions = [f"{name} {version(name)}" for name in libraries]
    asked = subprocess.run([compiler()[0], "--version"], check=True, capture_output=True, text=True)
    told = "\n".join([sys.version, *versions, asked.stdout, more])
    if not file.exists() or file.read_text("utf-8") != told:
        shutil.rmtree(programs, ignore_errors=True)
    file.write_text(told, "utf-8")


def compile_header(header):
    """Write the header, and what g++ makes of it beside it."""
    header.write_text("".join(f"#include <{one}>\n" for one in INCLUDED), encoding="utf-8")
    command = [*compiler(), *flags(header), "-x", "c++-header", str(header)]
    done = subprocess.run([*command, "-o", f"{header}.gch"], check=False)
    if done.returncode:
        print(f"precompiled: {header.name} is read as text: {command[0]} failed", file=sys.stderr)


def compiler():
    """Return the compiler of extension modules, with Python's own flags."""
    found = distutils.ccompiler.new_compiler()
    distutils.sysconfig.customize_compiler(found)
    return getattr(found, "compiler_so_cxx", found.compiler_so)


def flags(header):
    """Return the flags that GT4Py adds, without the inclusion of the header itself."""
    options = get_gt_pyext_build_opts(extra_opt_flags=given_flags(header))
    places = [pybind11.get_include(), sysconfig.get_path("include")]
    return [*(f"-I{one}" for one in places), *options["extra_compile_args"]]


def given_flags(header):
    """Return the flags of tests, without the inclusion of the header."""
    return os.environ.get("GT4PY_EXTRA_COMPILE_OPT_FLAGS", "").replace(f"-include {header}", "")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    keep_folder(path.parent, path)
    compile_header(path)
