"""How every library reads an address and an element of its own array, and writes it.

The words are the library's own, never those of dlfield, and those of a third library only where
the library has none: PIL gives the address of its pixels only by Arrow, which pyarrow reads.
"""

import ctypes
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

SIZE = 18  # 144 bytes: some blocks of that size lie where JAX shares them, see `sides.aligned`
AT = 7  # the element that is read and written


#: Errors of libraries that refuse a write.
REFUSAL = r"read-?only|immutable|item assignment|destination is a view"


def assign(held, value):
    """Write the element."""
    held[AT] = value


@dataclass(frozen=True)
class Library:
    """How a library reads and writes an array of its own."""

    name: str
    address: Callable[[Any], int]
    read: Callable[[Any], float] = lambda held: float(held[AT])
    write: Callable[[Any, float], None] = assign
    modules: tuple[str, ...] = ()
    """What has to be installed."""

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
    """Return the address of a memoryview's memory, which Python gives only in C."""
    view, full_read_only = (ctypes.c_void_p * 16)(), 0x11C  # a Py_buffer begins with the address
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    release.argtypes, release.restype = (ctypes.c_void_p,), None
    get(exporter, view, full_read_only)
    address = view[0] or 0
    release(view)
    return address


@cache
def compiled():
    """Return functions that numba compiles; what they are given never leaves compiled code."""

    def zeros(size):
        return np.zeros(size)

    def take(held):
        return held

    def address(held):
        return held.ctypes.data

    def read(held, at):
        return held[at]

    def write(held, at, value):
        held[at] = value

    njit = import_module("numba").njit
    functions = (zeros, take, address, read, write)
    return SimpleNamespace(**{function.__name__: njit(function) for function in functions})


def numbers_of(buffer):
    """Look at a buffer as at numbers."""
    return memoryview(buffer).cast("B").cast("d")


def chunk_of(dask_array):
    """Return the only chunk of a Dask array, as it is in the graph; `compute()` copies.

    Examples
    --------
    >>> chunk_of(dask.array.zeros(3))
    array([0., 0., 0.])
    """
    return dask_array.to_delayed().item().compute(scheduler="synchronous")


def numpy_of(series):
    """Return the view that polars has of what a series has now.

    `series[i] = value` does not write that memory: polars gives the series memory of its own as
    soon as the old one has another owner.
    """
    return series.to_numpy(allow_copy=False)


# PIL has no float64. An image of one byte a pixel holds the bytes of the numbers.
PIXELS = range(8 * AT, 8 * AT + 8)


def number_in(image):
    """Put the element of an image together."""
    return struct.unpack("d", bytes(image.getpixel((x, 0)) for x in PIXELS))[0]


def set_pixels(image, value):
    """Write the element of an image."""
    pixels = image.load()  # putpixel would give a read-only image memory of its own
    for x, byte in zip(PIXELS, struct.pack("d", value), strict=True):
        pixels[x, 0] = byte


def address_by_interface(held):
    """Return the address of the first element by the array interface."""
    return held.__array_interface__["data"][0]


NUMPY = Library("NumPy", lambda held: held.ctypes.data, modules=("numpy",))
TORCH = Library("torch", lambda held: held.data_ptr(), modules=("torch",))
JAX = Library("JAX", lambda held: held.unsafe_buffer_pointer(), modules=("jax",))
ARROW_ARRAY = Library(
    "pyarrow.Array",
    lambda held: held.buffers()[1].address,
    lambda held: held[AT].as_py(),
    modules=("pyarrow",),
)
ARROW_TENSOR = Library(
    "pyarrow.Tensor",
    lambda held: held.to_numpy().ctypes.data,
    lambda held: held.to_numpy()[AT],
    modules=("pyarrow",),
)
ARROW_LIST = Library(
    "pyarrow.FixedShapeTensorArray",
    lambda held: held.storage.values.buffers()[1].address,
    lambda held: held[AT].as_py()[0],
    modules=("pyarrow",),
)
ARROW_BUFFER = Library(
    "pyarrow.Buffer",
    lambda held: held.address,
    lambda held: numbers_of(held)[AT],
    lambda held, value: assign(numbers_of(held), value),
    modules=("pyarrow",),
)
POLARS = Library(
    "polars",
    lambda held: numpy_of(held).ctypes.data,
    write=lambda held, value: assign(numpy_of(held), value),
    modules=("polars",),
)
PIL = Library(
    "PIL",
    lambda held: import_module("pyarrow").array(held).buffers()[1].address,
    number_in,
    set_pixels,
    modules=("PIL.Image", "pyarrow"),
)
TVM = Library(  # has tensors, but no words to read or write an element
    "tvm-ffi",
    lambda held: held.data_ptr(),
    lambda held: float(np.from_dlpack(held)[AT]),
    lambda held, value: assign(np.from_dlpack(held), value),
    modules=("tvm_ffi",),
)
NUMBA = Library(
    "numba",
    lambda held: compiled().address(held),
    lambda held: compiled().read(held, AT),
    lambda held, value: compiled().write(held, AT, value),
    modules=("numba",),
)
MEMORYVIEW = Library("memoryview", buffer_address)
ARRAY = Library("array", lambda held: held.buffer_info()[0])
CTYPES = Library("ctypes", ctypes.addressof)
XARRAY = Library("xarray", lambda held: held.values.ctypes.data, modules=("xarray",))
DASK = Library(
    "Dask",
    lambda held: np.asarray(chunk_of(held)).ctypes.data,
    lambda held: float(np.asarray(chunk_of(held))[AT]),
    lambda held, value: assign(chunk_of(held), value),
    modules=("dask.array",),
)
STORAGE = Library(
    "Storage",
    address_by_interface,
    lambda held: held.to_numpy()[AT],
    lambda held, value: assign(held.to_numpy(), value),
)
