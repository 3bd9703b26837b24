"""Snippets in a process of their own, for what ends, blocks or spoils one."""

import textwrap

import pytest

from support.cuda import stand_in

#: A process that blocks prints where, and ends.
BEFORE = """
import faulthandler
faulthandler.dump_traceback_later({seconds}, exit=True)
import gc, os, sys, threading, time
import dlfield as dlf
from support.cuda.devices import *
from support.exchange_structs import *
from support.cuda.gates import *
from support.cuda.order import *
from support.cuda.producers import OnGpu
start()
"""


def end_of(code, *, seconds=60, **settings):
    """Run a snippet and give how it ended."""
    settings.setdefault("DLFIELD_FAKE_CUDA_DEVICES", "2")
    return stand_in.end_of(BEFORE.format(seconds=seconds) + textwrap.dedent(code), **settings)


def run(code, **settings):
    """Run a snippet that has to end well and break no rule of the driver; give what it printed."""
    done = end_of(code, **settings)
    if done.returncode != 0 or "violation" in done.stderr:
        pytest.fail(f"exit status {done.returncode}\n{code}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()
