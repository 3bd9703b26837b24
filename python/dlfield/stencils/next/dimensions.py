"""Dimensions of ``gt4py.next``: their names, their order, and the domain of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["domain_of", "names_of", "ordered", "unstaggered"]

#: GT4Py's order of dimensions: by kind, then by name; a staggered one as its counterpart.
_KINDS = ("horizontal", "local", "vertical")


def names_of(dims: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of dimensions."""
    return tuple(dim.value for dim in dims)


def ordered(dims: Iterable[Any]) -> list[Any]:
    """Return each of `dims` once, in the only order that gt4py.next takes."""

    def place(dim: Any) -> tuple[int, str, str]:
        return _KINDS.index(str(dim.kind)), unstaggered(dim).value, dim.value

    ordered = sorted(set(dims), key=place)
    if len(set(names_of(ordered))) != len(ordered):
        got = ", ".join(map(str, ordered))
        raise ValueError(f"dims: expected dimensions of different names, got {got}; rename one")
    return ordered


def unstaggered(dim: Any) -> Any:
    """Return the counterpart of a staggered dimension, and any other as it is."""
    import gt4py.next as gtx

    known = getattr(gtx, "as_non_staggered", None)  # new in GT4Py 1.2
    return dim if known is None else known(dim)


def domain_of(dims: Sequence[Any], shape: Sequence[int], origin: Sequence[int]) -> Any:
    """Return the ranges ``(-origin, extent - origin)``, in points."""
    from gt4py.next import Domain, UnitRange

    ends = zip(shape, origin, strict=True)
    return Domain(dims=dims, ranges=[UnitRange(-at, extent - at) for extent, at in ends])
