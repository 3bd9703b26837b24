"""Reductions and running sums of storages, along dimensions by name or number.

NumPy computes straight into the result, which has the dims that stay, with their halo, origin and
order in memory. A reduction of all dims is a NumPy scalar.
"""

from __future__ import annotations

import inspect
import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import CPUStorage, Storage, empty
from dlfield._methods import way_out
from dlfield._ufunc_methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["FUNCTIONS", "by_function", "by_method"]

_REDUCING = (
    "all amax amin any argmax argmin max mean median min nanargmax nanargmin nanmax nanmean "
    "nanmedian nanmin nanprod nanstd nansum nanvar prod ptp std sum var"
)
_RUNNING = "cumprod cumsum nancumprod nancumsum"
#: Functions of NumPy that are computed here.
FUNCTIONS = frozenset(getattr(np, name) for name in f"{_REDUCING} {_RUNNING}".split())
_KEEPING = frozenset(getattr(np, name) for name in _RUNNING.split())


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def by_function(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:  # noqa: ANN401
    """Reduce by one of `FUNCTIONS`."""
    given = _signature(function).bind(*args, **keywords).arguments
    given = {name: value for name, value in given.items() if value is not np._NoValue}
    return by_name(function, given.pop("a"), given.pop("axis", None), given)


def by_name(function: Callable[..., Any], array: Any, axis: Any, options: dict[str, Any]) -> Any:  # noqa: ANN401
    """Reduce by one of `FUNCTIONS`, whose other arguments have their names."""
    keeps, out = function in _KEEPING, options.pop("out", None)
    return _Reduction(f"numpy.{function.__name__}", function, keeps).of(array, axis, out, options)


@lru_cache(maxsize=512)
def _dtype(function: Callable[..., Any], given: np.dtype[Any], wanted: Any) -> np.dtype[Any]:  # noqa: ANN401
    """Give the type of a result, by NumPy's rules."""
    options = {} if wanted is None else {"dtype": wanted}
    dtype: np.dtype[Any] = function(np.ones((1, 1), given), axis=0, **options).dtype
    return dtype


def by_method(
    storage: Storage,
    ufunc: np.ufunc,
    method: str,
    inputs: Sequence[Any],
    options: Mapping[str, Any] | None,
) -> Any:  # noqa: ANN401
    """Call a method of a universal function other than ``__call__``."""
    name = f"numpy.{ufunc.__name__}.{method}"
    if method not in ("reduce", "accumulate"):
        return METHODS[method](ufunc, inputs, options or {})
    given = dict(options or {})
    axis, (out,) = given.pop("axis", 0), given.pop("out", (None,))
    function = getattr(ufunc, method)
    return _Reduction(name, function, method == "accumulate").of(inputs[0], axis, out, given)


class _Reduction:
    """A function of NumPy that reduces; or keeps the shape, as a running sum does."""

    def __init__(self, name: str, function: Callable[..., Any], keeps: bool) -> None:  # noqa: FBT001
        self.name, self.function, self.keeps = name, function, keeps

    def of(self, array: Any, axis: Any, out: Any, options: dict[str, Any]) -> Any:  # noqa: ANN401
        """Reduce a storage, or an array into a storage."""
        for one in (array, out, options.get("where")):
            self._check_host(one)
        if not isinstance(array, Storage):
            return self._into(out, np.asarray(array), {**options, "axis": axis})
        axes = self._axes(array, axis)
        several = axis is not None and isinstance(axis, tuple | list)
        options["axis"] = None if axis is None else axes if several else axes[0]
        if isinstance(options.get("where"), Storage):
            options["where"] = self._aligned(options["where"], array)
        keepdims = bool(options.get("keepdims", False))
        kept = [at for at in range(array.ndim) if self.keeps or at not in axes]
        if out is not None:
            self._check_names(array, out, range(array.ndim) if keepdims else kept)
            return self._into(out, array.to_numpy(), options)
        if not kept and not keepdims and not self.keeps:
            return self.function(array.to_numpy(), **options)
        return self._into(self._made(array, kept, keepdims, options), array.to_numpy(), options)

    def _check_host(self, one: object) -> None:
        if isinstance(one, Storage) and not isinstance(one, CPUStorage):
            raise TypeError(
                f"{self.name}: expected arrays on the host, got a {type(one).__name__}, which has "
                f"no arithmetic; {way_out(one)}"
            )

    def _axes(self, array: Storage, axis: Any) -> tuple[int, ...]:  # noqa: ANN401
        """Give the numbers of axes by name or number; all of them for None."""
        if axis is None:
            if self.keeps and array.ndim != 1:
                raise TypeError(
                    f"{self.name}: expected an axis of a storage of {array.ndim} dimensions, got "
                    "none; use ravel() to go through all elements"
                )
            return tuple(range(array.ndim))
        several = axis if isinstance(axis, tuple | list) else (axis,)
        axes = [self._number(array, one) if isinstance(one, str) else one for one in several]
        return np.lib.array_utils.normalize_axis_tuple(axes, array.ndim)

    def _number(self, array: Storage, name: str) -> int:
        if array.dims is None or name not in array.dims:
            has = "without dims" if array.dims is None else f"with the dims {array.dims}"
            raise ValueError(
                f"{self.name}: expected an axis of the storage, got {name!r} of one {has}; pass "
                "one of its names or a number"
            )
        return array.dims.index(name)

    def _aligned(self, mask: Storage, array: Storage) -> Any:  # noqa: ANN401
        """Give a mask with its axes in the order of the storage."""
        if not mask.dims or not array.dims:
            return mask.to_numpy()
        own = mask.dims
        if any(name not in array.dims for name in own):
            raise ValueError(
                f"{self.name}: expected a mask with dims among {array.dims}, got {own}; rename them"
            )
        order = [own.index(name) for name in array.dims if name in own]
        key = tuple(slice(None) if name in own else None for name in array.dims)
        return mask.to_numpy().transpose(order)[key]

    def _check_names(self, array: Storage, out: Any, axes: Sequence[int]) -> None:  # noqa: ANN401
        if array.dims is None or not isinstance(out, Storage) or not out.dims:
            return
        expected = tuple(array.dims[at] for at in axes)
        if out.dims != expected:
            raise ValueError(
                f"{self.name}: expected out with the dims {expected}, got {out.dims}; transpose "
                "or rename it"
            )

    def _made(
        self,
        array: Storage,
        kept: Sequence[int],
        keepdims: bool,  # noqa: FBT001
        options: Mapping[str, Any],
    ) -> Storage:
        """Allocate the result: what is known of the dims that stay."""
        wanted = options.get("dtype")
        dtype = _dtype(self.function, array.dtype, None if wanted is None else np.dtype(wanted))
        axes = range(array.ndim) if keepdims else kept
        inside = set(kept)
        labels: dict[str, Any] = {}
        if array.dims is not None:
            labels["dims"] = [array.dims[at] for at in axes]
        if array.halo is not None:
            labels["halo"] = [array.halo[at] if at in inside else (0, 0) for at in axes]
        if hasattr(array, "default_origin"):
            labels["default_origin"] = _kept_origin(array, axes, inside)
        ranks = sorted(array.layout[at] for at in axes)
        alignment = array.alignment_size
        if dtype.itemsize % alignment:
            alignment = math.lcm(alignment, dtype.itemsize)
        made = empty(
            tuple(array.shape[at] if at in inside else 1 for at in axes),
            dtype,
            layout=[ranks.index(array.layout[at]) for at in axes],
            alignment_size=alignment,
            **labels,
        )
        if array.halo is None:
            made.halo = None
        return made

    def _into(self, out: Any, values: Any, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
        if not isinstance(out, Storage):
            self.function(values, out=out, **options)
            return out
        if out.readonly:
            raise BufferError(
                f"{self.name}: expected a writable out, got a read-only storage; use a copy()"
            )
        with out.host() as array:
            self.function(values, out=array, **options)
        return out


def _kept_origin(array: Storage, axes: Sequence[int], inside: set[int]) -> list[int]:
    """Give the origin along the axes that stay, in the order I, J, K, data dimensions."""
    order = list(range(array.ndim))
    if array.dims is not None:
        order.sort(key=lambda at: _place(array.dims[at]))  # type: ignore[index]
    first = dict(zip(order, array.default_origin, strict=True))
    return [first[at] if at in inside else 0 for at in order if at in axes]


def _place(name: str) -> int:
    return "IJK".index(name) if name in ("I", "J", "K") else 3 + int(name)
