"""NumPy's functions that work element by element and are no universal functions.

They go by name, as universal functions do. `clip` and `round` compute straight into the result; the
others make an array of NumPy first.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import elementwise

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FUNCTIONS", "clip", "rounded"]


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


def _of_values(function: Callable[..., Any], arrays: int, *names: str) -> Callable[..., Any]:
    """Make a function whose first arguments are arrays, and the others options of these names."""

    def into(*values: Any, **options: Any) -> Any:  # noqa: ANN401
        found = function(*values[:arrays], **options)
        if len(values) == arrays:
            return found
        np.copyto(values[arrays], found)
        return values[arrays]

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401
        options |= dict(zip(names, args[arrays:], strict=False))
        return elementwise(into, args[:arrays], name=f"numpy.{function.__name__}", options=options)

    return call


#: What is computed here, by NumPy's function.
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.clip: clip,
    np.round: rounded,
    np.around: rounded,
    np.isclose: _of_values(np.isclose, 2, "rtol", "atol", "equal_nan"),
    np.angle: _of_values(np.angle, 1, "deg"),
    np.nan_to_num: _of_values(np.nan_to_num, 1, "copy", "nan", "posinf", "neginf"),
    **{one: _of_values(one, 1) for one in (np.imag, np.iscomplex, np.isreal, np.real, np.sinc)},
}
