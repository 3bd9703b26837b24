"""NumPy's functions that make one new storage of several arrays: concatenate, stack and their kin.

Axes go together by position. The result has the names on which the arrays agree; names that stand
for the same things and differ are an error. The storages must be of one kind, which is that of the
result. It has the alignment of the first storage, and its layout if it has as many axes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import (
    CPUStorage,
    GPUStorage,
    GTNoSuchBufferError,
    Storage,
    as_storage,
    class_options,
    empty,
    get_dims,
    names_are_unrelated,
)
from dlfield.functions import views as views
from dlfield.functions.axes import axis_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Names = tuple[str, ...] | None
    Halo = tuple[tuple[int, int], ...] | None


def concatenate(
    arrays: Iterable[Any],
    axis: Any = 0,  # noqa: ANN401 - a name or a number
    out: None = None,
    *,
    dtype: Any = None,  # noqa: ANN401 - as NumPy
    casting: Any = "same_kind",  # noqa: ANN401 - one of NumPy's words
) -> Storage:
    """Join arrays along an axis, in a new storage.

    Along that axis the halo is the lower one of the first array and the upper one of the last. It
    is unknown (None) if there is a halo in between. See `_agreed` for the other axes.
    """
    names, model, pieces = _pieces("concatenate", arrays, out)
    if axis is None or model.ndim == 0:
        raise ValueError("concatenate: needs an axis to join along; name one, or use to_numpy()")
    axis = axis_of("numpy.concatenate", model, axis)
    _check_alike("concatenate", pieces, axis)
    bounds = np.cumsum([0, *(piece.shape[axis] for piece in pieces)]).tolist()
    shape = (*model.shape[:axis], bounds[-1], *model.shape[axis + 1 :])
    dtype = _dtype("concatenate", pieces, dtype, casting)
    made = made_like(shape, dtype, model, names, _joined_halo(pieces, axis))
    for (start, stop), piece in zip(pairwise(bounds), pieces, strict=True):
        made[(*(slice(None),) * axis, slice(start, stop))] = piece
    return made


def stack(
    arrays: Iterable[Any],
    axis: int = 0,
    out: None = None,
    *,
    dtype: Any = None,  # noqa: ANN401 - as NumPy
    casting: Any = "same_kind",  # noqa: ANN401
) -> Storage:
    """Join arrays along a new axis, the outermost in memory, in a new storage.

    The new axis has neither a name nor a halo, so that the result has no names.
    """
    _, model, pieces = _pieces("stack", arrays, out)
    axis = np.lib.array_utils.normalize_axis_index(axis, model.ndim + 1)
    _check_alike("stack", pieces)
    halo, ranks = _agreed(piece.halo for piece in pieces), [1 + rank for rank in model.layout]
    made = made_like(
        (*model.shape[:axis], len(pieces), *model.shape[axis:]),
        _dtype("stack", pieces, dtype, casting),
        model,
        None,
        None if halo is None else (*halo[:axis], (0, 0), *halo[axis:]),
        (*ranks[:axis], 0, *ranks[axis:]),
    )
    for at, piece in enumerate(pieces):
        made[(*(slice(None),) * axis, at)] = piece
    return made


def hstack(tup: Iterable[Any], **options: Any) -> Storage:  # noqa: ANN401 - as NumPy
    """Join arrays along the second axis, or along the only one."""
    pieces = _at_least(1, tup)
    return concatenate(pieces, 0 if pieces[0].ndim == 1 else 1, **options)


def vstack(tup: Iterable[Any], **options: Any) -> Storage:  # noqa: ANN401
    """Join arrays along the first axis; those of one dimension as rows, without a name."""
    return concatenate(_at_least(2, tup), 0, **options)


def dstack(tup: Iterable[Any]) -> Storage:
    """Join arrays along the third axis, which has no name if they lack it."""
    return concatenate(_at_least(3, tup), 2)


def _at_least(ndim: int, arrays: Iterable[Any]) -> list[Any]:
    longer = (views.atleast_1d, views.atleast_2d, views.atleast_3d)[ndim - 1]
    return [longer(one) for one in arrays]


# --- what goes in ------------------------------------------------------------------------------


def _pieces(
    what: str, arrays: Iterable[Any], out: object = None
) -> tuple[Names, Storage, list[Storage]]:
    """Give the names on which arrays agree, the first storage, and all of them as storages."""
    check_no_out(what, out)
    given = list(arrays)
    names = same_names(what, given)
    pieces = [one if isinstance(one, Storage) else _as_storage(one) for one in given]
    model = next(one for one in given if isinstance(one, Storage))
    for one, piece in zip(given, pieces, strict=True):
        _check_kind(what, model, piece, foreign=one is not piece)
    return names, model, pieces


def check_no_out(what: str, out: object) -> None:
    """Refuse to write a result into a given array."""
    if out is not None:
        raise TypeError(f"{what}: expected out=None, got an array; use numpy.copyto afterwards")


def _as_storage(array: Any) -> Storage:  # noqa: ANN401 - an array, or lists of numbers
    return as_storage(np.asarray(array) if isinstance(array, list | tuple | np.generic) else array)


def _check_kind(what: str, model: Storage, piece: Storage, *, foreign: bool) -> None:
    """Refuse an array that would be copied from one device to another."""
    same = type(piece) is type(model) and piece.device_id == model.device_id
    fits = isinstance(piece, CPUStorage) and not isinstance(model, GPUStorage)
    if same or (foreign and fits):
        return
    got = "another array" if foreign else f"a {type(piece).__name__}"
    where = "the host" if piece.device is None else f"GPU {piece.device_id}"
    raise BufferError(
        f"{what}: expected arrays where the {type(model).__name__} is, got {got} on {where}; copy "
        "it with dlfield.storage(..., device=..., managed=...)"
    )


def check_host(what: str, arrays: Iterable[Any]) -> None:
    """Refuse memory that NumPy cannot reach."""
    if any(isinstance(one, GPUStorage) for one in arrays):
        raise GTNoSuchBufferError(
            f"{what}: expected storages with a buffer on the host, got a GPUStorage; use "
            f"cupy.{what} with storage.to_cupy(), or dlfield.storage(..., device='cpu') for a copy"
        )


def _check_alike(what: str, pieces: Sequence[Storage], axis: int | None = None) -> None:
    """Refuse shapes that differ, except along the axis that is joined."""
    shapes = [piece.shape for piece in pieces]
    ragged = len({len(shape) for shape in shapes}) > 1
    others = shapes if axis is None or ragged else [_without(shape, axis) for shape in shapes]
    if len(set(others)) > 1:
        expected = "one shape" if axis is None else f"one shape, except along axis {axis}"
        got = " and ".join(map(str, shapes))
        raise ValueError(f"{what}: expected arrays of {expected}, got {got}; slice them")


def same_names(what: str, arrays: Iterable[Any]) -> Names:
    """Give the names on which the arrays with names agree; None if they do not.

    Raises
    ------
    ValueError
        If the names stand for the same things and differ, or are in another order.
    """
    named = [names for names in map(get_dims, arrays) if names is not None]
    agreed = most = max(named, key=len, default=None)
    for names in named:
        if most is not None and names != most[len(most) - len(names) :]:  # as shapes broadcast
            agreed = None
            if not names_are_unrelated(names, most):
                raise ValueError(
                    f"{what}: expected arrays whose dims agree, got {most} and {names}; transpose "
                    "or rename one of them, or pass to_numpy() to go by position"
                )
    return agreed


# --- what comes out ----------------------------------------------------------------------------


def made_like(
    shape: Sequence[int],
    dtype: Any,  # noqa: ANN401 - as NumPy
    model: Storage,
    names: Names,
    halo: Halo,
    layout: Sequence[int] | None = None,
) -> Storage:
    """Allocate a storage of the kind of `model`; without a halo it is unknown."""
    options = options_like(model, len(shape))
    if layout is not None:
        options["layout"] = layout
    named = names if names is not None and len(names) == len(shape) else None
    made = empty(shape, dtype, **{**options, "dims": named, "halo": halo or ((0, 0),) * len(shape)})
    if halo is None:
        made.halo = None
    return made


def options_like(model: Storage, ndim: int) -> dict[str, Any]:
    """Give the options of a storage like `model`. With other axes neither layout nor dims."""
    options: dict[str, Any] = {"alignment_size": model.alignment_size}
    if ndim == model.ndim:
        options |= {"layout": model.layout, "dims": model.dims}
    return options | (class_options(type(model)) or {}) | {"device": model.device}


def _dtype(what: str, pieces: Sequence[Storage], wanted: Any, casting: Any) -> np.dtype[Any]:  # noqa: ANN401
    found = [piece.dtype for piece in pieces]
    dtype = np.result_type(*found) if wanted is None else np.dtype(wanted)
    for one in found:
        check_cast(what, one, dtype, casting)
    return dtype


def check_cast(what: str, found: Any, dtype: np.dtype[Any], casting: Any) -> None:  # noqa: ANN401
    """Refuse a type that NumPy's rule does not let become `dtype`."""
    if not np.can_cast(found, dtype, casting):
        text = f"{what}: expected a type that goes into {dtype} by the rule {casting!r}"
        raise TypeError(f"{text}, got {found}; pass casting='unsafe'")


def _agreed(halos: Iterable[Halo]) -> Halo:
    """Give the halo of those that have one.

    It is unknown (None) if one of them is unknown, or if two differ.
    """
    known = set(halos)
    wide = {halo for halo in known if halo is not None and any(map(any, halo))}
    if None in known or len(wide) > 1 or not known:
        return None
    return (wide or known).pop()


def _joined_halo(pieces: Sequence[Storage], axis: int) -> Halo:
    """Give the halo along the joined axis, and along the others that on which the arrays agree."""
    halos = [piece.halo for piece in pieces if piece.halo is not None]
    others = _agreed(_without(halo, axis) for halo in halos)
    if others is None or len(halos) < len(pieces):
        return None
    low = inside = high = 0
    for piece, halo in zip(pieces, halos, strict=True):
        below, above = halo[axis]
        domain = piece.shape[axis] - below - above
        if (below and (inside or high)) or (domain and high):
            return None
        low, inside, high = low + below, inside + domain, high + above
    return (*others[:axis], (low, high), *others[axis:])


def _without(of: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    return (*of[:axis], *of[axis + 1 :])
