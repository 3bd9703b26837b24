"""NumPy's functions that move, add or drop axes of a storage: views, which copy nothing.

A view shares the memory, and the state of a pair, and each axis that stays has its name and halo.
An axis that is new has no name, so that the view has no names at all, as ``storage[None]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import CPUStorage, as_storage
from dlfield._ways_out import way_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Storage

__all__ = [
    "broadcast_to",
    "expand_dims",
    "matrix_transpose",
    "moveaxis",
    "squeeze",
    "swapaxes",
    "transpose",
]

axis_in = np.lib.array_utils.normalize_axis_index
axes_in = np.lib.array_utils.normalize_axis_tuple


def transpose(a: Storage, axes: Any = None) -> Storage:  # noqa: ANN401 - numbers or names
    """Give the axes in another order: numbers, or names where the storage has dims."""
    return a.transpose(axes)


def moveaxis(a: Storage, source: int | Sequence[int], destination: int | Sequence[int]) -> Storage:
    """Put axes in other places; the others stay in their order."""
    taken, places = axes_in(source, a.ndim, "source"), axes_in(destination, a.ndim, "destination")
    if len(taken) != len(places):
        raise ValueError(
            f"moveaxis: expected as many destinations as sources, got {len(places)} for "
            f"{len(taken)}; name a place for each"
        )
    order = [axis for axis in range(a.ndim) if axis not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return a.transpose(order)


def swapaxes(a: Storage, axis1: int, axis2: int) -> Storage:
    """Give the two axes in each other's place."""
    first, second = axis_in(axis1, a.ndim), axis_in(axis2, a.ndim)
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    return a.transpose(order)


def matrix_transpose(x: Storage, /) -> Storage:
    """Give the last two axes in each other's place."""
    return swapaxes(x, -1, -2)


def expand_dims(a: Storage, axis: int | Sequence[int]) -> Storage:
    """Add axes of extent 1, which have no names."""
    count = 1 if isinstance(axis, int | np.integer) else len(axis)
    new = axes_in(axis, a.ndim + count)
    view: Storage = a[tuple(None if at in new else slice(None) for at in range(a.ndim + count))]
    return view


def squeeze(a: Storage, axis: int | Sequence[int] | None = None) -> Storage:
    """Drop axes of extent 1: all of them, or those named."""
    ones = tuple(at for at, extent in enumerate(a.shape) if extent == 1)
    gone = ones if axis is None else axes_in(axis, a.ndim)
    if not set(gone) <= set(ones):
        raise ValueError(
            f"squeeze: expected axes of extent 1, got {gone} of the shape {a.shape}; leave axis out"
        )
    # The dots keep what is left a view, where it is one element.
    key = [0 if at in gone else slice(None) for at in range(a.ndim)]
    view: Storage = a[(*key, ...)]
    return view


def broadcast_to(array: Storage, shape: int | Sequence[int], subok: object = None) -> Storage:
    """Repeat the storage along axes of extent 1 and new ones in front; read-only, as in NumPy.

    An axis that is repeated has no halo. Of host memory alone.
    """
    if not isinstance(array, CPUStorage):
        raise TypeError(
            "numpy.broadcast_to: expected a storage in host memory alone, got a "
            f"{type(array).__name__}; {way_out(array)}"
        )
    spread = np.broadcast_to(array.to_numpy(), shape)
    same = array.dims is not None and spread.ndim == array.ndim
    view = as_storage(spread, **({"dims": array.dims} if same else {}))  # type: ignore[arg-type]
    view.halo = _spread_halo(array, spread.shape)
    return view


def _spread_halo(array: Storage, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    if array.halo is None:
        return None
    new = len(shape) - array.ndim
    kept = zip(array.halo, array.shape, shape[new:], strict=True)
    return ((0, 0),) * new + tuple(
        width if before == after else (0, 0) for width, before, after in kept
    )
