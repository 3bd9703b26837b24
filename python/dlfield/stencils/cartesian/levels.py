"""Intervals of levels: pairs of bounds, each counted from the start or from the end of a domain.

A bound is a pair: True if it is counted from the end, and the number of points from there. As
tuples, bounds sort in the order that they have in a domain with enough levels. GT4Py refuses a
smaller domain: its intervals at the start must not overlap those at the end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ALL", "Levels", "is_inside", "meet", "pieces", "shifted", "without"]

Bound: TypeAlias = tuple[bool, int]
Levels: TypeAlias = tuple[Bound, Bound]

ALL: Levels = ((False, 0), (True, 0))


def shifted(levels: Levels, by: int) -> Levels:
    """Return an interval, moved up by a number of points."""
    (start_at_end, start), (end_at_end, end) = levels
    return (start_at_end, start + by), (end_at_end, end + by)


def meet(one: Levels, other: Levels) -> bool:
    """Return True if two intervals share a level."""
    return max(one[0], other[0]) < min(one[1], other[1])


def is_inside(levels: Levels) -> bool:
    """Return True if all levels are in the domain."""
    return ALL[0] <= levels[0] and levels[1] <= ALL[1]


def without(levels: Levels, others: Iterable[Levels]) -> list[Levels]:
    """Return what is left of an interval without others."""
    left = [levels]
    for start, end in others:
        parts = [
            part for low, high in left for part in ((low, min(high, start)), (max(low, end), high))
        ]
        left = [(low, high) for low, high in parts if low < high]
    return left


def pieces(levels: Levels, others: Iterable[Levels]) -> list[Levels]:
    """Cut an interval wherever another one begins or ends."""
    start, end = levels
    cuts = {bound for other in others for bound in other if start < bound < end}
    return list(pairwise([start, *sorted(cuts), end]))
