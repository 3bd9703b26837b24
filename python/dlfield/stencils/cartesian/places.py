"""Blocks of statements at their levels: what they read and write, whose values, in which loops."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, TypeAlias

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
    Scalar,
    accesses,
    known,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dlfield.stencils.cartesian.levels import Levels
    from dlfield.stencils.cartesian.nodes import (
        Block,
        Expression,
        Statement,
        Stencil,
        VerticalLoop,
    )

__all__ = [
    "Parts",
    "Place",
    "comes_before",
    "loops_of",
    "of_old_values",
    "places_of",
    "sources",
    "without_value",
]

#: The parts of both axes that a region has.
Parts = tuple[Interval, Interval]
#: What tells where statements compute: a region, or a condition of scalars.
Where: TypeAlias = "Parts | Expression"
#: A field, or one of its values at a point: name and data index.
Component = tuple[str, tuple[int, ...]]


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
    def surely_written(self) -> set[tuple[Component, Where | None]]:
        """Return what it writes at all of its points, or at all where a `Where` is."""
        everywhere: set[tuple[Component, Where | None]] = {
            (component, None) for component in _always(self.block.statements)
        }
        parts = [one for one in self.block.statements if isinstance(one, Branch | Region)]
        return everywhere.union(
            (component, _where(one))
            for one in parts
            if _where(one)
            for component in _always(one.body)
        )

    @cached_property
    def where(self) -> dict[int, Where | None]:
        """Return the region, or the condition of scalars, of what it reads, by id."""
        return {id(read): _where(one) for one in self.block.statements for read in accesses(one)}

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


def _component(access: Access | Scalar) -> Component | None:
    """Return the field of an access, with its data index; None if that is known at run time."""
    index = access.data_index if isinstance(access, Access) else ()
    numbers = [int(one.value) for one in index if isinstance(one, Constant)]
    return (access.name, tuple(numbers)) if len(numbers) == len(index) else None


def _components(name: str, data_shape: Sequence[int]) -> Iterator[Component]:
    """Yield a field, or each of its values at a point."""
    yield from ((name, index) for index in product(*map(range, data_shape)))


def _always(statements: Sequence[Statement]) -> set[Component]:
    """Return what statements write at their point whatever the values are."""
    found: set[Component | None] = set()
    for before, one in pairwise([None, *statements]):
        if isinstance(one, Assign) and (isinstance(one.target, Scalar) or _is_here(one.target)):
            found.add(_component(one.target))
        if isinstance(before, Branch) and isinstance(one, Branch) and _is_else(before, one):
            found |= _always(before.body) & _always(one.body)
    return {one for one in found if one is not None}


def _is_else(before: Branch, one: Branch) -> bool:
    return one.condition == Operation("not", (before.condition,))


def _behind(statements: Sequence[Statement], written: set[Component]) -> Iterator[int]:
    """Yield the ids of accesses at the own point of what `written` has, or is always written."""
    for at, one in enumerate(statements):
        before = statements[:at]
        known = written | _always(before)
        asked = one.value if isinstance(one, Assign) else getattr(one, "condition", None)
        for access in () if asked is None else accesses(asked):
            if _is_here(access) and _component(access) in known:
                yield id(access)
        if not isinstance(one, Assign):
            others = [other for other in before if isinstance(other, Branch | Region)]
            same = (_always(other.body) for other in others if _where(other) == _where(one))
            yield from _behind(one.body, known.union(*same) if _where(one) else known)


def _where(one: Statement) -> Where | None:
    """Return the region of a statement, or its condition if that is of scalars alone."""
    if isinstance(one, Region):
        return one.bounds
    if isinstance(one, Branch) and not accesses(one.condition):
        return one.condition
    return None


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
    found: Stencil, names: Collection[str]
) -> Iterator[tuple[Place, Access, tuple[Levels, ...]]]:
    """Yield reads of some fields, with the levels at which no block has written them before."""
    places = list(places_of(found))
    writers = {name: [at for at, one in enumerate(places) if name in one.written] for name in names}
    for at, one in enumerate(places):
        for read in (read for read, _ in one.reads if read.name in writers):
            level = 0 if read.name in one.flat else read.offset[2]
            if level is None or one.levels is None or id(read) in one.own:
                continue
            written = [places[to].levels for to in sources(places, writers[read.name], at, read)]
            if None in written or (written and read.name in one.flat):
                continue
            if left := without(shifted(one.levels, level), filter(None, written)):
                yield one, read, tuple(left)


def of_old_values(found: Stencil) -> Iterator[tuple[Place, Access]]:
    """Yield reads of fields at points that may not have been written before.

    A write counts that happens at all points of a block, whatever the values are.
    """
    places = list(places_of(found))
    every = {one.name: list(_components(one.name, one.data_shape)) for one in found.fields}
    writers: defaultdict[tuple[Component, Where | None], list[int]] = defaultdict(list)
    for at, one in enumerate(places):
        for key in one.surely_written:
            writers[key].append(at)
    for at, one in enumerate(places):
        for read in (read for read, _ in one.reads if read.name in every):
            if id(read) in one.surely_own:
                continue
            component = _component(read)
            wheres = {None, None if any(read.offset[:2]) else one.where.get(id(read))}
            for asked in every[read.name] if component is None else [component]:
                sure = sorted({to for where in wheres for to in writers[asked, where]})
                if not _is_written(places, at, read, sure):
                    yield one, read
                    break


def _is_written(places: list[Place], at: int, read: Access, writers: list[int]) -> bool:
    """Return True if these blocks wrote what a block reads before, at each of its levels."""
    one = places[at]
    level = None if one.levels is None else read.offset[2]
    if read.name in one.flat:
        return any(to < at and places[to].levels is not None for to in writers)
    if level is None or one.levels is None:
        wanted, before = ALL, [to for to in writers if to < at]
    else:
        wanted, before = shifted(one.levels, level), list(sources(places, writers, at, read))
    return not without(wanted, filter(None, (places[to].levels for to in before)))


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
