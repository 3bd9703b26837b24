"""Blocks of statements at their levels: what they read and write, whose values, in which loops."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from dlfield.stencils.cartesian.levels import ALL, meet, shifted, without
from dlfield.stencils.cartesian.nodes import (
    Access,
    Assign,
    Branch,
    Constant,
    Interval,
    Loop,
    Operation,
    Region,
    accesses,
    known,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dlfield.stencils.cartesian.levels import Levels
    from dlfield.stencils.cartesian.nodes import Block, Scalar, Statement, Stencil, VerticalLoop

__all__ = ["Parts", "Place", "comes_before", "loops_of", "places_of", "sources", "without_value"]

#: The parts of both axes that a region has.
Parts = tuple[Interval, Interval]
#: A field, or one of its values at a point: name and data index.
Part = tuple[str, tuple[Constant, ...]]


@dataclass(frozen=True)
class Place:
    """A block, with the order and the levels of its section; `flat` are all fields without K."""

    block: Block
    order: str
    section: tuple[int, int]
    levels: Levels | None
    flat: frozenset[str]

    @cached_property
    def writes(self) -> list[Assign]:
        """Return its assignments, also those under conditions."""
        return [one for one in self.block.walk() if isinstance(one, Assign)]

    @property
    def name(self) -> str:
        """The first field that it writes; a condition has no name of the user's."""
        names = [one.target.name for one in self.writes]
        return next((one for one in names if "#" not in one), names[0])

    @cached_property
    def reads(self) -> list[tuple[Access, Parts | None]]:
        """Return what it reads, with the parts of both axes where that is in a region."""
        targets = {id(one.target) for one in self.writes}
        regions = (one for one in self.block.walk() if isinstance(one, Region))
        parts = {id(one): region.bounds for region in regions for one in accesses(region)}
        found = (one for one in accesses(self.block) if id(one) not in targets)
        return [(one, parts.get(id(one))) for one in found]

    @cached_property
    def surely_written(self) -> set[Part]:
        """Return what it writes at all of its points, whatever the values are."""
        return {part for part in _always(self.block.statements) if part[0] not in self.moved}

    @cached_property
    def surely_own(self) -> set[int]:
        """Return the ids of what it reads at its own point behind a sure write of that."""
        return set(_behind(self.block.statements, set()))

    @cached_property
    def own(self) -> set[int]:
        """Return the ids of what it reads at its own point behind a statement that writes it."""
        found: set[int] = set()
        written: set[str] = set()
        for one in self.block.walk():
            if isinstance(one, Assign | Branch | Loop):
                read = accesses(one.value if isinstance(one, Assign) else one.condition)
                found |= {id(each) for each in read if each.name in written and _is_here(each)}
            if isinstance(one, Assign):
                written.add(one.target.name)
        return found

    @cached_property
    def written(self) -> dict[str, bool]:
        """Return the names of what it writes: True if at all of its points."""
        always = [one for one in self.block.statements if isinstance(one, Assign)]
        whole = {one.target.name for one in always if not _is_part(one.target)} - self.moved
        return {one.target.name: one.target.name in whole for one in self.writes}

    @cached_property
    def moved(self) -> set[str]:
        """Return the names of what it writes at another level than the one that it computes."""
        targets = [one.target for one in self.writes if isinstance(one.target, Access)]
        return {one.name for one in targets if one.offset[2] != 0}


def _is_here(read: Access) -> bool:
    return read.offset == (0, 0, 0)


def _is_part(target: Access | Scalar) -> bool:
    """Return True for one of several values of a point."""
    return isinstance(target, Access) and bool(target.data_index)


def _part(access: Access | Scalar) -> Part | None:
    """Return the field of an access, with its data index; None if that is known at run time."""
    index = access.data_index if isinstance(access, Access) else ()
    numbers = [one for one in index if isinstance(one, Constant)]
    return (access.name, tuple(numbers)) if len(numbers) == len(index) else None


def _always(statements: Sequence[Statement]) -> set[Part]:
    """Return what statements write whatever the values are: of conditions, in both branches."""
    found: set[Part | None] = set()
    for before, one in pairwise([None, *statements]):
        if isinstance(one, Assign):
            found.add(_part(one.target))
        if isinstance(before, Branch) and isinstance(one, Branch) and _is_else(before, one):
            found |= _always(before.body) & _always(one.body)
    return {part for part in found if part is not None}


def _is_else(before: Branch, one: Branch) -> bool:
    return one.condition == Operation("not", (before.condition,))


def _behind(statements: Sequence[Statement], written: set[Part]) -> Iterator[int]:
    """Yield the ids of accesses at the own point of what `written` has, or is always written."""
    for at, one in enumerate(statements):
        known = written | _always(statements[:at])
        asked = one.value if isinstance(one, Assign) else getattr(one, "condition", None)
        for access in () if asked is None else accesses(asked):
            if _is_here(access) and _part(access) in known:
                yield id(access)
        if not isinstance(one, Assign):
            yield from _behind(one.body, known)


def places_of(found: Stencil) -> Iterator[Place]:
    """Yield the blocks of a stencil in its order."""
    declared = (*found.fields, *found.temporaries)
    flat = frozenset(one.name for one in declared if "K" not in one.axes)
    for number, loop in enumerate(found.loops):
        for at, section in enumerate(loop.sections):
            levels = _levels(section.interval)
            for block in section.blocks:
                yield Place(block, loop.order, (number, at), levels, flat)


def _levels(interval: Interval) -> Levels | None:
    """Return the levels of an interval; None if they are known at run time only."""
    if not interval.is_known:
        return None
    start, end = (bound and (bound.at_end, known(bound)) for bound in interval.ends)
    return start or ALL[0], end or ALL[1]


def sources(places: list[Place], writers: list[int], at: int, read: Access) -> Iterator[int]:
    """Yield the blocks, of those that write a field, whose values a block may read."""
    here = places[at]
    level = None if read.name in here.flat else read.offset[2]
    wanted = None if level is None or here.levels is None else shifted(here.levels, level)
    for other in reversed(writers):
        one = places[other]
        carried = one.section == here.section and comes_before(level, here.order)
        if other >= at and not carried:
            continue
        levels = None if read.name in one.moved else one.levels
        if wanted and levels and not meet(wanted, levels):
            continue
        yield other
        whole = one.written[read.name] and not carried
        if whole and wanted and levels and not without(wanted, [levels]):
            return


def without_value(
    found: Stencil, names: Collection[str], *, surely: bool = False
) -> Iterator[tuple[Place, Access, tuple[Levels, ...]]]:
    """Yield reads of some fields, with the levels at which no block has written them before.

    With `surely` a write counts that happens at all points, whatever the values are; else any.
    """
    places = list(places_of(found))
    writers: defaultdict[str | Part | None, list[int]] = defaultdict(list)
    for at, one in enumerate(places):
        for what in one.surely_written if surely else one.written:
            writers[what].append(at)
    for at, one in enumerate(places):
        for read in (read for read, _ in one.reads if read.name in names):
            level = 0 if read.name in one.flat else read.offset[2]
            own = one.surely_own if surely else one.own
            if level is None or one.levels is None or id(read) in own:
                continue
            before = writers[_part(read) if surely else read.name]
            written = [places[to].levels for to in sources(places, before, at, read)]
            if None in written or (written and read.name in one.flat):
                continue
            if left := without(shifted(one.levels, level), filter(None, written)):
                yield one, read, tuple(left)


def comes_before(level: int | None, order: str) -> bool:
    """Return True if a loop over levels may have been at another level before."""
    if level is None:
        return order != "parallel"
    return level < 0 if order == "forward" else level > 0 and order == "backward"


def loops_of(found: Stencil, *, joins: bool) -> list[list[int]]:
    """Return the blocks of each loop, in the order in which GT4Py asks them."""
    loops: list[list[int]] = []
    at = 0
    before: VerticalLoop | None = None
    for loop in found.loops:
        asked: list[int] = []
        for section in loop.sections:
            numbers = range(at, at + len(section.blocks))
            asked += reversed(numbers)
            at += len(section.blocks)
        if joins and before is not None and _are_joined(before, loop):
            loops[-1] += asked
        else:
            loops.append(asked)
        before = loop
    return loops


def _are_joined(one: VerticalLoop, after: VerticalLoop) -> bool:
    if one.order != after.order:
        return False
    first, second = one.sections[-1].interval, after.sections[0].interval
    if one.order == "backward":
        return first.start == second.end
    return first.end == second.start
