"""The end of a process in which other libraries alone hold memory of storages."""

import pytest

from support.optional import library
from support.processes import run_in_subprocess

START = """
import atexit, builtins, gc, os
os.environ["JAX_ENABLE_X64"] = "1"
import numpy as np
import dlfield as dlf
from dlfield._core import live_allocations

def made():
    return dlf.ones((64, 64), dims="IJ")
"""
HOLDERS = {
    "torch": ("torch", "made().to_torch()"),
    "JAX": ("jax", "made().to_jax()"),
    "pyarrow": ("pyarrow", "__import__('pyarrow').array(dlf.ones(64))"),
}


@pytest.mark.parametrize(("name", "held"), HOLDERS.values(), ids=HOLDERS)
def test_memory_that_a_library_alone_holds_lives_until_the_end_and_does_no_harm(name, held):
    library(name)
    printed = run_in_subprocess(
        START
        + f"""
held, builtins.held, cycle = {held}, {held}, [{held}]
cycle.append(cycle)
gc.collect()
print(live_allocations(), float(np.asarray(held).sum() / np.asarray(held).size))
dropped = [{held}]

@atexit.register
def last():
    dropped.clear()
    gc.collect()
    print(live_allocations(), float(np.asarray(held).max()))
""",
        warnings="ignore",
    )
    assert printed.splitlines() == ["3 1.0", "3 1.0"]
