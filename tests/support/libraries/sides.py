"""Every library as a producer of a storage's memory and as a consumer of it.

The way is always producer, `dlf.as_storage`, consumer. `words.py` has the words by which each of
them is asked what it holds.
"""

import array
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from dlfield import Storage, as_storage, zeros

from support.libraries.words import (
    ARRAY,
    ARROW_ARRAY,
    ARROW_BUFFER,
    ARROW_LIST,
    ARROW_TENSOR,
    CTYPES,
    DASK,
    JAX,
    MEMORYVIEW,
    NUMBA,
    NUMPY,
    PIL,
    POLARS,
    SIZE,
    STORAGE,
    TORCH,
    TVM,
    XARRAY,
    Library,
    chunk_of,
    compiled,
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
    """Memory of ctypes, to which weak references are possible."""


def python_array():
    """Make an array of Python's own."""
    return aligned(lambda: array.array("d", bytes(8 * SIZE)), ARRAY.address)


def numpy_array():
    """Make an array of NumPy."""
    return aligned(lambda: np.zeros(SIZE), NUMPY.address)


def numba_array():
    """Make an array in code that numba has compiled."""
    return aligned(lambda: compiled().zeros(SIZE), NUMBA.address)


def ctypes_array():
    """Make an array of ctypes."""
    return aligned(Block, CTYPES.address)


def arrow_list(values):
    """Make an Arrow array of tensors with one element each."""
    return import_module("pyarrow").FixedShapeTensorArray.from_numpy_ndarray(
        values.reshape(SIZE, 1)
    )


def polars_series():
    """Make a series of polars."""
    return aligned(lambda: import_module("polars").Series([0.0] * SIZE), POLARS.address)


def image():
    """Make an image whose pixels are the bytes of numbers, in one row."""
    make = import_module("PIL.Image").new
    return aligned(lambda: make("L", (8 * SIZE, 1)), PIL.address)


def storage_over_image(image):
    """Make a storage of the numbers whose bytes are the pixels.

    Through pyarrow: what an image itself shows first, `__array_interface__`, is a copy.
    """
    pixels = as_storage(import_module("pyarrow").array(image))
    return as_storage(memoryview(pixels).cast("d"))


def dask_array(chunk):
    """Make a Dask array whose only chunk is the given array itself; `da.from_array` copies."""
    chunk_later = import_module("dask").delayed(chunk, traverse=False)
    return import_module("dask.array").from_delayed(chunk_later, chunk.shape, dtype=chunk.dtype)


@dataclass(frozen=True)
class Producer:
    """A library whose arrays become storages."""

    library: Library
    own: Callable[[], Any]
    """Make an array as the library makes its own."""
    storage: Callable[[Any], Storage] = as_storage
    """Make the storage over an array: the field of float64 that the consumers are given."""
    readonly: bool = False
    """Whether the library writes none of the memory of its own arrays."""


PRODUCERS = (
    Producer(NUMPY, numpy_array),
    Producer(
        TORCH, lambda: import_module("torch").zeros(SIZE, dtype=import_module("torch").float64)
    ),
    Producer(JAX, lambda: import_module("jax.numpy").zeros(SIZE), readonly=True),
    Producer(ARROW_ARRAY, lambda: import_module("pyarrow").array([0.0] * SIZE), readonly=True),
    Producer(
        ARROW_TENSOR,
        lambda: import_module("pyarrow").Tensor.from_numpy(numpy_array()),
        readonly=True,
    ),
    Producer(
        ARROW_LIST,
        lambda: arrow_list(numpy_array()),
        lambda tensors: as_storage(tensors)[:, 0],
        readonly=True,
    ),
    Producer(POLARS, polars_series, readonly=True),
    Producer(PIL, image, storage_over_image),
    Producer(TVM, lambda: import_module("tvm_ffi").from_dlpack(numpy_array())),
    Producer(NUMBA, numba_array),
    Producer(MEMORYVIEW, lambda: memoryview(python_array())),
    Producer(ARRAY, python_array),
    Producer(CTYPES, ctypes_array),
    Producer(XARRAY, lambda: import_module("xarray").DataArray(numpy_array())),
    Producer(DASK, lambda: dask_array(numpy_array()), lambda array: as_storage(chunk_of(array))),
    Producer(STORAGE, lambda: zeros(SIZE)),
)


@dataclass(frozen=True)
class Consumer:
    """A library that takes storages, by a public function of its own."""

    library: Library
    take: Callable[[Storage], Any]
    entry: str
    """The name of that function."""


def _image_of_buffer(storage):
    size = (storage.nbytes, 1)
    return import_module("PIL.Image").frombuffer("L", size, storage, "raw", "L", 0, 1)


def _image_of_arrow(storage):
    pixels = as_storage(memoryview(storage).cast("B"))
    return import_module("PIL.Image").fromarrow(pixels, "L", (pixels.size, 1))


def _viewed(storage):
    return memoryview(storage)


def _ctypes_over(storage):
    return (ctypes.c_double * storage.size).from_buffer(storage)


def _chunked(storage):
    return import_module("dask.array").from_array(storage, asarray=False)


CONSUMERS = (
    Consumer(NUMPY, np.asarray, "np.asarray"),
    Consumer(NUMPY, np.from_dlpack, "np.from_dlpack"),
    Consumer(
        TORCH, lambda storage: import_module("torch").from_dlpack(storage), "torch.from_dlpack"
    ),
    Consumer(JAX, lambda storage: storage.to_jax(), "storage.to_jax"),
    Consumer(ARROW_ARRAY, lambda storage: import_module("pyarrow").array(storage), "pa.array"),
    Consumer(ARROW_ARRAY, lambda storage: storage.to_arrow(), "storage.to_arrow"),
    Consumer(
        ARROW_BUFFER, lambda storage: import_module("pyarrow").py_buffer(storage), "pa.py_buffer"
    ),
    Consumer(POLARS, lambda storage: import_module("polars").Series(storage), "pl.Series"),
    Consumer(PIL, _image_of_buffer, "Image.frombuffer"),
    Consumer(PIL, _image_of_arrow, "Image.fromarrow"),
    Consumer(
        TVM, lambda storage: import_module("tvm_ffi").from_dlpack(storage), "tvm_ffi.from_dlpack"
    ),
    Consumer(NUMBA, lambda storage: compiled().take(storage.to_numpy()), "numba.njit"),
    Consumer(MEMORYVIEW, _viewed, "memoryview"),
    Consumer(ARRAY, lambda storage: array.array("d", bytes(storage)), "array.array"),
    Consumer(CTYPES, _ctypes_over, "ctypes from_buffer"),
    Consumer(XARRAY, lambda storage: import_module("xarray").DataArray(storage), "xr.DataArray"),
    Consumer(DASK, _chunked, "da.from_array"),
    Consumer(DASK, dask_array, "da.from_delayed"),
    Consumer(STORAGE, as_storage, "dlf.as_storage"),
)
