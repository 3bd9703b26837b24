"""Connectivities of ``gt4py.next``: which rows of a table are read, and where they lead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dlfield.stencils.footprint import TableRows
from dlfield.stencils.lifetime import OfObjects

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlfield._core import Array

__all__ = ["Connectivity", "Rows", "Tables", "checked_provider"]


@dataclass(frozen=True)
class Connectivity:
    """A table of neighbours.

    Parameters
    ----------
    table
        GT4Py's object.
    array
        The indices, of shape (points of `source`, neighbours).
    source, local, codomain
        Names of the dimensions of the rows, of the columns, and of what the indices count.
    skip
        The index that marks a missing neighbour; None if there is none.
    rows
        The number of the first row, and the end behind the last.
    """

    table: Any
    array: Array
    source: str
    local: str
    codomain: str
    skip: int | None
    rows: tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """Rows of a connectivity that are read; all neighbours, or the one of a number."""

    tag: str
    source: str
    first: int
    end: int
    column: int | None

    def of(self, array: Array) -> Any:
        """Return their entries in the array of a connectivity."""
        return array[self.first : self.end, slice(None) if self.column is None else self.column]


def checked_provider(given: Any) -> Mapping[str, Any]:
    """Return the connectivities by name; none for None."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    raise TypeError(
        "offset_provider: expected a mapping of names to connectivities, got an object of type "
        f"'{type(given).__name__}'; write such as {{'E2C': connectivity}}"
    )


@dataclass
class _CompiledIn:
    """What GT4Py may have compiled in of a table, which it knows again by its id."""

    #: The end behind the largest index, when it was first counted.
    count: int | None = None
    #: Of the indices that rows have had: the first of all and the end behind the last, and the
    #: first and the end that they had in common.
    rows: dict[Rows, tuple[int, int, int, int]] = field(default_factory=dict)


_compiled_in = OfObjects(_CompiledIn)


class Tables:
    """The connectivities of a call: where the neighbours of rows lie.

    Parameters
    ----------
    provider
        The mapping that the caller passed.
    read
        Returns a connectivity, or the name of a dimension, for an entry; None for anything else.
    """

    def __init__(
        self, provider: Mapping[str, Any], read: Callable[[Any], Connectivity | str | None]
    ) -> None:
        self.known = {tag: read(one) for tag, one in provider.items()}
        self._provider = provider

    def all(self) -> list[tuple[str, Connectivity]]:
        """Return every connectivity with its name."""
        return [(tag, one) for tag, one in self.known.items() if isinstance(one, Connectivity)]

    def get(self, tag: str) -> Connectivity | str:
        """Return the connectivity of an offset, or the dimension along which it shifts."""
        if tag not in self.known:
            got = ", ".join(map(repr, self.known)) or "none"
            way_out = "give it to bind, or with the call"
            raise ValueError(f"offset_provider: expected '{tag}', got {got}; {way_out}")
        found = self.known[tag]
        if found is not None:
            return found
        raise TypeError(
            f"offset_provider['{tag}']: expected a connectivity, got an object of type "
            f"'{type(self._provider[tag]).__name__}'; make one of a table with gtx.as_connectivity"
        )

    def width(self, local: str) -> int:
        """Count the neighbours along a local dimension; 0 for any other.

        GT4Py names the connectivity after the dimension. Else the widest counts.
        """
        widths = {tag: int(one.array.shape[1]) for tag, one in self.all() if one.local == local}
        return widths.get(local, max(widths.values(), default=0))

    def points(self, dim: str) -> int | None:
        """Count the rows, or columns, of tables along a dimension; None unless all have as many."""
        extents = {one.rows[1] for _, one in self.all() if one.source == dim and not one.rows[0]}
        extents |= {int(one.array.shape[1]) for _, one in self.all() if one.local == dim}
        return extents.pop() if len(extents) == 1 else None

    def table(self, tag: str) -> Connectivity:
        """Return the connectivity of an offset, whose rows and skip value compiled code knows."""
        table, what = self.get(tag), f"offset_provider['{tag}']"
        assert isinstance(table, Connectivity)
        if table.skip not in (None, -1):
            raise ValueError(
                f"{what}: expected the skip value -1, which alone GT4Py knows, got "
                f"{table.skip}; write -1 where a neighbour is missing"
            )
        first, end = table.rows
        if first:
            raise ValueError(
                f"{what}: expected rows from point 0 on, got {first} to {end} along "
                f"{table.source}; give as_connectivity the dimensions, no domain"
            )
        return table

    def depends(self, rows: Rows) -> TableRows:
        """Return rows as a footprint depends on them."""
        table = self.table(rows.tag)
        return TableRows(table.table, table.array, rows.first, rows.end, rows.column, table.skip)

    def bounds(self, rows: Rows) -> tuple[int, int]:
        """Find the first index that rows hold, and the end behind the last one."""
        table = self.table(rows.tag)
        what, (count, width) = f"offset_provider['{rows.tag}']", table.array.shape
        if rows.first < 0 or rows.end > count:
            raise ValueError(
                f"{what}: expected a row for each of the points {rows.first} to {rows.end} along "
                f"{rows.source}, got {count} rows; pass a larger table or a smaller domain"
            )
        if rows.column is not None and not 0 <= rows.column < width:
            raise ValueError(f"{what}: expected more than {rows.column} columns, got {width}")
        found = rows.of(table.array)
        first = int(found.min()) if found.size else 0
        if first < 0 and table.skip is not None:
            if rows.column is not None and (found == table.skip).any():
                raise ValueError(
                    f"{what}: expected a neighbour {rows.column} of all points {rows.first} to "
                    f"{rows.end} along {rows.source}, got the skip value; pass a smaller domain"
                )
            found = found[found != table.skip]
            first = int(found.min()) if found.size else 0
        if first < 0:
            skips = "no skip value" if table.skip is None else f"skips {table.skip}"
            raise ValueError(
                f"{what}: expected indices of at least 0, got {first} and {skips}; give "
                "as_connectivity the skip_value, or correct the table"
            )
        return first, int(found.max()) + 1 if found.size else first

    def compiled(self, rows: Rows) -> tuple[int, int]:
        """Find the points that rows lead to, as GT4Py compiles them in for domains that it knows.

        It takes all points from the smallest index to the largest, and knows the table again by its
        id alone. It counts a skip value as a point. So rows that skip one are refused, and indices
        that a program might not have been compiled for.
        """
        table, (first, end) = self.table(rows.tag), self.bounds(rows)
        what = f"offset_provider['{rows.tag}']"
        where = f"{rows.first} to {rows.end} along {rows.source}"
        found = rows.of(table.array)
        if table.skip is not None and (found == table.skip).any():
            raise ValueError(
                f"{what}: expected a neighbour everywhere for the points {where}, got the skip "
                "value, which GT4Py takes for a point where it compiles the domain in; give the "
                "program the ends of its domain as scalars, none of them static"
            )
        known = _compiled_in.of(table.table).rows
        least, most, low, high = known.get(rows, (first, end, first, end))
        if first < low or end > high:
            raise ValueError(
                f"{what}: expected indices from {low} to below {high} for the points {where}, as "
                "when they were first used, since GT4Py has compiled them in, got "
                f"{first} to {end - 1}; make a new connectivity with gtx.as_connectivity"
            )
        known[rows] = min(least, first), max(most, end), max(low, first), min(high, end)
        return known[rows][:2]

    def size(self, dim: str) -> int:
        """Points of a dimension, as GT4Py counts them for what it computes in between.

        GT4Py compiles the number in, and knows a table again by its id alone, whatever was written
        into it since. So a table counts as it was first counted, and larger indices are refused.
        """
        count, largest = 0, {}
        for tag, table in self.all():
            if not table.array.size:
                continue
            if table.source == dim:
                count = max(count, table.array.shape[0])
            if table.codomain == dim:
                largest[tag] = int(table.array.max())
                known = _compiled_in.of(table.table)
                if known.count is None:
                    known.count = largest[tag] + 1
                count = max(count, known.count)
        for tag, index in largest.items():
            if index >= count:
                raise ValueError(
                    f"offset_provider['{tag}']: expected indices below {count}, as when it was "
                    f"first used, since GT4Py has compiled the number in, got {index}; make a new "
                    "connectivity with gtx.as_connectivity"
                )
        return count
