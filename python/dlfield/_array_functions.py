"""NumPy's functions of storages (NEP 18): those that have one clear meaning.

`dlfield._array_views` moves axes, `dlfield._array_shapes` moves elements, `dlfield._array_joins`
makes one storage of several arrays, `dlfield._reductions` reduces by name. The functions here look
at shape and type, write, or read values to return a truth or a file. To read values, memory on a
GPU alone is copied to the host. All other functions raise TypeError, since NumPy would convert
silently: `to_numpy()` gives the array that has them.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield import _array_joins as joins
from dlfield import _array_shapes as shapes
from dlfield import _array_views as views
from dlfield import _core, _elementwise_functions, _reductions
from dlfield._core import CPUStorage, GPUStorage, Storage
from dlfield._methods import way_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

__all__ = ["astype", "dispatch", "values"]


def dispatch(
    storage: Storage,
    function: Callable[..., Any],
    types: Sequence[type],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:  # noqa: ANN401 - the function decides
    """Call what `function` of NumPy means for `storage` and the other arguments.

    Raises
    ------
    TypeError
        For any other function; the text names the array that has it. NumPy raises it if another
        argument is an array of a library that does not know storages.
    """
    if not all(map(_is_known, types)):
        return NotImplemented
    if function in _LIKE:
        return _LIKE[function](storage, *args, **keywords)
    if function in _reductions.FUNCTIONS and _reduces(function, args, storage):
        return _reductions.FUNCTIONS[function](*args, **keywords)
    implementation = _elementwise_functions.FUNCTIONS.get(function) or _FUNCTIONS.get(function)
    if implementation is None:
        name = f"{function.__module__}.{function.__name__}"
        text = f"{name}: expected an array, got a {type(storage).__name__}"
        raise TypeError(f"{text}, which has no such function; {way_out(storage)}")
    return implementation(*args, **keywords)


def _reduces(function: Callable[..., Any], args: Sequence[Any], storage: Storage) -> bool:
    """Tell if a reduction is computed by names; a truth of memory on a GPU reads a copy."""
    of_truth = function in (np.all, np.any)
    return isinstance(storage, CPUStorage) or not of_truth or not args


def _is_known(kind: type) -> bool:
    """Tell if arrays of a class are storages, or nothing more than their elements."""
    if issubclass(kind, Storage) or kind is np.ndarray:
        return True
    own = getattr(kind, "__array_function__", None) is not np.ndarray.__array_function__
    return not own and not issubclass(kind, np.ma.MaskedArray)


# --- shape and type ----------------------------------------------------------------------------


def _size(a: Storage, axis: int | Sequence[int] | None = None) -> int:
    axes = range(a.ndim) if axis is None else views.axes_in(axis, a.ndim)
    return int(np.prod([a.shape[one] for one in axes], dtype=np.intp))


def _by_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call NumPy with an array of that type."""
    return wraps(function)(lambda x: function(np.empty(0, x.dtype)))


def _result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:  # noqa: ANN401 - as NumPy
    return np.result_type(
        *(one.dtype if isinstance(one, Storage) else one for one in arrays_and_dtypes)
    )


# --- reading values ----------------------------------------------------------------------------


def values(array: Any) -> Any:  # noqa: ANN401 - any argument
    """Give what NumPy can read: the host buffer of a storage, or a copy from a GPU alone."""
    if isinstance(array, GPUStorage):
        return _core.storage(array, device="cpu").to_numpy()
    return array.to_numpy() if isinstance(array, Storage) else array


def _of_values(
    function: Callable[..., Any], *checks: Callable[[str, Sequence[Any]], object]
) -> Callable[..., Any]:
    """Call NumPy with the values, once the arguments have passed the checks."""

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401
        for check in checks:
            check(function.__name__, (*args, *keywords.values()))
        named = {name: values(value) for name, value in keywords.items()}
        return function(*map(values, args), **named)

    return call


def _reducing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call NumPy with the values, for a truth or a NumPy array."""

    @wraps(function)
    def call(a: Any, axis: Any = None, out: None = None, **options: Any) -> Any:  # noqa: ANN401
        joins.check_no_out(function.__name__, out)
        return _of_values(function)(a, axis=axis, **options)

    return call


# --- writing -----------------------------------------------------------------------------------


def _copyto(
    dst: Any,  # noqa: ANN401 - a storage or an array
    src: Any,  # noqa: ANN401
    casting: Any = "same_kind",  # noqa: ANN401 - one of NumPy's words
    where: Any = True,  # noqa: ANN401, FBT002 - as NumPy
) -> None:
    """Write into `dst`, into a storage as ``dst[...] = src``: by name if both have names.

    With a mask it writes on the host and by position.
    """
    if not isinstance(dst, Storage):
        np.copyto(dst, values(src), casting=casting, where=values(where))
        return
    _check_cast(src, dst.dtype, casting)
    if where is True:
        dst[...] = src
        return
    joins.same_names("copyto", (dst, src, where))
    joins.check_host("copyto", (dst,))
    if dst.readonly:
        raise BufferError("copyto: expected a writable storage, got a read-only one; use a copy()")
    with dst.host() as array:
        np.copyto(array, values(src), casting=casting, where=values(where))


def _check_cast(src: Any, dtype: np.dtype[Any], casting: Any) -> None:  # noqa: ANN401
    found = getattr(src, "dtype", None)
    if found is None:  # numbers, which NumPy judges by their value
        np.copyto(np.empty(np.shape(src), dtype), src, casting=casting)
    elif isinstance(found, np.dtype):
        joins.check_cast("copyto", found, dtype, casting)


# --- copies and models -------------------------------------------------------------------------


def _copy(a: Storage, order: str | None = "K", subok: object = None) -> Storage:
    """Copy into a storage of the same kind, with names and halo. `subok` means nothing."""
    options = _ordered("copy", a.ndim, order)
    return _core.storage(a, **options) if options else a.copy()


def astype(
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


def _astype(
    x: Storage,
    dtype: npt.DTypeLike,
    /,
    *,
    copy: bool = True,
    device: str | None = None,
) -> Storage:
    """Call `astype`, or copy to a given device."""
    if device is None:
        return astype(x, dtype, copy=copy)
    return _core.storage(x, dtype=dtype, device=device, managed=_core.UNSET)


def _as_storage_like(
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
    return astype(made, made.dtype if dtype is None else dtype, order, copy=False)


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


def _full_like(
    a: Storage,
    fill_value: Any,  # noqa: ANN401
    *options: Any,  # noqa: ANN401 - those of zeros_like
    **named: Any,  # noqa: ANN401
) -> Storage:
    return _like("full")(a, *options, fill=(fill_value,), **named)


#: What functions do that are called with `like=`, of the storage that is given there.
_LIKE: dict[Any, Callable[..., Storage]] = {
    np.asarray: _as_storage_like,
    np.asanyarray: _as_storage_like,
}
#: What each of NumPy's functions does. Older versions lack some, of NumPy 2.1 and later.
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: _size,
    np.result_type: _result_type,
    **{getattr(np, name): getattr(views, name) for name in views.__all__ if hasattr(np, name)},
    **{getattr(np, name): getattr(shapes, name) for name in shapes.__all__},
    np.concatenate: joins.concatenate,
    np.stack: joins.stack,
    np.where: joins.where,
    np.copyto: _copyto,
    np.copy: _copy,
    **{getattr(np, f"{name}_like"): _like(name) for name in ("empty", "zeros", "ones")},
    np.full_like: _full_like,
    **{one: _of_values(one, joins.same_names) for one in (np.array_equal, np.allclose)},
    **{one: _of_values(one, joins.check_host) for one in (np.shares_memory, np.may_share_memory)},
    **{function: _by_type(function) for function in (np.iscomplexobj, np.isrealobj)},
    **{function: _reducing(function) for function in (np.all, np.any)},
    **{function: _of_values(function) for function in (np.save, np.savez, np.savez_compressed)},
}
if hasattr(np, "astype"):
    _FUNCTIONS[np.astype] = _astype
