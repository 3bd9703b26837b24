"""How far around the domain the values of a stencil are read, and how far they are computed.

GT4Py goes through the statements once, from the last to the first, and finds the points beside the
domain at which each value is needed. The backends `numpy`, `debug` and `dace:*` compute just those.
They miss what a statement reads of a later one at another level of the same loop. `numpy` and
`dace:*` also join loops of one order whose levels touch, and go through the parts of such a loop
from the first to the last: they miss what a part reads of an earlier one. The points that are
missing are left as the memory was.

GridTools, behind `gt:*`, finds the points by name: it computes whatever writes a field wherever the
field is read at all, and all that is computed together at the same points.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from dlfield.stencils.cartesian.nodes import Interval, known
from dlfield.stencils.cartesian.places import comes_before, loops_of, places_of, sources
from dlfield.stencils.cartesian.regions import is_outside

if TYPE_CHECKING:
    from dlfield.stencils.cartesian.nodes import Stencil
    from dlfield.stencils.cartesian.places import Parts, Place

__all__ = [
    "Around",
    "Mismatch",
    "computed",
    "joins_loops",
    "left_out",
    "needed",
    "out_of_turn",
    "told",
    "widest",
    "written_outside",
]

#: Points beside the domain: in negative and in positive direction along I, and along J.
Around = tuple[int, int, int, int]

_WHOLE = Interval(None, None)

#: How far beside one end of an axis a region is that belongs to the other end.
_FAR_INSIDE = -(10**6)


@dataclass(frozen=True)
class Mismatch:
    """A block of statements that GT4Py computes at too few points, at too many, or too soon.

    Attributes
    ----------
    at
        Its number among the blocks of the stencil.
    name
        What it writes.
    line
        Where it stands.
    needed, computed
        How far around the domain.
    """

    at: int
    name: str
    line: int | None
    needed: Around
    computed: Around


def joins_loops(backend: str) -> bool | None:
    """Return whether a backend joins loops; None if GridTools decides where it computes."""
    if backend == "numpy" or backend.startswith("dace:"):
        return True
    return False if backend == "debug" else None


def left_out(found: Stencil, *, joins: bool | None) -> Mismatch | None:
    """Return the last block that is computed at too few points; None if there is none.

    Parameters
    ----------
    found
        The stencil.
    joins
        As `joins_loops` has it.
    """
    pairs = list(zip(needed(found), computed(found, joins=joins), strict=True))
    for at, one in reversed(list(enumerate(places_of(found)))):
        read, has = pairs[at]
        if widest(read, has) != has:
            return Mismatch(at, one.name, one.writes[0].line, read, has)
    return None


def written_outside(stages: Stencil) -> Mismatch | None:
    """Return the first block that writes a field beside the domain; None if there is none.

    GridTools computes a block at the same points for all that it writes.
    """
    fields = {one.name for one in stages.fields}
    for at, (one, far) in enumerate(
        zip(places_of(stages), computed(stages, joins=None), strict=True)
    ):
        for write in one.writes:
            if write.target.name in fields and any(far):
                return Mismatch(at, write.target.name, write.line, (0, 0, 0, 0), far)
    return None


def out_of_turn(found: Stencil, far: list[Around]) -> Mismatch | None:
    """Return the first block that reads a value too old or too new; None if there is none.

    Where blocks of such a loop are computed at different points, `far` around the domain, "debug"
    and GridTools compute one at all levels before the next: what one reads of the other at another
    level is then too old, or too new.
    """
    loops = [(at, one) for at, one in enumerate(places_of(found)) if one.order != "parallel"]
    for (at, one), (to, later) in combinations(loops, 2):
        if one.section != later.section or far[at] == far[to]:
            continue
        too_old = [read for read, _ in one.reads if read.name in later.written]
        too_new = [read for read, _ in later.reads if read.name in one.written]
        if any(comes_before(read.offset[2], one.order) for read in too_old):
            return Mismatch(at, one.name, one.writes[0].line, far[to], far[at])
        if any(comes_before(read.offset[2], _OTHER[one.order]) for read in too_new):
            return Mismatch(to, later.name, later.writes[0].line, far[at], far[to])
    return None


_OTHER = {"forward": "backward", "backward": "forward"}


def needed(found: Stencil) -> list[Around]:
    """Return how far around the domain the values of each block are read, by its number."""
    return _needed(list(places_of(found)))


def told(found: Stencil) -> list[Around]:
    """Return how far around the domain GT4Py says that each block is computed, by its number."""
    extents = (one.extents for one in found.blocks)
    return [(-west, east, -south, north) for (west, east), (south, north) in extents]


def computed(found: Stencil, *, joins: bool | None) -> list[Around]:
    """Return how far around the domain each block is computed, by its number."""
    places = list(places_of(found))
    return (
        _by_gridtools(places) if joins is None else _by_gt4py(places, loops_of(found, joins=joins))
    )


def _needed(places: list[Place]) -> list[Around]:
    """Return how far around the domain the values of each block are read."""
    found: list[Around] = [(0, 0, 0, 0)] * len(places)
    if not any(any(one.offset[:2]) for place in places for one, _ in place.reads):
        return found
    writers: defaultdict[str, list[int]] = defaultdict(list)
    for at, one in enumerate(places):
        for name in one.written:
            writers[name].append(at)
    read = dict.fromkeys(
        (at, access.offset[:2], parts, source)
        for at in reversed(range(len(places)))
        for access, parts in places[at].reads
        for source in sources(places, writers[access.name], at, access)
    )
    for _ in places:
        before = list(found)
        for at, offset, parts, source in read:
            found[source] = widest(found[source], _seen_from(found[at], offset, parts))
        if found == before:
            break
    return found


def _by_gt4py(places: list[Place], loops: list[list[int]]) -> list[Around]:
    """Return where the backends compute that GT4Py tells where: once through, from the last."""
    wanted: defaultdict[str, Around] = defaultdict(lambda: (0, 0, 0, 0))
    found: list[Around] = [(0, 0, 0, 0)] * len(places)
    for at in (at for loop in reversed(loops) for at in loop):
        here = found[at] = widest(*(wanted[name] for name in places[at].written))
        for name in places[at].written:
            wanted[name] = here
        for one, parts in places[at].reads:
            further = _seen_from(here, one.offset[:2], parts)
            wanted[one.name] = widest(wanted[one.name], further)
    return found


def _by_gridtools(places: list[Place]) -> list[Around]:
    """Return where GridTools computes: wherever a name that a block writes is read at all."""
    wanted: defaultdict[str, Around] = defaultdict(lambda: (0, 0, 0, 0))
    for place in reversed(places):
        here = widest(*(wanted[name] for name in place.written))
        for one, _ in place.reads:
            further = _seen_from(here, one.offset[:2], None)
            wanted[one.name] = widest(wanted[one.name], here, further)
    return [widest(*(wanted[name] for name in place.written)) for place in places]


def _seen_from(around: Around, offset: tuple[int, int], parts: Parts | None) -> Around:
    """Return how far around the domain is read from so far around it."""
    read: list[int] = []
    for below, above, by, part in zip(
        around[::2], around[1::2], offset, parts or (_WHOLE, _WHOLE), strict=True
    ):
        if is_outside(part, (-below, above)):
            return 0, 0, 0, 0
        start, end = part.ends
        if start is not None:
            below = _FAR_INSIDE if start.at_end else min(below, -known(start))
        if end is not None:
            above = min(above, known(end)) if end.at_end else _FAR_INSIDE
        read += max(below - by, 0), max(above + by, 0)
    west, east, south, north = read
    return west, east, south, north


def widest(*arounds: Around) -> Around:
    """Return what is as far as each."""
    west, east, south, north = map(max, zip((0, 0, 0, 0), *arounds, strict=True))
    return west, east, south, north
