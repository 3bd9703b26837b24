"""Stencils as functions: outputs are made and given back, and no argument is written.

That is how frameworks whose arrays are immutable use a stencil. Reached by ``run.functional(...)``
of a bound stencil.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import Storage, storage, zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dlfield._core import BoundStencil, CPUStorage

__all__ = ["call"]

#: How a storage becomes an array of each framework. None of them copies.
_MAKERS: dict[str, Callable[[CPUStorage], Any]] = {
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
        suits the backend. A DataArray gets the dims and coordinates of the first field argument.

    Raises
    ------
    ValueError
        Where the domain cannot be told from the inputs: pass `domain`, or the outputs. For an
        unknown `like`.
    """
    options = dict(keywords or {})
    like = options.pop("like", None)
    place = {name: options.pop(name, None) for name in ("origin", "domain", "exec_info")}
    given = run.arguments(*args, **options)
    plan = run.plan(**given, origin=place["origin"], domain=place["domain"], functional=True)
    first = _first(plan["fields"], given)
    framework = _framework(like, None if first is None else given[first])
    outputs = dict(_outputs(plan, given, first))
    arguments: dict[str, Any] = {**given, **outputs}
    run(**arguments, **_place(plan, outputs, given), exec_info=place["exec_info"])
    results = []
    for name, made in outputs.items():
        result = _MAKERS[framework](made)
        if framework == "xarray":
            result = _labelled(result, made, name, plan, given, first)
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
    known = {"jaxlib": "jax", **{name: name for name in _MAKERS}}
    found = next((known[module] for module in modules if module in known), None)
    if found is None and like is not None:
        expected = f"one of {', '.join(_MAKERS)} or an array of such a framework"
        raise ValueError(f"like: expected {expected}, got {type(like).__name__}")
    return found or "numpy"


def _outputs(
    plan: Mapping[str, Any], given: Mapping[str, Any], first: str | None
) -> Iterator[tuple[str, CPUStorage]]:
    """Copy the outputs that were given, and make storages of zeros for the others."""
    order = plan["fields"][first]["own_dims"] if first is not None else None
    for name, field in plan["fields"].items():
        if field["access"] not in ("write", "update"):
            continue
        if "shape" in field:
            yield name, storage(given[name])
            continue
        dims = field["dims"]
        if order is not None and set(order) == set(dims):
            dims = order
        yield name, _zeros(plan, field, dims)


def _zeros(plan: Mapping[str, Any], field: Mapping[str, Any], dims: tuple[str, ...]) -> CPUStorage:
    points = dict(zip(plan["axes"], plan["domain"], strict=True))
    halos = dict(zip(plan["axes"], plan["halo"], strict=True))
    data = dict(zip(map(str, range(len(field["data_shape"]))), field["data_shape"], strict=True))
    halo = [halos.get(dim, (0, 0)) for dim in dims]
    extents = [
        data[dim] if dim in data else points[dim] + low + high
        for dim, (low, high) in zip(dims, halo, strict=True)
    ]
    return zeros(extents, field["dtype"], dims=dims, halo=halo, backend=plan["backend"] or "C")


def _place(
    plan: Mapping[str, Any], outputs: Mapping[str, CPUStorage], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Where to compute, as far as the stencil is told."""
    place: dict[str, Any] = {}
    if "origin" in plan["takes"]:
        halos = dict(zip(plan["axes"], plan["halo"], strict=True))
        place["origin"] = {
            name: field["origin"]
            if name in given and "origin" in field
            else tuple(halos.get(dim, (0, 0))[0] for dim in field["dims"])
            for name, field in plan["fields"].items()
            if name in given or name in outputs
        }
    if "domain" in plan["takes"]:
        place["domain"] = plan["domain"]
    return place


def _labelled(
    array: Any,  # noqa: ANN401
    made: CPUStorage,
    name: str,
    plan: Mapping[str, Any],
    given: Mapping[str, Any],
    first: str | None,
) -> Any:  # noqa: ANN401
    """Give a DataArray like the one that was passed for it, else labelled as the first field."""
    import xarray as xr

    own = given.get(name)
    if isinstance(own, xr.DataArray):
        return own.copy(data=array)
    if first is None or not isinstance(given[first], xr.DataArray):
        return xr.DataArray(array, dims=made.dims)
    model, field = given[first], plan["fields"][first]
    names = dict(zip(field["own_dims"], model.dims, strict=True))
    dims = [names.get(dim, dim) for dim in made.dims or ()]
    window = _window(made, names, plan, field)
    coords = {
        key: coord.isel({dim: window[dim] for dim in coord.dims})
        for key, coord in model.coords.items()
        if all(dim in dims and _inside(window.get(dim), model.sizes[dim]) for dim in coord.dims)
    }
    return xr.DataArray(array, dims=dims, coords=coords)


def _window(
    made: CPUStorage, names: Mapping[str, str], plan: Mapping[str, Any], field: Mapping[str, Any]
) -> dict[str, slice]:
    """Give the part of the first argument that an output lies over, by the user's names."""
    origin = dict(zip(field["dims"], field["origin"], strict=True))
    halos = dict(zip(plan["axes"], plan["halo"], strict=True))
    extents = zip(made.dims or (), made.shape, strict=True)
    starts = {dim: (origin.get(dim, 0) - halos.get(dim, (0, 0))[0], n) for dim, n in extents}
    return {names[dim]: slice(at, at + n) for dim, (at, n) in starts.items() if dim in names}


def _inside(window: slice | None, extent: int) -> bool:
    return window is not None and 0 <= window.start <= window.stop <= extent
