"""Dimensions of ``gt4py.next``: their names, their order, and the domain of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["domain_of", "names_of", "ordered"]

#: GT4Py's order of dimensions: by kind, then by name.
_KINDS = ("horizontal", "local", "vertical")


def names_of(dims: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of dimensions."""
    return tuple(dim.value for dim in dims)


def ordered(dims: Iterable[Any]) -> list[Any]:
    """Return each of `dims` once, in the only order that gt4py.next takes."""
    ordered = sorted(set(dims), key=lambda dim: (_KINDS.index(str(dim.kind)), dim.value))
    if len(set(names_of(ordered))) != len(ordered):
        got = ", ".join(map(str, ordered))
        raise ValueError(f"dims: expected dimensions of different names, got {got}; rename one")
    return ordered


def domain_of(dims: Sequence[Any], shape: Sequence[int], origin: Sequence[int]) -> Any:  # noqa: ANN401
    """Return the ranges ``(-origin, extent - origin)``, in points."""
    from gt4py.next import Domain, UnitRange

    ends = zip(shape, origin, strict=True)
    return Domain(dims=dims, ranges=[UnitRange(-at, extent - at) for extent, at in ends])
