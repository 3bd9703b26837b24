"""NumPy's functions along one axis, by name or number: sort, take, diff, gradient and their kin.

The result is a new storage with the names of the given one. Where the extent stays, all labels
stay. Where elements are picked, the halo of their axis is unknown unless it has none.
Values are read and written on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import Storage, empty_like
from dlfield.functions import joins as joins
from dlfield.functions.axes import along, axes_of, axis_of

if TYPE_CHECKING:
    from collections.abc import Callable


# --- the extent stays ----------------------------------------------------------------------------


def _filled(model: Storage, values: np.ndarray) -> Storage:
    """Put values of the same shape into a storage with the labels of a model."""
    made = empty_like(model, values.dtype)
    with made.host() as array:
        array[...] = values
    return made


def _in_place(name: str) -> Callable[..., Storage]:
    """Copy, and let the method of NumPy's arrays reorder the copy along an axis."""

    def call(a: Storage, *args: Any, axis: Any = -1, **options: Any) -> Storage:  # noqa: ANN401
        joins.check_host(name, (a,))
        at = axis_of(f"numpy.{name}", a, axis)
        made = empty_like(a)
        with made.host() as array:
            np.copyto(array, a.to_numpy())
            getattr(array, name)(*args, axis=at, **options)
        return made

    return call


def sort(a: Storage, axis: Any = -1, *args: Any, **options: Any) -> Storage:  # noqa: ANN401
    """Sort along an axis."""
    return _in_place("sort")(a, axis=axis, **_kinds(args), **options)


def partition(a: Storage, kth: Any, axis: Any = -1, *args: Any, **options: Any) -> Storage:  # noqa: ANN401
    """Sort along an axis as far as the elements `kth` are in their places."""
    return _in_place("partition")(a, kth, axis=axis, **_kinds(args), **options)


def argsort(a: Storage, axis: Any = -1, *args: Any, **options: Any) -> Storage:  # noqa: ANN401
    """Give the indices along an axis that sort it."""
    joins.check_host("argsort", (a,))
    at = axis_of("numpy.argsort", a, axis)
    return _filled(a, np.argsort(a.to_numpy(), at, **_kinds(args), **options))


def argpartition(a: Storage, kth: Any, axis: Any = -1, *args: Any, **options: Any) -> Storage:  # noqa: ANN401
    """Give the indices along an axis that partition it."""
    joins.check_host("argpartition", (a,))
    at = axis_of("numpy.argpartition", a, axis)
    return _filled(a, np.argpartition(a.to_numpy(), kth, at, **_kinds(args), **options))


def _kinds(args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("kind", "order"), args, strict=False))


def unwrap(p: Storage, discont: Any = None, axis: Any = -1, **options: Any) -> Storage:  # noqa: ANN401
    """Take jumps of whole periods out of angles along an axis."""
    joins.check_host("unwrap", (p,))
    at = axis_of("numpy.unwrap", p, axis)
    return _filled(p, np.unwrap(p.to_numpy(), discont, at, **options))


def gradient(f: Storage, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:  # noqa: ANN401
    """Differentiate along one axis, or along several or all: one storage for each."""
    joins.check_host("gradient", (f, *varargs))
    axes = axis if axis is None else axes_of("numpy.gradient", f, axis)
    steps = [one.to_numpy() if isinstance(one, Storage) else one for one in varargs]
    found = np.gradient(f.to_numpy(), *steps, axis=axes, edge_order=edge_order)
    if isinstance(found, tuple | list):
        return type(found)(_filled(f, one) for one in found)
    return _filled(f, found)


def _triangle(function: Callable[..., Any]) -> Callable[..., Storage]:
    def call(m: Storage, k: int = 0) -> Storage:
        joins.check_host(function.__name__, (m,))
        if m.ndim < 2:
            raise ValueError(
                f"numpy.{function.__name__}: expected at least two dimensions, got {m.ndim}; use "
                "to_numpy()"
            )
        return _filled(m, function(m.to_numpy(), k))

    return call


tril, triu = _triangle(np.tril), _triangle(np.triu)


# --- elements are picked -------------------------------------------------------------------------


def picked(a: Storage, at: int, extent: int, dtype: Any = None) -> Storage:  # noqa: ANN401
    """Allocate a storage like `a` with another extent along an axis."""
    halo = a.halo if a.halo is None or not any(a.halo[at]) else None
    shape = (*a.shape[:at], extent, *a.shape[at + 1 :])
    return joins.made_like(shape, a.dtype if dtype is None else dtype, a, a.dims, halo)


def whole_numbers(indices: Any) -> np.ndarray:  # noqa: ANN401
    """Give indices as an array of NumPy; an empty list is one of integers."""
    if isinstance(indices, Storage):
        return indices.to_numpy()
    return np.asarray(indices, np.intp if isinstance(indices, list) and not indices else None)


def take(a: Any, indices: Any, axis: Any = None, out: None = None, mode: Any = "raise") -> Any:  # noqa: ANN401
    """Pick elements along an axis, which is gone if there is one index.

    Indices of several dimensions give a storage without names.
    """
    joins.check_no_out("take", out)
    joins.check_host("take", (a, indices))
    indices = whole_numbers(indices)
    if not isinstance(a, Storage):
        return np.take(a, indices, axis, mode=mode)
    at = axis_of("numpy.take", a, axis)
    if indices.ndim == 1:
        made = picked(a, at, len(indices))
        with made.host() as array:
            np.take(a.to_numpy(), indices, at, out=array, mode=mode)
        return made
    found = np.take(a.to_numpy(), indices, at, mode=mode)
    halo = a.halo
    if halo is not None:
        kept = (*halo[:at], *((0, 0),) * indices.ndim, *halo[at + 1 :])
        halo = None if indices.ndim and any(halo[at]) else kept
    names = None if a.dims is None or indices.ndim else (*a.dims[:at], *a.dims[at + 1 :])
    made = joins.made_like(found.shape, found.dtype, a, names, halo)
    with made.host() as array:
        array[...] = found
    return made


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Storage:  # noqa: ANN401
    """Pick by an index for each element of the result, as `argsort` gives them."""
    joins.same_names("take_along_axis", (arr, indices))
    joins.check_host("take_along_axis", (arr, indices))
    model = arr if isinstance(arr, Storage) else indices
    at = axis_of("numpy.take_along_axis", model, axis)
    values, chosen = (
        one.to_numpy() if isinstance(one, Storage) else np.asarray(one) for one in (arr, indices)
    )
    found = np.take_along_axis(values, chosen, at)
    if found.shape == model.shape:
        return _filled(model, found)
    made = joins.made_like(found.shape, found.dtype, model, model.dims, None)
    with made.host() as array:
        array[...] = found
    return made


def compress(condition: Any, a: Any, axis: Any = None, out: None = None) -> Any:  # noqa: ANN401
    """Pick the elements along an axis where a list of truths holds."""
    joins.check_no_out("compress", out)
    joins.check_host("compress", (condition, a))
    truths = np.asarray(condition.to_numpy() if isinstance(condition, Storage) else condition)
    if not isinstance(a, Storage):
        return np.compress(truths, a, axis)
    at = axis_of("numpy.compress", a, axis)
    made = picked(a, at, int(np.count_nonzero(truths)))
    with made.host() as array:
        np.compress(truths, a.to_numpy(), at, out=array)
    return made


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:  # noqa: ANN401
    """Repeat the elements along an axis, all as often or each as often as a list says."""
    joins.check_host("repeat", (a, repeats))
    counts = np.asarray(repeats.to_numpy() if isinstance(repeats, Storage) else repeats)
    if not isinstance(a, Storage):
        return np.repeat(a, counts, axis)
    at = axis_of("numpy.repeat", a, axis)
    found = np.repeat(a.to_numpy(), counts, at)
    made = picked(a, at, found.shape[at])
    with made.host() as array:
        array[...] = found
    return made


# --- differences and integrals -------------------------------------------------------------------


def diff(
    a: Any,  # noqa: ANN401 - a storage; an array if one that is put before or after it is a storage
    n: int = 1,
    axis: Any = -1,  # noqa: ANN401
    prepend: Any = np._NoValue,  # noqa: ANN401
    append: Any = np._NoValue,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Subtract neighbours along an axis, `n` times.

    The halo counts differences, as it did points.
    """
    if n < 0:
        raise ValueError(f"numpy.diff: expected n of at least 0, got {n}; integrate with cumsum")
    model = next(one for one in (a, prepend, append) if isinstance(one, Storage))
    at = axis_of("numpy.diff", model, axis)
    if n and (prepend is not np._NoValue or append is not np._NoValue):
        ends = [one if one is np._NoValue else _end(one, model, at) for one in (prepend, append)]
        a = joins.concatenate([o for o in (ends[0], a, ends[1]) if o is not np._NoValue], at)
    subtract = np.not_equal if a.dtype == bool else np.subtract
    for _ in range(n):
        a = subtract(a[along(at, slice(1, None))], a[along(at, slice(None, -1))])
    return a


def _end(values: Any, model: Storage, at: int) -> Any:  # noqa: ANN401
    """Give what is put before or after the elements: a number once along the axis."""
    shape = (*model.shape[:at], 1, *model.shape[at + 1 :])
    return np.broadcast_to(values, shape) if np.ndim(values) == 0 else values


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:  # noqa: ANN401
    """Integrate along an axis, which is gone then, by the trapezoidal rule."""
    if not isinstance(y, Storage):
        return np.trapezoid(y, x.to_numpy(), dx, axis)
    at = axis_of("numpy.trapezoid", y, axis)
    steps = dx
    if x is not None:
        joins.check_host("trapezoid", (x,))
        points = np.asarray(x.to_numpy() if isinstance(x, Storage) else x)
        steps = np.diff(points, axis=0 if points.ndim == 1 else at)
        if points.ndim == 1:
            steps = steps.reshape([-1 if axis == at else 1 for axis in range(y.ndim)])
    sums = y[along(at, slice(1, None))] + y[along(at, slice(None, -1))]
    return (sums * steps / 2.0).sum(at)
