"""Methods of universal functions that are neither calls nor reductions: outer, at, reduceat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import CPUStorage, Storage, elementwise, get_dims
from dlfield.functions import joins as joins
from dlfield.functions.along import picked, whole_numbers
from dlfield.functions.axes import axis_of
from dlfield.functions.copies import values
from dlfield.functions.host import way_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["METHODS"]


def outer(ufunc: np.ufunc, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:  # noqa: ANN401
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
    return elementwise(ufunc, (a, b), results=ufunc.nout, name=name, options=options)


def at(ufunc: np.ufunc, inputs: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Compute in place for the elements of a key, as often as it has them; by position."""
    name, (target, *given) = f"numpy.{ufunc.__name__}.at", inputs
    for one in inputs:
        _check_host(name, one)
    given = values(given)
    if not isinstance(target, Storage):
        ufunc.at(target, *given, **options)
        return
    if named := [one for one in inputs[1:] if get_dims(one)]:
        raise ValueError(
            f"{name}: expected a key and values without names, which go by position, got one with "
            f"the dims {get_dims(named[0])}; use its to_numpy()"
        )
    elementwise(lambda out: ufunc.at(out, *given), (), name=name, options={"out": target})


def reduceat(ufunc: np.ufunc, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Reduce the parts of an axis that begin at indices; the axis keeps its name, not its halo."""
    name, (array, indices, *more) = f"numpy.{ufunc.__name__}.reduceat", inputs
    given = {**dict(zip(("axis", "dtype", "out"), more, strict=False)), **options}
    out = given.pop("out", None)
    joins.check_no_out(name, out[0] if isinstance(out, tuple) else out)
    for one in (array, indices):
        _check_host(name, one)
    if not isinstance(array, Storage):
        return ufunc.reduceat(array, values(indices), **given)
    axis, dtype = axis_of(name, array, given.get("axis", 0)), given.get("dtype")
    found = ufunc.reduceat(np.ones(1, array.dtype), [0], dtype=dtype).dtype
    starts = whole_numbers(indices)
    made = picked(array, axis, len(starts), found)
    with made.host() as result:
        ufunc.reduceat(array.to_numpy(), starts, axis, dtype, out=result)
    return made


def _check_host(what: str, one: object) -> None:
    if isinstance(one, Storage) and not isinstance(one, CPUStorage):
        raise TypeError(
            f"{what}: expected arrays on the host, got a {type(one).__name__}, which has no "
            f"arithmetic; {way_out(one)}"
        )


#: What is computed here, by the name of the method.
METHODS: dict[str, Callable[[np.ufunc, Sequence[Any], Mapping[str, Any]], Any]] = {
    "outer": outer,
    "at": at,
    "reduceat": reduceat,
}
