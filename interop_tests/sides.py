"""Every library as a producer of a storage's memory and as a consumer of it, and their pairs.

The way is always producer, `dlf.as_storage`, consumer. Addresses, reads and writes are each
library's own, never those of dlfield or of a third library where the library has words for them.
"""

import array
import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import dlfield as dlf
import numpy as np

from .support import CountedMemory, address_of, frees, library

SIZE = 18  # 144 bytes: some blocks of that size lie where JAX shares them, see `aligned`
AT = 7  # the element that is read and written


#: What libraries say when they refuse a write.
REFUSAL = r"read-?only|immutable|item assignment|destination is a view"


def assign(held, value):
    held[AT] = value


@dataclass(frozen=True)
class Library:
    """What a library says of an array of its own."""

    name: str
    address: Callable[[Any], int]
    read: Callable[[Any], float] = lambda held: float(held[AT])
    write: Callable[[Any, float], None] = assign

    def writes(self, held, value):
        """Write an element; False where the library refuses because the memory is read-only."""
        try:
            self.write(held, value)
        except Exception as error:  # numba's is neither a TypeError nor a ValueError
            if not re.search(REFUSAL, str(error)):
                raise
            return False
        return True


def buffer_address(exporter):
    """Where the memory of a memoryview lies, which Python says only in C."""
    view, full_read_only = (ctypes.c_void_p * 16)(), 0x11C  # a Py_buffer begins with the address
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    release.argtypes, release.restype = (ctypes.c_void_p,), None
    get(exporter, view, full_read_only)
    address = view[0]
    release(view)
    return address


@cache
def compiled():
    """The functions that numba compiles; what they are given never leaves compiled code."""
    numba = library("numba")

    @numba.njit
    def zeros(size):
        return np.zeros(size)

    @numba.njit
    def take(held):
        return held

    @numba.njit
    def address(held):
        return held.ctypes.data

    @numba.njit
    def read(held, at):
        return held[at]

    @numba.njit
    def write(held, at, value):
        held[at] = value

    return SimpleNamespace(zeros=zeros, take=take, address=address, read=read, write=write)


def numbers_of(buffer):
    return memoryview(buffer).cast("B").cast("d")


NUMPY = Library("NumPy", lambda held: held.ctypes.data)
TORCH = Library("torch", lambda held: held.data_ptr())
JAX = Library("JAX", lambda held: held.unsafe_buffer_pointer())
ARROW_ARRAY = Library(
    "pyarrow", lambda held: held.buffers()[1].address, lambda held: held[AT].as_py()
)
ARROW_BUFFER = Library(
    "pyarrow",
    lambda held: held.address,
    lambda held: numbers_of(held)[AT],
    lambda held, value: assign(numbers_of(held), value),
)
TVM = Library(  # has tensors, but no words to read or write an element
    "tvm-ffi",
    lambda held: held.data_ptr(),
    lambda held: float(np.from_dlpack(held)[AT]),
    lambda held, value: assign(np.from_dlpack(held), value),
)
NUMBA = Library(
    "numba",
    lambda held: compiled().address(held),
    lambda held: compiled().read(held, AT),
    lambda held, value: compiled().write(held, AT, value),
)
MEMORYVIEW = Library("memoryview", buffer_address)
ARRAY = Library("array", lambda held: held.buffer_info()[0])
CTYPES = Library("ctypes", ctypes.addressof)
XARRAY = Library("xarray", lambda held: held.values.ctypes.data)
STORAGE = Library(
    "Storage",
    address_of,
    lambda held: held.to_numpy()[AT],
    lambda held, value: assign(held.to_numpy(), value),
)


def aligned(make, address):
    """Make blocks until one lies on a boundary of 64 bytes: JAX shares no other."""
    made = []
    for spacing in range(200):
        made.append((make(), bytes(16 * spacing)))
        if address(made[-1][0]) % 64 == 0:
            return made[-1][0]
    raise RuntimeError("200 blocks, and none of them on a boundary of 64 bytes")


class Block(ctypes.c_double * SIZE):
    """Memory that can tell when it is freed."""


def python_array():
    return aligned(lambda: array.array("d", bytes(8 * SIZE)), ARRAY.address)


def numpy_array():
    return aligned(lambda: np.zeros(SIZE), NUMPY.address)


def numba_array():
    return aligned(lambda: compiled().zeros(SIZE), NUMBA.address)


def ctypes_array():
    return aligned(Block, CTYPES.address)


def arrow_array(block):
    pa = library("pyarrow")
    return pa.Array.from_buffers(pa.float64(), SIZE, [None, pa.py_buffer(block)])


def by_finalizer(make, wrap=lambda owner: owner):
    """Make an array over an owner, and a function that says how often the owner has died."""

    def counted():
        owner = make()
        told = frees(owner)
        return wrap(owner), lambda: len(told)

    return counted


def by_deleter(take):
    """Make an array over DLPack memory, and a function that says how often its deleter ran."""

    def counted():
        memory = CountedMemory()
        return take(memory), lambda: memory.deletions

    return counted


@dataclass(frozen=True)
class Producer:
    """A library whose arrays become storages."""

    library: Library
    own: Callable[[], Any]
    """Make an array as the library makes its own."""
    counted: Callable[[], tuple[Any, Callable[[], int]]]
    """Make an array, and a function that says how often its memory was given up."""
    readonly: bool = False


PRODUCERS = [
    Producer(NUMPY, numpy_array, by_finalizer(ctypes_array, np.frombuffer)),
    Producer(
        TORCH,
        lambda: library("torch").zeros(SIZE, dtype=library("torch").float64),
        by_deleter(lambda memory: library("torch").from_dlpack(memory)),
    ),
    Producer(
        JAX,
        lambda: library("jax.numpy").zeros(SIZE),
        by_deleter(lambda memory: library("jax").dlpack.from_dlpack(memory)),
        readonly=True,
    ),
    Producer(
        ARROW_ARRAY,
        lambda: library("pyarrow").array([0.0] * SIZE),
        by_finalizer(ctypes_array, arrow_array),
        readonly=True,
    ),
    Producer(
        TVM,
        lambda: library("tvm_ffi").from_dlpack(numpy_array()),
        by_deleter(lambda memory: library("tvm_ffi").from_dlpack(memory)),
    ),
    Producer(NUMBA, numba_array, by_finalizer(numba_array)),
    Producer(
        MEMORYVIEW, lambda: memoryview(python_array()), by_finalizer(ctypes_array, memoryview)
    ),
    Producer(ARRAY, python_array, by_finalizer(python_array)),
    Producer(CTYPES, ctypes_array, by_finalizer(ctypes_array)),
    Producer(
        XARRAY,
        lambda: library("xarray").DataArray(numpy_array()),
        by_finalizer(ctypes_array, lambda block: library("xarray").DataArray(np.frombuffer(block))),
    ),
    Producer(STORAGE, lambda: dlf.zeros(SIZE), by_deleter(dlf.as_storage)),
]


@dataclass(frozen=True)
class Consumer:
    """A library that takes storages, by a public function of its own."""

    library: Library
    take: Callable[[dlf.Storage], Any]
    entry: str
    """The name of that function."""


def to_jax(storage):
    library("jax")  # or a skip
    return storage.to_jax()


CONSUMERS = [
    Consumer(NUMPY, np.asarray, "np.asarray"),
    Consumer(NUMPY, np.from_dlpack, "np.from_dlpack"),
    Consumer(TORCH, lambda storage: library("torch").from_dlpack(storage), "torch.from_dlpack"),
    Consumer(JAX, to_jax, "storage.to_jax"),
    Consumer(ARROW_BUFFER, lambda storage: library("pyarrow").py_buffer(storage), "pa.py_buffer"),
    Consumer(TVM, lambda storage: library("tvm_ffi").from_dlpack(storage), "tvm_ffi.from_dlpack"),
    Consumer(NUMBA, lambda storage: compiled().take(storage.to_numpy()), "numba.njit"),
    Consumer(MEMORYVIEW, memoryview, "memoryview"),
    Consumer(ARRAY, lambda storage: array.array("d", bytes(storage)), "array.array"),
    Consumer(
        CTYPES,
        lambda storage: (ctypes.c_double * storage.size).from_buffer(storage),
        "ctypes from_buffer",
    ),
    Consumer(XARRAY, lambda storage: library("xarray").DataArray(storage), "xr.DataArray"),
    Consumer(STORAGE, dlf.as_storage, "dlf.as_storage"),
]
