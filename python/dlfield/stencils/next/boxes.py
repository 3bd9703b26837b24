"""Boxes of points by the names of dimensions, and the parts of them that an expression needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    #: First point and the end behind the last, by the name of the dimension.
    Box = dict[str, tuple[int, int]]
    #: Where an expression is needed: a box, one for each part of a tuple, or nowhere.
    Needed = Box | tuple[Any, ...] | None

__all__ = ["common", "has_points", "hull", "join", "leaves", "moved", "union", "within"]


def has_points(box: Box) -> bool:
    """Return whether a box has a point."""
    return all(first < end for first, end in box.values())


def moved(box: Box, source: str, target: str, by: int | str) -> Box:
    """Shift a box along one dimension, which may get another name.

    By a number that is known at run time only, the box gets open along it: it loses the dimension.
    """
    moved = {dim: one for dim, one in box.items() if dim != source}
    if isinstance(by, str) or source not in box:
        return moved
    first, end = box[source]
    return {**moved, target: (first + by, end + by)}


def common(
    one: Mapping[str, tuple[float, float]], other: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Return what two boxes share; a dimension that one of them lacks is open."""
    both = {**one, **other}
    for dim in one.keys() & other.keys():
        both[dim] = (max(one[dim][0], other[dim][0]), min(one[dim][1], other[dim][1]))
    return both


def within(needed: Needed, region: Mapping[str, tuple[float, float]]) -> Needed:
    """Return what is needed within a region, which may be without points. What is open stays it."""
    if isinstance(needed, tuple):
        return tuple(within(one, region) for one in needed)
    if needed is None:
        return None
    inside: Any = common(needed, {dim: one for dim, one in region.items() if dim in needed})
    return inside  # type: ignore[no-any-return]


def leaves(needed: Needed) -> list[Box]:
    """Return the boxes of all parts."""
    if isinstance(needed, tuple):
        return [box for one in needed for box in leaves(one)]
    return [] if needed is None else [needed]


def hull(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around boxes."""
    first, *others = boxes
    hull = dict(first)
    for box in others:
        for dim, (low, high) in box.items():
            known = hull.get(dim, (low, high))
            hull[dim] = (min(low, known[0]), max(high, known[1]))
    return hull


def union(one: Needed, other: Needed) -> Needed:
    """Return what two uses of one expression need together."""
    if one is None or other is None:
        return one if other is None else other
    if isinstance(one, tuple) and isinstance(other, tuple):
        length = max(len(one), len(other))
        padded = [(*each, *(None,) * (length - len(each))) for each in (one, other)]
        return tuple(map(union, *padded))
    if isinstance(one, tuple) or isinstance(other, tuple):
        parts: Any = one if isinstance(one, tuple) else other
        whole: Needed = other if isinstance(one, tuple) else one
        return tuple(union(part, whole) for part in parts)
    return hull([one, other])


def join(known: dict[str, Box], name: str, box: Box) -> None:
    """Widen the box that is known for a name."""
    known[name] = hull([known[name], box]) if name in known else box
