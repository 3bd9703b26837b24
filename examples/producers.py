"""One field, held by thirteen producers: the inputs of `quickstart.py`.

Each producer comes with the address of its memory, as the producer itself states it, so that
"nothing was copied" can be checked from outside dlfield.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dlfield as dlf
import jax
import numpy as np
import pyarrow as pa
import torch
import xarray as xr
from hdiff import HALO

# JAX converts everything to float32 by default, and the stencil asks for float64.
jax.config.update("jax_enable_x64", True)  # noqa: FBT003 (JAX takes the value by position)


@dataclass(frozen=True)
class Producer:
    """An array of some library and what is expected of it."""

    name: str
    array: Any
    address: int
    """Where element (0, 0, ...) lies, according to the library that owns it."""
    readonly: bool = False
    dims: Mapping[str, str] = field(default_factory=dict)
    """The names for `dlf.bind` of dimensions that are not called I, J and K."""


def all_producers(values: np.ndarray) -> list[Producer]:
    """Put the same values, axes I, J, K, into the memory of every producer."""
    return [
        *numpy_producers(values),
        *tensor_producers(values),
        *labelled_producers(values),
        *plain_producers(values),
    ]


def numpy_producers(values: np.ndarray) -> list[Producer]:
    """Return the memory layouts that NumPy users have."""
    roomy = np.zeros(tuple(size + 5 for size in values.shape))
    padded = roomy[tuple(map(slice, values.shape))]
    padded[...] = values
    backwards = values[::-1, :, ::-1].copy()[::-1, :, ::-1]
    frozen = values.copy()
    frozen.flags.writeable = False
    arrays = {
        "numpy, C order": values.copy(),
        "numpy, Fortran order": np.asfortranarray(values),
        "numpy, padded": padded,
        "numpy, negative strides": backwards,
        "numpy, read-only": frozen,
    }
    return [
        Producer(name, array, array.ctypes.data, readonly=not array.flags.writeable)
        for name, array in arrays.items()
    ]


def tensor_producers(values: np.ndarray) -> list[Producer]:
    """Return tensors of the machine-learning frameworks."""
    tensor = torch.tensor(values)
    permuted = torch.tensor(values.transpose(2, 0, 1).copy()).permute(1, 2, 0)
    immutable = jax.device_put(values.copy(), jax.devices("cpu")[0])
    return [
        Producer("torch", tensor, tensor.data_ptr()),
        Producer("torch, permuted", permuted, permuted.data_ptr()),
        Producer("jax", immutable, immutable.unsafe_buffer_pointer(), readonly=True),
    ]


def labelled_producers(values: np.ndarray) -> list[Producer]:
    """Return DataArrays, whose axes go into the stencil by name, in whatever order they are."""
    by_level = values.transpose(2, 1, 0).copy()
    model = xr.DataArray(by_level, dims=("K", "J", "I"))
    observed = xr.DataArray(by_level.copy(), dims=("level", "lat", "lon"))
    names = {"lon": "I", "lat": "J", "level": "K"}
    return [
        Producer("xarray K,J,I", model, model.data.ctypes.data),
        Producer("xarray level,lat,lon", observed, observed.data.ctypes.data, dims=names),
    ]


def plain_producers(values: np.ndarray) -> list[Producer]:
    """Return the rest: Arrow, a memoryview, and dlfield itself."""
    arrow = pa.Tensor.from_numpy(values.copy())
    block = bytearray(values.tobytes())
    view = memoryview(block).cast("d", shape=values.shape)
    storage = dlf.zeros(values.shape, halo=HALO)
    storage.to_numpy()[...] = values
    return [
        Producer("pyarrow tensor", arrow, arrow.to_numpy().ctypes.data, readonly=True),
        Producer("memoryview", view, ctypes.addressof(ctypes.c_char.from_buffer(block))),
        Producer("dlfield, halo (3, 3, 0)", storage, np.from_dlpack(storage).ctypes.data),
    ]
