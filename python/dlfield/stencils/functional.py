"""Stencils as functions: outputs are made and given back, and no argument is written.

Frameworks whose arrays are immutable use stencils this way. ``run.functional(...)`` of a bound
stencil comes here. This file finds out what the outputs are like and where the call computes; the
compiled `FunctionalPlan` makes them and computes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dlfield._core import (
    Allocation,
    FunctionalPlan,
    Storage,
    arguments_functional,
    as_storage,
    bind_options,
    plan_functional,
    storage,
)
from dlfield.stencils.binding import mapped_names, own_names, take_option
from dlfield.stencils.halos import Halos
from dlfield.stencils.next.internals import connectivity, is_field
from dlfield.stencils.next.tables import Tables, checked_provider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dlfield._core import Array, BoundStencil, CallPlan, FieldPlan, StorageOptions
    from dlfield.stencils.declaration import DeclaredField

__all__ = ["call", "planned"]

#: What makes an array of each framework from a storage, without a copy. None: the storage itself.
_MAKERS: dict[str, Callable[[Storage], Any] | None] = {
    "cupy": Storage.to_cupy,
    "jax": Storage.to_jax,
    "numpy": Storage.to_numpy,
    "storage": None,
    "torch": Storage.to_torch,
    "xarray": Storage.to_numpy,
}

#: The attribute of a bound stencil that keeps the plan of its last call, for calls like it.
_KEPT = "_last_functional"


def call(run: BoundStencil, args: tuple[Any, ...], keywords: Mapping[str, Any] | None) -> Any:
    """Implement `BoundStencil.functional`."""
    options = dict(keywords or {})
    like, halo = take_option(run, options, "like"), take_option(run, options, "halo")
    place = place_of_call(run, options)
    exec_info = options.pop("exec_info", None)
    given = own = arguments_functional(run, args, options)
    if halo is not None:
        names = (field.name for field in run.declaration.fields)
        first = next((given[name] for name in names if given.get(name) is not None), None)
        name = _framework(like, first)
        if name != "jax":
            like = name
        elif like is None:
            like = first  # the array tells the device, too
        given = with_halo(run, given, halo, place)
    return _plan(run, given, like, place, own)(run, given, exec_info)


def place_of_call(run: BoundStencil, options: dict[str, Any]) -> dict[str, Any]:
    """Take `origin` and `domain` out of the options of a call; else those that `bind` was given."""
    _, fixed = bind_options(run)["partial"]
    given = {name: options.pop(name, None) for name in ("origin", "domain")}
    return {name: fixed.get(name) if one is None else one for name, one in given.items()}


def _plan(
    run: BoundStencil,
    given: dict[str, Any],
    like: Array,
    place: Mapping[str, Any],
    own: dict[str, Any],
) -> FunctionalPlan:
    """Return the plan of the last call if it also serves this call; otherwise a new plan.

    The call checks its arguments in both cases. `own` are the arguments as the caller passed them.
    """
    # A plan knows no coordinates of arguments to which a halo was added.
    may_be_kept = like is None or (isinstance(like, str) and (own is given or like != "xarray"))
    kept: FunctionalPlan | None = run.__dict__.get(_KEPT)
    if kept is not None and may_be_kept and kept.serves(run, given, **place, like=like):
        return kept
    plan, told = planned(run, given, place)
    may_be_kept &= told is place  # else it depends on tables, which may change
    asked = (given, place["origin"], place["domain"], like) if may_be_kept else None
    made = _Outputs(plan, given, like, told).functional_plan(run, own, asked)
    if made.may_be_kept:
        run.__dict__[_KEPT] = made
    return made


def planned(
    run: BoundStencil, given: dict[str, Any], place: Mapping[str, Any]
) -> tuple[CallPlan, Mapping[str, Any]]:
    """Plan a call whose outputs may be missing; return its origin and domain beside the plan."""
    plan = plan_functional(run, (), given, **place)
    told = _told_by_tables(run, plan, given) if place["domain"] is None else None
    if told is None:
        return plan, place
    place = {**place, "domain": told}
    return plan_functional(run, (), given, **place), place


def _told_by_tables(run: BoundStencil, plan: CallPlan, given: Mapping[str, Any]) -> Any:
    """Complete the domain from the tables; return None if nothing is missing or they lack it."""
    unknown = {dim for _, dim in _unknown(plan)}
    provider = given.get("offset_provider", run.declaration.connectivities)
    if not unknown or not provider:
        return None
    tables = Tables(checked_provider(provider), connectivity)
    told = {dim: points for dim in unknown if (points := tables.points(dim)) is not None}
    if told.keys() != unknown:
        return None
    known = zip(plan.axes, plan.domain, strict=True)
    return _domain(plan, (told.get(dim, points) for dim, points in known))


def _unknown(plan: CallPlan) -> Iterator[tuple[str, str]]:
    """Yield each output to be made with each of its dimensions that no given array has."""
    known = {dim for field in plan.fields.values() if field.given for dim in field.dims}
    for name, field in plan.fields.items():
        if field.access in ("write", "update") and field.given is None:
            yield from ((name, dim) for dim in field.dims if dim in plan.axes and dim not in known)


def _domain(plan: CallPlan, points: Iterable[int]) -> Any:
    """Return a domain as a call takes it: numbers, or ranges if it does not start at the origin."""
    if not any(plan.start):
        return tuple(points)
    ends = zip(plan.axes, plan.start, points, strict=True)
    return {axis: (start, start + count) for axis, start, count in ends}


def with_halo(
    run: BoundStencil,
    given: Mapping[str, Any],
    halo: Any,
    place: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the arguments, with this halo on each field that has none of its own."""
    if any(one is not None for one in place.values()):
        raise TypeError("halo: expected it alone, got it with origin or domain; leave these out")
    halos, known = Halos(run.declaration, halo), mapped_names(bind_options(run))
    labelled = {
        name: _labelled_with(halos, field, known, given[name])
        for name, field in halos.fields.items()
        if given.get(name) is not None
    }
    return {**given, **labelled}


def _labelled_with(halos: Halos, field: DeclaredField, known: Mapping[str, str], value: Any) -> Any:
    """Return a storage with this halo over an array; one with a halo of its own, as it is.

    `known` has the stencil's names by the user's.
    """
    if isinstance(value, Storage) and any(map(any, value.halo or ())):
        return value
    array = as_storage(value)
    dims = array.dims or field.dims
    widths = []
    for dim in dims:
        declared = known.get(dim, dim)
        if declared not in field.dims:
            expected = f"arrays without names, or with {', '.join(field.dims)}"
            raise ValueError(
                f"halo: expected {expected}, got {dim!r} in '{field.name}'; map it with the dims "
                "of bind, or give it a halo by dlfield.as_storage(..., halo=...)"
            )
        widths.append(halos.widths.get(declared, (0, 0)))
    return as_storage(array, dims=dims, halo=widths)


def _framework(like: Array, first: Any) -> str:
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


def _together(
    names: tuple[str, ...], collections: Mapping[str, Any], arrays: tuple[Any, ...]
) -> Any:
    """Return the results, with one for each collection whose parts are all outputs."""
    parts = dict(zip(names, arrays, strict=True))
    results = dict(parts)
    for collection in collections.values():
        own = list(collection.flat())
        if parts.keys() >= set(own):
            results[own[0]] = collection.built(parts)
            for name in own[1:]:
                del results[name]
    return next(iter(results.values())) if len(results) == 1 else tuple(results.values())


class _Outputs:
    """How a call makes its outputs, and how it returns them as arrays of a framework."""

    def __init__(
        self,
        plan: CallPlan,
        given: Mapping[str, Any],
        like: Array,
        place: Mapping[str, Any],
    ) -> None:
        self.plan = plan
        fields = (name for name in given if name in plan.fields and plan.fields[name].given)
        self.first = next(fields, None)
        model = given[self.first] if like is None and self.first is not None else like
        self.framework = _framework(like, None if self.first is None else given[self.first])
        self.convert = _MAKERS[self.framework]
        if self.framework == "jax" and (device := _device_of(model)) is not None:
            self.convert = partial(_on_device, device)
        written = plan.fields.items()
        #: The outputs, in the order of the definition.
        self.fields = {name: one for name, one in written if one.access in ("write", "update")}
        #: The index in every field that `plan.start` counts from, along its declared dimensions.
        halos = zip(plan.axes, plan.output_halo, plan.start, strict=True)
        around = {axis: low - start for axis, (low, _), start in halos}
        self.origins = {
            name: tuple(around.get(dim, 0) for dim in field.dims)
            if field.given is None
            else field.given.origin
            for name, field in plan.fields.items()
            if name in given or name in self.fields
        }
        if place["domain"] is None:
            self.check_domain()
        known = {"origin": self.common_origin(), "domain": _domain(plan, plan.domain)}
        #: Where the call computes.
        self.place = {name: known[name] for name in plan.takes}
        order = () if self.first is None else _dims(plan.fields[self.first])
        self.memory = {
            name: self._zeros(one, order) if one.given is None else self._copy(one)
            for name, one in self.fields.items()
        }

    def common_origin(self) -> Any:
        """Return the origins as a call takes them; one for all fields, if they agree, is faster."""
        found: dict[str, set[int]] = {axis: set() for axis in self.plan.axes}
        for name, origin in self.origins.items():
            for dim, first in zip(self.plan.fields[name].dims, origin, strict=True):
                found.get(dim, {first}).add(first)
        data = any(field.data_shape for field in self.plan.fields.values())
        one = all(len(firsts) == 1 for firsts in found.values()) and not data
        return tuple(firsts.pop() for firsts in found.values()) if one else self.origins

    def check_domain(self) -> None:
        """Refuse an output with an axis whose extent is unknown."""
        for name, dim in _unknown(self.plan):
            missing = f"a field that has {dim}, as the output '{name}' has"
            raise ValueError(f"domain: needs {missing}; pass domain=, or an array for it")

    def functional_plan(
        self, run: BoundStencil, own: Mapping[str, Any], asked: tuple[Any, ...] | None
    ) -> FunctionalPlan:
        """Return the plan of the call; `own` as for `_plan`, `asked` as for `FunctionalPlan`."""
        collections, convert, together = self.plan.collections, self.convert, None
        if self.framework == "xarray":
            convert, together = None, self._labelled_together(run, own)
        elif collections:
            together = partial(_together, tuple(self.fields), collections)
        return FunctionalPlan(
            run, self.memory, **self.place, convert=convert, together=together, asked=asked
        )

    def _copy(self, field: FieldPlan) -> Callable[[Any], Storage]:
        demands = self._demands(field, _dims(field))
        return lambda value: storage(value, **demands)

    def _zeros(self, field: FieldPlan, order: tuple[str, ...]) -> Allocation:
        plan, dims = self.plan, order if set(order) == set(field.dims) else field.dims
        extents = {str(number): extent for number, extent in enumerate(field.data_shape)}
        halos = dict.fromkeys(extents, (0, 0))
        axes = zip(plan.axes, plan.domain, plan.output_halo, plan.halo, strict=True)
        for axis, points, around, halo in axes:
            extents[axis] = points + sum(around)
            # If no field has a halo, the points around the domain are no halo in outputs either.
            halos[axis] = halo if any(around) else (0, 0)
        options = self._demands(field, dims) | {"defaults": plan.backend or "C"}
        options |= {"dims": dims, "halo": [halos[one] for one in dims]}
        return Allocation([extents[one] for one in dims], field.dtype, **options)

    def _demands(self, field: FieldPlan, dims: tuple[str, ...]) -> StorageOptions:
        """Return the demands of the stencil on memory as options, for dimensions in this order."""
        demands: StorageOptions = {"device": self.plan.device}
        if field.layout is not None:
            ranks = dict(zip(field.dims, field.layout, strict=True))
            demands["layout"] = [ranks[dim] for dim in dims]
        if field.alignment_size > 1:
            demands["alignment_size"] = field.alignment_size
        elif self.framework == "jax":  # it takes no memory with gaps, as between padded rows
            demands["alignment_size"] = 1
        return demands

    def _labelled_together(
        self, run: BoundStencil, given: Mapping[str, Any]
    ) -> Callable[[tuple[Storage, ...]], Any]:
        """Return a function that makes DataArrays of the outputs of a call with these arguments."""
        import xarray as xr

        own = {name: one for name, one in given.items() if isinstance(one, xr.DataArray)}
        model, mapped = own.get(self.first or ""), own_names(bind_options(run))

        def together(made: tuple[Storage, ...]) -> Any:
            arrays = [
                self._labelled(one.to_numpy(), one, name, own.get(name), model, mapped)
                for name, one in zip(self.fields, made, strict=True)
            ]
            return _together(tuple(self.fields), self.plan.collections, tuple(arrays))

        return together

    def _labelled(
        self,
        array: Array,
        made: Storage,
        name: str,
        own: Any,
        model: Array,
        mapped: Mapping[str, str],
    ) -> Any:
        """Return an output as a DataArray like the one passed for it, else like the first field.

        Dimensions that the first field lacks have the names that `bind` maps.
        """
        import xarray as xr

        field = self.plan.fields[name]
        if own is not None:
            return own.copy(data=array)
        dims = (made.dims or ()) if field.given is None else _dims(field)
        if self.first is None or model is None:
            return xr.DataArray(array, dims=[mapped.get(dim, dim) for dim in dims])
        theirs = self.plan.fields[self.first]
        names = {**mapped, **dict(zip(_dims(theirs), model.dims, strict=True))}
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


def _on_device(device: Any, made: Storage) -> Any:  # a jax.Array
    """Return a JAX array over the memory, or a copy if it has to be on another device."""
    import jax

    array = made.to_jax()
    return array if array.device == device else jax.device_put(array, device)


def _device_of(model: Array) -> Any:  # a jax.Device
    """Return the device of a JAX array, else None. Even the host may have several devices."""
    array = model.ndarray if is_field(model) else model
    device = getattr(array, "device", None)
    return device if hasattr(device, "platform") else None


def _dims(field: FieldPlan) -> tuple[str, ...]:
    """Names of an array's own axes; one without names is in the declared order."""
    return (field.given and field.given.dims) or field.dims


def _inside(window: slice | None, extent: int) -> bool:
    """Return whether a window lies inside the first field, which then has coordinates for it."""
    return window is not None and 0 <= window.start <= window.stop <= extent
