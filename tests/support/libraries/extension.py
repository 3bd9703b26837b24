"""An extension written with nanobind, compiled once for its source, the compiler and nanobind."""

import hashlib
import importlib.util
import os
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

from support.optional import library

SOURCE = Path(__file__).with_name("nanobind_extension.cpp")
BUILT = Path(__file__).parents[3] / "target" / "interop"
COMMAND = ("g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden")
COMMAND += ("-fno-strict-aliasing",)


@cache
def extension():
    """Import the extension, compiled first if that is not done yet."""
    nanobind = library("nanobind")
    name = SOURCE.stem + sysconfig.get_config_var("EXT_SUFFIX")
    built = BUILT / _made_of(nanobind) / name
    if not built.exists():
        _compile(nanobind, built)
    spec = importlib.util.spec_from_file_location(SOURCE.stem, built)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _made_of(nanobind):
    parts = (*COMMAND, nanobind.__version__, SOURCE.read_text("utf-8"))
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _compile(nanobind, built):
    sources = Path(nanobind.source_dir())
    robin_map = sources.parent / "ext" / "robin_map" / "include"
    folders = (nanobind.include_dir(), robin_map, sysconfig.get_path("include"))
    built.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: a library that was not finished must not count as one.
    unfinished = built.with_suffix(f".{os.getpid()}")
    command = [*COMMAND, *(f"-I{folder}" for folder in folders)]
    command += [str(SOURCE), str(sources / "nb_combined.cpp"), "-o", str(unfinished)]
    subprocess.run(command, check=True)
    unfinished.rename(built)
