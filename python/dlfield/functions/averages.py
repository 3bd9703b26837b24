"""Averages and covariances, with weights that are matched to dimensions by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dlfield._core import Storage, as_storage, elementwise, empty_like, get_dims
from dlfield.functions.axes import axes_of
from dlfield.functions.host import check_host, is_on_host_alone, on_host, values
from dlfield.functions.labels import same_names

if TYPE_CHECKING:
    from dlfield._core import Array


def average(
    a: Array,
    axis: Array = None,
    weights: Array = None,
    returned: bool = False,  # noqa: FBT001, FBT002 - as NumPy
    *,
    keepdims: Array = False,  # NumPy has a sign for False
) -> Array:
    """Average with weights, by name on the host or a GPU."""
    if not isinstance(a, Storage):
        plain: Array = np.asarray(weights)
        return np.average(a, axis, plain, returned, keepdims=keepdims)  # type: ignore[call-overload]
    keepdims = isinstance(keepdims, int | np.bool_) and bool(keepdims)
    if weights is None:
        mean = a.mean(axis, keepdims=keepdims)
        total = np.asarray(a.size / mean.size, mean.dtype)
    else:
        axes = tuple(range(a.ndim)) if axis is None else axes_of("numpy.average", a, axis)
        named = bool(a.dims) and not is_on_host_alone(a)
        weights = (_named if named else _placed)(weights, a, axes)
        kind = np.result_type(a.dtype, weights.dtype, *(["f8"] if a.dtype.kind in "iub" else []))
        total = (_total_by_name if named else _total)(a, weights, axes, kind, keepdims=keepdims)
        if np.any(total == 0):
            raise ZeroDivisionError("weights: expected a sum other than 0, got 0; leave out the 0s")
        options = {"dtype": kind}
        weighted = elementwise(np.multiply, (a, weights), name="numpy.average", options=options)
        mean = weighted.sum(axis, keepdims=keepdims)
        mean /= total
    if not returned:
        return mean
    if not isinstance(mean, Storage):
        return mean, np.asarray(total)[()]
    sums = empty_like(mean, total.dtype)
    sums[...] = total if isinstance(total, Storage) else np.broadcast_to(total, mean.shape)
    return mean, sums


def cov(
    m: Array,
    y: Array = None,
    rowvar: bool = True,  # noqa: FBT001, FBT002 - as NumPy
    bias: bool = False,  # noqa: FBT001, FBT002
    ddof: int | None = None,
    fweights: Array = None,
    aweights: Array = None,
    **options: Array,
) -> Array:
    """Return covariances, by position; weights are along the dimension of the observations."""
    _check_observed("cov", m, (y, fweights, aweights), rowvar=rowvar)
    m, y, fweights, aweights = map(values, (m, y, fweights, aweights))
    return np.cov(m, y, rowvar, bias, ddof, fweights, aweights, **options)


def corrcoef(
    x: Array,
    y: Array = None,
    rowvar: bool = True,  # noqa: FBT001, FBT002 - as NumPy
    **options: Array,
) -> Array:
    """Return correlation coefficients, by position."""
    _check_observed("corrcoef", x, (y,), rowvar=rowvar)
    return np.corrcoef(values(x), values(y), rowvar, **options)


def _check_observed(what: str, m: Array, others: tuple[Array, ...], *, rowvar: bool) -> None:
    """Refuse other names than those of `m`; of one dimension, other than its observations."""
    check_host(what, (m, *others))
    own = get_dims(m)
    observed = own and (own[-1 if rowvar else 0],)
    for other in others:
        names = get_dims(other)
        wanted = own if names and len(names) > 1 else observed
        same_names(what, (names, wanted), may_be_unrelated=False)


# --- on the host: an array with an axis for each dimension of the storage ------------------------


def _placed(weights: Array, a: Storage, axes: tuple[int, ...]) -> Array:
    """Return weights with an axis for each dimension of a storage, of extent 1 for the others."""
    own = get_dims(weights)
    if own and a.dims:
        named = as_storage(weights)
        order = [name for name in a.dims if name in _among(named, a)]
        ordered = on_host("average", named.transpose(*order))
        return ordered[tuple(slice(None) if one in own else None for one in a.dims)]
    weights = np.asarray(on_host("average", weights))
    if weights.shape == a.shape:
        return weights
    _check_extents(weights, a, axes)
    shape = [extent if at in axes else 1 for at, extent in enumerate(a.shape)]
    return weights.transpose(np.argsort(axes)).reshape(shape)


def _total(
    a: Storage, weights: Array, axes: tuple[int, ...], kind: np.dtype, *, keepdims: bool
) -> Array:
    lacking = [a.shape[one] for one in axes if weights.shape[one] == 1]
    total: Array = weights.sum(axes, dtype=kind, keepdims=keepdims)
    return total * kind.type(np.prod(lacking))


# --- on a GPU: a storage whose dimensions go by name ---------------------------------------------


def _named(weights: Array, a: Storage, axes: tuple[int, ...]) -> Array:
    """Return weights as a storage with some of the names of `a`, in their own memory."""
    assert a.dims is not None
    if get_dims(weights):
        weights = as_storage(weights)
        _among(weights, a)
        return weights
    if not isinstance(weights, Storage) and not hasattr(weights, "__cuda_array_interface__"):
        weights = np.asarray(weights)
    if weights.shape == a.shape:
        return as_storage(weights, dims=a.dims)
    _check_extents(weights, a, axes)
    return as_storage(weights, dims=[a.dims[one] for one in axes])


def _total_by_name(
    a: Storage, weights: Storage, axes: tuple[int, ...], kind: np.dtype, *, keepdims: bool
) -> Array:
    dims, own = a.dims or (), weights.dims or ()
    reduced = [dims[one] for one in axes]
    among = [name for name in reduced if name in own]
    total: Array = weights.sum(among, dtype=kind, keepdims=keepdims) if among else weights
    lacking = [a.shape[dims.index(name)] for name in reduced if name not in own]
    return total * kind.type(np.prod(lacking))


# --- of both -------------------------------------------------------------------------------------


def _among(weights: Storage, a: Storage) -> tuple[str, ...]:
    """Check that `a` has the dims of the weights with the same extents, and return these dims."""
    own, known = weights.dims or (), dict(zip(a.dims or (), a.shape, strict=True))
    if not {*own} <= {*known}:
        raise ValueError(f"weights: expected dims among {a.dims}, got {own}; rename them")
    for name, extent in zip(own, weights.shape, strict=True):
        if extent != known[name]:
            raise ValueError(
                f"weights: expected {known[name]} along '{name}', got {extent}; pass a weight for "
                "each point"
            )
    return own


def _check_extents(weights: Array, a: Storage, axes: tuple[int, ...]) -> None:
    extents = tuple(a.shape[one] for one in axes)
    if weights.shape != extents:
        raise ValueError(
            f"weights: expected shape {a.shape}, or {extents} of the reduced dimensions, got "
            f"{weights.shape}; give them names with dlfield.as_storage(weights, dims=...)"
        )
