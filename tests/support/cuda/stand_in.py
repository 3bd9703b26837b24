"""Snippets on the stand-in driver, each a process of its own: a process has one driver, and a fault
stays in it.
"""

import textwrap

import pytest

from support import processes
from support.cuda.built import CRATE, ENVIRONMENT, library_path

PREAMBLE = """
import ctypes
from ctypes import byref
import numpy as np
from support.cuda.driver import *
"""


def built_library():
    """Return the path of the stand-in driver, or skip the test unless it is built."""
    path = library_path()
    if path is None:
        pytest.skip(f"the stand-in driver is not built; cargo build --release in {CRATE}")
    return path


def end_of(code, **settings):
    """Run a snippet on the stand-in and give how it ended."""
    settings = {ENVIRONMENT: str(built_library()), **settings}
    return processes.end_of(PREAMBLE + textwrap.dedent(code), **settings)


def run(code, **settings):
    """Run a snippet that has to succeed, and give what it wrote to stderr."""
    done = end_of(code, **settings)
    processes.expect_success(done, code)
    return done.stderr
