"""Stencils in single assignment: every value has a name of its own, and is computed once.

A value that is written over keeps its name, and the new one gets another. Where a statement writes
some levels only, the others are copied, so that a name stands for one value at all levels. Writing
under a condition becomes a choice between the new value and the one before.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from dlfield.derivatives.expressions import NotDifferentiable, zero_of
from dlfield.derivatives.program import HERE, Names, Program, Step, Sweep
from dlfield.stencils.cartesian.levels import ALL, meet, shifted, without
from dlfield.stencils.cartesian.nodes import (
    Access,
    Assign,
    Branch,
    Constant,
    Index,
    Interval,
    Loop,
    Operation,
    Region,
    changed,
    known,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dlfield.derivatives.program import Order
    from dlfield.stencils.cartesian.levels import Levels
    from dlfield.stencils.cartesian.nodes import (
        Bound,
        Expression,
        FieldDeclaration,
        Section,
        Statement,
        Stencil,
    )

__all__ = ["components", "in_single_assignment"]


def in_single_assignment(
    stencil: Stencil,
    scalars: dict[str, str],
    inputs: Sequence[str],
    taken: Iterable[str],
    wider: Mapping[str, tuple[int, int]],
    levels: Levels,
) -> Program:
    """Return a stencil in single assignment.

    Parameters
    ----------
    stencil
        As it was read.
    scalars
        Types of the scalars.
    inputs
        The fields that have values before.
    taken
        Names that no new variable may have.
    wider
        Points that the domain of the derivative has more, before and behind, by axis.
    levels
        All that it has.

    Raises
    ------
    NotDifferentiable
        For statements that have no such form.
    """
    return _Maker(stencil, scalars, inputs, taken, wider, levels).program


class _Maker:
    """Keeps what the names of a stencil stand for, statement by statement."""

    def __init__(
        self,
        stencil: Stencil,
        scalars: dict[str, str],
        inputs: Sequence[str],
        taken: Iterable[str],
        wider: Mapping[str, tuple[int, int]],
        levels: Levels,
    ) -> None:
        self.wider, self.masks = wider, dict[Any, str]()
        self.declared = {one.name: one for one in (*stencil.fields, *stencil.temporaries)}
        self.stencil, self.program = stencil, Program(Names(taken), dict(scalars), levels)
        #: The variable that each name stands for, before this sweep and at this statement.
        self.before: dict[str, str] = {}
        self.now: dict[str, str] = {}
        #: In a sweep by levels: the variables that hold what this sweep has written, and how many
        #: statements still write a name.
        self.finals: dict[str, str] = {}
        self.writes: dict[str, int] = {}
        self.steps: list[Step] = []
        self.order: Order = "parallel"
        self.levels: Levels = ALL
        self.line: int | None = None
        blocks = [one for loop in stencil.loops for each in loop.sections for one in each.blocks]
        self.statements = [one for block in blocks for one in block.statements]
        #: The region that statements are in, and what is true there.
        self.region: tuple[tuple[Interval, Interval], Access] | None = None
        #: Names without levels, of which this sweep reads what the level before has left.
        self.carried: set[str] = set()
        for name in inputs:
            for key, component in components(self.declared[name]):
                self.program.declare_field(key, self.declared[name], component)
                self.now[key], self.program.defined[key] = key, [ALL]
        for loop in stencil.loops:
            for section in loop.sections:
                self._section(loop.order, section)
        written = {one.name for one in _targets(self.statements)}
        for one in (one for one in stencil.fields if one.name in written):
            for key, _ in components(one):
                if key in self.now:
                    self.program.last.setdefault(key, (self.now[key], ALL))

    def _section(self, order: Order, section: Section) -> None:
        self.order, self.levels = order, _levels(section.interval)
        statements = [one for block in section.blocks for one in block.statements]
        if order == "parallel":
            self._body(statements, ())
            return
        written = [self._key(one) for one in _targets(statements)]
        flat = [key for key in dict.fromkeys(written) if self._axes(key) != "IJK"]
        first, *rest = _first_and_rest(order, self.levels) if flat else [self.levels]
        names = {key: self._new(key) for key in flat}
        for self.levels in (first, *rest):
            self.before = dict(self.now)
            self.writes = {key: written.count(key) for key in written}
            self.finals = {key: names.get(key) or self._name_for(key) for key in self.writes}
            self.carried = set(flat) if self.levels != first else set()
            self._body(statements, ())
            self._sweep()
        for key in flat:
            self._spread(key, rest[0] if rest else first)

    def _spread(self, key: str, levels: Levels) -> None:
        """Spread what a name without levels ends with over all levels."""
        last = levels if self.order == "backward" else levels[::-1]
        end = _one_level(last[0], 0 if self.order == "backward" else -1)
        name, spread = self.finals[key], self._new(key)
        lowest, highest = self.program.levels
        self.program.last[key] = name, end
        for sweep in (
            Sweep("parallel", end, (Step(spread, Access(name, HERE)),)),
            Sweep("forward", (end[1], highest), (Step(spread, Access(spread, (0, 0, -1))),)),
            Sweep("backward", (lowest, end[0]), (Step(spread, Access(spread, (0, 0, 1))),)),
        ):
            if sweep.levels[0] < sweep.levels[1]:
                self.program.sweeps.append(sweep)
        self.now[key], self.program.defined[spread] = spread, [ALL]

    def _sweep(self) -> None:
        self.program.sweeps.append(Sweep(self.order, self.levels, tuple(self.steps)))
        self.steps = []

    def _body(self, statements: Iterable[Statement], conditions: tuple[Expression, ...]) -> None:
        for one in statements:
            self.line = one.line
            match one:
                case Assign(Access() as target, value):
                    self._assign(target, value, conditions)
                case Branch(condition, body):
                    self._body(body, (*conditions, self._read(condition)))
                case Loop():
                    raise self._refused("'while' repeats as often as values say")
                case Region(bounds, body):
                    self.region = self._moved(bounds), Access(self._mask(bounds), HERE)
                    self._body(body, conditions)
                    self.region = None
                case _:
                    raise self._refused("a scalar is written")

    def _moved(self, bounds: tuple[Interval, Interval]) -> tuple[Interval, Interval]:
        """Return a region as it stands in the domain of the derivative."""
        i, j = (self.wider.get(axis, (0, 0)) for axis in "IJ")
        return _moved(bounds[0], i), _moved(bounds[1], j)

    def _mask(self, bounds: tuple[Interval, Interval]) -> str:
        """Return a variable that is true in a region."""
        if bounds not in self.masks:
            name = self.masks[bounds] = self.program.names.new("in_region")
            self.program.types[name] = "bool"
            no, yes = Constant("False", "bool"), Constant("True", "bool")
            for step in (Step(name, no), Step(name, yes, None, self._moved(bounds))):
                self.program.sweeps.append(Sweep("parallel", ALL, (step,)))
        return self.masks[bounds]

    def _assign(
        self, target: Access, value: Expression, conditions: tuple[Expression, ...]
    ) -> None:
        key, parallel = self._key(target), self.order == "parallel"
        if target.offset != HERE:
            raise self._refused(f"'{target.name}' is written elsewhere than at its own point")
        if parallel:
            self.before, self.finals = dict(self.now), {}
        value, previous = self._read(value), self.now.get(key)
        name = self._name_for(key) if parallel else self._next_name(key)
        before = self._value_before(key, previous)
        if conditions:
            condition = conditions[0]
            for one in conditions[1:]:
                condition = Operation("and", (condition, one))
            value = Operation("if", (condition, value, before))
        if self.region:
            where, inside = self.region
            outside = Operation("not", (inside,))
            self.steps.append(Step(name, before, None, None, outside))
            self.steps.append(Step(name, value, self.line, where, inside))
        else:
            self.steps.append(Step(name, value, self.line))
        self.now[key] = name
        self.carried.discard(key)
        self.program.defined.setdefault(name, []).append(self.levels)
        if parallel:
            self._sweep()

    def _value_before(self, key: str, previous: str | None) -> Expression:
        """Return what a variable keeps where a condition does not hold; zero if it has no value."""
        if key in self.carried:
            return self._one_before(key, HERE)
        dtype = self.declared[key.partition("@")[0]].dtype
        zero: Expression = Constant("False", "bool") if dtype == "bool" else zero_of(dtype)
        there = self.program.defined.get(previous or "", [])
        if not previous or not any(meet(self.levels, one) for one in there):
            return zero
        missing = without(self.levels, there)
        if missing and previous not in self.program.fields:
            filled = self._new(key)
            parts: list[tuple[Levels, Expression]] = [(one, zero) for one in missing]
            parts += [(one, Access(previous, HERE)) for one in there]
            for levels, value in parts:
                self.program.sweeps.append(Sweep("parallel", levels, (Step(filled, value),)))
            previous = filled
        return Access(previous, HERE)

    def _one_before(self, key: str, offset: tuple[int, int, Any]) -> Access:
        """Return what a name without levels was left at by the level before."""
        return Access(self.finals[key], (*offset[:2], -1 if self.order == "forward" else 1))

    def _next_name(self, key: str) -> str:
        self.writes[key] -= 1
        return self._new(key) if self.writes[key] else self.finals[key]

    def _name_for(self, key: str) -> str:
        """Return the variable that holds what is written now, and what was at other levels."""
        previous = self.now.get(key)
        if previous is None:
            return self._new(key)
        there = self.program.defined[previous]
        if previous not in self.program.fields and not any(meet(self.levels, one) for one in there):
            return previous
        name = self._new(key)
        copied = [part for one in there for part in without(one, [self.levels])]
        self.program.defined[name] = copied
        step = Step(name, Access(previous, HERE))
        self.program.sweeps += [Sweep("parallel", levels, (step,)) for levels in copied]
        return name

    def _read(self, expression: Expression) -> Expression:
        return changed(expression, self._resolved)

    def _resolved(self, one: Access | Index) -> Expression:
        if isinstance(one, Index):
            return one
        key, level = self._key(one), one.offset[2]
        if level is None or one.level is not None:
            return self._at_run_time(key, one)
        if key in self.carried:
            return self._one_before(key, one.offset)
        done = level < 0 if self.order == "forward" else level > 0
        if done and key in self.finals:
            name, there = self.finals[key], [self.levels]
        else:
            name, there = (self.before if level else self.now).get(key, ""), []
        there = there + self.program.defined.get(name, [])
        if name not in self.program.fields and without(shifted(self.levels, level), there):
            raise self._refused(f"'{one.name}' is read where it has no value")
        return Access(name, one.offset)

    def _at_run_time(self, key: str, one: Access) -> Access:
        """Return a read at a level that is not known, of an input that keeps its values."""
        written = any(key == self._key(target) for target in _targets(self.statements))
        if one.level is None or one.absolute or written or key not in self.now:
            raise self._refused(f"'{one.name}' is read at a level known at run time")
        return replace(one, name=key, data_index=(), level=self._read(one.level))

    def _key(self, one: Access) -> str:
        """Return the name of a field, with the data index that is read or written."""
        if not one.data_index:
            return one.name
        numbers = [index.value for index in one.data_index if isinstance(index, Constant)]
        if len(numbers) != len(one.data_index):
            raise self._refused(f"the data index of '{one.name}' is known at run time")
        return "@".join([one.name, *numbers])

    def _new(self, key: str) -> str:
        """Return a new variable for what is written under a name, with all levels."""
        name = self.program.names.new(key)
        self.program.types[name] = self.declared[key.partition("@")[0]].dtype
        return name

    def _axes(self, key: str) -> str:
        return self.declared[key.partition("@")[0]].axes

    def _refused(self, why: str) -> NotDifferentiable:
        return NotDifferentiable(why if self.line is None else f"line {self.line}: {why}")


def components(declared: FieldDeclaration) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the components of a field, with the key of each."""
    for index in product(*map(range, declared.data_shape)):
        yield "@".join([declared.name, *map(str, index)]), index


def _targets(statements: Iterable[Statement]) -> Iterator[Access]:
    for one in statements:
        if isinstance(one, Assign) and isinstance(one.target, Access):
            yield one.target
        elif isinstance(one, Branch | Region | Loop):
            yield from _targets(one.body)


def _moved(interval: Interval, by: tuple[int, int]) -> Interval:
    """Return a part of the domain as a part of a wider one."""

    def move(bound: Bound | None) -> Bound | None:
        if bound is None:
            return None
        return replace(bound, offset=known(bound) + (-by[1] if bound.at_end else by[0]))

    return Interval(move(interval.start), move(interval.end))


def _one_level(bound: tuple[bool, int], by: int) -> Levels:
    at_end, offset = bound
    return (at_end, offset + by), (at_end, offset + by + 1)


def _first_and_rest(order: str, levels: Levels) -> list[Levels]:
    """Cut off the level that a sweep begins with."""
    start, end = levels
    first = _one_level(start, 0) if order == "forward" else _one_level(end, -1)
    return [first, *without(levels, [first])]


def _levels(interval: Interval) -> Levels:
    start, end = interval.ends
    if start is None or end is None or not interval.is_known:
        raise NotDifferentiable("an interval is known at run time")
    return (start.at_end, known(start)), (end.at_end, known(end))
