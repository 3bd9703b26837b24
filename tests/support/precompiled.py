"""Compile what every stencil of gt4py.cartesian includes: ``python -m support.precompiled HEADER``.

With ``-include HEADER`` among its flags, g++ takes what was compiled in place of the text, if the
other flags are those of GT4Py's compilation, which are asked for here. Otherwise it reads the text:
nothing but the time depends on it.
"""

import os
import subprocess
import sys
import sysconfig
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


def compile_header(header):
    """Write the header, and what g++ makes of it beside it."""
    header.parent.mkdir(parents=True, exist_ok=True)
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
    given = os.environ.get("GT4PY_EXTRA_COMPILE_OPT_FLAGS", "")
    options = get_gt_pyext_build_opts(extra_opt_flags=given.replace(f"-include {header}", ""))
    places = [pybind11.get_include(), sysconfig.get_path("include")]
    return [*(f"-I{one}" for one in places), *options["extra_compile_args"]]


if __name__ == "__main__":
    compile_header(Path(sys.argv[1]))
