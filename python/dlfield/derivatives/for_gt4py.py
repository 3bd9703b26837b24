"""Sweeps in the form that GT4Py accepts, in which it computes what they say."""

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

__all__ = ["compute_enough", "in_one_piece", "keeping", "put_together", "with_neighbours"]


def keeping(sweeps: list[Sweep], names: set[str]) -> list[Sweep]:
    """Return sweeps in which each named field is read where it is written.

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


def with_neighbours(program: Program) -> None:
    """Rename values that a sweep writes and reads at a neighbour, and that an earlier sweep began.

    A sweep of GT4Py may read horizontal neighbours of a field that it writes only if no earlier
    sweep has written the field. Any other such value gets a variable of its own there, which is
    then copied back. Changes the program in place.
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


def put_together(program: Program) -> None:
    """Make one sweep of those that GT4Py may compute as one. Changes the program in place.

    None of them reads other levels of what another writes, nor neighbours of what has a value from
    before: of the fields that are written, GT4Py lets a sweep read neighbours of those alone that
    begin there.
    """
    begun: set[str] = set()
    made: list[Sweep] = []
    for sweep in program.sweeps:
        both = replace(sweep, steps=(*steps_of(made[-1:]), *sweep.steps))
        if made and _are_alike(made[-1], sweep) and not _reads_elsewhere(both, begun):
            made[-1] = both
        else:
            begun |= {step.target for step in steps_of(made[-1:])}
            made.append(sweep)
    program.sweeps = made


def _are_alike(one: Sweep, after: Sweep) -> bool:
    return one.order == after.order == "parallel" and one.levels == after.levels


def _reads_elsewhere(sweep: Sweep, begun: set[str]) -> bool:
    """Return True if a sweep reads what it writes, at other levels or where it was begun before."""
    written = {step.target for step in sweep.steps}
    found = [one for step in sweep.steps for one in accesses(step.value) if one.name in written]
    return any(one.offset[2] or (any(one.offset[:2]) and one.name in begun) for one in found)


def in_one_piece(program: Program, backend: str) -> None:
    """Convert ternaries to their own type where "debug" would tear them; in place."""

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


def compute_enough(program: Program, backend: str) -> None:
    """Make a backend of GT4Py compute every value wherever another one needs it.

    A later sweep that reads what would be left out, or dropped, into a variable that nothing needs
    makes GT4Py compute it. Changes the program in place.
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
    raise NotDifferentiable("a value is read beside itself, once more at each level")


def _read_behind(program: Program, number: int, places: list[tuple[int, int, int]]) -> None:
    """Add a sweep behind the step with this number that reads its value at these places."""
    steps = [(at, step) for at, one in enumerate(program.sweeps) for step in one.steps]
    at, step = steps[number]
    spare = program.like(step.target, f"{step.target}_around")
    read: list[Expression] = [Access(step.target, place) for place in places]
    is_bool = program.types[step.target] == "bool"
    every = reduce(lambda *both: Operation("or", both) if is_bool else plus(*both), read)
    order, levels = _OTHER[program.sweeps[at].order], program.sweeps[at].levels
    program.sweeps[at + 1 : at + 1] = [
        Sweep(order, levels, (Step(spare, every),)),
        Sweep(_OTHER[order], levels, (Step(spare, Access(spare, HERE)),)),  # or GT4Py drops it
    ]


_OTHER: dict[Order, Order] = {"parallel": "backward", "forward": "backward", "backward": "forward"}
