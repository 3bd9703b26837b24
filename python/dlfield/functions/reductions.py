"""Reductions of storages, along dimensions by name or number.

`dlfield._core.reduced` computes straight into the result. What NumPy's functions without `out=`
give is composed here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from dlfield._core import Storage, elementwise, reduced, reducing_functions

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FUNCTIONS"]


def _count_nonzero(a: Storage, axis: Any = None, *, keepdims: bool = False) -> Any:  # noqa: ANN401
    """Count the elements that are not 0."""
    truths = elementwise(np.not_equal, (a, 0), name="numpy.count_nonzero")
    return truths.sum(axis, np.intp, keepdims=keepdims)


def _average(
    a: Any,  # noqa: ANN401 - a storage or an array
    axis: Any = None,  # noqa: ANN401 - one or several names or numbers
    weights: Any = None,  # noqa: ANN401
    returned: bool = False,  # noqa: FBT001, FBT002 - as NumPy
    *,
    keepdims: Any = False,  # noqa: ANN401 - NumPy has a sign for False
) -> Any:  # noqa: ANN401 - a storage or a number
    """Average with weights, which belong to the dimensions that their names say."""
    if not isinstance(a, Storage):
        plain: Any = np.asarray(weights)
        return np.average(a, axis, plain, returned, keepdims=keepdims)  # type: ignore[call-overload]
    keepdims = keepdims is True
    if weights is None:
        average = a.mean(axis, keepdims=keepdims)
        total = average.dtype.type(a.size / average.size)
    else:
        weights = _placed(weights, a, axis)
        kind = np.result_type(a.dtype, weights.dtype, *(["f8"] if a.dtype.kind in "iub" else []))
        total = _total(weights, a, axis, kind, keepdims)
        if np.any(total == 0):
            raise ZeroDivisionError("weights: expected a sum other than 0, got 0; leave out the 0s")
        options = {"dtype": kind}
        weighted = elementwise(np.multiply, (a, weights), name="numpy.average", options=options)
        average = weighted.sum(axis, keepdims=keepdims)
        average /= total
    return (average, average * 0 + total) if returned else average


def _numbers(axis: Any, a: Storage) -> tuple[int, ...]:  # noqa: ANN401
    """Give the numbers of axes of a storage."""
    if axis is None:
        return tuple(range(a.ndim))
    several = axis if isinstance(axis, tuple | list) else (axis,)
    names = a.dims or ()
    return normalize_axis_tuple(
        [names.index(one) if one in names else one for one in several], a.ndim
    )


def _placed(weights: Any, a: Storage, axis: Any) -> Any:  # noqa: ANN401
    """Give weights an axis for each dimension of a storage, of extent 1 for those they lack."""
    own = getattr(weights, "dims", None) if isinstance(weights, Storage) else None
    if own and a.dims:
        if list(own) != [name for name in a.dims if name in own]:
            raise ValueError(
                f"weights: expected dims among {a.dims} in that order, got {own}; rename or "
                "transpose them"
            )
        return weights.to_numpy()[tuple(slice(None) if one in own else None for one in a.dims)]
    weights, axes = np.asarray(weights), _numbers(axis, a)
    if weights.shape == a.shape:
        return weights
    extents = tuple(a.shape[one] for one in axes)
    if weights.shape != extents:
        raise ValueError(
            f"weights: expected shape {a.shape}, or {extents} of the reduced dimensions, got "
            f"{weights.shape}; give them names with dlfield.as_storage(weights, dims=...)"
        )
    shape = [extent if at in axes else 1 for at, extent in enumerate(a.shape)]
    return weights.transpose(np.argsort(axes)).reshape(shape)


def _total(weights: Any, a: Storage, axis: Any, kind: Any, keepdims: bool) -> Any:  # noqa: ANN401, FBT001
    """Sum the weights of all elements that go into an average."""
    axes = _numbers(axis, a)
    lacking = [a.shape[one] for one in axes if weights.shape[one] == 1]
    return weights.sum(axes, dtype=kind, keepdims=keepdims) * kind.type(np.prod(lacking))


#: What computes each function of NumPy.
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{function: partial(reduced, function) for function in reducing_functions()},
    np.average: _average,
    np.count_nonzero: _count_nonzero,
}
