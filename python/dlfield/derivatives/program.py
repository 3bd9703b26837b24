"""Programs: what a stencil computes, sweep by sweep, in variables that are written once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dlfield.stencils.cartesian.nodes import (
    Access,
    Assign,
    Block,
    Bound,
    Constant,
    Interval,
    Region,
    Section,
    Stencil,
    VerticalLoop,
    changed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dlfield.stencils.cartesian.levels import Levels
    from dlfield.stencils.cartesian.nodes import Expression, FieldDeclaration, Statement

__all__ = ["HERE", "Names", "Order", "Program", "Step", "Sweep", "steps_of"]

HERE = (0, 0, 0)
Order: TypeAlias = Literal["parallel", "forward", "backward"]


class Names:
    """Names that are taken."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)

    def new(self, base: str) -> str:
        """Return a name that is not taken: this one, or with a number."""
        base = re.sub(r"^RETURN_VALUE.*", "returned", base)
        base = re.sub(r"^mask#\d+$", "condition", base).replace("@", "_")  # of a component
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name


@dataclass(frozen=True)
class Step:
    """The value of a variable.

    Attributes
    ----------
    target, value
        The variable, and the expression.
    line
        Where it comes from.
    region
        Part of the domain where the value holds; elsewhere another step sets it.
    guard
        What is true where it counts, for the adjoint, which adds up what comes from neighbours.
    """

    target: str
    value: Expression
    line: int | None = None
    region: tuple[Interval, Interval] | None = None
    guard: Expression | None = None


@dataclass(frozen=True)
class Sweep:
    """Steps that are computed at some levels, in an order of levels."""

    order: Order
    levels: Levels
    steps: tuple[Step, ...]


def steps_of(sweeps: Iterable[Sweep]) -> Iterator[Step]:
    """Yield all steps of sweeps."""
    return (step for sweep in sweeps for step in sweep.steps)


@dataclass
class Program:
    """A stencil in single assignment.

    Attributes
    ----------
    sweeps
        One after the other.
    types, axes
        Of every variable, and of scalars; a variable without axes here has three.
    levels
        All that there are.
    fields
        Variables that are a field, or a component of one: its name and the data index.
    last
        The variable that an output ends with, by the variable of the output, and the levels that
        count: one for an output without levels.
    defined
        The levels at which a variable has a value.
    """

    names: Names
    types: dict[str, str]
    levels: Levels
    axes: dict[str, str] = field(default_factory=dict)
    fields: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    sweeps: list[Sweep] = field(default_factory=list)
    last: dict[str, tuple[str, Levels]] = field(default_factory=dict)
    defined: dict[str, list[Levels]] = field(default_factory=dict)

    def like(self, name: str, base: str) -> str:
        """Return a new variable of the type of another one."""
        new = self.names.new(base)
        self.types[new] = self.types[name]
        return new

    def declare_field(self, name: str, one: FieldDeclaration, index: tuple[int, ...]) -> None:
        """Make a variable that is a field, or a component of one."""
        self.types[name], self.axes[name] = one.dtype, one.axes
        self.fields[name] = one.name, index

    def stencil(self, name: str, fields: Iterable[FieldDeclaration]) -> Stencil:
        """Return it as a stencil."""
        return Stencil(name, tuple(fields), (), (), tuple(map(self._loop, self.sweeps)))

    def _loop(self, sweep: Sweep) -> VerticalLoop:
        start, end = (Bound(*bound) for bound in sweep.levels)
        blocks = tuple(map(self._block, sweep.steps))
        return VerticalLoop(sweep.order, (Section(Interval(start, end), blocks),))

    def _block(self, step: Step) -> Block:
        target = self._access(Access(step.target, HERE))
        made: Statement = Assign(target, changed(step.value, self._access), step.line)
        made = Region(step.region, (made,)) if step.region else made
        return Block((made,), ((0, 0), (0, 0)))

    def _access(self, one: Any) -> Any:  # an access, or an index as it is
        if not isinstance(one, Access) or one.name not in self.fields:
            return one
        name, index = self.fields[one.name]
        data_index = tuple(Constant(str(number), "int64") for number in index)
        return replace(one, name=name, data_index=data_index)
