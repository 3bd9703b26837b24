"""Processes in which memory or threads are scarce: `scarce.c` refuses them."""

import os
import platform
import subprocess
import textwrap
from pathlib import Path

import pytest

from support.optional import program
from support.processes import end_of, expect_success

SOURCE = Path(__file__).with_name("scarce.c")
LOADED = """
import ctypes, os, re, sys
import dlfield as dlf
import numpy as np

scarce = ctypes.CDLL(None)
scarce.fail_from.argtypes = [ctypes.c_size_t]
countdown = ctypes.c_long.in_dll(scarce, 'countdown')  # a function would allocate itself
PLENTY = ctypes.c_size_t(-1).value
"""


def preloaded(folder):
    """Build the library in a folder, and give the settings of a process that preloads it."""
    if platform.libc_ver()[0] != "glibc" or "LD_PRELOAD" in os.environ:
        pytest.skip("needs glibc, and nothing else that is preloaded")
    path = folder / "libscarce.so"
    options = ["-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-fno-builtin"]
    subprocess.run([program("cc", "gcc"), *options, SOURCE, "-o", path, "-ldl"], check=True)
    return {"LD_PRELOAD": str(path)}


def run_scarce(code, settings):
    """Run a snippet that has `scarce`, and give what it printed."""
    code = LOADED + textwrap.dedent(code)
    done = end_of(code, "-W", "error", **settings)
    expect_success(done, code)
    return done.stdout.strip()
