"""Values that GT4Py's passes drop though the stencil still reads them.

"OnTheFlyMerging" computes a temporary field of a PARALLEL loop anew wherever the loop reads it at a
neighbour, and then drops its statement. It sees neither that another part of the loop, which was
joined with this one ("AdjacentLoopMerging"), reads the field at another level, nor that a statement
changes what an earlier one has written: the value from before is then as the memory was. A field
that a later loop reads is kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dlfield.stencils.cartesian.nodes import Access, Assign, Region, Scalar
from dlfield.stencils.cartesian.places import loops_of, places_of, without_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlfield.stencils.cartesian.levels import Levels
    from dlfield.stencils.cartesian.nodes import Node, Statement, Stencil
    from dlfield.stencils.cartesian.places import Place

__all__ = ["lost", "perhaps_lost"]

_HERE = (0, 0, 0)


def perhaps_lost(found: Stencil) -> int | None:
    """Return the last block that writes a temporary field whose value may be dropped.

    None if there is none: then passes drop nothing that is read.
    """
    places, kept = list(places_of(found)), {one.name for one in found.fields}
    for numbers in reversed(loops_of(found, joins=True)):
        loop = [places[at] for at in sorted(numbers)]
        for at in sorted(numbers, reverse=True) if loop[0].order == "parallel" else ():
            behind = loop[at - min(numbers) + 1 :]
            names = places[at].written.keys() - kept
            if any(_may_be_dropped(name, places[at], loop, behind) for name in names):
                return at
        kept |= {read.name for one in loop for read, _ in one.reads}
    return None


def _may_be_dropped(name: str, here: Place, loop: list[Place], behind: list[Place]) -> bool:
    """Return True if another part of the loop reads a field, or what follows a change of it.

    What a block changes itself, after it has written it, is computed with it wherever it is needed.
    """
    too_soon = set(_read_too_soon(here.block.statements, set(), set()))
    beside = any(read.name == name and read.offset != _HERE for read, _ in here.reads)
    changed = name in too_soon or beside or not here.written[name]
    if changed and any(_reads(one, name) for one in behind if one.section == here.section):
        return True
    return any(_reads(one, name) for one in loop if one.section != here.section)


def _reads(place: Place, name: str) -> bool:
    return any(read.name == name for read, _ in place.reads)


def lost(found: Stencil, stages: Stencil) -> Assign | None:
    """Return the last assignment to a field that passes have dropped; None if there is none.

    Parameters
    ----------
    found, stages
        The stencil before and behind GT4Py's passes.
    """
    parameters = {one.name for one in found.fields} | {one.name for one in found.scalars}
    every = [one for block in found.blocks for one in block.statements]
    never = set(_read_too_soon(every, set(), parameters))
    fields = parameters | {one.name for one in stages.temporaries}  # what is dropped is a scalar
    early = (_read_too_soon(block.statements, set(), fields) for block in stages.blocks)
    names = {name for name, *_ in set(_without_value(stages)) - set(_without_value(found))}
    names |= {re.sub(r"(_gen_\d+)+$", "", name) for one in early for name in one} - never
    writes = [write for place in places_of(found) for write in place.writes]
    return next((write for write in reversed(writes) if write.target.name in names), None)


def _without_value(found: Stencil) -> Iterator[tuple[str, tuple[Levels, ...]]]:
    """Yield temporary fields, and levels at which a block reads and no block has written them."""
    for one, read, left in without_value(found, {one.name for one in found.temporaries}):
        if read.name not in one.written or read.offset != _HERE:
            yield read.name, left


def _read_too_soon(
    statements: Sequence[Statement], written: set[str], known: set[str]
) -> Iterator[str]:
    """Yield the variables that are read before a statement has written them at every point."""
    for one in statements:
        if isinstance(one, Assign):
            yield from _names(one.value) - written - known
            if not (isinstance(one.target, Access) and one.target.data_index):
                written.add(one.target.name)
            continue
        if not isinstance(one, Region):
            yield from _names(one.condition) - written - known
        yield from _read_too_soon(one.body, set(written), known)


def _names(read: Node) -> set[str]:
    """Return the variables that an expression reads at the point which is computed."""
    variables = [one for one in read.walk() if isinstance(one, (Access, Scalar))]
    return {one.name for one in variables if getattr(one, "offset", _HERE) == _HERE}
