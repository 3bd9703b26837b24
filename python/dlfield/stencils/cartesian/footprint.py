"""Points that a stencil of ``gt4py.cartesian`` touches, found in its representation.

GT4Py's bounds of a field leave out the points that part of a domain, such as an interval or a
region, reaches beyond the opposite end of the domain. They also leave out every index that is known
at run time only. Both are in the `nodes` of the stencil.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from dlfield.stencils.cartesian.around import computed, joins_loops, needed
from dlfield.stencils.cartesian.levels import ALL, without
from dlfield.stencils.cartesian.nodes import (
    Access,
    Assign,
    Bound,
    Branch,
    Interval,
    Loop,
    Region,
    accesses,
)
from dlfield.stencils.cartesian.places import of_old_values, places_of
from dlfield.stencils.cartesian.regions import entered, is_outside, regions
from dlfield.stencils.footprint import AffineFootprint, FieldFootprint, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dlfield.stencils.cartesian.around import Around
    from dlfield.stencils.cartesian.nodes import Block, Section, Statement, Stencil

__all__ = ["footprint_of", "footprint_of_bounds", "has_run_time_levels"]

Extent = tuple[int, int]


def footprint_of(
    found: Stencil,
    infos: Mapping[str, Any],
    *,
    levels: int = 1,
    backend: str = "",
    stages: Stencil | None = None,
) -> AffineFootprint:
    """Return the points that a stencil touches.

    Parameters
    ----------
    found
        Its representation.
    infos
        GT4Py's own word on each field: ``field_info`` of the stencil.
    levels
        GT4Py's own word on the fewest levels of a domain.
    backend
        What it is compiled for.
    stages
        The stencil behind GT4Py's passes, if they change where it is computed.
    """
    touched = _touched(found, sliced=backend == "numpy")
    off_center = _off_center(found)
    for block, around in zip(found.blocks, needed(found), strict=True):
        touched.add_beside(block, around)
    joins = joins_loops(backend)
    for made in [stages] if joins is None else [found]:
        if made is not None:
            for block, around in zip(made.blocks, computed(made, joins=joins), strict=True):
                touched.add_beside(block, around)
    off_center |= {name for name, _ in touched.beside}
    known = {one.name for one in found.fields} - touched.at_run_time
    deepest = (touched.spans[one.name, "K"] for one in found.temporaries)
    levels = max(1, levels, *(max(one.below_end, one.above_start) for one in deepest))
    overtaken, covered = _overtaken(found, levels), _covered(found)
    # GT4Py counts what any interval or condition has written before as an output, at all points.
    olds = of_old_values(found)
    early = {read.name for one, read in olds if id(read) in map(id, entered(one.block))}
    boxes = {
        name: FieldFootprint(
            *_boxes(
                info,
                {axis: touched.spans[name, axis] for axis in "IJK"},
                {axis: touched.beside[name, axis] for axis in "IJK"},
                is_read=name in early,
            ),
            complete=name in known or not _is_used(info),
            pointwise=name in known - off_center,
            overtaken_by=tuple(sorted(overtaken.get(name, ()))),
            covered=name in covered,
        )
        for name, info in infos.items()
    }
    # GT4Py's "numpy" computes all points of a region, even those outside of the domain. Other
    # backends compute the part inside.
    smallest = *(_widths(stages or found) if backend == "numpy" else (1, 1)), levels
    return AffineFootprint(boxes, smallest, _reason(smallest))


def footprint_of_bounds(
    infos: Mapping[str, Any],
    *,
    levels: int,
    complete: bool,
) -> AffineFootprint:
    """Return the points that ``field_info`` tells of, for a stencil without a representation.

    Parameters
    ----------
    infos, levels
        As `footprint_of` has them.
    complete
        True if nothing else is touched, as of a stencil of one's own.
    """
    boxes = {name: _boxes(info, {}, {}) for name, info in infos.items()}
    still = complete and levels <= 1
    return AffineFootprint(
        {
            name: FieldFootprint(
                *both,
                complete=complete,
                pointwise=still and all(one == Span() for box in both for one in box or ()),
            )
            for name, both in boxes.items()
        },
        (1, 1, max(1, levels)),
    )


def has_run_time_levels(found: Stencil) -> bool:
    """Return True if any field, or a temporary one, is touched at levels that are not known."""
    return bool(_touched(found).at_run_time)


def _boxes(
    info: Any,
    spans: Mapping[str, Span],
    beside: Mapping[str, Sequence[Extent]],
    *,
    is_read: bool = False,
) -> tuple[tuple[Span, ...] | None, tuple[Span, ...] | None]:
    """Return the box that is read and the one that is written; of them GT4Py says the same."""
    if not _is_used(info):
        return None, None
    box = []
    for axis, ends in zip("IJK", info.boundary, strict=True):
        if axis in info.axes:
            below, above = zip(ends, *beside.get(axis, ()), strict=True)
            span = spans.get(axis, Span())
            box.append(replace(span, below=max(below), above=max(above)))
    reads, writes = (tuple(box) if use in info.access.name else None for use in ("READ", "WRITE"))
    return tuple(box) if is_read else reads, writes


def _is_used(info: Any) -> bool:
    """Read GT4Py's AccessKind, which is a flag: NONE, READ, WRITE or both."""
    return "READ" in info.access.name or "WRITE" in info.access.name


def _touched(found: Stencil, *, sliced: bool = False) -> _Touched:
    touched = _Touched(sliced)
    for loop in found.loops:
        for section in loop.sections:
            touched.add(section)
    return touched


def _reason(smallest: tuple[int, int, int]) -> str:
    if max(smallest[:2]) <= 1:
        return ""  # along K the number says it all
    also = ", or an interval" if smallest[2] > 1 else ""
    return f"as many as a region needs on the backend 'numpy'{also}"


@dataclass
class _Touched:
    """Points that sections touch, beyond what GT4Py says.

    Parameters
    ----------
    sliced
        True for "numpy": it slices arrays for regions without a point, too, if GT4Py keeps them.
    spans
        By the names of a field, which may be temporary, and of an axis.
    at_run_time
        Names of fields of which some level is known at run time only.
    beside
        By both names, points before and behind the domain that GT4Py leaves out.
    """

    sliced: bool = False
    spans: defaultdict[tuple[str, str], Span] = field(default_factory=lambda: defaultdict(Span))
    at_run_time: set[str] = field(default_factory=set)
    beside: defaultdict[tuple[str, str], list[Extent]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, section: Section) -> None:
        """Add what is touched for the levels of an interval."""
        interval = section.interval
        # GT4Py's bounds leave out where those of an interval are read.
        self.at_run_time.update(one.name for one in accesses(interval))
        for block in section.blocks:
            for access in entered(block, sliced=self.sliced):
                level = access.offset[2]
                if level is None or not interval.is_known:
                    self.at_run_time.add(access.name)
                else:
                    self.include(access.name, "K", _across(interval, level))
            for region in regions(block, sliced=self.sliced):
                self.add_region(region, block)

    def add_beside(self, block: Block, around: Around) -> None:
        """Add what a block touches where it is needed, if GT4Py leaves part of that out."""
        west, east, south, north = around
        far = (-west, east), (-south, north)
        along_i, along_j = map(_hull, block.extents, far)
        wide = replace(block, extents=(along_i, along_j))
        for axis, ends, own in zip("IJ", wide.extents, block.extents, strict=True):
            if ends != own:
                for access in entered(wide):
                    offset = access.offset["IJ".index(axis)] or 0
                    self.beside[access.name, axis].append((-ends[0] - offset, ends[1] + offset))

    def add_region(self, region: Region, block: Block) -> None:
        """Add what is touched in a part of the horizontal plane."""
        parts = list(zip("IJ", region.bounds, block.extents, strict=True))
        for access in accesses(region):
            for (axis, part, extent), offset in zip(parts, access.offset, strict=False):
                if not is_outside(part, extent):  # else no point along it
                    self.include(access.name, axis, _across(part, offset or 0, extent))

    def include(self, name: str, axis: str, span: Span) -> None:
        """Widen what is noted of a field along an axis."""
        self.spans[name, axis] = _widest(self.spans[name, axis], span)


def _hull(one: Extent, other: Extent) -> Extent:
    return min(one[0], other[0]), max(one[1], other[1])


def _widest(one: Span, other: Span) -> Span:
    pairs = ((getattr(one, end.name), getattr(other, end.name)) for end in fields(Span))
    return Span(*(max(pair) for pair in pairs))


def _across(part: Interval, offset: int, extent: Extent = (0, 0)) -> Span:
    """Return what a part of an axis reaches, which ends where all that is computed ends."""
    below_end, above_start, most_below, most_above = 0, 0, 0, 0
    if isinstance(start := _from(part.start, at_end=True), int):
        below_end, most_below = -start - offset, -extent[0] - offset
    if isinstance(end := _from(part.end, at_end=False), int):
        above_start, most_above = end + offset, extent[1] + offset
    return _widest(
        Span(),
        Span(
            below_end=below_end,
            above_start=above_start,
            most_below=most_below,
            most_above=most_above,
        ),
    )


def _from(bound: Bound | None, *, at_end: bool) -> int | None:
    """Return the offset of a bound that is counted from that end."""
    if bound is None or bound.at_end != at_end or not isinstance(bound.offset, int):
        return None
    return bound.offset


def _widths(found: Stencil) -> tuple[int, int]:
    """Count the points along I and J of the smallest domain in which no region is cut short."""
    widths = [
        tuple(map(_width, region.bounds, block.extents))
        for block in found.blocks
        for region in regions(block, sliced=True)
    ]
    along_i, along_j = map(max, zip((1, 1), *widths, strict=True))
    return along_i, along_j


def _width(part: Interval, extent: Extent) -> int:
    """Count the points of the smallest domain in which a part of an axis is not cut short."""
    below = (_from(one, at_end=False) for one in part.ends)
    above = (_from(one, at_end=True) for one in part.ends)
    needed = [one - extent[1] for one in below if one is not None]
    return max(needed + [extent[0] - one for one in above if one is not None], default=1)


def _off_center(found: Stencil) -> set[str]:
    """Return the names of fields that are touched elsewhere than at the point that is computed.

    A field that a temporary one is made of is touched wherever that is: GT4Py may compute the
    temporary field anew for each access, instead of keeping it. A plane that is written for several
    levels is touched again for each of them.
    """
    off: set[str] = set()
    made_of: defaultdict[str, set[str]] = defaultdict(set)
    axes = {one.name: one.axes for one in (*found.fields, *found.temporaries)}
    for loop in found.loops:
        for section in loop.sections:
            for block in section.blocks:
                grown = {axis for axis, ends in zip("IJ", block.extents, strict=True) if any(ends)}
                for one in entered(block):
                    if any(map(_moves, one.offset)) or grown & set(axes.get(one.name, "")):
                        off.add(one.name)
                for target, reads in _flows(block.statements):
                    made_of[target] |= reads
                    if "K" not in axes.get(target, "K") and not _is_one_level(section.interval):
                        off.add(target)
    temporaries = {one.name for one in found.temporaries}
    pending = [name for name in off if name in temporaries]
    while pending:
        new = made_of[pending.pop()] - off
        off |= new
        pending += [name for name in new if name in temporaries]
    return off


def _overtaken(found: Stencil, levels: int) -> dict[str, set[str]]:
    """Return for each field those that are written in an earlier interval than it is read in.

    Intervals that lie apart in any domain of at least so many `levels` do not meet, unless a field
    is a plane.
    """
    axes = {one.name: one.axes for one in found.fields}
    overtaken: defaultdict[str, set[str]] = defaultdict(set)
    before: list[tuple[str, Interval]] = []
    for section in (one for loop in found.loops for one in loop.sections):
        flows = [flow for block in section.blocks for flow in _flows(block.statements)]
        for other, interval in before:
            apart = _are_apart(interval, section.interval, levels)
            for name in {name for _, reads in flows for name in reads} & axes.keys():
                if not apart or "K" not in axes[name] or "K" not in axes[other]:
                    overtaken[name].add(other)
        before += [(name, section.interval) for name, _ in flows if name in axes]
    return {name: overtaken[name] - {name} for name in axes}


def _covered(found: Stencil) -> set[str]:
    """Return the names of fields that are written at every point of any domain."""
    left = {one.name: [ALL] for one in found.fields}
    for place in places_of(found):
        for name in (name for name, whole in place.written.items() if whole and name in left):
            if place.levels == ALL or (place.levels and name not in place.flat):
                left[name] = [part for one in left[name] for part in without(one, [place.levels])]
    return {name for name, levels in left.items() if not levels}


def _are_apart(one: Interval, other: Interval, levels: int) -> bool:
    """Return True if two intervals share no level of a domain of at least so many."""
    return _ends_before(one, other, levels) or _ends_before(other, one, levels)


def _ends_before(first: Interval, second: Interval, levels: int) -> bool:
    for at_end in (False, True):
        end = _from(first.end, at_end=at_end)
        start = _from(second.start, at_end=at_end)
        if end is not None and start is not None and end <= start:
            return True
    end, start = _from(first.end, at_end=False), _from(second.start, at_end=True)
    return end is not None and start is not None and end - start <= levels


def _is_one_level(interval: Interval) -> bool:
    ends = [
        (_from(interval.start, at_end=end), _from(interval.end, at_end=end))
        for end in (False, True)
    ]
    return any(start is not None and end == start + 1 for start, end in ends)


def _moves(offset: int | None) -> bool:
    return offset != 0


def _flows(
    statements: Iterable[Statement],
    conditions: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, set[str]]]:
    """Yield the target of each assignment, with the names of what decides its value."""
    for one in statements:
        match one:
            case Assign(target, value):
                read = {access.name for access in (*accesses(value), *_within(target))}
                yield target.name, read | conditions
            case Branch(condition, body) | Loop(condition, body):
                names = {access.name for access in accesses(condition)}
                yield from _flows(body, conditions | names)
            case Region(_, body):
                yield from _flows(body, conditions)


def _within(target: Any) -> list[Access]:
    """Return the accesses in the indices of a target."""
    return [one for one in accesses(target) if one is not target]
