"""Axes of a storage by name or number."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import gt4py_names

if TYPE_CHECKING:
    from dlfield._core import Storage

__all__ = ["along", "axes_of", "axis_of", "check_new_axis", "in_origin_order", "numbered"]


def axes_of(what: str, storage: Storage, axis: Any, *, again: bool = False) -> tuple[int, ...]:
    """Return the numbers of one axis or several, each by its name or its number.

    With `again`, an axis may be repeated.

    Raises
    ------
    ValueError
        For a name that the storage lacks, a number that is out of range, and an axis given twice.
    """
    normalize = np.lib.array_utils.normalize_axis_tuple
    return normalize(numbered(what, storage, axis), storage.ndim, allow_duplicate=again)


def numbered(what: str, storage: Storage, axis: Any) -> Any:
    """Replace names by numbers, and leave everything else as it is."""
    if isinstance(axis, tuple | list):
        return tuple(numbered(what, storage, one) for one in axis)
    return _number(what, storage, axis) if isinstance(axis, str) else axis


def axis_of(what: str, storage: Storage, axis: Any) -> int:
    """Return the number of one axis. None means the only axis of a storage.

    Raises
    ------
    TypeError
        For several axes, and for None unless the storage has one axis: NumPy would flatten it.
    """
    if axis is None and storage.ndim != 1:
        raise TypeError(
            f"{what}: needs an axis of a storage of {storage.ndim} dimensions; name one, or use "
            "ravel() to go through all elements"
        )
    number = numbered(what, storage, 0 if axis is None else axis)
    try:
        if isinstance(number, bool):
            raise TypeError
        number = operator.index(number)
    except TypeError:
        expected = f"{what}: axis: expected one axis"
        raise TypeError(f"{expected}, got {axis!r}; pass one name or number") from None
    return np.lib.array_utils.normalize_axis_index(number, storage.ndim)


def check_new_axis(what: str, axis: Any) -> None:
    """Refuse a name for a new axis, which has none."""
    if any(isinstance(one, str) for one in (axis if isinstance(axis, tuple | list) else (axis,))):
        expected = "a number for a new axis, which has no name"
        raise TypeError(f"{what}: axis: expected {expected}, got {axis!r}; pass its number")


def along(axis: int, key: Any) -> tuple[Any, ...]:
    """Return the key that takes `key` along an axis, and all of the others."""
    return (*(slice(None),) * axis, key, ...)


def in_origin_order(dims: tuple[str, ...]) -> list[str]:
    """Sort names as the axes of an origin: I, J, K, then data dimensions by number.

    If GT4Py does not know all names, they keep their order.
    """
    if gt4py_names(dims) is None:
        return list(dims)
    return sorted(dims, key=lambda dim: (int(dim), "") if dim.isdecimal() else (-1, dim))


def _number(what: str, storage: Storage, name: str) -> int:
    if storage.dims is None or name not in storage.dims:
        has = "without dims" if storage.dims is None else f"with the dims {storage.dims}"
        raise ValueError(
            f"{what}: expected an axis of the storage, got {name!r} of one {has}; pass one of its "
            "names or a number"
        )
    return storage.dims.index(name)
