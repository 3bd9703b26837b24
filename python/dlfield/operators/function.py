"""A stencil as a function of arrays that have no labels, and all the same halo.

Frameworks call it with tensors. It makes the outputs; every check is that of the bound stencil.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import Allocation, BoundStencil, FunctionalPlan
from dlfield.operators.arguments import check_bound, copies, fresh, number_of, part_of, turned
from dlfield.stencils.footprint import AffineFootprint
from dlfield.stencils.halos import Halos, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlfield._core import Array
    from dlfield.operators.arguments import Memory
    from dlfield.stencils.declaration import Declaration, DeclaredField, DeclaredScalar

__all__ = ["StencilFunction", "check_levels", "has_derivative"]


#: Types of NumPy for which a stencil takes Python's numbers.
_OF_PYTHON = tuple(map(np.dtype, (bool, np.int64, np.float64)))
#: Bytes above which only the parts of an array that need it are cleared.
_WORTH_PARTS = 1 << 18


class StencilFunction:
    """A stencil as a function: inputs and scalars in, outputs out.

    Parameters
    ----------
    run
        The bound stencil.
    halo, dims
        As `Halos` takes them.
    memory
        Called with a shape and a dtype, makes the outputs: `Allocation`, in memory of the host, or
        what has its methods.
    convert
        Makes an array of a framework of each output. By default outputs are returned as they were
        made.

    Raises
    ------
    TypeError, ValueError
        For arguments that are collections, a halo of a callable that is not told where to compute,
        and what `Halos` refuses.
    """

    def __init__(
        self,
        run: BoundStencil,
        halo: Any = None,
        dims: Any = None,
        memory: Callable[[Sequence[int], Any], Memory] = Allocation,
        convert: Callable[[Any], Any] | None = None,
    ) -> None:
        check_bound("run", run)
        declaration = run.declaration
        if declaration.collections:
            expected = "expected fields and scalars as arguments"
            got = ", ".join(declaration.collections)
            raise TypeError(f"'{declaration.name}': {expected}, got the collections {got}")
        self.run, self.declaration, self.memory, self.convert = run, declaration, memory, convert
        self.halos = Halos(declaration, halo, dims)
        if declaration.decided_by.startswith("arrays"):
            self._check_told()
        scalars = {one.name: one for one in declaration.scalars if one.used}
        read = {field.name: field for field in self.halos.inputs}
        #: The arguments of the function in the order of the definition.
        self.arguments: dict[str, DeclaredField | DeclaredScalar] = {
            name: read.get(name) or scalars[name]
            for name in declaration.order
            if name in read or name in scalars
        }
        self.inputs, self.outputs = self.halos.inputs, self.halos.outputs
        self.scalars = [one for name, one in self.arguments.items() if name in scalars]
        used = (one for one in declaration.scalars if one.used)
        self._defaults = {one.name: one.default[0] for one in used if one.default}
        #: What makes a Python number one of the declared type, where it has to be.
        self.casts = {
            one.name: partial(number_of, one.name, one.dtype)
            for one in self.scalars
            if one.dtype is not None and one.dtype not in _OF_PYTHON
        }
        axes = {name: self.halos.axes(one) for name, one in self.halos.fields.items()}
        #: How arrays of the caller are turned, where they have to be.
        self.axes = {name: one for name, one in axes.items() if one is not None}
        #: The inputs whose extents decide where a call computes; the call checks the others.
        #: Outputs that are passed decide along the axes that no input has.
        self.deciding = self._deciding(self.inputs)
        self._deciding_too = self._deciding([*self.inputs, *self.outputs])
        self.needs_changes = bool(self.axes or self.casts)
        self._written = [field.name for field in self.outputs]
        #: For each output the parts that a call may leave as they are.
        self._left = [self._left_of(one) for one in self.outputs]
        #: Places of what is read and written, among the outputs and among the arguments.
        self._updated = [
            (at, list(self.arguments).index(one.name))
            for at, one in enumerate(self.outputs)
            if one.access == "update"
        ]
        order, further = list(self.arguments), self._deciding_too[len(self.deciding) :]
        #: Places of those among the arguments, and of those among the outputs.
        self._deciding_at = [order.index(name) for name in self.deciding]
        self._deciding_outputs_at = [self._written.index(name) for name in further]
        self._plans: dict[Any, _ForwardPlan] = {}
        #: The plan of the last `write_in_order`, whose `repeat` takes arguments and outputs.
        self.last_write: FunctionalPlan | None = None

    @property
    def name(self) -> str:
        """Name of the stencil."""
        return self.declaration.name

    def _check_told(self) -> None:
        """Refuse a halo other than the reach for a callable that is not told where to compute."""
        reach, widths = self.declaration.reach(), self.halos.widths
        ends = (0,) if "domain" in self.declaration.takes() else (0, 1)
        if any(widths[axis][at] != reach[axis][at] for axis in reach for at in ends):
            got = {axis: width for axis, width in widths.items() if any(width)}
            raise ValueError(
                f"halo: expected the reach of '{self.name}', {reach}, since it is not told where "
                f"to compute, got {got}; give it parameters origin and domain"
            )

    def reach(self) -> dict[str, tuple[int, int]]:
        """Return the reach of the stencil; the whole halo if that depends on the arguments."""
        known = self.declaration.knows_reach()
        return self.declaration.reach() if known else self.halos.widths

    def bound(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name, in the order of the definition.

        Raises
        ------
        TypeError
            For an argument that is missing, unknown or given twice.
        """
        names = list(self.arguments)
        left = dict(zip(names, args, strict=False))
        unknown = [name for name in keywords if name not in names or name in left]
        given = self._defaults | left | dict(keywords)
        missing = [name for name in names if name not in given]
        if len(args) > len(names) or unknown or missing:
            got = unknown[0] if unknown else f"no {missing[0]}" if missing else f"{len(args)}"
            raise TypeError(f"{self.name}({', '.join(names)}): expected these arguments, got {got}")
        return {name: given[name] for name in names}

    def cut(self, extents: Sequence[Any]) -> list[Shape]:
        """Return the shapes of the inputs that follow each other in a list of extents."""
        shapes, first = [], 0
        for field in self.inputs:
            end = first + len(field.dims)
            shapes.append(tuple(extents[first:end]))
            first = end
        return shapes

    def check_extents(self, shapes: Sequence[Shape]) -> None:
        """Refuse inputs of which there is no derivative, as `Halos.check_extents` does."""
        names = [field.name for field in self.inputs]
        self.halos.check_extents(dict(zip(names, shapes, strict=True)))

    def shapes(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of the outputs; extents may be symbols."""
        named = {field.name: one for field, one in zip(self.inputs, shapes, strict=True)}
        return list(self.halos.output_shapes(self.halos.extents(named)).values())

    def plan(self, shapes: Sequence[Shape]) -> _ForwardPlan:
        """Return where a call with inputs of these shapes computes, and what it needs."""
        named = {field.name: tuple(one) for field, one in zip(self.inputs, shapes, strict=True)}
        for field in self.inputs:
            self.halos.check_shape(field, named[field.name])
        shapes_of_deciding = tuple([named[name] for name in self.deciding])
        return self._plans.get(shapes_of_deciding) or self._new_plan(shapes_of_deciding)

    def _new_plan(self, shapes: tuple[Shape, ...]) -> _ForwardPlan:
        named = dict(zip(self._deciding_too, shapes, strict=False))  # without outputs, or with them
        plan = self._plans[shapes] = _ForwardPlan(self, named)
        return plan

    def new(self, *args: Any) -> Any:
        """Call the stencil with inputs and scalars in their order, and return new outputs.

        One is returned by itself, others as a tuple.
        """
        shapes = tuple([args[at].shape for at in self._deciding_at])
        plan = self._plans.get(shapes) or self._new_plan(shapes)
        if plan.new is not None:
            return plan.new.in_order(self.run, *args)
        values = dict(zip(self.arguments, args, strict=True))
        made = {name: one.zeros() for name, one in plan.zeros.items()}
        made |= {name: copied(values[name]) for name, copied in plan.copied.items()}
        self._run(plan, {**values, **made})
        convert = self.convert or (lambda one: one)
        results = tuple([convert(made[name]) for name in self._written])
        return results[0] if len(results) == 1 else results

    def write(self, values: dict[str, Any]) -> None:
        """Call the stencil with inputs, scalars and outputs by name."""
        args = [values[name] for name in self.arguments]
        self.write_in_order(args, [values[name] for name in self._written])

    def write_in_order(self, args: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Call the stencil with inputs and scalars in their order, and the outputs in theirs.

        An output takes the place of an argument that the stencil reads and writes.
        """
        if self._updated:
            args = list(args)
            for at, own in self._updated:
                args[own] = outputs[at]
        shapes = tuple([args[at].shape for at in self._deciding_at])
        for at in self._deciding_outputs_at:
            shapes += (outputs[at].shape,)
        plan = self._plans.get(shapes) or self._new_plan(shapes)
        if plan.write is not None:
            self.last_write = plan.write
            plan.write.in_order(self.run, *args, *outputs)
            return
        values = dict(zip(self.arguments, args, strict=True))
        self._run(plan, values | dict(zip(self._written, outputs, strict=True)))

    def clear(self, at: int, output: Array) -> None:
        """Fill an output, by number, with zeros where the call that follows may not write it."""
        if output.nbytes < _WORTH_PARTS:
            output.fill(0)
            return
        for part in self._left[at]:
            output[part] = 0

    def _left_of(self, field: DeclaredField) -> list[tuple[slice, ...]]:
        # A domain that is empty along an axis that the field lacks is not computed.
        has_all_axes = set(self.declaration.axes) <= set(field.dims)
        if not (has_all_axes and self.declaration.covers(field.name)):
            return [()]
        parts: list[tuple[slice, ...]] = []
        inside: list[slice] = []
        for dim in self.halos.dims(field):
            low, high = self.halos.widths.get(dim, (0, 0))
            ends = [slice(0, low)] * (low > 0) + [slice(-high, None)] * (high > 0)
            parts += [(*inside, end) for end in ends]
            inside.append(slice(low, -high or None))
        return parts

    def _run(self, plan: _ForwardPlan, values: dict[str, Any]) -> None:
        if self.needs_changes or plan.inside:
            self._change(plan, values)
        self.run(**values, **plan.options)

    def _change(self, plan: _ForwardPlan, values: dict[str, Any]) -> None:
        """Turn arrays, cut outputs, and convert numbers as the stencil wants them."""
        for name, axes in self.axes.items():
            values[name] = turned(values[name], axes)
        for name, inside in plan.inside.items():
            values[name] = values[name][inside]
        for name, cast in self.casts.items():
            values[name] = cast(values[name])

    def _deciding(self, fields: Sequence[DeclaredField]) -> list[str]:
        found: dict[str, str] = {}
        for field in fields:
            for dim in field.dims:
                if dim in self.halos.widths:
                    found.setdefault(dim, field.name)
        return list(dict.fromkeys(one.name for one in fields if one.name in found.values()))


class _ForwardPlan:
    """Where the calls with inputs of certain shapes compute.

    Attributes
    ----------
    zeros, copied
        What makes each output, by name: memory of zeros, or a copy of the values that it takes.
    new, write
        The calls with new outputs, and with those of the caller. None where arrays are turned or
        cut, or numbers converted: there every call does it.
    options
        Options of the call.
    inside
        The part of an output that is handed to a stencil which computes wherever its outputs are.
    """

    def __init__(self, function: StencilFunction, shapes: Mapping[str, Shape]) -> None:
        halos = function.halos
        for name, shape in shapes.items():
            halos.check_shape(halos.fields[name], shape)
        extents = halos.extents(shapes)
        self.domain = halos.domain(extents)
        for axis, points in zip(function.declaration.axes, self.domain, strict=True):
            if points < 0:
                low, high = halos.widths[axis]
                expected = (
                    f"at least {low + high} points along {axis}, for a halo of ({low}, {high})"
                )
                raise ValueError(f"'{function.name}': expected {expected}, got {extents[axis]}")
        shapes_out = halos.output_shapes(extents)
        makers = {
            field.name: function.memory(shapes_out[field.name], field.dtype)
            for field in halos.outputs
        }
        updated = [field.name for field in halos.outputs if field.access == "update"]
        self.zeros = {name: one for name, one in makers.items() if name not in updated}
        self.copied = {name: copies(name, makers[name]) for name in updated}
        self.new: FunctionalPlan | None = None
        self.write: FunctionalPlan | None = None
        origins = {name: halos.origin(field) for name, field in halos.fields.items()}
        self.inside: dict[str, tuple[slice, ...]] = {}
        takes = function.declaration.takes()
        if function.declaration.decided_by in {"outputs", "stencil"}:
            sizes = dict(zip(function.declaration.axes, self.domain, strict=True))
            for field in halos.outputs:
                self.inside[field.name] = part_of(field.dims, origins[field.name], sizes)
                origins[field.name] = (0,) * len(field.dims)
            self.options: dict[str, Any] = {"origin": origins}
            return
        place: Any = tuple(halos.widths[axis][0] for axis in function.declaration.axes)
        known = {"origin": place, "domain": self.domain}
        self.options = {name: known[name] for name in takes}
        if not function.needs_changes and type(function.run) is BoundStencil:
            made = {name: self.copied.get(name) or fresh(one) for name, one in makers.items()}
            run, order, convert = function.run, list(function.arguments), function.convert
            self.new = FunctionalPlan(run, made, order=order, **self.options, convert=convert)
            order += list(makers)
            self.write = FunctionalPlan(run, {}, order=order, **self.options, shapes=dict(shapes))


def check_levels(what: str, function: StencilFunction, derivative: Declaration) -> None:
    """Refuse a derivative that needs several points along an axis that no field has."""
    known = {dim for field in function.halos.fields.values() for dim in field.dims}
    footprint = derivative.footprint
    least = footprint.smallest if isinstance(footprint, AffineFootprint) else ()
    for axis, points in zip(derivative.axes, least, strict=False):
        if points > 1 and axis not in known:
            way_out = "compute one level in the stencil, by interval(0, 1)"
            raise ValueError(
                f"{what} of '{function.name}': expected one that computes a single point along "
                f"{axis}, which no field has, got one that needs {points}; {way_out}"
            )


def has_derivative(field: DeclaredField) -> bool:
    """Return True for a field of real or complex numbers, not of integers."""
    return np.dtype(field.dtype).kind in "fc"
