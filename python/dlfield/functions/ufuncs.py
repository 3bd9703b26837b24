"""Functions of elements that are written by hand, and methods of universal functions.

The methods are outer, at and reduceat; reductions are in the core. Matrix products of xarray and
Dask are computed here, too.
"""

from __future__ import annotations

from functools import cache, wraps
from typing import TYPE_CHECKING

import numpy as np

from dlfield._core import UNSET, Storage, as_storage, elementwise, get_dims, zeros_like
from dlfield.functions.axes import along, axes_of, axis_of
from dlfield.functions.copies import check_cast, check_no_out, concatenate, filled, made_like
from dlfield.functions.host import (
    check_host,
    check_host_alone,
    each,
    is_on_host_alone,
    on_host,
    values,
)
from dlfield.functions.labels import Labels, picked, same_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlfield._core import Array

_MISSING = object()

# --- choices and limits --------------------------------------------------------------------------


def where(condition: Array, x: Array = _MISSING, y: Array = _MISSING, /) -> Array:
    """Take each element from `x` if `condition` holds, else from `y`.

    With the condition alone, return the indices where it holds, as NumPy arrays.
    """
    if x is _MISSING and y is _MISSING:
        return np.nonzero(on_host("where", condition))
    if x is _MISSING or y is _MISSING:
        raise TypeError("where: expected both x and y, got one; pass both, or neither for indices")
    return elementwise(_where, (condition, x, y), name="numpy.where")


@wraps(np.where)
def _where(condition: Array, x: Array, y: Array, out: Array = None) -> Array:
    if out is None:
        return np.where(condition, x, y)
    np.copyto(out, y)
    np.copyto(out, x, where=np.asarray(condition, bool))
    return out


def select(condlist: Sequence[Array], choicelist: Sequence[Array], default: Array = 0) -> Array:
    """Take each element from the first choice whose condition holds, else from `default`."""
    if len(condlist) != len(choicelist) or len(condlist) == 0:
        raise ValueError(
            f"numpy.select: expected a choice for each condition, got {len(choicelist)} for "
            f"{len(condlist)}; pass default= for elements where no condition holds"
        )
    inputs = (*condlist, *choicelist, default)
    return elementwise(_select(len(condlist)), inputs, name="numpy.select")


@cache
def _select(count: int) -> Callable[..., Array]:
    def into(*arrays: Array) -> Array:
        conditions, choices = arrays[:count], arrays[count : 2 * count]
        if len(arrays) == 2 * count + 1:
            return np.select(conditions, choices, arrays[-1])
        default, out = arrays[-2:]
        np.copyto(out, default)
        for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
            np.copyto(out, choice, where=condition)
        return out

    return into


def choose(a: Array, choices: Array, out: Array = None, mode: Array = "raise") -> Array:
    """Take each element from the choice whose number is in `a`."""
    given = tuple(choices)
    options = {"out": out, "mode": mode}
    return elementwise(_choose(len(given)), (a, *given), name="numpy.choose", options=options)


@cache
def _choose(count: int) -> Callable[..., Array]:
    def into(a: Array, *arrays: Array, mode: Array) -> Array:
        found = np.choose(a, arrays[:count], mode=mode)  # which writes an `out` in C order
        return _into(arrays[count], found) if len(arrays) > count else found

    return into


def clip(
    a: Array,
    a_min: Array = None,
    a_max: Array = None,
    out: Array = None,
    *,
    min: Array = None,
    max: Array = None,
    **options: Array,
) -> Array:
    """Limit the values; None does not limit."""
    low, high = (one if _is_open(given) else given for one, given in ((min, a_min), (max, a_max)))
    if not (all(map(_is_open, (a_min, a_max))) or all(map(_is_open, (min, max)))):
        expected = "two bounds as a_min and a_max, or as min and max"
        raise ValueError(f"numpy.clip: expected {expected}, got some of both; leave two out")
    return elementwise(np.clip, (a, low, high), name="numpy.clip", options={"out": out, **options})


def _is_open(bound: Array) -> bool:
    return bound is None or bound is np._NoValue


def rounded(a: Array, decimals: int = 0, out: Array = None) -> Array:
    """Round to a number of decimals."""
    options = {"out": out, "decimals": decimals}
    return elementwise(_round, (a,), name="numpy.round", options=options)


@wraps(np.round)
def _round(a: Array, out: Array = None, *, decimals: int) -> Array:
    if out is None or np.issubdtype(np.asarray(a).dtype, np.inexact):
        return np.round(a, decimals, out)
    out[...] = np.round(a, decimals)  # np.round refuses an output of integers
    return out


def real(val: Storage) -> Storage:
    """Return the real part: a view, or a copy if there is a buffer on a GPU."""
    return _part(val, _real, "real") if val.dtype.kind == "c" else val


def imag(val: Storage) -> Storage:
    """Return the imaginary part: a view on the host alone, else a copy; zeros for real values."""
    return _part(val, _imag, "imag") if val.dtype.kind == "c" else zeros_like(val)


def _part(val: Storage, function: Callable[..., Array], name: str) -> Storage:
    if not is_on_host_alone(val):
        return elementwise(function, (val,), name=f"numpy.{name}")  # type: ignore[no-any-return]
    origin = getattr(val, "default_origin", UNSET)
    view = as_storage(getattr(val.to_numpy(), name), dims=val.dims, default_origin=origin)
    view.halo = val.halo
    return view


@wraps(np.real)
def _real(val: Array, out: Array = None) -> Array:
    return np.real(val) if out is None else _into(out, np.real(val))


@wraps(np.imag)
def _imag(val: Array, out: Array = None) -> Array:
    return np.imag(val) if out is None else _into(out, np.imag(val))


def _into(out: Array, found: Array) -> Array:
    np.copyto(out, found)
    return out


def nan_to_num(
    x: Array,
    copy: bool = True,  # noqa: FBT001, FBT002 - as NumPy
    nan: Array = 0.0,
    posinf: Array = None,
    neginf: Array = None,
) -> Array:
    """Replace NaN and infinities by numbers or arrays; in place if `copy` is false."""
    options = {} if copy else {"out": x}
    return elementwise(
        _nan_to_num, (x, nan, posinf, neginf), name="numpy.nan_to_num", options=options
    )


@wraps(np.nan_to_num)
def _nan_to_num(x: Array, nan: Array, posinf: Array, neginf: Array, out: Array = None) -> Array:
    found = np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    return found if out is None else _into(out, found)


def copyto(dst: Array, src: Array, casting: Array = "same_kind", where: Array = True) -> None:  # noqa: FBT002 - as NumPy
    """Write `src` into `dst`; into a storage as by ``dst[...] = src``, by name if both have names.

    With a mask, memory that a GPU reaches is written on the host, by position.
    """
    if not isinstance(dst, Storage):
        np.copyto(dst, values(src), casting=casting, where=values(where))
        return
    found = getattr(src, "dtype", None)
    if found is None:  # numbers, which NumPy judges by their value
        number = np.empty(np.shape(src), dst.dtype)
        np.copyto(number, src, casting=casting)
        src = number
    elif isinstance(found, np.dtype):
        check_cast("copyto", found, dst.dtype, casting)
    if where is True:
        dst[...] = src
        return
    if is_on_host_alone(dst):
        options = {"out": dst, "where": where, "casting": casting}
        elementwise(_copyto, (src,), name="numpy.copyto", options=options)
        return
    same_names("copyto", map(get_dims, (dst, src, where)))
    check_host("copyto", (dst,))
    if dst.readonly:
        raise BufferError("copyto: expected a writable storage, got a read-only one; use a copy()")
    with dst.host() as array:
        np.copyto(array, values(src), casting=casting, where=values(where))


def _copyto(src: Array, out: Array, where: Array = True, **options: Array) -> None:  # noqa: FBT002
    np.copyto(out, src, where=where, **options)


def of_other_types(name: str, a: Array, b: Array) -> Array:
    """Compare values that NumPy cannot compare, as numbers and text: no element is equal."""
    return elementwise(_of_other_types(name == "not_equal"), (a, b), name=f"numpy.{name}")


@cache
def _of_other_types(truth: bool) -> Callable[..., Array]:  # noqa: FBT001 - the answer
    def into(a: Array, b: Array, out: Array = None) -> Array:
        made = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), bool) if out is None else out
        made[...] = truth
        return made

    return into


# --- differences and integrals -------------------------------------------------------------------


def diff(
    a: Array,
    n: int = 1,
    axis: Array = -1,
    prepend: Array = np._NoValue,
    append: Array = np._NoValue,
) -> Array:
    """Subtract neighbours along an axis, `n` times.

    The halo keeps its widths, which then count differences.
    """
    if n < 0:
        raise ValueError(f"numpy.diff: expected n of at least 0, got {n}; integrate with cumsum")
    model = next(one for one in (a, prepend, append) if isinstance(one, Storage))
    at = axis_of("numpy.diff", model, axis)
    parts = [one for one in (prepend, a, append) if one is not np._NoValue]
    if n and len(parts) > 1:
        shape = (*model.shape[:at], 1, *model.shape[at + 1 :])  # of a number at an end
        ends = [np.broadcast_to(one, shape) if np.ndim(one) == 0 else one for one in parts]
        a = concatenate(ends, at)
    subtract = np.not_equal if a.dtype == bool else np.subtract
    for _ in range(n):
        a = subtract(a[along(at, slice(1, None))], a[along(at, slice(None, -1))])
    return a


def trapezoid(y: Array, x: Array = None, dx: Array = 1.0, axis: Array = -1) -> Array:
    """Integrate along an axis by the trapezoidal rule, and drop the axis."""
    if not isinstance(y, Storage):
        return np.trapezoid(y, on_host("trapezoid", x), dx, axis)
    at = axis_of("numpy.trapezoid", y, axis)
    if x is not None:
        points = np.asarray(on_host("trapezoid", x))
        own = y.dims if points.ndim > 1 or y.dims is None else (y.dims[at],)
        same_names("trapezoid", (own, get_dims(x)))
        dx = np.diff(points, axis=0 if points.ndim == 1 else at - y.ndim)
        if points.ndim == 1:
            dx = dx.reshape([-1 if one == at else 1 for one in range(y.ndim)])
    if np.ndim(dx) and not get_dims(dx):  # by position from the end, as in NumPy
        dx = np.asarray(dx)[(*(None,) * (y.ndim - np.ndim(dx)), ...)]
    sums = y[along(at, slice(1, None))] + y[along(at, slice(None, -1))]
    return (sums * dx / 2.0).sum(at)


# --- composed reductions -------------------------------------------------------------------------


def size(a: Storage, axis: Array = None) -> int:
    """Count the elements, along axes by name or number."""
    axes = range(a.ndim) if axis is None else axes_of("numpy.size", a, axis)
    return int(np.prod([a.shape[one] for one in axes], dtype=np.intp))


def count_nonzero(a: Storage, axis: Array = None, *, keepdims: bool = False) -> Array:
    """Count the elements that are not 0."""
    truths = elementwise(np.not_equal, (a, 0), name="numpy.count_nonzero")
    return truths.sum(axis, np.intp, keepdims=keepdims)


# --- powers --------------------------------------------------------------------------------------


class _Asked(np.ndarray):
    """An array whose operators return the universal function that NumPy calls for them."""

    def __array_ufunc__(self, ufunc: np.ufunc, *_: Array, **__: Array) -> np.ufunc:
        return ufunc


def power_of_one(dtype: np.dtype, exponent: float) -> np.ufunc | None:
    """Return the function of one operand that NumPy's ``**`` calls; None if it is `numpy.power`."""
    base: Array = np.empty(0, dtype).view(_Asked)
    called: np.ufunc = base**exponent
    return called if called.nin == 1 else None


# --- methods -------------------------------------------------------------------------------------


def outer(ufunc: np.ufunc, inputs: Sequence[Array], options: Mapping[str, Array]) -> Array:
    """Compute for all pairs of elements: the dims of the first, then those of the second."""
    name, (a, b) = f"numpy.{ufunc.__name__}.outer", inputs
    dims, others = get_dims(a), get_dims(b)
    if np.ndim(a) and np.ndim(b):
        if (dims is None) != (others is None):
            raise ValueError(
                f"{name}: expected dims in both operands or in none, got {dims} and {others}; name "
                "them with dlfield.as_storage(array, dims=...)"
            )
        if shared := sorted({*(dims or ())} & {*(others or ())}):
            raise ValueError(
                f"{name}: expected operands without a shared name, got {dims} and {others}; rename "
                f"{shared[0]!r} of one of them"
            )
        if dims is None:
            a = (a if isinstance(a, Storage) else np.asarray(a))[(..., *(None,) * np.ndim(b))]
    return elementwise(ufunc, (a, b), results=ufunc.nout, name=name, options=options, outer=True)


def at(ufunc: np.ufunc, inputs: Sequence[Array], _: Mapping[str, Array]) -> None:
    """Compute in place for the elements of a key, once for each time it names them; by position."""
    name, (target, *given) = f"numpy.{ufunc.__name__}.at", inputs
    _check_host_alone(name, inputs)
    given = values(given)
    if not isinstance(target, Storage):
        ufunc.at(target, *given)
        return
    if named := [one for one in each(inputs[1:]) if get_dims(one)]:
        raise ValueError(
            f"{name}: expected a key and values without names, which go by position, got one with "
            f"the dims {get_dims(named[0])}; use its to_numpy()"
        )
    elementwise(lambda out: ufunc.at(out, *given), (), name=name, options={"out": target})


def reduceat(ufunc: np.ufunc, inputs: Sequence[Array], options: Mapping[str, Array]) -> Array:
    """Reduce the parts of an axis that begin at indices; the axis keeps its name, not its halo."""
    name, (array, indices) = f"numpy.{ufunc.__name__}.reduceat", inputs
    given = dict(options)  # NumPy puts arguments by position there
    out = given.pop("out", None)
    check_no_out(name, out[0] if isinstance(out, tuple) else out)
    _check_host_alone(name, (array, indices))
    if isinstance(array, Storage):
        given["axis"] = axis_of(name, array, given.get("axis", 0))
    starts = np.asarray(values(indices))
    starts = starts if starts.size else starts.astype(np.intp)  # an empty list is one of floats
    found = ufunc.reduceat(values(array), starts, **given)
    if not isinstance(array, Storage):
        return found
    rule = picked(Labels(array.dims, array.halo, array.shape), found.shape, given)
    return filled(made_like(found.shape, found.dtype, array, *rule), found)


def of_matrices(ufunc: np.ufunc, inputs: Sequence[Array], options: Mapping[str, Array]) -> Array:
    """Compute by position, for xarray and Dask, which match the dimensions themselves."""
    check_host(ufunc.__name__, each((*inputs, *options.values())))
    return ufunc(*values(tuple(inputs)), **values(dict(options)))


def _check_host_alone(what: str, given: Sequence[Array]) -> None:
    for one in given:
        if isinstance(one, Storage):
            check_host_alone(what, one)


#: Implementations of methods, by the method's name.
METHODS: dict[str, Callable[[np.ufunc, Sequence[Array], Mapping[str, Array]], Array]] = {
    "__call__": of_matrices,
    "outer": outer,
    "at": at,
    "reduceat": reduceat,
}
