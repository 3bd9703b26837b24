"""Stencils as functions: outputs are made and given back, and no argument is written.

Frameworks whose arrays are immutable use stencils this way. Reached by ``run.functional(...)`` of a
bound stencil.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import (
    UNSET,
    Storage,
    arguments_functional,
    call_functional,
    plan_functional,
    storage,
    zeros,
)
from dlfield.binding import take_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dlfield._core import BoundStencil, CallPlan, FieldPlan, StorageOptions, UnsetType

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
    """Call a bound stencil with outputs that are made here. ``run.functional(...)`` comes here.

    Parameters
    ----------
    run
        The bound stencil.
    args, keywords
        As for a call of `run`, without the outputs: arguments without a name are the inputs in the
        order of the definition, or all arguments. A field that is read and written is copied, and
        so is an output that is given nevertheless: points that the stencil does not write keep
        their values. `origin`, `domain` and `exec_info` as for a call. `like` selects the framework
        of the results: "numpy", "torch", "jax", "cupy", "xarray" or "storage", or an array of it;
        by default that of the first field argument.

    Returns
    -------
    array or tuple of arrays
        The outputs in the order of the definition; a single one by itself. An output that was made
        has the domain and around it the widest halo of the fields, filled with zeros, in the order
        of dimensions of the first field argument if that has the same, and in the layout that suits
        the backend. A DataArray gets the dims and coordinates of the first field argument;
        one that was passed for an output keeps its own.

    Raises
    ------
    TypeError
        For arguments without a name that are more than the inputs and fewer than all.
    ValueError
        If an output that is to be made has a dimension that no given field has, and there is no
        `domain`. For an unknown `like`.
    """
    options = dict(keywords or {})
    like = take_option(run, options, "like")
    place = {name: options.pop(name, None) for name in ("origin", "domain")}
    exec_info = options.pop("exec_info", None)
    given = arguments_functional(run, args, options)
    plan = plan_functional(run, (), given, **place)
    first = next((name for name in given if name in plan.fields and plan.fields[name].given), None)
    framework = _framework(like, None if first is None else given[first])
    if place["domain"] is None:
        _check_domain(plan)
    # JAX takes no memory with gaps, as between rows that are padded for an alignment.
    alignment = 1 if framework == "jax" else UNSET
    outputs = dict(_outputs(plan, given, first, alignment))
    origins = _origins(plan, outputs, given)
    known = {"origin": origins, "domain": plan.domain}
    place = {name: known[name] for name in plan.takes}
    call_functional(run, {**given, **outputs}, **place, exec_info=exec_info)
    results = []
    for name, made in outputs.items():
        result = _MAKERS[framework](made)
        if framework == "xarray":
            result = _labelled(result, made, name, plan, given, first, origins)
        results.append(result)
    return results[0] if len(results) == 1 else tuple(results)


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
    modules = (base.__module__.partition(".")[0] for base in type(model).__mro__)
    known = {"jaxlib": "jax", **{name: name for name in _MAKERS if name != "storage"}}
    found = next((known[module] for module in modules if module in known), None)
    if found is None and like is not None:
        expected = f"one of {', '.join(_MAKERS)} or an array of such a framework"
        raise ValueError(f"like: expected {expected}, got {type(like).__name__}")
    return found or "numpy"


def _written(plan: CallPlan) -> Iterator[tuple[str, FieldPlan]]:
    """Give the outputs, in the order of the definition."""
    for name, field in plan.fields.items():
        if field.access in ("write", "update"):
            yield name, field


def _check_domain(plan: CallPlan) -> None:
    """Refuse to guess the extent of an output along an axis that no array has."""
    known = {dim for field in plan.fields.values() if field.given for dim in field.dims}
    for name, field in _written(plan):
        unknown = [dim for dim in field.dims if dim in plan.axes and dim not in known]
        if unknown and field.given is None:
            expected = f"expected a field that has {unknown[0]}, as the output '{name}' has"
            raise ValueError(f"domain: {expected}, got none; pass domain=, or an array for it")


def _outputs(
    plan: CallPlan,
    given: Mapping[str, Any],
    first: str | None,
    alignment: int | UnsetType,
) -> Iterator[tuple[str, Storage]]:
    """Copy the outputs that were given, and make storages of zeros for the others."""
    order = _dims(plan.fields[first]) if first is not None else ()
    for name, field in _written(plan):
        if field.given is not None:
            yield name, storage(given[name], **_demands(plan, field, _dims(field), alignment))
        else:
            dims = order if set(order) == set(field.dims) else field.dims
            yield name, _zeros(plan, field, dims, alignment)


def _dims(field: FieldPlan) -> tuple[str, ...]:
    """Names of an array's own axes; one without names is in the declared order."""
    return (field.given and field.given.dims) or field.dims


def _zeros(
    plan: CallPlan, field: FieldPlan, dims: tuple[str, ...], alignment: int | UnsetType
) -> Storage:
    extents = {str(number): extent for number, extent in enumerate(field.data_shape)}
    halos = dict.fromkeys(extents, (0, 0))
    axes = zip(plan.axes, plan.domain, plan.output_halo, plan.halo, strict=True)
    for axis, points, around, halo in axes:
        extents[axis] = points + sum(around)
        # A plain array stays one: if it has points around the domain it does not call them a halo.
        halos[axis] = halo if any(around) else (0, 0)
    options = _demands(plan, field, dims, alignment)
    options |= {"dims": dims, "halo": [halos[one] for one in dims], "defaults": plan.backend or "C"}
    return zeros([extents[one] for one in dims], field.dtype, **options)


def _demands(
    plan: CallPlan, field: FieldPlan, dims: tuple[str, ...], alignment: int | UnsetType
) -> StorageOptions:
    """Give the demands of the stencil on memory as options, for dimensions in this order."""
    demands: StorageOptions = {"device": plan.device}
    if field.layout is not None:
        ranks = dict(zip(field.dims, field.layout, strict=True))
        demands["layout"] = [ranks[dim] for dim in dims]
    if field.alignment_size > 1:
        alignment = field.alignment_size
    if alignment is not UNSET:
        demands["alignment_size"] = alignment
    return demands


def _origins(
    plan: CallPlan, outputs: Mapping[str, Storage], given: Mapping[str, Any]
) -> dict[str, tuple[int, ...]]:
    """Index of the domain's first point in every field, along its declared dimensions."""
    around = dict(zip(plan.axes, plan.output_halo, strict=True))
    return {
        name: tuple(around.get(dim, (0, 0))[0] for dim in field.dims)
        if field.given is None
        else field.given.origin
        for name, field in plan.fields.items()
        if name in given or name in outputs
    }


def _labelled(
    array: Any,  # noqa: ANN401
    made: Storage,
    name: str,
    plan: CallPlan,
    given: Mapping[str, Any],
    first: str | None,
    origins: Mapping[str, tuple[int, ...]],
) -> Any:  # noqa: ANN401
    """Give a DataArray like the one that was passed for it, else labelled as the first field."""
    import xarray as xr

    own, field = given.get(name), plan.fields[name]
    if isinstance(own, xr.DataArray):
        return own.copy(data=array)
    dims = (made.dims or ()) if field.given is None else _dims(field)
    model = None if first is None else given[first]
    if first is None or not isinstance(model, xr.DataArray):
        return xr.DataArray(array, dims=dims)
    theirs = plan.fields[first]
    names = dict(zip(_dims(theirs), model.dims, strict=True))
    begins = dict(zip(field.dims, origins[name], strict=True))
    window = {
        names[dim]: slice(at - begins[dim], at - begins[dim] + made.shape[dims.index(dim)])
        for dim, at in zip(theirs.dims, origins[first], strict=True)
        if dim in begins
    }
    coords = {
        key: coord.isel({dim: window[dim] for dim in coord.dims})
        for key, coord in model.coords.items()
        if all(_inside(window.get(dim), model.sizes[dim]) for dim in coord.dims)
    }
    return xr.DataArray(array, dims=[names.get(dim, dim) for dim in dims], coords=coords)


def _inside(window: slice | None, extent: int) -> bool:
    """Tell whether a part of the first argument lies inside it, so that it has coordinates."""
    return window is not None and 0 <= window.start <= window.stop <= extent
