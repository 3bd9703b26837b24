"""NumPy's functions that move, add or drop axes of a storage, or take parts: views, no copies.

A view shares the memory, and the state of a pair. Each axis that stays keeps its name and halo. A
new axis has no name, so that the view has no names at all, as ``storage[None]``.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import CPUStorage, Storage, as_storage
from dlfield.functions.axes import along, axes_of, axis_of, numbered
from dlfield.functions.host import way_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def transpose(a: Storage, axes: Any = None) -> Storage:  # noqa: ANN401 - numbers or names
    """Reorder the axes by number, or by name if the storage has dims."""
    return a.transpose(axes)


def _reordering(function: Any) -> Callable[..., Storage]:  # noqa: ANN401
    """Reorder the axes as `function` of NumPy does."""

    @wraps(function)
    def call(a: Storage, *axes: Any, **named: Any) -> Storage:  # noqa: ANN401 - as NumPy
        what = f"numpy.{function.__name__}"
        by_number = [numbered(what, a, one) for one in axes]
        named = {name: numbered(what, a, one) for name, one in named.items()}
        numbers = np.broadcast_to(0, tuple(range(a.ndim)))  # the extent of an axis is its number
        return a.transpose(function(numbers, *by_number, **named).shape)

    return call


moveaxis, swapaxes, rollaxis = map(_reordering, (np.moveaxis, np.swapaxes, np.rollaxis))


def matrix_transpose(x: Storage, /) -> Storage:
    """Interchange the last two axes."""
    return swapaxes(x, -1, -2)


def expand_dims(a: Storage, axis: int | Sequence[int]) -> Storage:
    """Add axes of extent 1, which have no names."""
    longer = np.expand_dims(np.broadcast_to(0, (2,) * a.ndim), axis)
    view: Storage = a[tuple(None if extent == 1 else slice(None) for extent in longer.shape)]
    return view


def _at_least(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add axes as `function` of NumPy does; an array that has enough of them is given back."""

    @wraps(function)
    def call(*arrays: Any) -> Any:  # noqa: ANN401 - one or several, as NumPy
        made = tuple(_longer(function, one) for one in arrays)
        return made if len(made) != 1 else made[0]

    return call


def _longer(function: Callable[..., Any], array: Any) -> Any:  # noqa: ANN401
    if not isinstance(array, Storage):
        return function(array)
    longer = function(np.broadcast_to(0, (2,) * array.ndim)).shape
    key = tuple(None if extent == 1 else slice(None) for extent in longer)
    return array if len(longer) == array.ndim else array[key]


atleast_1d, atleast_2d, atleast_3d = map(_at_least, (np.atleast_1d, np.atleast_2d, np.atleast_3d))


def squeeze(a: Storage, axis: Any = None) -> Storage:  # noqa: ANN401 - names or numbers
    """Drop axes of extent 1: all of them, or those named."""
    ones = tuple(at for at, extent in enumerate(a.shape) if extent == 1)
    gone = ones if axis is None else axes_of("squeeze", a, axis)
    if not set(gone) <= set(ones):
        raise ValueError(
            f"squeeze: expected axes of extent 1, got {gone} of the shape {a.shape}; leave axis out"
        )
    # The dots make a view of a single element too.
    key = [0 if at in gone else slice(None) for at in range(a.ndim)]
    view: Storage = a[(*key, ...)]
    return view


# --- parts ---------------------------------------------------------------------------------------


def _splitting(function: Callable[..., Any]) -> Callable[..., list[Storage]]:
    """Split as `function` of NumPy does, into views."""

    @wraps(function)
    def call(ary: Storage, indices_or_sections: Any, axis: Any = 0) -> list[Storage]:  # noqa: ANN401
        at = axis_of(f"numpy.{function.__name__}", ary, axis)
        numbers = np.arange(ary.shape[at])
        return [ary[along(at, _range(one))] for one in function(numbers, indices_or_sections)]

    return call


def _range(numbers: np.ndarray) -> slice:
    return slice(numbers[0], numbers[-1] + 1) if numbers.size else slice(0, 0)


split, array_split = _splitting(np.split), _splitting(np.array_split)


def _splitting_at(name: str, axis: int, least: int) -> Callable[..., list[Storage]]:
    def call(ary: Storage, indices_or_sections: Any) -> list[Storage]:  # noqa: ANN401
        if ary.ndim < least:
            raise ValueError(
                f"numpy.{name}: expected a storage of at least {least} dimensions, got {ary.ndim}; "
                "use numpy.split with an axis"
            )
        return split(ary, indices_or_sections, min(axis, ary.ndim - 1))

    return call


hsplit, vsplit = _splitting_at("hsplit", 1, 1), _splitting_at("vsplit", 0, 2)
dsplit = _splitting_at("dsplit", 2, 3)


def unstack(x: Storage, /, *, axis: Any = 0) -> tuple[Storage, ...]:  # noqa: ANN401
    """Give a view for each index along an axis, without that axis."""
    at = axis_of("numpy.unstack", x, axis)
    return tuple(x[along(at, index)] for index in range(x.shape[at]))


# --- repeated, on the host alone -----------------------------------------------------------------


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


def sliding_window_view(
    x: Storage,
    window_shape: int | Sequence[int],
    axis: Any = None,  # noqa: ANN401 - names or numbers
    *,
    subok: object = None,
    writeable: bool = False,
) -> Storage:
    """Give the windows into a storage of host memory alone, read-only, along new ones.

    The halo is unknown if the storage has one.
    """
    check_host_alone("numpy.sliding_window_view", x)
    if writeable:
        raise ValueError(
            "numpy.sliding_window_view: expected writeable=False, got True; use to_numpy()"
        )
    axes = None if axis is None else axes_of("numpy.sliding_window_view", x, axis)
    view = as_storage(np.lib.stride_tricks.sliding_window_view(x.to_numpy(), window_shape, axes))
    if x.halo is None or any(map(any, x.halo)):
        view.halo = None
    return view
