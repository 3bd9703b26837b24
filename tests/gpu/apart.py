"""Snippets in a process of their own, beside these files: for what ends, blocks or spoils one."""

import os
import textwrap
from pathlib import Path

import fake_driver
import pytest

HERE = Path(__file__).parent
PATH = [HERE, HERE.parent / "fake_cuda", HERE.parent / "python"]
#: A process that blocks says where, and ends.
BEFORE = """
import faulthandler
faulthandler.dump_traceback_later({seconds}, exit=True)
import gc, os, sys, threading, time
import dlfield as dlf
from devices import *
from exchange_structs import *
from gates import *
from order import *
from producers import OnGpu
start()
"""


def end_of(code, *, seconds=60, **settings):
    """Run a snippet and give how it ended."""
    path = [*map(str, PATH), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(filter(None, path)), **settings}
    settings.setdefault("DLFIELD_FAKE_CUDA_DEVICES", "2")
    return fake_driver.end_of(BEFORE.format(seconds=seconds) + textwrap.dedent(code), **settings)


def run(code, **settings):
    """Run a snippet that has to end well and break no rule of the driver; give what it printed."""
    done = end_of(code, **settings)
    if done.returncode != 0 or "violation" in done.stderr:
        pytest.fail(f"exit status {done.returncode}\n{code}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()
