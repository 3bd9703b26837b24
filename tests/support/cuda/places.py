"""Memory in any layout on any side, with what lies around it: what copies start from and end at."""

import ctypes
import weakref
from typing import NamedTuple

import dlfield as dlf
import numpy as np
from hypothesis import strategies as st

from support.cuda import driver
from support.cuda.devices import Memory, current, read, write
from support.cuda.driver import call, host_view, made
from support.cuda.order import device_count
from support.dlpack_structs import DLDevice, Producer

#: A type for each size of an item, with DLPack's code. Of complex128 a half may be aligned alone.
DTYPES = {1: ("u1", 1), 2: ("u2", 1), 4: ("u4", 1), 8: ("u8", 1), 16: ("c16", 5)}
HOST, PINNED, MANAGED = "host", "pinned", "managed"
#: Extents around what decides a route: rows of 64 bytes, 16 rows, tiles of 8 to 32.
EXTENTS = (1, 1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 32, 33, 40, 65)
MOST = 2000  # elements


class Plan(NamedTuple):
    """Bytes of a block, where its first element is, and the steps from there."""

    size: int
    first: int
    strides: tuple

    def view(self, block, shape, dtype):
        """Return the elements in a block of the host, as NumPy sees them."""
        return np.ndarray(shape, dtype, block, self.first, self.strides)


@st.composite
def shapes(draw, *, most_dims=6):
    """Draw 0 to 6 dimensions, seldom one of them without a point, and seldom 9 or 10."""
    if draw(st.integers(0, 11)) == 0:
        return (2,) * draw(st.sampled_from([9, 10]))
    shape, room = [], MOST
    for _ in range(draw(st.integers(0, most_dims))):
        shape.append(draw(st.sampled_from([extent for extent in EXTENTS if extent <= room])))
        room //= shape[-1]
    if shape and draw(st.integers(0, 19)) == 0:
        shape[draw(st.integers(0, len(shape) - 1))] = 0
    return tuple(shape)


@st.composite
def plans(draw, shape, item, *, repeats=False):
    """Draw a layout: axes in any order, inside a halo or odd gaps, thinned out, reversed, from any
    byte on. With `repeats`, some axes show the same elements again and again.
    """
    compact = draw(st.integers(0, 2)) == 0
    step, strides = item * (1 if compact else draw(st.sampled_from([1, 1, 1, 2, 3]))), {}
    for axis in draw(st.permutations(range(len(shape)))):
        if repeats and draw(st.integers(0, 5)) == 0:
            strides[axis] = 0
            continue
        strides[axis] = step if compact else step * draw(st.sampled_from([1, 1, 1, -1]))
        step *= max(shape[axis], 1) + (0 if compact else draw(st.sampled_from([0, 0, 1, 2, 6])))
        step += item * (0 if compact else draw(st.sampled_from([0, 0, 0, 1, 13])))
    ways = [(max(extent, 1) - 1) * strides[axis] for axis, extent in enumerate(shape)]
    first = draw(st.sampled_from([0, 0, 16, 48, 1, 2, 4, 8, 12, 21])) - sum(
        w for w in ways if w < 0
    )
    size = first + sum(way for way in ways if way > 0) + item + draw(st.sampled_from([0, 1, 64]))
    return Plan(size, first, tuple(strides[axis] for axis in range(len(shape))))


class Block:
    """Some bytes, on the host, in page-locked or managed memory, or on a GPU by its number."""

    def __init__(self, values, place):
        self.place, self.size = place, values.size
        if isinstance(place, int):
            self.memory = Memory(values.size, place)
            self.address = self.memory.address
            write(self.address, values, place)
        else:
            self.bytes = values.copy() if place == HOST else self._mapped(values)
            self.address = self.bytes.ctypes.data

    def _mapped(self, values):
        name, free = ("cuMemHostAlloc", "cuMemFreeHost")
        if self.place == MANAGED:
            name, free = ("cuMemAllocManaged", "cuMemFree_v2")
        start = made(name, values.size, 1)
        weakref.finalize(self, call, free, start)
        host_view(start, values.size)[:] = values
        return host_view(start, values.size)

    def now(self):
        """Return the bytes, once everything that was started is done."""
        if isinstance(self.place, int):
            return read(self.address, self.size, np.uint8, self.place)
        for device in range(device_count()):
            with current(device):
                call("cuCtxSynchronize")
        return self.bytes.copy()

    def elements(self, plan, shape, item):
        """Return a storage over the elements of a plan: `managed=None`, "cuda", or of the host."""
        name, code = DTYPES[item]
        if self.place in (HOST, PINNED):
            return dlf.as_storage(plan.view(self.bytes, shape, np.dtype(name)))
        if self.place == MANAGED:
            return dlf.as_storage(managed_tensor(self.address, plan, shape, item, code))
        return dlf.as_storage(Shown(self.address, plan, shape, np.dtype(name)), managed=None)


class Shown:
    """Shows elements on a GPU by the CUDA array interface. The block keeps them."""

    def __init__(self, address, plan, shape, dtype):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (address + plan.first, False),
            "strides": plan.strides,
            "version": 3,
        }


def managed_tensor(address, plan, shape, item, code):
    """Return a producer of managed memory: only DLPack has a word for it."""
    producer = Producer(())
    tensor, ndim = producer.managed.dl_tensor, len(shape)
    producer.shape = (ctypes.c_int64 * ndim)(*shape)
    producer.strides = (ctypes.c_int64 * ndim)(*(stride // item for stride in plan.strides))
    tensor.shape, tensor.strides, tensor.ndim = producer.shape, producer.strides, ndim
    tensor.data, tensor.byte_offset = address + plan.first, 0
    tensor.device, tensor.dtype = DLDevice(13, 0), (code, item * 8, 1)
    return producer


def field(place, shape, **options):
    """Return a storage on a side, float64 by default, of which all work is done."""
    device = None if place == HOST else ("gpu", place if isinstance(place, int) else 0)
    managed = "cuda" if place == MANAGED else None
    made = dlf.full(shape, 3.5, device=device, managed=managed, **options)
    made.synchronize()
    return made


def assign(target, source):
    """Copy one into the other."""
    target[...] = source


def asked(work):
    """Return what a call asked the stand-in for: copies up, down and across, kernels, waits."""
    driver.reset()
    work()
    now = driver.stats()
    assert now.copies == now.h2d + now.d2h + now.d2d
    return (now.h2d, now.d2h, now.d2d), now.kernels, now.syncs
