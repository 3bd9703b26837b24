"""Values that GT4Py's passes drop though the stencil still reads them.

"OnTheFlyMerging" computes a temporary field again where its own part of a PARALLEL loop reads it,
and then drops the statement. It does not see that another part of the loop, which was joined with
this one ("AdjacentLoopMerging"), reads the field at another level: there it is as the memory was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlfield.stencils.cartesian.levels import shifted, without
from dlfield.stencils.cartesian.places import loops_of, places_of, sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlfield.stencils.cartesian.levels import Levels
    from dlfield.stencils.cartesian.nodes import Assign, Stencil

__all__ = ["lost", "perhaps_lost"]


def perhaps_lost(found: Stencil) -> int | None:
    """Return the last block of which another part of the joined loop reads a temporary field.

    None if there is none: then passes drop nothing that is read.
    """
    places, temporaries = list(places_of(found)), {one.name for one in found.temporaries}
    for numbers in reversed(loops_of(found, joins=True)):
        parts = [at for at in numbers if places[at].order == "parallel"]
        for at in reversed(parts):
            others = (places[to] for to in parts if places[to].section != places[at].section)
            read = {access.name for one in others for access, _ in one.reads}
            if not read.isdisjoint(temporaries & places[at].written.keys()):
                return at
    return None


def lost(found: Stencil, stages: Stencil) -> Assign | None:
    """Return the first assignment to a field that passes have dropped; None if there is none.

    Parameters
    ----------
    found, stages
        The stencil before and behind GT4Py's passes.
    """
    names = {name for name, *_ in set(_without_value(stages)) - set(_without_value(found))}
    writes = (write for place in places_of(found) for write in place.writes)
    return next((write for write in writes if write.target.name in names), None)


def _without_value(found: Stencil) -> Iterator[tuple[str, tuple[Levels, ...]]]:
    """Yield temporary fields, and levels at which a block reads and no block has written them."""
    places, temporaries = list(places_of(found)), {one.name for one in found.temporaries}
    writers = {
        name: [at for at, one in enumerate(places) if name in one.written] for name in temporaries
    }
    for at, one in enumerate(places):
        for read in (read for read, _ in one.reads if read.name in temporaries):
            level = 0 if read.name in one.flat else read.offset[2]
            own = read.name in one.written and read.offset == (0, 0, 0)
            if level is None or one.levels is None or own:
                continue
            written = [places[to].levels for to in sources(places, writers[read.name], at, read)]
            if None in written or (written and read.name in one.flat):
                continue
            if left := without(shifted(one.levels, level), filter(None, written)):
                yield read.name, tuple(left)
