"""Stencils as functions: outputs are made and given back, and no argument is written.

That is how frameworks whose arrays are immutable use a stencil. Reached by ``run.functional(...)``
of a bound stencil.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import UNSET, Storage, storage, zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dlfield._core import BoundStencil, StorageOptions, UnsetType

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
        As for a call of `run`, without what the stencil only writes. A field that it reads and
        writes is copied, and so is an output that is given nevertheless: its values stay where the
        stencil writes none. `origin`, `domain` and `exec_info` as for a call. `like` says what is
        given back: "numpy", "torch", "jax", "cupy", "xarray" or "storage", or an array of that
        framework; by default that of the first field argument.

    Returns
    -------
    array or tuple of arrays
        The outputs in the order of the definition; a single one by itself. An output that was made
        has the domain and around it the widest halo of the fields, filled with zeros, in the order
        of dimensions of the first field argument where it has the same, and in the layout that
        suits the backend. A DataArray gets the dims and coordinates of the first field argument;
        one that was passed for an output keeps its own.

    Raises
    ------
    ValueError
        Where no field that is given has a dimension of an output that is to be made, and there is
        no `domain`. For an unknown `like`.
    """
    options = dict(keywords or {})
    like = None if "like" in run.argument_names else options.pop("like", None)
    place = {name: options.pop(name, None) for name in ("origin", "domain", "exec_info")}
    given = run.arguments(*args, **options)
    plan = run.plan(**given, origin=place["origin"], domain=place["domain"], _functional=True)
    first = _first(plan["fields"], given)
    framework = _framework(like, None if first is None else given[first])
    if place["domain"] is None:
        _check_domain(plan)
    # JAX takes no memory with gaps, as between rows that are padded for an alignment.
    alignment = 1 if framework == "jax" else UNSET
    outputs = dict(_outputs(plan, given, first, alignment))
    origins = _origins(plan, outputs, given)
    arguments: dict[str, Any] = {**given, **outputs}
    run(**arguments, **_place(plan, origins), exec_info=place["exec_info"], _stacklevel=2)
    results = []
    for name, made in outputs.items():
        result = _MAKERS[framework](made)
        if framework == "xarray":
            result = _labelled(result, made, name, plan, given, first, origins)
        results.append(result)
    return results[0] if len(results) == 1 else tuple(results)


def _first(fields: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """Name of the first field argument that is an array."""
    names = (name for name in given if "shape" in fields.get(name, {}))
    return next(names, None)


def _framework(like: Any, first: Any) -> str:  # noqa: ANN401
    """Name of the framework that the results are to be of."""
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


def _written(plan: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the outputs, in the order of the definition."""
    for name, field in plan["fields"].items():
        if field["access"] in ("write", "update"):
            yield name, field


def _check_domain(plan: Mapping[str, Any]) -> None:
    """Refuse to guess how many points an output has where no array tells it."""
    fields = plan["fields"].values()
    told = {dim for field in fields if "shape" in field for dim in field["dims"]}
    for name, field in _written(plan):
        unknown = [dim for dim in field["dims"] if dim in plan["axes"] and dim not in told]
        if unknown and "shape" not in field:
            expected = f"expected a field that has {unknown[0]}, as the output '{name}' has"
            raise ValueError(f"domain: {expected}, got none; pass domain=, or an array for it")


def _outputs(
    plan: Mapping[str, Any],
    given: Mapping[str, Any],
    first: str | None,
    alignment: int | UnsetType,
) -> Iterator[tuple[str, Storage]]:
    """Copy the outputs that were given, and make storages of zeros for the others."""
    order = plan["fields"][first]["own_dims"] if first is not None else None
    for name, field in _written(plan):
        if "shape" in field:
            own = field["own_dims"] or field["dims"]
            demands = _demands(field, own, alignment)
            demands["device"] = plan["device"]
            yield name, storage(given[name], **demands)
            continue
        dims = field["dims"]
        if order is not None and set(order) == set(dims):
            dims = order
        yield name, _zeros(plan, field, dims, alignment)


def _along_axes(plan: Mapping[str, Any], what: str) -> dict[str, tuple[int, int]]:
    """Give a pair of the plan, such as its `halo`, by the name of the axis."""
    return dict(zip(plan["axes"], plan[what], strict=True))


def _zeros(
    plan: Mapping[str, Any],
    field: Mapping[str, Any],
    dims: tuple[str, ...],
    alignment: int | UnsetType,
) -> Storage:
    points = dict(zip(plan["axes"], plan["domain"], strict=True))
    around, halos = _along_axes(plan, "around"), _along_axes(plan, "halo")
    data = dict(zip(map(str, range(len(field["data_shape"]))), field["data_shape"], strict=True))
    extents = [
        data[dim] if dim in data else points[dim] + sum(around.get(dim, (0, 0))) for dim in dims
    ]
    # A plain array stays one: where it has points around the domain it does not call them a halo.
    halo = [halos.get(dim, (0, 0)) if any(around.get(dim, (0, 0))) else (0, 0) for dim in dims]
    options = _demands(field, dims, alignment)
    options |= {"dims": dims, "halo": halo, "defaults": plan["backend"] or "C"}
    options["device"] = plan["device"]
    return zeros(extents, field["dtype"], **options)


def _demands(
    field: Mapping[str, Any], dims: tuple[str, ...], alignment: int | UnsetType
) -> StorageOptions:
    """Give what the stencil demands of the memory, as options for dimensions in this order."""
    demands: StorageOptions = {}
    if field["layout"] is not None:
        ranks = dict(zip(field["dims"], field["layout"], strict=True))
        demands["layout"] = [ranks[dim] for dim in dims]
    if field["alignment_size"] > 1:
        alignment = field["alignment_size"]
    if alignment is not UNSET:
        demands["alignment_size"] = alignment
    return demands


def _origins(
    plan: Mapping[str, Any], outputs: Mapping[str, Storage], given: Mapping[str, Any]
) -> dict[str, tuple[int, ...]]:
    """Index of the domain's first point in every field, along its declared dimensions."""
    around = _along_axes(plan, "around")
    return {
        name: field["origin"]
        if "origin" in field
        else tuple(around.get(dim, (0, 0))[0] for dim in field["dims"])
        for name, field in plan["fields"].items()
        if name in given or name in outputs
    }


def _place(plan: Mapping[str, Any], origins: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Where to compute, as far as the stencil is told."""
    place = {"origin": origins, "domain": plan["domain"]}
    return {name: place[name] for name in plan["takes"]}


def _labelled(
    array: Any,  # noqa: ANN401
    made: Storage,
    name: str,
    plan: Mapping[str, Any],
    given: Mapping[str, Any],
    first: str | None,
    origins: Mapping[str, tuple[int, ...]],
) -> Any:  # noqa: ANN401
    """Give a DataArray like the one that was passed for it, else labelled as the first field."""
    import xarray as xr

    own, field = given.get(name), plan["fields"][name]
    if isinstance(own, xr.DataArray):
        return own.copy(data=array)
    # By the stencil's names; an array that has none is in the declared order.
    dims = field["own_dims"] or field["dims"] if "own_dims" in field else made.dims or ()
    model = None if first is None else given[first]
    if first is None or not isinstance(model, xr.DataArray):
        return xr.DataArray(array, dims=dims)
    theirs = plan["fields"][first]
    names = dict(zip(theirs["own_dims"], model.dims, strict=True))
    begins = dict(zip(field["dims"], origins[name], strict=True))
    window = {
        names[dim]: slice(at - begins[dim], at - begins[dim] + made.shape[dims.index(dim)])
        for dim, at in zip(theirs["dims"], origins[first], strict=True)
        if dim in begins
    }
    coords = {
        key: coord.isel({dim: window[dim] for dim in coord.dims})
        for key, coord in model.coords.items()
        if all(_inside(window.get(dim), model.sizes[dim]) for dim in coord.dims)
    }
    return xr.DataArray(array, dims=[names.get(dim, dim) for dim in dims], coords=coords)


def _inside(window: slice | None, extent: int) -> bool:
    """Whether a part of the first argument lies in it, so that it has coordinates."""
    return window is not None and 0 <= window.start <= window.stop <= extent
