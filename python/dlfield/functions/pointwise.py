"""NumPy's functions that work element by element and are no universal functions.

They go by name, as universal functions do. `where`, `select`, `choose`, `clip` and `round` compute
straight into the result; the others make an array of NumPy first.
"""

from __future__ import annotations

import inspect
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import Storage, elementwise
from dlfield.functions import joins as joins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MISSING = object()


# --- choices -------------------------------------------------------------------------------------


def where(condition: Any, x: Any = _MISSING, y: Any = _MISSING, /) -> Any:  # noqa: ANN401
    """Take each element from `x` if `condition` holds, else from `y`.

    With the condition alone the indices where it holds, as arrays of NumPy.
    """
    if x is _MISSING and y is _MISSING:
        joins.check_host("where", (condition,))
        return np.nonzero(condition.to_numpy())
    if x is _MISSING or y is _MISSING:
        raise TypeError("where: expected both x and y, got one; pass both, or neither for indices")
    return elementwise(_where, (condition, x, y), name="numpy.where")


@wraps(np.where)
def _where(condition: Any, x: Any, y: Any, out: Any = None) -> Any:  # noqa: ANN401
    if out is None:
        return np.where(condition, x, y)
    np.copyto(out, y)
    np.copyto(out, x, where=np.asarray(condition, bool))
    return out


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:  # noqa: ANN401
    """Take each element from the first choice whose condition holds, else from `default`."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"numpy.select: expected a choice for each condition, got {len(choicelist)} for "
            f"{len(condlist)}; pass default= for elements where no condition holds"
        )
    inputs = (*condlist, *choicelist, default)
    return elementwise(_select(len(condlist)), inputs, name="numpy.select")


@cache
def _select(count: int) -> Callable[..., Any]:
    def into(*arrays: Any) -> Any:  # noqa: ANN401
        conditions, choices = arrays[:count], arrays[count : 2 * count]
        if len(arrays) == 2 * count + 1:
            return np.select(conditions, choices, arrays[-1])
        default, out = arrays[-2:]
        np.copyto(out, default)
        for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
            np.copyto(out, choice, where=condition)
        return out

    return into


def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:  # noqa: ANN401
    """Take each element from the choice whose number `a` has there."""
    given = tuple(choices)
    options = {"out": out, "mode": mode}
    return elementwise(_choose(len(given)), (a, *given), name="numpy.choose", options=options)


@cache
def _choose(count: int) -> Callable[..., Any]:
    def into(a: Any, *arrays: Any, mode: Any) -> Any:  # noqa: ANN401
        out = arrays[count] if len(arrays) > count else None
        return np.choose(a, arrays[:count], out=out, mode=mode)

    return into


# --- limits and digits ---------------------------------------------------------------------------


def clip(
    a: Any,  # noqa: ANN401 - a storage or an array
    a_min: Any = None,  # noqa: ANN401
    a_max: Any = None,  # noqa: ANN401
    out: Any = None,  # noqa: ANN401
    *,
    min: Any = None,  # noqa: ANN401 - as NumPy
    max: Any = None,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - a storage
    """Limit the values; a bound of None is none."""
    low, high = (
        one if given is None or given is np._NoValue else given
        for one, given in ((min, a_min), (max, a_max))
    )
    return elementwise(np.clip, (a, low, high), name="numpy.clip", options={"out": out, **options})


def rounded(a: Any, decimals: int = 0, out: Any = None) -> Any:  # noqa: ANN401
    """Round to a number of decimals."""
    return elementwise(np.round, (a, decimals), name="numpy.round", options={"out": out})


# --- others --------------------------------------------------------------------------------------


def _of_values(function: Callable[..., Any], arrays: int = 1) -> Callable[..., Any]:
    """Make a function whose first arguments are arrays, and the others options."""
    signature = inspect.signature(function)
    names = tuple(signature.parameters)[:arrays]

    @wraps(function)
    def into(*values: Any, **options: Any) -> Any:  # noqa: ANN401
        found = function(*values[:arrays], **options)
        if len(values) == arrays:
            return found
        np.copyto(values[arrays], found)
        return values[arrays]

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401
        given = signature.bind(*args, **keywords).arguments
        inputs = tuple(given.pop(name) for name in names)
        options = {"out": given.pop("out", None), **_on_host(function.__name__, given)}
        return elementwise(into, inputs, name=f"numpy.{function.__name__}", options=options)

    return call


def _on_host(what: str, options: dict[str, Any]) -> dict[str, Any]:
    """Give the arrays among options as arrays of NumPy."""
    joins.check_host(what, options.values())
    return {
        name: one.to_numpy() if isinstance(one, Storage) else one for name, one in options.items()
    }


def _of_points(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of points, whose other arguments are tables; of an array NumPy's array."""
    compute = _of_values(function)
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:  # noqa: ANN401
        given = signature.bind(*args, **keywords).arguments
        if isinstance(next(iter(given.values())), Storage):
            return compute(**given)
        return function(**_on_host(function.__name__, given))

    return call


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:  # noqa: ANN401
    """Give the places in a sorted list where the values would go."""
    return _searchsorted(v, a, side, sorter)


def _places(v: Any, a: Any, side: Any = "left", sorter: Any = None) -> Any:  # noqa: ANN401
    return np.searchsorted(a, v, side, sorter)


_places.__name__ = "searchsorted"
_searchsorted = _of_points(_places)

#: What is computed here, by the name of NumPy's function.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": where,
    "select": select,
    "choose": choose,
    "clip": clip,
    "round": rounded,
    "around": rounded,
    "isclose": _of_values(np.isclose, 2),
    "searchsorted": searchsorted,
    **{one.__name__: _of_points(one) for one in (np.digitize, np.interp, np.isin)},
    **{
        one.__name__: _of_values(one)
        for one in (
            *(np.angle, np.fix, np.i0, np.imag, np.iscomplex, np.isneginf, np.isposinf),
            *(np.isreal, np.nan_to_num, np.real, np.sinc),
        )
    },
}
