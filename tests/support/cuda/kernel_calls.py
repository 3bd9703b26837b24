"""The kernels of layout.ptx from Python, and what NumPy makes of the same arguments: for tests, on
the stand-in or on a real driver.

A walk is a count with the bytes that source and target move each time, outermost walk first.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from support.cuda.driver import NEW, address, call, made

PTX = Path(__file__).parents[3] / "src" / "copy" / "kernels" / "layout.ptx"
WORDS = (1, 2, 4, 8, 16)
MOST_WALKS = 8
BLOCKS = {"copy": (256, 1, 1), "fill": (256, 1, 1), "transpose": (32, 8, 1)}


class Walk(ctypes.Structure):
    """One loop, as the kernels take it."""

    _fields_ = [(name, ctypes.c_int64) for name in ("count", "source", "target")]


class Arguments(ctypes.Structure):
    """The one argument of every kernel."""

    _fields_ = [
        ("source", ctypes.c_uint64),
        ("target", ctypes.c_uint64),
        ("value", ctypes.c_uint8 * 16),
        ("dims", ctypes.c_int64),
        ("walks", Walk * MOST_WALKS),
    ]


@cache
def module():
    """Return the loaded PTX."""
    return made("cuModuleLoadData", PTX.read_bytes() + b"\0")


@cache
def function(name):
    """Return a kernel."""
    return made("cuModuleGetFunction", module(), name.encode())


def launch(kernel, word, walks, *, source=0, target=0, value=b"", blocks=3, **unusual):
    """Launch a kernel in the legacy stream. `unusual` are another `grid` or `block`."""
    listed = (Walk * MOST_WALKS)(*[Walk(*walk) for walk in walks])
    value = (ctypes.c_uint8 * 16)(*value)
    argument = Arguments(source, target, value, len(walks), listed)
    grid, block = unusual.get("grid", (blocks, 1, 1)), unusual.get("block", BLOCKS[kernel])
    pointer = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
    kernel = function(f"dlfield_{kernel}_{word}")
    call("cuLaunchKernel", kernel, *grid, *block, 0, 0, pointer, 0)


class Side(NamedTuple):
    """Memory of some bytes, the offset of an element in it, and the steps from there."""

    size: int
    first: int
    steps: tuple


def random_side(random, counts, word, *, fastest=None, broadcasts=False):
    """Return a side whose elements do not overlap, unless steps of 0 are allowed.

    Axes come in any order with any padding, and go backwards; `fastest` is the one whose step is
    exactly a word.
    """
    axes, steps, step = list(random.permutation(len(counts))), [0] * len(counts), word
    if fastest is not None:
        axes.remove(fastest)
        steps[fastest], step = word, word * (counts[fastest] + int(random.integers(3)))
    for axis in axes:
        if broadcasts and random.random() < 0.2:
            continue
        steps[axis] = step if random.random() < 0.7 else -step
        step *= max(counts[axis], 1)
        step += word * int(random.integers(3))
    ways = [step * max(count - 1, 0) for step, count in zip(steps, counts, strict=True)]
    first = -sum(way for way in ways if way < 0) + word * int(random.integers(3))
    size = first + sum(way for way in ways if way > 0) + word * int(random.integers(1, 3))
    return Side(size, first, tuple(steps))


def view(memory, side, counts, word):
    """Return the elements of a side, as NumPy has them."""
    return np.ndarray(counts, f"V{word}", memory, side.first, side.steps)


def on_device(values):
    """Return the device address of a copy of some bytes."""
    there = made("cuMemAlloc_v2", values.nbytes)
    call("cuMemcpyHtoD_v2", there, address(values), values.nbytes)
    return there


def run_and_compare(random, kernel, word, counts, source, target, *, blocks=3):
    """Run a kernel between new memory of two sides, and compare every byte with NumPy's doing."""
    here = random.integers(0, 256, source.size, np.uint8)
    expected, got = np.full((2, target.size), NEW, np.uint8)
    value = random.bytes(word)
    filled = np.frombuffer(value, f"V{word}")[0]
    elements = view(here, source, counts, word) if kernel != "fill" else filled
    view(expected, target, counts, word)[...] = elements
    from_there, to_there = on_device(here), on_device(got)
    launch(
        *(kernel, word, list(zip(counts, source.steps, target.steps, strict=True))),
        source=from_there + source.first,
        target=to_there + target.first,
        value=value,
        blocks=blocks,
    )
    call("cuMemcpyDtoH_v2", address(got), to_there, target.size)
    assert np.array_equal(expected, got), (kernel, word, counts, source, target, blocks)
    call("cuMemFree_v2", from_there)
    call("cuMemFree_v2", to_there)
