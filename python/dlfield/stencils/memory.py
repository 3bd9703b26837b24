"""Memory as a bound stencil wants it, with the dimensions named as its user names them.

``run.storage(x)``, ``run.zeros(shape)`` and ``run.empty(shape)`` of a bound stencil come here. The
outputs of ``run.functional(...)`` are made in `functional`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

import dlfield._core as core
from dlfield._core import bind_options, get_dims, preset
from dlfield.stencils.binding import mapped_names, own_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dlfield._core import Array, BoundStencil, Storage
    from dlfield.stencils.declaration import Declaration, DeclaredField

__all__ = ["copied", "made"]


def copied(
    run: BoundStencil,
    data: Array,
    field: str | None,
    options: Mapping[str, Any] | None,
) -> Storage:
    """Implement `BoundStencil.storage`."""
    given = dict(options or {})
    dims = given.get("dims") or get_dims(data)
    data = data if dims or hasattr(data, "ndim") else core.storage(data)
    ndim = len(dims) if dims else data.ndim
    known = mapped_names(bind_options(run))
    model = _field(run, known, field, dims, ndim)
    return core.storage(data, **_options(_demands(run, known, model, dims), given))


def made(
    run: BoundStencil,
    function: str,
    shape: Sequence[int],
    dtype: Any,
    field: str | None,
    options: Mapping[str, Any] | None,
) -> Storage:
    """Implement `BoundStencil.zeros` and `empty`."""
    known, given = mapped_names(bind_options(run)), dict(options or {})
    dims = given.pop("dims", None)
    ndim = 1 if hasattr(shape, "__index__") and not hasattr(shape, "__len__") else len(shape)
    model = _field(run, known, field, dims, ndim)
    own = own_names(bind_options(run))
    named = tuple(own.get(dim, dim) for dim in model.dims) if dims is None else tuple(dims)
    demands = _options(_demands(run, known, model, named), {"dims": named} | given)
    storage: Storage = getattr(core, function)(
        shape, model.dtype if dtype is None else dtype, **demands
    )
    return storage


def _options(demands: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return all options of new memory: what the caller gives overrides what the stencil wants."""
    if given.get("backend") is not None:
        return given  # which decides everything else
    if given.get("defaults") is not None:
        demands = {"device": demands["device"]}
    return demands | given


def _field(
    run: BoundStencil,
    known: Mapping[str, str],
    name: str | None,
    dims: Sequence[str] | None,
    ndim: int,
) -> DeclaredField:
    """Find the field that memory is for: by its name, its dimensions, or their number."""
    declaration: Declaration = run.declaration
    wanted = None if dims is None else {known.get(dim, dim) for dim in dims}
    for field in declaration.fields:
        fits = len(field.dims) == ndim if wanted is None else set(field.dims) == wanted
        if fits and name in (None, field.name):
            return field
    fields = ", ".join(f"'{one.name}' of {one.dims}" for one in declaration.fields)
    got = f"{ndim} dimensions" if dims is None else f"{tuple(dims)}"
    if name is not None:
        is_known = any(field.name == name for field in declaration.fields)
        got = f"{got} for '{name}'" if is_known else f"'{name}'"
    way_out = "map your names with the dims of bind"
    way_out += ", or pass field= to name the argument" if name is None else ""
    raise ValueError(
        f"{declaration.name}: expected the dimensions of a field, {fields}, got {got}; {way_out}"
    )


def _demands(
    run: BoundStencil,
    known: Mapping[str, str],
    model: DeclaredField,
    dims: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the memory options for a field with `dims` in this order, under the user's names."""
    declaration: Declaration = run.declaration
    names = model.dims if dims is None else [known.get(dim, dim) for dim in dims]
    demands: dict[str, Any] = {"device": declaration.device}
    for wish in (model.preset, declaration.backend):
        with suppress(ValueError):  # a backend without a preset
            if wish is not None:
                demands |= {"defaults": wish, "layout": preset(wish).layout(names)}
                break
    if model.layout is not None:
        ranks = dict(zip(model.dims, model.layout, strict=True))
        demands["layout"] = tuple(ranks[name] for name in names)
    elif model.unit_stride is not None:
        others = [name for name in names if name != model.unit_stride]
        demands["layout"] = tuple([*others, model.unit_stride].index(name) for name in names)
    if model.alignment is not None:
        demands["alignment_size"] = model.alignment * np.dtype(model.dtype).itemsize
    return demands
