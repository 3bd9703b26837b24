"""Snippets on the stand-in driver, each a process of its own: a process has one driver, and a fault
stays in it.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

STAND_IN = Path(__file__).parents[1] / "fake_cuda"
PREAMBLE = "import ctypes\nfrom ctypes import byref\nimport numpy as np\nfrom cuda_calls import *\n"


def built_library():
    """Give the path of the stand-in driver, or skip the test where nobody has built it."""
    built = STAND_IN / "target" / "release" / "libfake_cuda.so"
    path = Path(os.environ.get("DLFIELD_FAKE_CUDA", built))
    if not path.is_file():
        pytest.skip(f"the stand-in driver is not built: no {path}; cargo build --release there")
    return path


def end_of(code, **settings):
    """Run a snippet on the stand-in and give how it ended."""
    path = [str(STAND_IN), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "DLFIELD_FAKE_CUDA": str(built_library()),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        **settings,
    }
    command = [sys.executable, "-X", "faulthandler", "-c", PREAMBLE + textwrap.dedent(code)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def run(code, **settings):
    """Run a snippet that has to succeed, and give what it wrote to stderr."""
    done = end_of(code, **settings)
    if done.returncode != 0:
        pytest.fail(f"exit status {done.returncode}\n{code}\n{done.stdout}{done.stderr}")
    return done.stderr
