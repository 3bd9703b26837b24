"""NumPy's functions that move, add or drop axes of a storage: views, which copy nothing.

A view shares the memory, and the state of a pair. Each axis that stays keeps its name and halo. A
new axis has no name, so that the view has no names at all, as ``storage[None]``.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import CPUStorage, Storage, as_storage
from dlfield._methods import way_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "expand_dims",
    "matrix_transpose",
    "moveaxis",
    "squeeze",
    "swapaxes",
    "transpose",
]

axes_in = np.lib.array_utils.normalize_axis_tuple


def transpose(a: Storage, axes: Any = None) -> Storage:  # noqa: ANN401 - numbers or names
    """Reorder the axes by number, or by name if the storage has dims."""
    return a.transpose(axes)


def _reordering(function: Callable[..., Any]) -> Callable[..., Storage]:
    """Reorder the axes as `function` of NumPy does."""

    @wraps(function)
    def call(a: Storage, *args: Any, **keywords: Any) -> Storage:  # noqa: ANN401 - as NumPy
        numbered = np.broadcast_to(0, tuple(range(a.ndim)))  # the extent of an axis is its number
        return a.transpose(function(numbered, *args, **keywords).shape)

    return call


moveaxis, swapaxes = _reordering(np.moveaxis), _reordering(np.swapaxes)


def matrix_transpose(x: Storage, /) -> Storage:
    """Interchange the last two axes."""
    return swapaxes(x, -1, -2)


def expand_dims(a: Storage, axis: int | Sequence[int]) -> Storage:
    """Add axes of extent 1, which have no names."""
    longer = np.expand_dims(np.broadcast_to(0, (2,) * a.ndim), axis)
    view: Storage = a[tuple(None if extent == 1 else slice(None) for extent in longer.shape)]
    return view


def squeeze(a: Storage, axis: int | Sequence[int] | None = None) -> Storage:
    """Drop axes of extent 1: all of them, or those named."""
    ones = tuple(at for at, extent in enumerate(a.shape) if extent == 1)
    gone = ones if axis is None else axes_in(axis, a.ndim)
    if not set(gone) <= set(ones):
        raise ValueError(
            f"squeeze: expected axes of extent 1, got {gone} of the shape {a.shape}; leave axis out"
        )
    # The dots make a view of a single element too.
    key = [0 if at in gone else slice(None) for at in range(a.ndim)]
    view: Storage = a[(*key, ...)]
    return view


def broadcast_to(array: Storage, shape: int | Sequence[int], subok: object = None) -> Storage:
    """Repeat the storage along axes of extent 1 and new ones in front; read-only, as in NumPy.

    A repeated axis has no halo. For host memory alone.
    """
    check_host_alone("numpy.broadcast_to", array)
    spread = np.broadcast_to(array.to_numpy(), shape)
    same = array.dims is not None and spread.ndim == array.ndim
    view = as_storage(spread, **({"dims": array.dims} if same else {}))  # type: ignore[arg-type]
    view.halo = _spread_halo(array, spread.shape)
    return view


def check_host_alone(what: str, array: Storage) -> None:
    """Refuse a storage with a buffer on a GPU, of which an array of NumPy shows one side."""
    if not isinstance(array, CPUStorage):
        raise TypeError(
            f"{what}: expected a storage in host memory alone, got a {type(array).__name__}; "
            f"{way_out(array)}"
        )


def broadcast_arrays(*arrays: Any, subok: object = None) -> tuple[Any, ...]:  # noqa: ANN401
    """Repeat arrays to their common shape; read-only. Storages stay storages, others NumPy's."""
    shape = np.broadcast_shapes(*(np.shape(one) for one in arrays))
    return tuple(
        broadcast_to(one, shape) if isinstance(one, Storage) else np.broadcast_to(one, shape)
        for one in arrays
    )


def _spread_halo(array: Storage, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    if array.halo is None:
        return None
    new = len(shape) - array.ndim
    kept = zip(array.halo, array.shape, shape[new:], strict=True)
    return ((0, 0),) * new + tuple(
        width if before == after else (0, 0) for width, before, after in kept
    )
