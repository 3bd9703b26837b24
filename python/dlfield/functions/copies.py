"""NumPy's functions that copy a storage or make one like a model; and the values for all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield import _core
from dlfield._core import GPUStorage, Storage
from dlfield.functions import joins as joins

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt


def values(array: Any) -> Any:  # noqa: ANN401 - any argument
    """Give what NumPy can read: the host buffer of a storage, or a copy from a GPU alone."""
    if isinstance(array, GPUStorage):
        return _core.storage(array, device="cpu").to_numpy()
    if isinstance(array, list | tuple):
        return type(array)(map(values, array))
    return array.to_numpy() if isinstance(array, Storage) else array


def copy(a: Storage, order: str | None = "K", subok: object = None) -> Storage:
    """Copy into a storage of the same kind, with names and halo. `subok` means nothing."""
    options = _ordered("copy", a.ndim, order)
    return _core.storage(a, **options) if options else a.copy()


def converted(
    storage: Storage,
    dtype: npt.DTypeLike,
    order: str | None = "K",
    casting: Any = "unsafe",  # noqa: ANN401 - one of NumPy's words
    subok: object = None,
    copy: bool = True,  # noqa: FBT001, FBT002 - as NumPy
) -> Storage:
    """Do what `Storage.astype` says."""
    wanted, options = np.dtype(dtype), _ordered("astype", storage.ndim, order)
    if not np.can_cast(storage.dtype, wanted, casting):
        text = f"astype: expected a type into which {storage.dtype} goes by the rule {casting!r}"
        raise TypeError(f"{text}, got {wanted}; pass casting='unsafe'")
    if not copy and wanted == storage.dtype and not options:
        return storage
    return _core.storage(storage, dtype=wanted, **options)


def astype(
    x: Storage,
    dtype: npt.DTypeLike,
    /,
    *,
    copy: bool = True,
    device: str | None = None,
) -> Storage:
    """Call `converted`, or copy to a given device."""
    if device is None:
        return converted(x, dtype, copy=copy)
    return _core.storage(x, dtype=dtype, device=device, managed=_core.UNSET)


def asarray(
    model: Storage,
    a: Any,  # noqa: ANN401 - an array, or lists of numbers
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
) -> Storage:
    """Give a storage of the kind of `model`, over the same memory unless it has to be another."""
    array = a if hasattr(a, "dtype") else np.asarray(a, dtype)
    kind = (_core.class_options(type(model)) or {}) | {"device": device or model.device}
    shared = isinstance(array, type(model)) or (model.device is None and device is None)
    made = _core.as_storage(array) if shared and not copy else _core.storage(array, **kind)
    return converted(made, made.dtype if dtype is None else dtype, order, copy=False)


def _ordered(what: str, ndim: int, order: str | None) -> dict[str, Any]:
    """Give the option for NumPy's `order`; none to keep the order."""
    if order in ("K", "k", "A", "a", None):
        return {}
    if order not in ("C", "c", "F", "f"):
        raise ValueError(
            f"{what}: expected order 'K', 'A', 'C' or 'F', got {order!r}; leave it out"
        )
    return {"layout": tuple(range(ndim) if order in ("C", "c") else reversed(range(ndim)))}


def _like(name: str) -> Callable[..., Storage]:
    """Make NumPy's function of a model: kind, names, halo, layout and alignment are the model's.

    With another shape there is no halo, with another number of axes neither names nor layout.
    """
    same, other = getattr(_core, f"{name}_like"), getattr(_core, name)

    def like(
        a: Storage,
        dtype: npt.DTypeLike | None = None,
        order: str | None = "K",
        subok: object = None,
        shape: Any = None,  # noqa: ANN401 - a number or several
        *,
        device: str | None = None,
        fill: tuple[Any, ...] = (),
    ) -> Storage:
        wanted = a.dtype if dtype is None else dtype
        extents = a.shape
        if shape is not None:
            extents = tuple(np.atleast_1d(np.asarray(shape, int)).tolist())
        options = _ordered(f"{name}_like", len(extents), order)
        if device is not None:
            options |= {"device": device, "managed": _core.UNSET}
        if extents != a.shape:
            options = joins.options_like(a, len(extents)) | options
        make, model = (same, a) if extents == a.shape else (other, extents)
        made: Storage = make(model, *fill, dtype=wanted, **options)
        return made

    return like


empty_like, zeros_like, ones_like = map(_like, ("empty", "zeros", "ones"))


def full_like(
    a: Storage,
    fill_value: Any,  # noqa: ANN401
    *options: Any,  # noqa: ANN401 - those of zeros_like
    **named: Any,  # noqa: ANN401
) -> Storage:
    """Make a storage like `a` that is filled with a number."""
    return _like("full")(a, *options, fill=(fill_value,), **named)


asanyarray = asarray
