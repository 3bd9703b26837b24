"""NumPy's functions that move, add, drop or repeat axes of a storage, or take parts: no copies.

A view shares the memory, and the state of a pair. Each axis that stays keeps its name and halo. A
new axis has no name, so that the view has no names at all, as ``storage[None]``.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dlfield import _core
from dlfield._core import Storage, as_storage, get_dims
from dlfield.functions.axes import along, axes_of, axis_of, check_new_axis, numbered
from dlfield.functions.host import check_host_alone, on_host, values
from dlfield.functions.labels import Labels, is_bare, same_names, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlfield._core import Array

# --- maps of indices -----------------------------------------------------------------------------


class _Map(NamedTuple):
    """Which elements of an array a view has, and the order of its axes if it is another."""

    key: tuple[Any, ...]
    order: tuple[int, ...] | None

    def view(self, storage: Storage) -> Storage:
        """Take the view of a storage."""
        view: Storage = storage[self.key]
        return view if self.order is None else view.transpose(self.order)


def mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version of a NumPy function that does to axes of storages what it does to arrays."""
    what = f"numpy.{function.__name__}"

    def found(shape: tuple[int, ...], *args: Array, **keywords: Array) -> Any:
        probe = _probe(shape)
        try:
            return _maps(probe, function(probe, *args, **keywords))
        except np.exceptions.AxisError:
            raise
        except ValueError as error:
            got, text = [*args, *keywords.values()], str(error).rstrip(".")
            raise ValueError(
                f"{what}: expected arguments for the shape {shape}, got {got}; NumPy says: {text}"
            ) from None

    remembered = lru_cache(maxsize=256)(found)

    def call(a: Array, *args: Array, **keywords: Array) -> Any:  # one or several
        args, keywords = values(args), values(keywords)
        if not isinstance(a, Storage):
            return function(a, *args, **keywords)
        args = tuple(numbered(what, a, one) for one in args)
        keywords = {name: numbered(what, a, one) for name, one in keywords.items()}
        is_plain = all(map(_is_plain, (*args, *keywords.values())))
        maps = (remembered if is_plain else found)(a.shape, *args, **keywords)
        return maps.view(a) if isinstance(maps, _Map) else type(maps)(one.view(a) for one in maps)

    return call


def _is_plain(one: object) -> bool:
    """Return True for Python's integers, also in tuples: True equals 1 but means something else."""
    return type(one) is int or (type(one) is tuple and all(map(_is_plain, one)))


def _probe(shape: tuple[int, ...]) -> np.ndarray:
    """Make an array whose addresses encode the indices. Its elements must not be read.

    An index is a digit of the address, in the base of the extent.
    """
    strides = [prod(max(extent, 2) for extent in shape[at + 1 :]) for at in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty(1, "u1"), shape, strides)


def _maps(probe: np.ndarray, found: Any) -> Any:  # one view or several
    """Tell which views of the probe were found."""
    if isinstance(found, list | tuple):
        return type(found)(_maps(probe, one) for one in found)
    if not probe.ndim:  # of which NumPy makes a number
        return _Map((...,), None)
    rest = found.ctypes.data - probe.ctypes.data
    axes = {abs(stride): axis for axis, stride in enumerate(found.strides)}
    key: list[int | slice] = []
    for stride in probe.strides:
        start, rest = divmod(rest, stride)
        if stride not in axes:
            key.append(start)
            continue
        step = 1 if found.strides[axes[stride]] > 0 else -1
        stop = start + step * found.shape[axes[stride]]
        key.append(slice(start, stop if stop >= 0 else None, step))
    kept = sorted(axes, reverse=True)  # as the probe has them
    order = tuple(kept.index(abs(stride)) for stride in found.strides)
    # The dots make a view of a single element too.
    return _Map((*key, ...), None if order == tuple(range(len(order))) else order)


def _longer(a: Storage, function: Callable[..., Any], *args: Array) -> Storage:
    """Add axes of extent 1 where a function of NumPy does."""
    longer = function(np.broadcast_to(0, (2,) * a.ndim), *args).shape
    view: Storage = a[tuple(None if extent == 1 else slice(None) for extent in longer)]
    return view if len(longer) > a.ndim else a


def at_least(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add axes to arrays as `function` of NumPy does; those that have enough are given back."""

    def call(*arrays: Array) -> Any:  # one or several, as NumPy
        made = tuple(
            _longer(one, function) if isinstance(one, Storage) else function(one) for one in arrays
        )
        return made if len(made) != 1 else made[0]

    return call


def expand_dims(a: Storage, axis: int | Sequence[int]) -> Storage:
    """Add axes of extent 1, which have no names."""
    check_new_axis("numpy.expand_dims", axis)
    return _longer(a, np.expand_dims, axis)


def unstack(x: Storage, /, *, axis: Array = 0) -> tuple[Storage, ...]:
    """Return a view for each index along an axis, without that axis."""
    at = axis_of("numpy.unstack", x, axis)
    return tuple(x[along(at, index)] for index in range(x.shape[at]))


def transpose(a: Storage, axes: Array = None) -> Storage:
    """Reorder the axes by number, or by name if the storage has dims."""
    return a.transpose(axes)


# --- of NumPy's arrays, on the host alone --------------------------------------------------------


def broadcast_to(array: Storage, shape: int | Sequence[int], subok: object = None) -> Storage:
    """Repeat the storage along axes of extent 1 and new ones in front; read-only, as in NumPy."""
    check_host_alone("numpy.broadcast_to", array)
    repeated = np.broadcast_to(array.to_numpy(), shape)
    same = array.dims is not None and repeated.ndim == array.ndim
    view = as_storage(repeated, **({"dims": array.dims} if same else {}))  # type: ignore[arg-type]
    view.halo = spread(Labels(array.dims, array.halo, array.shape), repeated.shape)
    return view


def broadcast_arrays(*arrays: Array, subok: object = None) -> tuple[Array, ...]:
    """Repeat arrays to their common shape; read-only. Storages stay storages, others NumPy's."""
    if not _core.has_matched_dims():
        same_names("broadcast_arrays", map(get_dims, arrays))
    shape = np.broadcast_shapes(*(np.shape(one) for one in arrays))
    return tuple(
        broadcast_to(one, shape) if isinstance(one, Storage) else np.broadcast_to(one, shape)
        for one in arrays
    )


def sliding_window_view(
    x: Storage,
    window_shape: int | Sequence[int],
    axis: Array = None,
    *,
    subok: object = None,
    writeable: bool = False,
) -> Storage:
    """Return the windows into a storage, read-only, along new axes."""
    what = "numpy.sliding_window_view"
    check_host_alone(what, x)
    if writeable:
        raise ValueError(f"{what}: expected writeable=False, got True; use to_numpy()")
    axes = None if axis is None else axes_of(what, x, axis)
    return _over(x, np.lib.stride_tricks.sliding_window_view(x.to_numpy(), window_shape, axes))


def reshape(
    a: Storage, /, shape: int | Sequence[int], order: Array = "C", *, copy: bool | None = None
) -> Storage:
    """Return a storage of another shape over the same memory, read-only if the storage is.

    It has no names, and no halo if the storage has none; else its halo is unknown (None). With its
    own shape it keeps both. With `copy=True` it is a view of a copy.

    Raises
    ------
    ValueError
        If the memory cannot be seen in that shape without a copy. Within xarray and Dask it is
        copied, as there are no names to lose.
    """
    check_host_alone("numpy.reshape", a)
    if copy:
        return _over(a, _core.storage(a.to_numpy().reshape(shape, order=order)))
    array = a.to_numpy()
    seen = array.reshape(shape, order=order)
    if seen.size and not np.may_share_memory(seen, array):
        if _core.has_matched_dims():
            return _over(a, _core.storage(seen))
        raise ValueError(
            f"reshape: expected a shape that needs no copy, got {seen.shape} for the shape "
            f"{a.shape} with strides of {a.strides} bytes; use flatten() or to_numpy().reshape()"
        )
    return _over(a, seen)


def ravel(a: Storage, order: Array = "C") -> Storage:
    """Return all elements in one dimension: a view if the memory allows it, else a new storage."""
    check_host_alone("numpy.ravel", a)
    array = a.to_numpy()
    row = array.ravel(order)
    return _over(a, row if np.may_share_memory(row, array) else _core.storage(row))


def flatten(a: Storage, order: Array = "C") -> Storage:
    """Copy all elements into a new storage of one dimension."""
    return _over(a, _core.storage(on_host("flatten", a).ravel(order)))


def _over(a: Storage, array: Array) -> Storage:
    """Label an array of other dimensions over the same elements."""
    same = array.shape == a.shape
    made = as_storage(array, **({"dims": a.dims} if same and a.dims is not None else {}))  # type: ignore[arg-type]
    if same or not is_bare(a.halo):
        made.halo = a.halo if same else None
    return made
