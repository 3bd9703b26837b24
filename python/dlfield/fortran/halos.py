"""The halo of a parameter, from the option of its function."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

__all__ = ["Halo", "halo_of"]

#: Halo of a field: (below, above), or one number for both, for each axis.
Halo = tuple[int | tuple[int, int], ...]


def halo_of(what: str, name: str, dims: tuple[str, ...], given: Any) -> Halo | None:
    """Return the halo of a field of a function; `given` is one for all fields, or a mapping.

    One halo for all is that of the arrays with as many dimensions, or it goes along I, J and K.
    Raises ValueError for one that does not fit.
    """
    own = given.get(name) if isinstance(given, Mapping) else given
    if own is None:
        return None
    label = f"of '{name}' of '{what}'"
    halo = _widths(label, own)
    if not isinstance(given, Mapping) and len(halo) <= len("IJK"):
        along = dict(zip("IJK", halo, strict=False))
        if set(dims) <= set(along):
            return tuple(along[dim] for dim in dims)
    if len(halo) != len(dims):
        expected = f"a halo for each of the dimensions {dims} {label}"
        way_out = "give one for each array, as {'a': (1, 1)}"
        raise ValueError(f"halo: expected {expected}, got {own!r}; {way_out}")
    return halo


def _widths(label: str, given: Any) -> Halo:
    try:
        if isinstance(given, str):
            raise TypeError
        return tuple(_pair(one) if isinstance(one, (tuple, list)) else _width(one) for one in given)
    except (TypeError, ValueError):
        expected = f"a number of points, 0 or more, or (below, above) for each dimension {label}"
        way_out = "write a tuple, as (1, 1, 0)"
        raise ValueError(f"halo: expected {expected}, got {given!r}; {way_out}") from None


def _pair(given: Any) -> tuple[int, int]:
    below, above = map(_width, given)
    return below, above


def _width(given: Any) -> int:
    width = operator.index(given)
    if isinstance(given, bool) or width < 0:
        raise ValueError
    return width
