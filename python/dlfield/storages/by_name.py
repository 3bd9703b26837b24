"""Views of storages by the names of their dimensions: parts, and repetition along other dims."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import Storage, as_storage, check_among, get_dims
from dlfield.functions.host import check_host_alone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlfield._core import Array

__all__ = ["broadcast_like", "isel"]


def isel(storage: Storage, indexers: Mapping[str, Any]) -> Storage:
    """Implement `Storage.isel`."""
    dims = _dims_of("isel", storage)
    check_among("isel", indexers, dims)
    key = [_index(name, indexers.get(name, slice(None))) for name in dims]
    view: Storage = storage[(*key, ...)]
    return view


def _index(name: str, index: Array) -> int | slice:
    if isinstance(index, slice):
        return index
    try:
        if isinstance(index, bool | np.bool):
            raise TypeError
        return operator.index(index)
    except TypeError:
        raise TypeError(
            f"isel: expected an integer or a slice for {name!r}, got a {type(index).__name__}; use "
            f"numpy.take(storage, indices, axis={name!r})"
        ) from None


def broadcast_like(storage: Storage, other: Array) -> Storage:
    """Do what `Storage.broadcast_like` says."""
    check_host_alone("broadcast_like", storage)
    own, model = _dims_of("broadcast_like", storage), get_dims(other)
    if model is None:
        raise ValueError(
            f"broadcast_like: expected a model with dims, got a {type(other).__name__} without; "
            "use numpy.broadcast_to to go by position"
        )
    shape = as_storage(other).shape
    extents = dict(zip(model, shape, strict=True)) | dict(zip(own, storage.shape, strict=True))
    for name, extent in zip(model, shape, strict=True):
        if extents[name] != extent:
            raise ValueError(
                f"broadcast_like: expected extent {extent} along {name!r} as the model has, got "
                f"{extents[name]}; use isel({name}=...) to take a part"
            )
    moved = storage.transpose([name for name in extents if name in own])
    array = moved.to_numpy()[tuple(slice(None) if name in own else None for name in extents)]
    view = as_storage(np.broadcast_to(array, tuple(extents.values())), dims=tuple(extents))
    halo = None if storage.halo is None else dict(zip(own, storage.halo, strict=True))
    view.halo = None if halo is None else tuple(halo.get(name, (0, 0)) for name in extents)
    return view


def _dims_of(what: str, storage: Storage) -> tuple[str, ...]:
    if storage.dims is None:
        raise ValueError(
            f"{what}: expected a storage with dims, got one of shape {storage.shape} without; name "
            "them with dlfield.as_storage(storage, dims=...)"
        )
    return storage.dims
