"""The adjoint and the tangent of a stencil in single assignment, as sweeps of the same form.

The adjoint of a variable is one sum: what each read of it contributes, as seen from the point that
was read. A read at an offset o becomes an accumulation from -o, at levels that are shifted as well;
sweeps run in the opposite order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from dlfield.derivatives.expressions import (
    NotDifferentiable,
    is_finite,
    moved,
    number,
    partials,
    plus,
    times,
    where,
)
from dlfield.derivatives.program import HERE, Program, Step, Sweep, steps_of
from dlfield.stencils.cartesian.levels import ALL, is_inside, meet, pieces, shifted, without
from dlfield.stencils.cartesian.nodes import Access, Operation, accesses, changed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dlfield.derivatives.program import Order
    from dlfield.stencils.cartesian.levels import Levels
    from dlfield.stencils.cartesian.nodes import Expression, Index

__all__ = [
    "adjoint_sweeps",
    "needed",
    "tangent_sweeps",
]

_OPPOSITE: dict[Order, Order] = {
    "parallel": "parallel",
    "forward": "backward",
    "backward": "forward",
}


def tangent_sweeps(
    program: Program, directions: Mapping[str, str], outputs: Mapping[str, str]
) -> list[Sweep]:
    """Return the sweeps of a stencil, with the derivative of each value beside it.

    Parameters
    ----------
    program
        The stencil.
    directions
        Variables of the directions, by the variable of the input.
    outputs
        Variables of the derivatives, by the variable of the output.
    """
    active = _active(program, directions)
    read = {one.name for step in steps_of(program.sweeps) for one in accesses(step.value)}
    last = {
        target: program.last[output] for output, target in outputs.items() if output in program.last
    }
    own = {name: target for target, (name, levels) in last.items()}
    direct = [name for target, (name, levels) in last.items() if levels == ALL and name not in read]
    dots = {name: own[name] for name in direct} | dict(directions)
    for name in sorted(active - dots.keys()):
        dots[name] = program.like(name, f"{name}_dot")

    def with_derivative(step: Step) -> Iterator[Step]:
        if step.target in active or step.target in own:
            value = _tangent(program, step, active, dots)
            yield replace(step, target=dots[step.target], value=value)
        yield step

    for name in own.keys() - active - dots.keys():
        dots[name] = program.like(name, f"{name}_dot")
    sweeps = [
        replace(one, steps=tuple(made for step in one.steps for made in with_derivative(step)))
        for one in program.sweeps
    ]
    for target, (name, levels) in last.items():
        if dots[name] != target:
            step = Step(target, Access(dots[name], HERE))
            where = program.defined[name] if levels == ALL else [levels]
            order: Order = "parallel" if levels == ALL else "forward"
            sweeps += [Sweep(order, one, (step,)) for one in where]
    return sweeps


def _tangent(
    program: Program, step: Step, active: Collection[str], dots: Mapping[str, str]
) -> Expression:
    value: Expression = number(0, program.types[step.target])
    for access, factor in _partials(program, step, active):
        value = plus(value, times(factor, replace(access, name=dots[access.name])))
    return value


def adjoint_sweeps(
    program: Program,
    cotangents: Mapping[str, str],
    gradients: Mapping[str, str],
    reach: Mapping[str, tuple[int, int]],
) -> list[Sweep]:
    """Return the sweeps of the adjoint, which read values that the sweeps of the stencil leave.

    Parameters
    ----------
    program
        The stencil.
    cotangents
        Their variables, by the variable of the output.
    gradients
        Their variables, by the variable of the input.
    reach
        By axis, how many points below and above the domain of the stencil the adjoint computes.
        Cotangents are zero there, and stay so whatever the fields hold.
    """
    goes_beyond = any(map(any, reach.values()))
    active = _active(program, gradients)
    infinite = _infinite(program)
    received = _Received(list)
    for output, cotangent in cotangents.items():
        name, levels = program.last.get(output, ("", ALL))
        if name in active:
            received[name].append((levels, Access(cotangent, HERE)))
    reached = _reaching(program, active, set(received))
    lacking = [name for name in gradients if not {"I", "J"} <= set(program.axes.get(name, "IJK"))]
    places = _places(program, active, received) if lacking else {}
    bars = dict(gradients)
    for name in sorted(reached - bars.keys()):
        bars[name] = program.like(name, f"{name}_bar")
    for sweep in program.sweeps:
        for step in sweep.steps:
            if step.target in reached:
                for access, factor in _partials(program, step, active, bars[step.target]):
                    zero = number(0, program.types[access.name])
                    value = where(step.guard, factor, zero) if step.guard else factor
                    if goes_beyond and not is_finite(factor, infinite):
                        own = number(0, program.types[step.target])
                        seed = Access(bars[step.target], HERE)
                        value = where(Operation("!=", (seed, own)), value, zero)
                    if access.name in lacking:
                        by = _into(program, access.name, places[step.target], reach)
                        value = moved(value, by, program.axes)
                    received[access.name].append(_at_its_point(program, sweep, access, value))
    made = []
    for sweep in reversed(program.sweeps):
        lines = {one.target: one.line for one in sweep.steps if one.target in reached}
        wanted = list(reversed(lines.items()))
        if wanted:
            order = _OPPOSITE[sweep.order]
            made += _sums(program, order, sweep.levels, wanted, received, bars)
    for name in gradients:
        made += _sums(program, "parallel", program.levels, [(name, None)], received, bars)
    return made


#: What each variable receives: at which levels, and an expression at its own point.
_Received = defaultdict[str, "list[tuple[Levels, Expression]]"]


#: From where to where a variable counts, along I and along J, as points from the domain.
_Places = tuple[tuple[int, int], ...]


def _places(
    program: Program, active: Collection[str], outputs: Collection[str]
) -> dict[str, _Places]:
    """Return where each variable counts for the outputs, which count in the domain."""
    found: dict[str, _Places] = dict.fromkeys(outputs, ((0, 0), (0, 0)))
    steps = list(steps_of(program.sweeps))[::-1]
    for _ in range(len(steps) + 1):
        before = dict(found)
        for step in steps:
            if step.target not in found:
                continue
            for read, _ in _partials(program, step, active):
                target = zip(found[step.target], read.offset[:2], strict=True)
                here = tuple((first + at, last + at) for (first, last), at in target)
                pairs = zip(found.get(read.name, here), here, strict=True)
                found[read.name] = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in pairs)
        if found == before:
            return found
    raise NotDifferentiable("a value depends on neighbours of its own from level to level")


def _into(
    program: Program, name: str, places: _Places, reach: Mapping[str, tuple[int, int]]
) -> tuple[int, int, int]:
    """Return by how much to move what a field receives along the axes that it lacks.

    It is summed along them, so it may be moved to points at which the adjoint computes.
    """
    by = []
    for axis, (first, last) in zip("IJ", places, strict=True):
        below, above = reach.get(axis, (0, 0))
        least, most = last - above, first + below
        lacks = axis not in program.axes.get(name, "IJK")
        if lacks and least > most:
            field = program.fields.get(name, (name,))[0]
            raise NotDifferentiable(
                f"'{field}', which lacks {axis}, counts at points from {first} to {last} beside "
                f"the domain along {axis}, more than the adjoint computes; leave it out by wrt="
            )
        by.append(min(max(0, least), most) if lacks else 0)
    return by[0], by[1], 0


def _infinite(program: Program) -> set[str]:
    """Return the variables that may be infinite, or none, though all that is read is finite."""
    found, before = set[str](), -1
    while len(found) != before:
        before = len(found)
        steps = steps_of(program.sweeps)
        found |= {step.target for step in steps if not is_finite(step.value, found)}
    return found


def _at_its_point(
    program: Program, sweep: Sweep, access: Access, value: Expression
) -> tuple[Levels, Expression]:
    """Return what a read contributes, as seen from the point that was read."""
    i, j, k = access.offset
    levels = shifted(sweep.levels, k or 0)
    if not is_inside(levels):
        name = program.fields.get(access.name, (access.name,))[0]
        raise NotDifferentiable(f"'{name}' is read beyond the lowest or the highest level")
    return levels, moved(value, (-i, -j, -(k or 0)), program.axes)


def _sums(
    program: Program,
    order: Order,
    levels: Levels,
    wanted: list[tuple[str, int | None]],
    received: _Received,
    bars: Mapping[str, str],
) -> list[Sweep]:
    """Return the sums of what variables receive, in pieces of levels at which it is the same."""
    parts = pieces(levels, (one for name, _ in wanted for one, _ in received[name]))
    made = []
    for part in reversed(parts) if order == "backward" else parts:
        steps = []
        for name, line in wanted:
            value: Expression = number(0, program.types[name])
            for levels, one in received[name]:
                value = plus(value, one) if meet(part, levels) else value
            steps.append(Step(bars[name], value, line))
        made.append(Sweep(order, part, tuple(steps)))
    return made


def _active(program: Program, wrt: Collection[str]) -> set[str]:
    """Return the variables that depend on `wrt` through differentiable values."""
    active, before = set(wrt), 0
    while len(active) != before:
        before = len(active)
        for step in steps_of(program.sweeps):
            if step.target not in active and any(_partials(program, step, active)):
                active.add(step.target)
    if not any(name in active for name, _ in program.last.values()):
        names = dict.fromkeys(name.partition("@")[0] for name in wrt)
        inputs = ", ".join(names) or "an input of a floating type that is no constant"
        raise NotDifferentiable(f"no output depends on {inputs}")
    return active


def _reaching(program: Program, active: set[str], outputs: set[str]) -> set[str]:
    """Return the active variables that reach an output."""
    reached, before = outputs, -1
    while len(reached) != before:
        before = len(reached)
        for step in steps_of(program.sweeps):
            if step.target in reached:
                reached |= {one.name for one, _ in _partials(program, step, active)}
    return reached


def _partials(
    program: Program, step: Step, active: Collection[str], seed: str = ""
) -> Iterator[tuple[Access, Expression]]:
    """Yield each active read of a step, with its derivative times a variable, or 1."""
    factor = Access(seed, HERE) if seed else number(1, program.types[step.target])
    try:
        yield from partials(step.value, factor, program.types, active.__contains__)
    except NotDifferentiable as error:
        where = "" if step.line is None else f"line {step.line}: "
        raise NotDifferentiable(f"{where}{error}") from None


def needed(sweeps: list[Sweep], outputs: Collection[str]) -> list[Sweep]:
    """Return the steps that the outputs depend on, per level; plain copies are removed."""
    sweeps = _without_copies(sweeps, outputs)
    wanted: defaultdict[str, list[Levels]] = defaultdict(list, {one: [ALL] for one in outputs})
    before = -1
    while len(wanted_now := [one for each in wanted.values() for one in each]) != before:
        before = len(wanted_now)
        for sweep in sweeps:
            for step in _alive(sweep, wanted):
                for access in accesses(step.value):
                    level = access.offset[2]
                    levels = ALL if level is None else shifted(sweep.levels, level)
                    if without(levels, wanted[access.name]):
                        wanted[access.name].append(levels)
    kept = [replace(sweep, steps=_alive(sweep, wanted)) for sweep in sweeps]
    return [one for one in kept if one.steps]


def _alive(sweep: Sweep, wanted: Mapping[str, list[Levels]]) -> tuple[Step, ...]:
    return tuple(
        step
        for step in sweep.steps
        if any(meet(sweep.levels, one) for one in wanted.get(step.target, ()))
    )


def _without_copies(sweeps: list[Sweep], outputs: Collection[str]) -> list[Sweep]:
    """Replace each variable that is only a copy, and is assigned once, by what it copies."""
    counts = Counter(step.target for step in steps_of(sweeps))
    copies = {
        step.target: step.value.name
        for step in steps_of(sweeps)
        if isinstance(step.value, Access) and step.value == Access(step.value.name, HERE)
        if counts[step.target] == 1 and step.target not in outputs
    }

    def original(one: Access | Index) -> Expression:
        while isinstance(one, Access) and one.name in copies:
            one = replace(one, name=copies[one.name])
        return one

    def read(step: Step) -> Step:
        return replace(step, value=changed(step.value, original))

    return [replace(sweep, steps=tuple(map(read, sweep.steps))) for sweep in sweeps]
