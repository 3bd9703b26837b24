"""Horizontal regions of a block: those that have a point, and those that GT4Py keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlfield.stencils.cartesian.nodes import Region, accesses, known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlfield.stencils.cartesian.nodes import Access, Block, Interval

__all__ = ["entered", "is_outside", "regions"]


def is_outside(part: Interval, extent: tuple[int, int]) -> bool:
    """Return True if a part of an axis has no point of a block, however large the domain is.

    `extent` is the first point of the block, counted from the start of the domain, and the last
    one, counted from its end.
    """
    start, end = part.ends
    if start is not None and start.at_end:
        return known(start) >= extent[1]
    return end is not None and not end.at_end and known(end) <= extent[0]


def regions(block: Block, *, sliced: bool = False) -> Iterator[Region]:
    """Yield the regions that have a point of the block, if the domain is large enough.

    With `sliced` those, too, that begin right behind the last point: GT4Py leaves out all others.
    """
    for region in block.walk():
        if isinstance(region, Region):
            parts = zip(region.bounds, block.extents, strict=True)
            if not any(
                is_outside(part, extent) and not (sliced and _is_next(part, extent))
                for part, extent in parts
            ):
                yield region


def _is_next(part: Interval, extent: tuple[int, int]) -> bool:
    """Return True if a part of an axis begins right behind the last point of a block."""
    return part.start is not None and part.start.at_end and known(part.start) == extent[1]


def entered(block: Block, *, sliced: bool = False) -> Iterator[Access]:
    """Yield the accesses of a block, without those in regions that are never entered."""
    inside = set(map(id, regions(block, sliced=sliced)))
    out = {
        id(access)
        for region in block.walk()
        if isinstance(region, Region) and id(region) not in inside
        for access in accesses(region)
    }
    return (access for access in accesses(block) if id(access) not in out)
