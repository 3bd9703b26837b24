"""The sides of `sides.py`, an extension of nanobind, and owners that are counted."""

import dlfield as dlf
import numpy as np

from support.libraries import sides
from support.libraries.extension import extension
from support.libraries.sides import Consumer, Producer, arrow_list, ctypes_array, dask_array
from support.libraries.words import AT, SIZE, Library
from support.optional import library
from support.owners import CountedMemory, frees

NANOBIND = Library(  # an object with an `ndarray<double>` or an `ndarray<const double>`
    "nanobind",
    lambda held: held.address(),
    lambda held: held.read(AT),
    lambda held, value: held.write(AT, value),
    modules=("nanobind",),
)
NANOBIND_ARRAY = Library(  # an array that the extension has made, given back to it
    "nanobind",
    lambda held: extension().Keeper(held).address(),
    lambda held: extension().Keeper(held).read(AT),
    lambda held, value: extension().Keeper(held).write(AT, value),
    modules=("nanobind",),
)


def after(name, listed, names, *more):
    """Put more sides behind the one of a name: the order is that of the table."""
    at = names.index(name) + 1
    return [*listed[:at], *more, *listed[at:]]


def nanobind_array():
    deletions = extension().Deletions()
    return extension().zeros(SIZE, deletions), lambda: deletions.count


PRODUCERS = after(
    "numba",
    sides.PRODUCERS,
    [side.library.name for side in sides.PRODUCERS],
    Producer(NANOBIND_ARRAY, lambda: nanobind_array()[0]),
)
CONSUMERS = after(
    "numba.njit",
    sides.CONSUMERS,
    [side.entry for side in sides.CONSUMERS],
    Consumer(NANOBIND, lambda storage: extension().Keeper(storage), "nb::ndarray<double>"),
    Consumer(
        NANOBIND, lambda storage: extension().ConstKeeper(storage), "nb::ndarray<const double>"
    ),
)


def arrow_array(block):
    pa = library("pyarrow")
    return pa.Array.from_buffers(pa.float64(), SIZE, [None, pa.py_buffer(block)])


def image_over(block):
    pa = library("pyarrow")
    pixels = pa.Array.from_buffers(pa.uint8(), 8 * SIZE, [None, pa.py_buffer(block)])
    return library("PIL.Image").fromarrow(pixels, "L", (8 * SIZE, 1))


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


def over_ctypes(wrap):
    return by_finalizer(ctypes_array, wrap)


#: By producer: a function that gives an array, and one that says how often its memory was given up.
COUNTED = {
    "NumPy": over_ctypes(np.frombuffer),
    "torch": by_deleter(lambda memory: library("torch").from_dlpack(memory)),
    "JAX": by_deleter(lambda memory: library("jax").dlpack.from_dlpack(memory)),
    "pyarrow.Array": over_ctypes(arrow_array),
    "pyarrow.Tensor": over_ctypes(
        lambda block: library("pyarrow").Tensor.from_numpy(np.frombuffer(block))
    ),
    "pyarrow.FixedShapeTensorArray": over_ctypes(lambda block: arrow_list(np.frombuffer(block))),
    "polars": over_ctypes(lambda block: library("polars").Series("", arrow_array(block))),
    "PIL": over_ctypes(image_over),
    "tvm-ffi": by_deleter(lambda memory: library("tvm_ffi").from_dlpack(memory)),
    "numba": by_finalizer(sides.numba_array),
    "nanobind": nanobind_array,
    "memoryview": over_ctypes(memoryview),
    "array": by_finalizer(sides.python_array),
    "ctypes": by_finalizer(ctypes_array),
    "xarray": over_ctypes(lambda block: library("xarray").DataArray(np.frombuffer(block))),
    "Dask": over_ctypes(lambda block: dask_array(np.frombuffer(block))),
    "Storage": by_deleter(dlf.as_storage),
}
