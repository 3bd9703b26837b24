"""NumPy's functions that move elements of a storage: reshape, ravel, flip, rot90, roll, tile, pad.

`flip` and `rot90` are views of any storage. `reshape` is a view of host memory that has no other
buffer; it copies nothing, also where NumPy would. The others make a new storage on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield import _core
from dlfield._core import as_storage
from dlfield.functions import joins as joins
from dlfield.functions.axes import axes_of, numbered
from dlfield.functions.views import check_host_alone, swapaxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Storage


def reshape(
    a: Storage,
    /,
    shape: int | Sequence[int],
    order: Any = "C",  # noqa: ANN401 - one of NumPy's words
    *,
    copy: bool | None = None,
) -> Storage:
    """Give a storage of another shape over the same memory, read-only if the storage is.

    It has no names, and no halo if the storage has none; else its halo is unknown (None). With its
    own shape it keeps both. With `copy=True` it is a view of a copy.

    Raises
    ------
    ValueError
        If the memory cannot be seen in that shape without a copy.
    """
    check_host_alone("numpy.reshape", a)
    array = (a.copy() if copy else a).to_numpy()
    seen = array.reshape(shape, order=order)
    if seen.size and not np.may_share_memory(seen, array):
        raise ValueError(
            f"reshape: expected a shape that needs no copy, got {seen.shape} for the shape "
            f"{a.shape} with strides of {a.strides} bytes; use flatten() or to_numpy().reshape()"
        )
    return _like(a, as_storage(seen))


def ravel(a: Storage, order: Any = "C") -> Storage:  # noqa: ANN401 - one of NumPy's words
    """Give all elements in one dimension: a view if the memory allows it, else a new storage."""
    check_host_alone("numpy.ravel", a)
    array = a.to_numpy()
    row = array.ravel(order)
    shared = np.may_share_memory(row, array)
    return _like(a, as_storage(row) if shared else _core.storage(row))


def flatten(a: Storage, order: Any = "C") -> Storage:  # noqa: ANN401 - one of NumPy's words
    """Copy all elements into a new storage of one dimension."""
    joins.check_host("flatten", (a,))
    return _core.storage(a.to_numpy().ravel(order))


def _like(a: Storage, made: Storage) -> Storage:
    """Label a storage of other dimensions over the same elements."""
    if made.shape == a.shape and a.dims is not None:
        made = as_storage(made, dims=a.dims)
    if made.shape == a.shape:
        made.halo = a.halo
    elif a.halo is None or any(map(any, a.halo)):
        made.halo = None
    return made


def flip(m: Storage, axis: Any = None) -> Storage:  # noqa: ANN401 - names or numbers
    """Reverse the order of elements along axes, by default all. A view; halos turn with them."""
    turned = range(m.ndim) if axis is None else axes_of("numpy.flip", m, axis)
    key = [slice(None, None, -1 if at in turned else 1) for at in range(m.ndim)]
    view: Storage = m[(*key, ...)]
    return view


def fliplr(m: Storage) -> Storage:
    """Reverse the second axis."""
    return flip(m, 1)


def flipud(m: Storage) -> Storage:
    """Reverse the first axis."""
    return flip(m, 0)


def rot90(m: Storage, k: int = 1, axes: Sequence[int | str] = (0, 1)) -> Storage:
    """Rotate by `k` times 90 degrees in the plane of two axes. A view; names and halo go along."""
    if len(axes) != 2:
        raise ValueError(f"rot90: expected two axes, got {len(axes)}; name a plane")
    first, second = axes_of("numpy.rot90", m, tuple(axes))
    match k % 4:
        case 0:
            return flip(m, ())
        case 1:
            return swapaxes(flip(m, second), first, second)
        case 2:
            return flip(m, (first, second))
        case _:
            return flip(swapaxes(m, first, second), second)


def roll(a: Storage, shift: Any, axis: Any = None) -> Storage:  # noqa: ANN401 - as NumPy
    """Move elements along axes, around the ends, into a new storage with the same labels."""
    joins.check_host("roll", (a,))
    made = _core.empty_like(a)
    axis = None if axis is None else axes_of("numpy.roll", a, axis)
    with made.host() as array:
        array[...] = np.roll(a.to_numpy(), shift, axis)
    return made


def tile(A: Storage, reps: Any) -> Storage:  # noqa: ANN401 - as NumPy
    """Repeat the whole, into a new storage; with names unless there are new axes.

    The halo is unknown if the storage has one.
    """
    joins.check_host("tile", (A,))
    tiled = np.tile(A.to_numpy(), reps)
    halo = None if A.halo is None or any(map(any, A.halo)) else ((0, 0),) * tiled.ndim
    made = joins.made_like(tiled.shape, tiled.dtype, A, A.dims, halo)
    with made.host() as array:
        array[...] = tiled
    return made


def pad(
    array: Storage,
    pad_width: Any,  # noqa: ANN401 - as NumPy
    mode: Any = "constant",  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> Storage:
    """Put points around the elements, in a new storage with the same names.

    The domain stays where it was: the halo grows by the points. A dict of widths may have names.
    """
    joins.check_host("pad", (array,))
    if isinstance(pad_width, dict):
        axes = [numbered("numpy.pad", array, axis) for axis in pad_width]
        pad_width = _widths(dict(zip(axes, pad_width.values(), strict=True)), array.ndim)
    padded = np.pad(array.to_numpy(), pad_width, mode, **options)
    halo = array.halo and tuple(
        (low + below, high + above)
        for (low, high), (below, above) in zip(
            array.halo, _widths(pad_width, array.ndim), strict=True
        )
    )
    made = joins.made_like(padded.shape, padded.dtype, array, array.dims, halo)
    with made.host() as values:
        values[...] = padded
    return made


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:  # noqa: ANN401
    """Give the points below and above each axis, in whichever form NumPy takes them."""
    if not isinstance(pad_width, dict):
        return [(low, high) for low, high in np.broadcast_to(pad_width, (ndim, 2)).tolist()]
    pairs = [(0, 0)] * ndim
    for axis, width in pad_width.items():
        low, high = np.broadcast_to(width, 2).tolist()
        pairs[axis] = (low, high)
    return pairs
