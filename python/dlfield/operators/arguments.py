"""Arrays and numbers of any framework, as a stencil takes them: cut, turned, copied, converted."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dlfield._core import Allocation, BoundStencil

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlfield._core import Array

__all__ = [
    "Memory",
    "check_bound",
    "check_like",
    "copies",
    "fresh",
    "number_of",
    "part_of",
    "turned",
]

#: Classes of the numbers that a scalar takes, by NumPy's letter for the kind of its type.
_TAKEN: dict[str, tuple[type, ...]] = {
    "b": (bool, np.bool_),
    "i": (int, np.integer),
    "u": (int, np.integer),
    "f": (int, float, np.integer, np.floating),
}


class Memory(Protocol):
    """What makes arrays of one shape and dtype, as `Allocation` does."""

    def zeros(self) -> Any:
        """Allocate an array of zeros."""

    def empty(self) -> Any:
        """Allocate an array whose values are undefined."""


def part_of(
    dims: Sequence[str], first: Sequence[int], sizes: Mapping[str, int]
) -> tuple[slice, ...]:
    """Return the part of an array with so many points along each dimension, from the first ones."""
    ends = [at + sizes[dim] for at, dim in zip(first, dims, strict=True)]
    return tuple(map(slice, first, ends))


def fresh(memory: Memory) -> Allocation | Callable[[Any], Any]:
    """Return what makes a new output, whatever is passed for it."""
    return memory if isinstance(memory, Allocation) else lambda _: memory.zeros()


def copies(name: str, memory: Memory) -> Callable[[Any], Any]:
    """Return what copies a field that the stencil reads and writes."""

    def copied(values: Any) -> Any:
        made = memory.empty()
        check_like(name, made, values)
        made[...] = values
        return made

    return copied


def check_bound(what: str, given: Any) -> None:
    """Refuse an object that is not a bound stencil."""
    if not isinstance(given, BoundStencil):
        got = f"an object of type '{type(given).__name__}'"
        raise TypeError(f"{what}: expected a bound stencil, got {got}; pass dlfield.bind(...)")


def check_like(name: str, model: Array, values: Array) -> None:
    """Refuse values that would be repeated or converted where they are copied to a model."""
    expected, got = ((tuple(one.shape), _type_of(one.dtype)) for one in (model, values))
    if got != expected:
        raise ValueError(
            f"argument '{name}': expected {expected[1]} of shape {expected[0]}, got {got[1]} of "
            f"shape {got[0]}"
        )


@cache
def _type_of(dtype: Any) -> str:
    """Return the name of a type, as all frameworks say it."""
    return str(dtype).rpartition(".")[2]


def number_of(name: str, dtype: np.dtype[Any], value: Any) -> Any:
    """Convert a Python number to the declared type; refuse one that does not fit."""
    is_taken = isinstance(value, _TAKEN.get(dtype.kind, (object,)))
    if is_taken and not (dtype.kind in "iu" and isinstance(value, _TAKEN["b"])):
        with suppress(OverflowError), np.errstate(over="ignore"):
            number = dtype.type(int(value) if dtype.kind in "iu" else value)
            if dtype.kind != "f" or np.isfinite(number) or not np.isfinite(float(value)):
                return number
    raise ValueError(
        f"argument '{name}': expected a scalar of {dtype}, got {value!r} of type "
        f"{type(value).__name__}"
    )


def turned(array: Array, axes: tuple[int, ...]) -> Any:
    """Return an array with its axes in another order."""
    return array.permute(axes) if hasattr(array, "permute") else array.transpose(axes)
