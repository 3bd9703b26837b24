"""New storages: like a model, as copies, and joined of several arrays.

Arrays are joined by position. The result has the names on which they agree; names that stand for
the same things and differ are an error. The storages must be of one kind, which is that of the
result. It has the alignment of the first storage, and its layout if it has as many axes.
"""

from __future__ import annotations

import operator
from itertools import accumulate, combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield import _core
from dlfield._core import Storage, get_dims
from dlfield.functions import labels
from dlfield.functions.axes import along, axis_of, check_new_axis
from dlfield.functions.host import has_host_buffer, is_on_host_alone, on_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from dlfield._core import Array


def made_like(
    shape: Sequence[int],
    dtype: Array,
    model: Storage,
    dims: labels.Names,
    halo: labels.Halo,
    layout: Sequence[int] | None = None,
) -> Storage:
    """Allocate a storage of the kind of `model`; without a halo it is unknown."""
    options = _options_like(model, len(shape))
    options["dims"] = dims if dims is not None and len(dims) == len(shape) else None
    options["halo"] = halo or ((0, 0),) * len(shape)
    if layout is not None:
        options["layout"] = layout
    made = _core.empty(shape, dtype, **options)
    if halo is None:
        made.halo = None
    return made


def filled(made: Storage, array: np.ndarray) -> Storage:
    """Put values into a new storage."""
    with made.host() as own:
        own[...] = array
    return made


def _options_like(model: Storage, ndim: int) -> dict[str, Any]:
    """Return the options of a storage like `model`; with other axes without layout and dims."""
    options: dict[str, Any] = {"alignment_size": model.alignment_size}
    if ndim == model.ndim:
        options |= {"layout": model.layout, "dims": model.dims}
    return options | (_core.class_options(type(model)) or {}) | {"device": model.device}


# --- copies --------------------------------------------------------------------------------------


def copy(a: Storage, order: str | None = "K", subok: object = None) -> Storage:
    """Copy into a storage of the same kind, with names and halo. `subok` means nothing."""
    options = _ordered("copy", a.ndim, order)
    return _core.storage(a, **options) if options else a.copy()


def converted(
    storage: Storage,
    dtype: npt.DTypeLike,
    order: str | None = "K",
    casting: Array = "unsafe",
    subok: object = None,
    copy: bool = True,  # noqa: FBT001, FBT002 - as NumPy
) -> Storage:
    """Implement `Storage.astype`."""
    wanted, options = np.dtype(dtype), _ordered("astype", storage.ndim, order)
    check_cast("astype", storage.dtype, wanted, casting)
    has_order = not options or tuple(options["layout"]) == tuple(storage.layout)
    if not copy and wanted == storage.dtype and has_order:
        return storage
    return _core.storage(storage, dtype=wanted, **options)


def astype(
    x: Storage, dtype: npt.DTypeLike, /, *, copy: bool = True, device: str | None = None
) -> Storage:
    """Call `converted`, or copy to a given device."""
    if device is None:
        return converted(x, dtype, copy=copy)
    return _core.storage(x, dtype=dtype, device=device, managed=_core.UNSET)


def asarray(
    model: Storage,
    a: Array,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
) -> Storage:
    """Return a storage of the kind of `model`, over the same memory unless it has to be another."""
    array = a if hasattr(a, "dtype") else np.asarray(a, dtype)
    kind = (_core.class_options(type(model)) or {}) | {"device": device or model.device}
    shared = isinstance(array, type(model)) or (is_on_host_alone(model) and device is None)
    made = _core.as_storage(array) if shared and not copy else _core.storage(array, **kind)
    found = converted(made, made.dtype if dtype is None else dtype, order, copy=False)
    if copy is False and not (shared and array is a and found is made):
        expected = "an array of this type and order where the storage is"
        raise ValueError(f"asarray: expected {expected}, got {type(a).__name__}; pass copy=None")
    return found


def _ordered(what: str, ndim: int, order: str | None) -> dict[str, Any]:
    """Return the option for NumPy's `order`; none to keep the order."""
    if order in ("K", "k", "A", "a", None):
        return {}
    if order not in ("C", "c", "F", "f"):
        raise ValueError(
            f"{what}: expected order 'K', 'A', 'C' or 'F', got {order!r}; leave it out"
        )
    return {"layout": tuple(range(ndim) if order in ("C", "c") else reversed(range(ndim)))}


def check_cast(what: str, found: Array, dtype: np.dtype[Any], casting: Array) -> None:
    """Refuse a type that NumPy's rule does not let become `dtype`."""
    if not np.can_cast(found, dtype, casting):
        text = f"{what}: expected a type that goes into {dtype} by the rule {casting!r}"
        raise TypeError(f"{text}, got {found}; pass casting='unsafe'")


def like(name: str) -> Callable[..., Storage]:
    """Return NumPy's function for storages: kind, names, halo, layout, alignment are the model's.

    With another shape there is no halo, with another number of axes neither names nor layout.
    """
    same, other = getattr(_core, f"{name}_like"), getattr(_core, name)

    def call(
        a: Storage,
        dtype: npt.DTypeLike | None = None,
        order: str | None = "K",
        subok: object = None,
        shape: Array = None,
        *,
        device: str | None = None,
        fill: tuple[Array, ...] = (),
    ) -> Storage:
        extents = a.shape if shape is None else _extents(shape)
        options = _ordered(f"{name}_like", len(extents), order)
        if device is not None:
            options |= {"device": device, "managed": _core.UNSET}
        if dtype is not None and np.dtype(dtype).names:  # Dask makes a dict of arrays then
            raise TypeError(
                f"{name}_like: expected a type of numbers, got one with the fields "
                f"{np.dtype(dtype).names}; make a storage for each field"
            )
        if extents != a.shape:
            options = _options_like(a, len(extents)) | options
        make, model = (same, a) if extents == a.shape else (other, extents)
        made: Storage = make(model, *fill, dtype=a.dtype if dtype is None else dtype, **options)
        return made

    return call


def _extents(shape: Array) -> tuple[int, ...]:
    """Read a shape as NumPy does: of one int or several."""
    each = shape if np.iterable(shape) else (shape,)
    return tuple(operator.index(one) for one in each)


def full_like(a: Storage, fill_value: Array, *options: Array, **named: Array) -> Storage:
    """Make a storage like `a` that is filled with a number."""
    return like("full")(a, *options, fill=(fill_value,), **named)


# --- joins ---------------------------------------------------------------------------------------


def concatenate(
    arrays: Iterable[Array],
    axis: Array = 0,
    out: None = None,
    *,
    dtype: Array = None,
    casting: Array = "same_kind",
) -> Storage:
    """Join arrays along an axis, in a new storage."""
    dims, model, pieces = _pieces("concatenate", arrays, out)
    kind = model
    if axis is None:
        dims, pieces = None, [piece.ravel() for piece in pieces]
        axis, model = 0, pieces[0]
    if model.ndim == 0:
        raise ValueError("concatenate: needs an axis to join along; use ravel() of each array")
    axis = axis_of("numpy.concatenate", model, axis)
    _check_alike("concatenate", pieces, axis)
    extents = [piece.shape[axis] for piece in pieces]
    bounds = [*accumulate(extents, initial=0)]
    made = made_like(
        (*model.shape[:axis], bounds[-1], *model.shape[axis + 1 :]),
        _common_type("concatenate", pieces, dtype, casting),
        kind,
        dims,
        labels.joined([piece.halo for piece in pieces], extents, axis),
    )
    for (start, stop), piece in zip(pairwise(bounds), pieces, strict=True):
        made[along(axis, slice(start, stop))] = piece
    return made


def stack(
    arrays: Iterable[Array],
    axis: int = 0,
    out: None = None,
    *,
    dtype: Array = None,
    casting: Array = "same_kind",
) -> Storage:
    """Join arrays along a new axis, the outermost in memory, in a new storage.

    The new axis has neither a name nor a halo, so that the result has no names.
    """
    check_new_axis("numpy.stack", axis)
    _, model, pieces = _pieces("stack", arrays, out)
    axis = np.lib.array_utils.normalize_axis_index(axis, model.ndim + 1)
    _check_alike("stack", pieces)
    halo = labels.agreed(piece.halo for piece in pieces)
    ranks = [1 + rank for rank in model.layout]
    made = made_like(
        (*model.shape[:axis], len(pieces), *model.shape[axis:]),
        _common_type("stack", pieces, dtype, casting),
        model,
        None,
        None if halo is None else (*halo[:axis], (0, 0), *halo[axis:]),
        (*ranks[:axis], 0, *ranks[axis:]),
    )
    for at, piece in enumerate(pieces):
        made[along(axis, at)] = piece
    return made


def joining(name: str, longer: Callable[..., Any], axis: int) -> Callable[..., Storage]:
    """Return a function that joins arrays along `axis`, after `longer` has added axes to them."""

    def places(array: Array) -> tuple[str | None, ...]:
        """Return the name, or None, of each axis that the longer array has."""
        names = iter(get_dims(array) or ())
        extents = longer(np.broadcast_to(0, (2,) * np.ndim(array))).shape
        return tuple(next(names, None) if extent == 2 else None for extent in extents)

    def join(tup: Iterable[Array], **options: Array) -> Storage:
        # NumPy's function would drop the names of a DataArray.
        named = [one if get_dims(one) is None else _as_storage(one) for one in tup]
        for one, other in combinations(dict.fromkeys(map(places, named)), 2):
            pairs = [both for both in zip(one, other, strict=False) if all(both)]
            labels.same_names(name, zip(*pairs, strict=True))
        pieces = [longer(one) for one in named]
        return concatenate(pieces, min(axis, pieces[0].ndim - 1), **options)

    return join


def _pieces(
    what: str, arrays: Iterable[Array], out: object
) -> tuple[labels.Names, Storage, list[Storage]]:
    """Return the names on which arrays agree, the first storage, and all of them as storages."""
    check_no_out(what, out)
    given = list(arrays)
    dims = labels.same_names(what, map(get_dims, given))
    pieces = [one if isinstance(one, Storage) else _as_storage(one) for one in given]
    model = next((one for one in given if isinstance(one, Storage)), None)
    if model is None:  # an iterator, which NumPy has read
        got = type(arrays).__name__
        raise TypeError(f"{what}: expected a list or tuple of arrays, got a {got}; pass list(...)")
    for one, piece in zip(given, pieces, strict=True):
        _check_kind(what, model, piece, foreign=one is not piece)
    return dims, model, pieces


def check_no_out(what: str, out: object) -> None:
    """Refuse to write a result into a given array."""
    if out is not None:
        raise TypeError(f"{what}: expected out=None, got an array; use numpy.copyto afterwards")


def _as_storage(array: Array) -> Storage:
    plain = isinstance(array, list | tuple | np.generic)
    return _core.as_storage(np.asarray(array) if plain else array)


def _check_kind(what: str, model: Storage, piece: Storage, *, foreign: bool) -> None:
    """Refuse an array that would be copied from one device to another."""
    same = type(piece) is type(model) and piece.device_id == model.device_id
    if same or (foreign and is_on_host_alone(piece) and has_host_buffer(model)):
        return
    got = "another array" if foreign else f"a {type(piece).__name__}"
    where = "the host" if is_on_host_alone(piece) else f"GPU {piece.device_id}"
    raise BufferError(
        f"{what}: expected arrays where the {type(model).__name__} is, got {got} on {where}; copy "
        "it with dlfield.storage(..., device=..., managed=...)"
    )


def _check_alike(what: str, pieces: Sequence[Storage], axis: int | None = None) -> None:
    """Refuse shapes that differ, except along the axis that is joined."""
    shapes = [piece.shape for piece in pieces]
    ragged = len({len(shape) for shape in shapes}) > 1
    others = shapes
    if axis is not None and not ragged:
        others = [labels.without(shape, axis) for shape in shapes]
    if len(set(others)) > 1:
        expected = "one shape" if axis is None else f"one shape, except along axis {axis}"
        got = " and ".join(map(str, shapes))
        raise ValueError(f"{what}: expected arrays of {expected}, got {got}; slice them")


def _common_type(
    what: str, pieces: Sequence[Storage], wanted: Array, casting: Array
) -> np.dtype[Any]:
    found = [piece.dtype for piece in pieces]
    dtype = np.result_type(*found) if wanted is None else np.dtype(wanted)
    for one in found:
        check_cast(what, one, dtype, casting)
    return dtype


# --- elements around -----------------------------------------------------------------------------


def pad(array: Storage, pad_width: Array, mode: Array = "constant", **options: Array) -> Storage:
    """Put points around the elements; the halo grows by them. A dict of widths may have names."""
    own = on_host("pad", array)
    if isinstance(pad_width, dict):
        widths = {axis_of("numpy.pad", array, axis): width for axis, width in pad_width.items()}
        pad_width = [np.broadcast_to(widths.get(at, 0), 2).tolist() for at in range(array.ndim)]
    padded = np.pad(own, pad_width, mode, **options)
    pairs = np.broadcast_to(pad_width, (array.ndim, 2)).tolist()
    of = labels.Labels(array.dims, array.halo, array.shape)
    # xarray pads to shift, and to take windows: these points are no halo.
    halo = labels.padded_inside(of, pairs) if _core.has_matched_dims() else labels.padded(of, pairs)
    return filled(made_like(padded.shape, padded.dtype, array, array.dims, halo), padded)
