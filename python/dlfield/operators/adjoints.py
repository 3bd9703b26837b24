"""The convention of adjoints: what an adjoint takes, where it computes, and what lies around.

For ``out = S(inp, c; s)`` the adjoint is a stencil that reads the cotangents ``out_bar``, writes
the gradients ``inp_bar`` and ``c_bar``, and reads any inputs, outputs and scalars of S, which are
saved for it.

- It computes at every point that S reads: the domain of S, widened by the reach of S. A gradient on
  the domain alone would be zero in the halo, where it is not.
- Cotangents are zero outside of the domain of S.
- What was saved continues by its edge where the adjoint reads further than the halo goes: zeros
  would divide by zero in a stencil that divides.
- Gradients are zero at points of a wide halo that S does not read; there, the gradient of a field
  that is read and written is its cotangent, since S keeps those values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import BoundStencil, FunctionalPlan, as_numpy
from dlfield.operators.arguments import check_bound, fresh, part_of, turned
from dlfield.operators.function import check_levels, has_derivative
from dlfield.stencils.halos import Halos, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dlfield.operators.function import StencilFunction
    from dlfield.stencils.declaration import DeclaredField

__all__ = ["Adjoint", "checked_names"]


class Adjoint:
    """The adjoint of a stencil.

    Parameters
    ----------
    function
        The stencil.
    run
        Its adjoint, bound.
    names
        Argument of the adjoint for a field, where it is not ``inp_bar`` (``t_grad`` for the
        gradient of a field that is read and written). None for an input that is constant by
        decision.

    Raises
    ------
    ValueError
        For an argument that is none of these, a cotangent that is missing, dims that differ, and a
        stencil that reaches along K, whose intervals count from the ends of its domain.
    """

    def __init__(
        self,
        function: StencilFunction,
        run: BoundStencil,
        names: Mapping[str, str | None] | None = None,
    ) -> None:
        check_bound("adjoint", run)
        self.function, self.run, self.declaration = function, run, run.declaration
        self.names = checked_names(function, names or {})
        check_levels("adjoint", function, self.declaration)
        order = function.halos.order
        if self.declaration.collections:
            expected, got = "expected fields and scalars", ", ".join(self.declaration.collections)
            raise TypeError(f"adjoint of '{function.name}': {expected}, got the collections {got}")
        #: True if it computes wherever its gradients are, as programs of gt4py.next do.
        self.by_outputs = self.declaration.decided_by in {"outputs", "stencil"}
        if not (self.by_outputs or set(self.declaration.takes()) >= {"origin", "domain"}):
            expected = "expected one that takes origin and domain"
            got = f"'{self.declaration.name}', which does not"
            raise ValueError(f"adjoint of '{function.name}': {expected}, got {got}")
        #: Points below and above the domain of S that S reads, and that the adjoint reads.
        self.reach = function.reach()
        own = self._own_reach()
        self.own = {axis: own.get(axis, (0, 0)) for axis in self.reach}
        self._check_reach()
        self.halos = Halos(self.declaration, 0, [one for one in order if one in own] or None)
        fields = self.halos.fields
        axes = {name: self.halos.axes(field) for name, field in fields.items()}
        #: How arrays of the caller are turned, where they have to be.
        self.axes = {name: one for name, one in axes.items() if one is not None}
        self._plans: dict[tuple[int, ...], _AdjointPlan] = {}
        #: Arguments of the adjoint by name of the output, of the input, and what is saved.
        self.cotangents = self._role("bar", function.outputs, ("read",))
        self.gradients = self._role("grad", function.inputs, ("write", "update"))
        roles = [*self.cotangents.values(), *self.gradients.values()]
        twice = next((one for one in roles if roles.count(one) > 1), None)
        if twice is not None:
            expected = "an argument of its own for each field"
            raise ValueError(
                f"adjoint of '{function.name}': expected {expected}, got '{twice}' for two"
            )
        unused = {one.name for one in self.declaration.fields if one.access == "unused"}
        others = [one for one in self.declaration.order if one not in roles and one not in unused]
        known = dict.fromkeys([*function.arguments, *(field.name for field in function.outputs)])
        for name in others:
            if name not in known:
                expected = "a cotangent, a gradient or an argument of the stencil"
                allowed = ", ".join([*self._expected(), *known])
                raise ValueError(
                    f"adjoint of '{function.name}': expected {expected} ({allowed}), got '{name}'; "
                    "pass names={'<field>': '<argument>'}"
                )
        self.saved = [name for name in others if name in fields]
        self.scalars = [name for name in others if name not in fields]
        self.casts = {name: cast for name, cast in function.casts.items() if name in self.scalars}
        for name in [one.name for one in filter(has_derivative, function.outputs)]:
            if self._called(name, "bar") not in {*self.cotangents.values(), *unused}:
                needed = f"the argument '{self._called(name, 'bar')}', the cotangent of '{name}'"
                raise ValueError(f"adjoint of '{function.name}': needs {needed}; pass names=")

    def __call__(
        self,
        extents: Sequence[int],
        cotangents: Mapping[str, Any],
        saved: Mapping[str, Any],
        into: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the gradients by name of the input.

        Parameters
        ----------
        extents
            Extents of the inputs of S, one shape after the other.
        cotangents
            By name of the output; None for one that is zero. Values outside of the domain do not
            count.
        saved
            Fields and scalars that the adjoint takes, by name.
        into
            Arrays of zeros for the gradients, by name of the input; new storages by default.
        """
        key = tuple(extents)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _AdjointPlan(self, self.function.cut(key))
        given: dict[str, Any] = {name: saved[name] for name in self.scalars}
        for output, name, memory, target, source in plan.cotangents:
            given[name] = padded = memory.zeros()
            cotangent = cotangents.get(output)
            if cotangent is not None:
                padded[target] = cotangent[source]
        for name, inside, missing in plan.saved:
            given[name] = values = saved[name][inside] if inside else saved[name]
            if missing is not None:
                given[name] = self._edge_padded(name, values, missing)
        for name, cast in self.casts.items():
            given[name] = cast(given[name])
        if plan.new is not None and into is None:
            made = plan.new.in_order(self.run, *given.values())
            made = made if isinstance(made, tuple) else (made,)
            gradients = dict(zip(self.gradients, made, strict=True))
        else:
            gradients = self._computed(plan, given, into)
        for field, source in plan.kept:
            cotangent = cotangents.get(field)
            if cotangent is not None and field in gradients:
                _add_outside(self._seen(gradients[field]), self._seen(cotangent), source)
        return gradients

    def _computed(
        self, plan: _AdjointPlan, given: dict[str, Any], into: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the gradients where arrays are given for them, turned, cut or summed."""
        gradients = {}
        for field, name, memory, more in plan.gradients:
            is_new = into is None or more
            gradients[field] = given[name] = memory.zeros() if is_new else (into or {})[field]
        for name, axes in self.axes.items():
            if name in given:
                given[name] = turned(given[name], axes)
        for name, inside in plan.inside.items():
            given[name] = given[name][inside]
        self.run(**given, **plan.options)
        for field, _, _, more in plan.gradients:
            if more:
                gradients[field] = gradients[field].sum(more)
                if into is not None:
                    into[field][...] = gradients[field].to_numpy()
                    gradients[field] = into[field]
        return gradients

    def _seen(self, array: Any) -> Any:
        """Return what computes in the memory of an array: NumPy on the host, the array on a GPU."""
        return as_numpy(array) if self.function.declaration.device is None else array

    def _edge_padded(self, name: str, values: Any, missing: Sequence[tuple[int, ...]]) -> Any:
        """Return a copy that continues by its edge, by so many points below and above."""
        shape = [extent + sum(more) for extent, more in zip(values.shape, missing, strict=True)]
        padded = self.function.memory(shape, self.halos.fields[name].dtype).empty()
        target = self._seen(padded)
        inside = [slice(low, low + n) for n, (low, _) in zip(values.shape, missing, strict=True)]
        target[tuple(inside)] = self._seen(values)
        for axis, (low, high) in enumerate(missing):
            before = (slice(None),) * axis
            end = shape[axis] - high
            target[(*before, slice(0, low))] = target[(*before, slice(low, low + 1))]
            target[(*before, slice(end, None))] = target[(*before, slice(end - 1, end))]
        return padded

    def _own_reach(self) -> dict[str, tuple[int, int]]:
        """Return the reach of the adjoint, which reads as far as S, to both sides."""
        if self.declaration.knows_reach():
            return self.declaration.reach()
        return {axis: (max(both),) * 2 for axis, both in self.reach.items()}

    def _check_reach(self) -> None:
        """Refuse a reach along K, and a halo that is narrower than the reach."""
        for axis in self.reach.keys() & {"K"}:
            if any(self.reach[axis]):
                expected = "expected a stencil that stays inside its domain along K"
                got = f"one that reads {self.reach[axis]} points beyond"
                raise ValueError(f"adjoint of '{self.function.name}': {expected}, got {got}")
        widths = self.function.halos.widths
        for axis, (low, high) in self.reach.items():
            if widths[axis][0] < low or widths[axis][1] < high:
                expected = f"at least the reach of the stencil along {axis}, {(low, high)}"
                raise ValueError(f"halo: expected {expected}, got {widths[axis]}")

    def _called(self, field: str, role: str) -> str | None:
        """Return the argument of the adjoint for a cotangent ("bar") or a gradient ("grad")."""
        both = field in {one.name for one in self.function.outputs if one.access == "update"}
        if field in self.names and not (both and role == "bar"):
            return self.names[field]
        return f"{field}_grad" if both and role == "grad" else f"{field}_bar"

    def _expected(self) -> list[str]:
        pairs = [(one.name, "bar") for one in self.function.outputs]
        pairs += [(one.name, "grad") for one in self.function.inputs]
        return [name for name in (self._called(*pair) for pair in pairs) if name]

    def _role(
        self, role: str, fields: Sequence[DeclaredField], access: tuple[str, ...]
    ) -> dict[str, str]:
        """Return the arguments with a role by the field of S, checked against it."""
        found = {}
        for field in fields:
            name = self._called(field.name, role)
            own = self.halos.fields.get(name or "")
            if name is None or own is None or own.access == "unused":
                continue
            if own.access not in access:
                expected = "written" if role == "grad" else "read only"
                raise ValueError(
                    f"'{name}' of the adjoint: expected it {expected}, got access '{own.access}'"
                )
            same = set(own.dims) == set(field.dims)
            if not (same or (role == "grad" and set(own.dims) > set(field.dims))):
                expected = f"the dims of '{field.name}', {', '.join(field.dims)}"
                raise ValueError(f"'{name}' of the adjoint: expected {expected}, got {own.dims}")
            found[field.name] = name
        return found


class _AdjointPlan:
    """Where an adjoint computes for inputs of certain shapes, and the memory that it needs."""

    def __init__(self, adjoint: Adjoint, shapes: Sequence[Shape]) -> None:
        self.adjoint = adjoint
        function = adjoint.function
        self.domain = dict(zip(adjoint.reach, function.plan(shapes).domain, strict=True))
        self.widths = function.halos.widths
        #: Points between the edge of an array of S and those that S reads.
        self.between = {
            axis: (self.widths[axis][0] - low, self.widths[axis][1] - high)
            for axis, (low, high) in adjoint.reach.items()
        }
        self.origins: dict[str, tuple[int, ...]] = {}
        #: Output, argument, memory of zeros, the domain in it and in the cotangent.
        self.cotangents = [self._cotangent(*pair) for pair in adjoint.cotangents.items()]
        #: Argument, its part that counts, and the points that it has to be continued by, or None.
        self.saved = [(name, *self._missing(name)) for name in adjoint.saved]
        outputs = {field.name: field.access for field in function.outputs}
        around = any(map(any, self.widths.values()))
        #: The fields whose values outside of the domain S keeps, and the domain in them.
        self.kept = [
            (output, source)
            for output, _, _, _, source in self.cotangents
            if around and outputs[output] == "update"
        ]
        named = zip(function.inputs, shapes, strict=True)
        #: Input, argument, memory of zeros, and the axes along which it has to be summed.
        self.gradients = [
            self._gradient(field, adjoint.gradients[field.name], shape)
            for field, shape in named
            if field.name in adjoint.gradients
        ]
        window = [self.domain[axis] + sum(adjoint.reach[axis]) for axis in adjoint.declaration.axes]
        self.options: dict[str, Any] = {"origin": self.origins, "domain": tuple(window)}
        #: The part of each gradient that is handed to an adjoint which computes wherever they are.
        self.inside: dict[str, tuple[slice, ...]] = {}
        if adjoint.by_outputs:
            del self.options["domain"]
            sizes = dict(zip(adjoint.declaration.axes, window, strict=True))
            for _, name, _, _ in self.gradients:
                dims = adjoint.halos.fields[name].dims
                self.inside[name] = part_of(dims, self.origins[name], sizes)
                self.origins[name] = (0,) * len(dims)
        #: Calls the adjoint with new gradients; None where arrays are turned, cut or summed.
        self.new: FunctionalPlan | None = None
        summed = any(more for _, _, _, more in self.gradients)
        if not (adjoint.axes or self.inside or summed) and type(adjoint.run) is BoundStencil:
            made = {name: fresh(memory) for _, name, memory, _ in self.gradients}
            order = [*adjoint.scalars, *adjoint.cotangents.values(), *adjoint.saved]
            self.new = FunctionalPlan(adjoint.run, made, order=order, **self.options)

    def _settle(self, name: str, around: Mapping[str, int]) -> None:
        """Note the index of the first point at which the adjoint computes."""
        dims = self.adjoint.halos.fields[name].dims
        self.origins[name] = tuple(around.get(dim, 0) for dim in dims)

    def _cotangent(self, output: str, name: str) -> tuple[Any, ...]:
        adjoint, field = self.adjoint, self.adjoint.halos.fields[name]
        shape, target, source = [], [], []
        for dim in adjoint.halos.dims(field):
            extent = self._points(field, dim)
            low, high = adjoint.reach.get(dim, (0, 0))
            more, above = adjoint.own.get(dim, (0, 0))
            shape.append(extent + low + high + more + above)
            target.append(slice(low + more, low + more + extent))
            first = self.widths.get(dim, (0, 0))[0]
            source.append(slice(first, first + extent))
        self._settle(name, {dim: low for dim, (low, _) in adjoint.own.items()})
        memory = adjoint.function.memory(shape, field.dtype)
        return output, name, memory, tuple(target), tuple(source)

    def _missing(self, name: str) -> tuple[Any, list[tuple[int, int]] | None]:
        adjoint = self.adjoint
        field = adjoint.halos.fields[name]
        dims, inside = adjoint.halos.dims(field), None
        if name not in adjoint.function.arguments:
            # An output has no values of its own outside of the domain.
            lows = {dim: self.widths.get(dim, (0, 0))[0] for dim in dims}
            inside = tuple(slice(lows[dim], lows[dim] + self._points(field, dim)) for dim in dims)
            missing = [self._beyond_domain(dim) for dim in dims]
            self._settle(name, {dim: low for dim, (low, _) in adjoint.own.items()})
            return inside, missing if any(map(any, missing)) else None
        missing = [self._missing_along(dim) for dim in dims]
        lows = {dim: low for dim, (low, _) in zip(dims, missing, strict=True)}
        around = {dim: room + lows.get(dim, 0) for dim, (room, _) in self.between.items()}
        self._settle(name, around)
        return inside, missing if any(map(any, missing)) else None

    def _beyond_domain(self, dim: str) -> tuple[int, int]:
        """Return how many points the adjoint reads beyond the domain of S, below and above."""
        (low, high), (more, above) = (
            one.get(dim, (0, 0)) for one in (self.adjoint.reach, self.adjoint.own)
        )
        return low + more, high + above

    def _missing_along(self, dim: str) -> tuple[int, int]:
        """Return how many points the adjoint reads beyond the halo of S, below and above."""
        (low, high), (more, above) = (
            one.get(dim, (0, 0)) for one in (self.between, self.adjoint.own)
        )
        return max(0, more - low), max(0, above - high)

    def _gradient(self, field: DeclaredField, name: str, shape: Shape) -> tuple[Any, ...]:
        adjoint, declared = self.adjoint, self.adjoint.halos.fields[name]
        own = dict(zip(adjoint.function.halos.dims(field), shape, strict=True))
        dims = adjoint.halos.dims(declared)
        extents = [
            own[dim] if dim in own else self.domain[dim] + sum(self.widths[dim]) for dim in dims
        ]
        self._settle(name, {dim: low for dim, (low, _) in self.between.items()})
        more = tuple(axis for axis, dim in enumerate(dims) if dim not in own)
        memory = adjoint.function.memory(extents, declared.dtype)
        return field.name, name, memory, more

    def _points(self, field: DeclaredField, dim: str) -> int:
        """Return the points of the domain along a dimension, or the extent of a data dimension."""
        return self.domain[dim] if dim in self.domain else field.data_shape[int(dim)]


def checked_names(
    function: StencilFunction, names: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Read `names=`: each key is a field of the stencil."""
    for name in names:
        if name not in function.halos.fields:
            expected = f"fields of '{function.name}' ({', '.join(function.halos.fields)})"
            raise ValueError(f"names: expected {expected}, got {name!r}")
    return dict(names)


def _add_outside(gradient: Any, cotangent: Any, domain: tuple[slice, ...]) -> None:
    """Add a cotangent to a gradient, outside of the domain."""
    outside = 1 * cotangent
    outside[domain] = 0
    gradient += outside
