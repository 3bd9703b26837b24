"""Every library as a producer of a storage's memory and as a consumer of it.

The way is always producer, `dlf.as_storage`, consumer. `libraries.py` has the words by which each
of them is asked what it holds.
"""

import array
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dlfield as dlf
import numpy as np

from support.libraries.extension import extension
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
    NANOBIND,
    NANOBIND_ARRAY,
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
from support.optional import library
from support.owners import CountedMemory, frees


def aligned(make, address):
    """Make blocks until one lies on a boundary of 64 bytes: JAX shares no other."""
    made = []
    for spacing in range(200):
        made.append((make(), bytes(16 * spacing)))
        if address(made[-1][0]) % 64 == 0:
            return made[-1][0]
    raise RuntimeError("200 blocks, and none of them on a boundary of 64 bytes")


class Block(ctypes.c_double * SIZE):
    """Memory that records when it is freed."""


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


def arrow_list(values):
    """An Arrow array of tensors with one element each."""
    return library("pyarrow").FixedShapeTensorArray.from_numpy_ndarray(values.reshape(SIZE, 1))


def polars_series():
    return aligned(lambda: library("polars").Series([0.0] * SIZE), POLARS.address)


def image():
    """An image whose pixels are the bytes of numbers, in one row."""
    make = library("PIL.Image").new
    return aligned(lambda: make("L", (8 * SIZE, 1)), PIL.address)


def image_over(block):
    pa = library("pyarrow")
    pixels = pa.Array.from_buffers(pa.uint8(), 8 * SIZE, [None, pa.py_buffer(block)])
    return library("PIL.Image").fromarrow(pixels, "L", (8 * SIZE, 1))


def storage_over_image(image):
    """A storage of the numbers whose bytes are the pixels.

    Through pyarrow: what an image itself shows first, `__array_interface__`, is a copy.
    """
    pixels = dlf.as_storage(library("pyarrow").array(image))
    return dlf.as_storage(memoryview(pixels).cast("d"))


def dask_array(chunk):
    """A Dask array whose only chunk is the given array itself; `da.from_array` copies."""
    chunk_later = library("dask").delayed(chunk, traverse=False)
    return library("dask.array").from_delayed(chunk_later, chunk.shape, dtype=chunk.dtype)


def nanobind_array():
    deletions = extension().Deletions()
    return extension().zeros(SIZE, deletions), lambda: deletions.count


def by_finalizer(make, wrap=lambda owner: owner):
    """Make an array over an owner, and a function that counts how often the owner has died."""

    def counted():
        owner = make()
        told = frees(owner)
        return wrap(owner), lambda: len(told)

    return counted


def by_deleter(take):
    """Make an array over DLPack memory, and a function that counts how often its deleter ran."""

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
    storage: Callable[[Any], dlf.Storage] = dlf.as_storage
    """Make the storage over an array: the field of float64 that the consumers are given."""
    readonly: bool = False
    """Whether the library writes none of the memory of its own arrays."""


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
        ARROW_TENSOR,
        lambda: library("pyarrow").Tensor.from_numpy(numpy_array()),
        by_finalizer(
            ctypes_array, lambda block: library("pyarrow").Tensor.from_numpy(np.frombuffer(block))
        ),
        readonly=True,
    ),
    Producer(
        ARROW_LIST,
        lambda: arrow_list(numpy_array()),
        by_finalizer(ctypes_array, lambda block: arrow_list(np.frombuffer(block))),
        lambda tensors: dlf.as_storage(tensors)[:, 0],
        readonly=True,
    ),
    Producer(
        POLARS,
        polars_series,
        by_finalizer(ctypes_array, lambda block: library("polars").Series("", arrow_array(block))),
        readonly=True,
    ),
    Producer(PIL, image, by_finalizer(ctypes_array, image_over), storage_over_image),
    Producer(
        TVM,
        lambda: library("tvm_ffi").from_dlpack(numpy_array()),
        by_deleter(lambda memory: library("tvm_ffi").from_dlpack(memory)),
    ),
    Producer(NUMBA, numba_array, by_finalizer(numba_array)),
    Producer(NANOBIND_ARRAY, lambda: nanobind_array()[0], nanobind_array),
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
    Producer(
        DASK,
        lambda: dask_array(numpy_array()),
        by_finalizer(ctypes_array, lambda block: dask_array(np.frombuffer(block))),
        lambda array: dlf.as_storage(chunk_of(array)),
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


def to_arrow(storage):
    library("pyarrow")
    return storage.to_arrow()


def image_of_buffer(storage):
    size = (storage.nbytes, 1)
    return library("PIL.Image").frombuffer("L", size, storage, "raw", "L", 0, 1)


def image_of_arrow(storage):
    pixels = dlf.as_storage(memoryview(storage).cast("B"))
    return library("PIL.Image").fromarrow(pixels, "L", (pixels.size, 1))


CONSUMERS = [
    Consumer(NUMPY, np.asarray, "np.asarray"),
    Consumer(NUMPY, np.from_dlpack, "np.from_dlpack"),
    Consumer(TORCH, lambda storage: library("torch").from_dlpack(storage), "torch.from_dlpack"),
    Consumer(JAX, to_jax, "storage.to_jax"),
    Consumer(ARROW_ARRAY, lambda storage: library("pyarrow").array(storage), "pa.array"),
    Consumer(ARROW_ARRAY, to_arrow, "storage.to_arrow"),
    Consumer(ARROW_BUFFER, lambda storage: library("pyarrow").py_buffer(storage), "pa.py_buffer"),
    Consumer(POLARS, lambda storage: library("polars").Series(storage), "pl.Series"),
    Consumer(PIL, image_of_buffer, "Image.frombuffer"),
    Consumer(PIL, image_of_arrow, "Image.fromarrow"),
    Consumer(TVM, lambda storage: library("tvm_ffi").from_dlpack(storage), "tvm_ffi.from_dlpack"),
    Consumer(NUMBA, lambda storage: compiled().take(storage.to_numpy()), "numba.njit"),
    Consumer(NANOBIND, lambda storage: extension().Keeper(storage), "nb::ndarray<double>"),
    Consumer(
        NANOBIND, lambda storage: extension().ConstKeeper(storage), "nb::ndarray<const double>"
    ),
    Consumer(MEMORYVIEW, memoryview, "memoryview"),
    Consumer(ARRAY, lambda storage: array.array("d", bytes(storage)), "array.array"),
    Consumer(
        CTYPES,
        lambda storage: (ctypes.c_double * storage.size).from_buffer(storage),
        "ctypes from_buffer",
    ),
    Consumer(XARRAY, lambda storage: library("xarray").DataArray(storage), "xr.DataArray"),
    Consumer(
        DASK,
        lambda storage: library("dask.array").from_array(storage, asarray=False),
        "da.from_array",
    ),
    Consumer(DASK, dask_array, "da.from_delayed"),
    Consumer(STORAGE, dlf.as_storage, "dlf.as_storage"),
]
