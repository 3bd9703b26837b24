"""Stencils as functions: outputs are made and given back, and no argument is written.

Frameworks whose arrays are immutable use stencils this way. Reached by ``run.functional(...)`` of a
bound stencil.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import (
    Storage,
    arguments_functional,
    call_functional,
    plan_functional,
    storage,
    zeros,
)
from dlfield.stencils.binding import take_option
from dlfield.stencils.next.internals import is_field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dlfield._core import BoundStencil, CallPlan, FieldPlan, StorageOptions

__all__ = ["call"]

#: How a storage becomes an array of each framework. None of them copies.
_MAKERS: dict[str, Callable[[Storage], Any]] = {
    "cupy": lambda made: made.to_cupy(),
    "jax": lambda made: made.to_jax(),
    "numpy": lambda made: made.to_numpy(),
    "storage": lambda made: made,
    "torch": lambda made: made.to_torch(),
    "xarray": lambda made: made.to_numpy(),
}


def call(run: BoundStencil, args: tuple[Any, ...], keywords: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
    """Do what `BoundStencil.functional` says."""
    options = dict(keywords or {})
    like = take_option(run, options, "like")
    place = {name: options.pop(name, None) for name in ("origin", "domain")}
    exec_info = options.pop("exec_info", None)
    given = arguments_functional(run, args, options)
    plan = plan_functional(run, (), given, **place)
    outputs = _Outputs(plan, given, like)
    if place["domain"] is None:
        outputs.check_domain()
    made = outputs.make()
    known = {"origin": outputs.origins, "domain": outputs.domain()}
    place = {name: known[name] for name in plan.takes}
    call_functional(run, {**given, **made}, **place, exec_info=exec_info)
    parts = {name: outputs.result(name, storage) for name, storage in made.items()}
    results = _together(parts, plan.collections)
    return results[0] if len(results) == 1 else results


def _framework(like: Any, first: Any) -> str:  # noqa: ANN401
    """Name of the framework of the results."""
    if isinstance(like, str):
        if like not in _MAKERS:
            expected = f"one of {', '.join(_MAKERS)} or an array"
            raise ValueError(f"like: expected {expected}, got '{like}'")
        return like
    model = first if like is None else like
    if isinstance(model, Storage):
        return "storage"
    if is_field(model):
        model = model.ndarray
    modules = (base.__module__.partition(".")[0] for base in type(model).__mro__)
    known = {"jaxlib": "jax", **{name: name for name in _MAKERS if name != "storage"}}
    found = next((known[module] for module in modules if module in known), None)
    if found is None and like is not None:
        expected = f"one of {', '.join(_MAKERS)} or an array of such a framework"
        raise ValueError(f"like: expected {expected}, got {type(like).__name__}")
    return found or "numpy"


def _together(parts: Mapping[str, Any], collections: Mapping[str, Any]) -> tuple[Any, ...]:
    """Put the parts of each collection of outputs together, where it has no others."""
    results = dict(parts)
    for collection in collections.values():
        names = list(collection.flat())
        if parts.keys() >= set(names):
            results[names[0]] = collection.built(parts)
            for name in names[1:]:
                del results[name]
    return tuple(results.values())


class _Outputs:
    """Makes the outputs of a call, and gives them back as arrays of a framework."""

    def __init__(self, plan: CallPlan, given: Mapping[str, Any], like: Any) -> None:  # noqa: ANN401
        self.plan, self.given = plan, given
        fields = (name for name in given if name in plan.fields and plan.fields[name].given)
        self.first = next(fields, None)
        self.framework = _framework(like, None if self.first is None else given[self.first])
        written = plan.fields.items()
        #: The outputs, in the order of the definition.
        self.fields = {name: one for name, one in written if one.access in ("write", "update")}
        #: Index of the domain's first point in every field, along its declared dimensions.
        halos = zip(plan.axes, plan.output_halo, plan.start, strict=True)
        around = {axis: low - start for axis, (low, _), start in halos}
        self.origins = {
            name: tuple(around.get(dim, 0) for dim in field.dims)
            if field.given is None
            else field.given.origin
            for name, field in plan.fields.items()
            if name in given or name in self.fields
        }

    def domain(self) -> Any:  # noqa: ANN401
        """Give the domain as a call takes it: in points, or in ranges where it begins elsewhere."""
        plan = self.plan
        if not any(plan.start):
            return plan.domain
        ends = zip(plan.axes, plan.start, plan.domain, strict=True)
        return {axis: (start, start + points) for axis, start, points in ends}

    def check_domain(self) -> None:
        """Refuse to guess the extent of an output along an axis that no array has."""
        plan = self.plan
        known = {dim for field in plan.fields.values() if field.given for dim in field.dims}
        for name, field in self.fields.items():
            unknown = [dim for dim in field.dims if dim in plan.axes and dim not in known]
            if unknown and field.given is None:
                missing = f"a field that has {unknown[0]}, as the output '{name}' has"
                raise ValueError(f"domain: needs {missing}; pass domain=, or an array for it")

    def make(self) -> dict[str, Storage]:
        """Copy the outputs that were given, and make storages of zeros for the others."""
        order = () if self.first is None else _dims(self.plan.fields[self.first])
        made = {}
        for name, field in self.fields.items():
            if field.given is not None:
                made[name] = storage(self.given[name], **self._demands(field, _dims(field)))
            else:
                dims = order if set(order) == set(field.dims) else field.dims
                made[name] = self._zeros(field, dims)
        return made

    def _zeros(self, field: FieldPlan, dims: tuple[str, ...]) -> Storage:
        plan = self.plan
        extents = {str(number): extent for number, extent in enumerate(field.data_shape)}
        halos = dict.fromkeys(extents, (0, 0))
        axes = zip(plan.axes, plan.domain, plan.output_halo, plan.halo, strict=True)
        for axis, points, around, halo in axes:
            extents[axis] = points + sum(around)
            # A plain array stays one: if it has points around the domain it does not call them a
            # halo.
            halos[axis] = halo if any(around) else (0, 0)
        options = self._demands(field, dims) | {"defaults": plan.backend or "C"}
        options |= {"dims": dims, "halo": [halos[one] for one in dims]}
        return zeros([extents[one] for one in dims], field.dtype, **options)

    def _demands(self, field: FieldPlan, dims: tuple[str, ...]) -> StorageOptions:
        """Give the demands of the stencil on memory as options, for dimensions in this order."""
        demands: StorageOptions = {"device": self.plan.device}
        if field.layout is not None:
            ranks = dict(zip(field.dims, field.layout, strict=True))
            demands["layout"] = [ranks[dim] for dim in dims]
        if field.alignment_size > 1:
            demands["alignment_size"] = field.alignment_size
        elif self.framework == "jax":  # it takes no memory with gaps, as between padded rows
            demands["alignment_size"] = 1
        return demands

    def result(self, name: str, made: Storage) -> Any:  # noqa: ANN401
        """Give an output to the framework, as an array over the memory."""
        array = _MAKERS[self.framework](made)
        return self._labelled(array, made, name) if self.framework == "xarray" else array

    def _labelled(self, array: Any, made: Storage, name: str) -> Any:  # noqa: ANN401
        """Give a DataArray like the one passed for it, else labelled as the first field."""
        import xarray as xr

        own, field = self.given.get(name), self.plan.fields[name]
        if isinstance(own, xr.DataArray):
            return own.copy(data=array)
        dims = (made.dims or ()) if field.given is None else _dims(field)
        model = None if self.first is None else self.given[self.first]
        if self.first is None or not isinstance(model, xr.DataArray):
            return xr.DataArray(array, dims=dims)
        theirs = self.plan.fields[self.first]
        names = dict(zip(_dims(theirs), model.dims, strict=True))
        begins = dict(zip(field.dims, self.origins[name], strict=True))
        window = {
            names[dim]: slice(at - begins[dim], at - begins[dim] + made.shape[dims.index(dim)])
            for dim, at in zip(theirs.dims, self.origins[self.first], strict=True)
            if dim in begins
        }
        coords = {
            key: coord.isel({dim: window[dim] for dim in coord.dims})
            for key, coord in model.coords.items()
            if all(_inside(window.get(dim), model.sizes[dim]) for dim in coord.dims)
        }
        return xr.DataArray(array, dims=[names.get(dim, dim) for dim in dims], coords=coords)


def _dims(field: FieldPlan) -> tuple[str, ...]:
    """Names of an array's own axes; one without names is in the declared order."""
    return (field.given and field.given.dims) or field.dims


def _inside(window: slice | None, extent: int) -> bool:
    """Tell whether a part of the first argument lies inside it, so that it has coordinates."""
    return window is not None and 0 <= window.start <= window.stop <= extent
