"""The footprint of a stencil: the points of its fields that a call touches.

Rust reads these classes by the names and types of their attributes, and checks the points against
the arrays. ``cartesian/footprint.py`` and ``next/footprint.py`` find them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlfield._core import Array

__all__ = [
    "AffineFootprint",
    "CallFootprint",
    "FieldFootprint",
    "FindFootprint",
    "Span",
    "TableRows",
]


@dataclass(frozen=True)
class Span:
    """Points along one axis that are touched, as a function of the domain's number of points n.

    They begin at ``min(-below, max(n - below_end, -most_below))`` and end before
    ``max(n + above, min(above_start, n + most_above))``; 0 is the first point of the domain.
    """

    below: int = 0
    above: int = 0
    below_end: int = 0
    above_start: int = 0
    most_below: int = 0
    most_above: int = 0


@dataclass(frozen=True)
class FieldFootprint:
    """Points of one field that a stencil touches.

    Parameters
    ----------
    reads, writes
        A `Span` for each axis of the iteration that the field has, in the order of its dimensions.
        None if it is not read, or not written.
    complete
        False if points outside of these boxes may be touched, too, such as a level that is known at
        run time only.
    pointwise
        True if every access is at the point that is being computed.
    overtaken_by
        Names of the fields that are written before this one is read for the last time: it must not
        be one memory with them, even if both are pointwise.
    covered
        True if a call writes every point of the domain, whatever the values are.
    """

    reads: tuple[Span, ...] | None
    writes: tuple[Span, ...] | None
    complete: bool = True
    pointwise: bool = False
    overtaken_by: tuple[str, ...] = ()
    covered: bool = False


@dataclass(frozen=True)
class AffineFootprint:
    """A footprint whose boxes grow with the domain. Rust evaluates it at every call.

    Parameters
    ----------
    fields
        By the name of the field.
    smallest
        The fewest points along each of `Declaration.axes` of a domain that has any; 1 by default.
    reason
        Why a domain must not be smaller, for the message; may be empty.
    """

    fields: Mapping[str, FieldFootprint]
    smallest: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class TableRows:
    """Rows of a connectivity that a footprint depends on.

    Parameters
    ----------
    table
        The connectivity; its attribute `ndarray` is the array.
    array
        The array of the indices.
    first, end
        The first row, and the end behind the last.
    column
        The neighbour that is read; None for all.
    skip
        The index that marks a missing neighbour; None if there is none.
    """

    table: Any
    array: Array
    first: int
    end: int
    column: int | None
    skip: int | None


@dataclass(frozen=True)
class CallFootprint:
    """The points that one call touches, with what they depend on besides extents and origins.

    Parameters
    ----------
    reads, writes
        By the name of the field, the first point and the end behind the last along each of its
        dimensions, counted from its origin. A field that is not read, or not written, is missing.
    unknown
        Names of fields that may be touched elsewhere, too.
    scalars
        Names of the scalars that decide about it.
    rows
        The rows of connectivities that decide about it. Every connectivity does by its identity.
    """

    reads: dict[str, tuple[tuple[int, int], ...]]
    writes: dict[str, tuple[tuple[int, int], ...]]
    unknown: frozenset[str] = frozenset()
    scalars: tuple[str, ...] = ()
    rows: tuple[TableRows, ...] = ()


class FindFootprint(Protocol):
    """Finds the footprint of a call."""

    def __call__(
        self,
        fields: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]],
        domain: tuple[Any, ...],
        scalars: Mapping[str, Any],
        connectivities: Any,  # as the caller passed them
    ) -> CallFootprint:
        """Find it.

        `fields` has the shape and the origin of each field along its declared dimensions, `domain`
        is as for `Run.run`. Called again when one of these differs from the last call, or
        something that the last result depends on. Raises ValueError for a call that cannot be made.
        """
