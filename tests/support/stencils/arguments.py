"""The same values, axes I, J, K, in the memory of every producer that a bound stencil may get."""

import ctypes
import itertools
import mmap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dlfield as dlf
import numpy as np

from support.optional import library
from support.stencils.cartesian import SKEWED_HALO


@dataclass(frozen=True)
class Held:
    """An array of some library, with its address and values according to that library."""

    array: Any
    address: int
    """Where element (0, 0, 0) lies."""
    read: Callable[[], np.ndarray]
    """The values as they are now, axes I, J, K, read without dlfield."""


@dataclass(frozen=True)
class Producer:
    """A way to hold a field."""

    name: str
    hold: Callable[[np.ndarray], Held]
    readonly: bool = False
    dims: Mapping[str, str] = field(default_factory=dict)
    """What `dlf.bind` is told about dims that are not called I, J and K."""

    def __str__(self):
        return self.name


def numpy(array):
    return Held(array, array.ctypes.data, array.copy)


def padded(values):
    array = np.zeros(tuple(extent + 3 for extent in values.shape))[tuple(map(slice, values.shape))]
    array[...] = values
    return numpy(array)


def read_only(values):
    array = values.copy()
    array.flags.writeable = False
    return numpy(array)


def read_only_page(values):
    """Hold the values on pages where a write ends the process, which needs no assertion."""
    block = mmap.mmap(-1, values.nbytes)
    block[:] = values.tobytes()
    array = np.frombuffer(block).reshape(values.shape)
    page, readable = ctypes.c_void_p(array.ctypes.data), 1
    assert ctypes.CDLL(None).mprotect(page, ctypes.c_size_t(values.nbytes), readable) == 0
    array.flags.writeable = False
    return numpy(array)


def torch_tensor(values, order=(0, 1, 2)):
    torch = library("torch")
    inner = torch.tensor(values.transpose(order).copy())
    tensor = inner.permute(*np.argsort(order).tolist())
    return Held(tensor, tensor.data_ptr(), lambda: np.array(tensor.tolist()))


def jax_array(values):
    array = library("jax.numpy").array(values)
    return Held(array, array.unsafe_buffer_pointer(), lambda: np.array(array))


def tvm_tensor(values):
    tensor = library("tvm_ffi").from_dlpack(values.copy())
    return Held(tensor, tensor.data_ptr(), lambda: np.from_dlpack(tensor).copy())


def data_array(values, order="IJK", names="IJK"):
    inner = values.transpose(["IJK".index(name) for name in order]).copy()
    dims = [names["IJK".index(name)] for name in order]
    array = library("xarray").DataArray(inner, dims=dims)
    return Held(array, inner.ctypes.data, lambda: array.transpose(*names).to_numpy().copy())


def arrow_tensor(values):
    inner = values.copy()
    tensor = library("pyarrow").Tensor.from_numpy(inner)
    return Held(tensor, inner.ctypes.data, lambda: tensor.to_numpy().copy())


def memory_view(values):
    block = bytearray(values.tobytes())
    view = memoryview(block).cast("d", shape=values.shape)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    return Held(view, address, lambda: np.array(view.tolist()))


def ctypes_array(values):
    i, j, k = values.shape
    block = (ctypes.c_double * k * j * i).from_buffer_copy(values.tobytes())
    return Held(
        block, ctypes.addressof(block), lambda: np.array([[r[:] for r in p] for p in block])
    )


def storage(values, dims="IJK", **options):
    order = ["IJK".index(name) for name in dims]
    made = dlf.zeros(values.transpose(order).shape, dims=dims, **options)
    made.to_numpy()[...] = values.transpose(order)
    array = np.from_dlpack(made).transpose(np.argsort(order))
    return Held(made, array.ctypes.data, array.copy)


class Interface:
    """An object with nothing but an `__array_interface__`."""

    def __init__(self, array):
        self.kept = array
        self.__array_interface__ = array.__array_interface__


class NamedByAttribute(Interface):
    __gt_dims__ = ("K", "I", "J")


class NamedByMethod(Interface):
    def __gt_dims__(self):
        return "KIJ"


def named(kind):
    def hold(values):
        inner = values.transpose(2, 0, 1).copy()
        return Held(kind(inner), inner.ctypes.data, lambda: inner.transpose(1, 2, 0).copy())

    return hold


def next_field(values):
    """Hold a field of gt4py.next, whose `.ndarray` is the array."""
    gtx = library("gt4py.next")
    dims = [gtx.Dimension(name, kind=gtx.DimensionKind.HORIZONTAL) for name in "IJ"]
    dims += [gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)]
    made = gtx.as_field(dims, values)
    return Held(made, made.ndarray.ctypes.data, made.asnumpy().copy)


LABELS = {"lon": "I", "lat": "J", "level": "K"}

WRITABLE = [
    Producer("numpy, C order", lambda values: numpy(values.copy())),
    Producer("numpy, Fortran order", lambda values: numpy(np.array(values, order="F"))),
    Producer("numpy, padded", padded),
    Producer("numpy, backwards", lambda values: numpy(values[::-1, :, ::-1].copy()[::-1, :, ::-1])),
    Producer("torch", torch_tensor),
    Producer("torch, permuted", lambda values: torch_tensor(values, order=(2, 0, 1))),
    Producer("tvm_ffi", tvm_tensor),
    *(
        Producer("xarray " + "".join(order), lambda values, order=order: data_array(values, order))
        for order in itertools.permutations("IJK")
    ),
    Producer("xarray, labels", lambda values: data_array(values, "KJI", list(LABELS)), dims=LABELS),
    Producer("memoryview", memory_view),
    Producer("ctypes", ctypes_array),
    Producer("array interface", lambda values: numpy_behind(Interface, values)),
    Producer("__gt_dims__ attribute", named(NamedByAttribute)),
    Producer("__gt_dims__ method", named(NamedByMethod)),
    Producer("gt4py.next field", next_field),
    Producer("storage", storage),
    Producer("storage KJI", lambda values: storage(values, dims="KJI")),
    Producer("storage with halo", lambda values: storage(values, halo=SKEWED_HALO)),
]

READ_ONLY = [
    Producer("numpy, read-only", read_only, readonly=True),
    Producer("numpy, read-only page", read_only_page, readonly=True),
    Producer("jax", jax_array, readonly=True),
    Producer("pyarrow", arrow_tensor, readonly=True),
    Producer(
        "storage over jax",
        lambda values: behind(dlf.as_storage, jax_array(values)),
        readonly=True,
    ),
]

EVERY = WRITABLE + READ_ONLY


def behind(wrap, held):
    return Held(wrap(held.array), held.address, held.read)


def numpy_behind(wrap, values):
    return behind(wrap, numpy(values.copy()))
