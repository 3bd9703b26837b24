"""Rewrites sweeps into a form that GT4Py accepts and computes correctly."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from dlfield.derivatives.expressions import NotDifferentiable, plus
from dlfield.derivatives.program import HERE, Program, Step, Sweep, steps_of
from dlfield.stencils.cartesian.around import joins_loops, left_out
from dlfield.stencils.cartesian.lost import perhaps_lost
from dlfield.stencils.cartesian.nodes import (
    Access,
    Cast,
    Constant,
    Operation,
    accesses,
    changed,
    type_of,
)
from dlfield.stencils.cartesian.ternaries import torn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlfield.derivatives.program import Order
    from dlfield.stencils.cartesian.nodes import Expression, Index

__all__ = ["fit", "keeping"]


def fit(program: Program, backend: str) -> None:
    """Rewrite the sweeps into a form that a backend computes correctly; in place."""
    _with_neighbours(program)
    _put_together(program)
    _compute_enough(program, backend)
    _in_one_piece(program, backend)


def keeping(sweeps: list[Sweep], names: set[str]) -> list[Sweep]:
    """Return sweeps in which each named field that is written is also read.

    GT4Py and `bind` treat a field as an input only if it is read, and they keep the points around
    the domain of an input.
    """
    unread = names - {one.name for step in steps_of(sweeps) for one in accesses(step.value)}

    def kept(step: Step) -> Step:
        if step.target not in unread:
            return step
        always, before = Constant("True", "bool"), Access(step.target, HERE)
        return replace(step, value=Operation("if", (always, step.value, before)))

    return [replace(sweep, steps=tuple(map(kept, sweep.steps))) for sweep in sweeps]


def _with_neighbours(program: Program) -> None:
    """Use new variables for values that a sweep reads at a neighbour and is not the first to write.

    A sweep of GT4Py may read horizontal neighbours of a field that it writes only if no earlier
    sweep has written the field. The new variable is copied back after each write.
    """
    begun: set[str] = set()
    for at, sweep in enumerate(program.sweeps):
        written = {step.target for step in sweep.steps}
        found = [one for step in sweep.steps for one in accesses(step.value)]
        beside = {one.name for one in found if any(one.offset[:2]) and not one.offset[2]}
        own = {name: program.like(name, name) for name in sorted(written & beside & begun)}
        begun |= written

        def read(one: Access | Index, own: Mapping[str, str] = own) -> Expression:
            if isinstance(one, Access) and not one.offset[2]:
                return replace(one, name=own.get(one.name, one.name))
            return one

        steps = []
        for step in sweep.steps:
            made = replace(step, value=changed(step.value, read))
            name = own.get(step.target, step.target)
            steps.append(replace(made, target=name))
            if name != step.target:
                steps.append(Step(step.target, Access(name, HERE)))
        program.sweeps[at] = replace(sweep, steps=tuple(steps))


def _put_together(program: Program) -> None:
    """Join sweeps if neither reads at another point what the other one writes.

    Some that do, GT4Py would refuse as one sweep. In the others it would compute the value anew for
    each neighbour, which takes longer than to keep it in memory.
    """
    made: list[Sweep] = []
    for sweep in program.sweeps:
        if made and _may_be_joined(made[-1], sweep):
            made[-1] = replace(sweep, steps=(*made[-1].steps, *sweep.steps))
        else:
            made.append(sweep)
    program.sweeps = made


def _may_be_joined(one: Sweep, after: Sweep) -> bool:
    alike = one.order == after.order == "parallel" and one.levels == after.levels
    return alike and not _reads_elsewhere(one, after) and not _reads_elsewhere(after, one)


def _reads_elsewhere(one: Sweep, other: Sweep) -> bool:
    """Return True if one sweep reads at another point what the other one writes."""
    written = {step.target for step in other.steps}
    found = [read for step in one.steps for read in accesses(step.value)]
    return any(read.name in written and any(read.offset) for read in found)


def _in_one_piece(program: Program, backend: str) -> None:
    """Cast ternaries to their own type where "debug" would write them without parentheses."""

    def whole(one: Expression) -> Expression:
        if isinstance(one, Cast):
            return replace(one, operand=whole(one.operand))
        if not isinstance(one, Operation):
            return one
        loose, types = torn(one), program.types
        made = [
            Cast(type_of(each, types), whole(each)) if each in loose else whole(each)
            for each in one.operands
        ]
        return replace(one, operands=tuple(made))

    for at, sweep in enumerate(program.sweeps if backend == "debug" else ()):
        steps = tuple(replace(step, value=whole(step.value)) for step in sweep.steps)
        program.sweeps[at] = replace(sweep, steps=steps)


def _compute_enough(program: Program, backend: str) -> None:
    """Make a backend compute every value wherever it is read.

    GT4Py drops some values, or computes them at too few points. A later sweep that reads such a
    value into a variable that nothing uses prevents that.
    """
    joins = joins_loops(backend)
    for _ in [*steps_of(program.sweeps)]:
        found = program.stencil("", ())
        if backend != "debug" and (dropped := perhaps_lost(found)) is not None:
            _read_behind(program, dropped, [HERE])
        elif joins is not None and (lacking := left_out(found, joins=joins)):
            west, east, south, north = lacking.needed
            _read_behind(program, lacking.at, [(-west, -south, 0), (east, north, 0)])
        else:
            return
    raise NotDifferentiable(
        "a value is read at a neighbour on another level, so that each level needs more points"
    )


def _read_behind(program: Program, number: int, places: list[tuple[int, int, int]]) -> None:
    """Add a sweep behind the step with this number that reads its value at these places.

    A second sweep reads what the first has written, or GT4Py would drop that.
    """
    steps = [(at, step) for at, one in enumerate(program.sweeps) for step in one.steps]
    at, step = steps[number]
    spare = program.like(step.target, f"{step.target}_around")
    read: list[Expression] = [Access(step.target, place) for place in places]
    is_bool = program.types[step.target] == "bool"
    every = reduce(lambda *both: Operation("or", both) if is_bool else plus(*both), read)
    order, levels = _UNJOINED[program.sweeps[at].order], program.sweeps[at].levels
    program.sweeps[at + 1 : at + 1] = [
        Sweep(order, levels, (Step(spare, every),)),
        Sweep(_UNJOINED[order], levels, (Step(spare, Access(spare, HERE)),)),
    ]


#: For each order, one in which GT4Py does not join a sweep with it.
_UNJOINED: dict[Order, Order] = {
    "parallel": "backward",
    "forward": "backward",
    "backward": "forward",
}
