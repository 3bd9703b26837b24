"""Connectivities of ``gt4py.next``: which rows of a table are read, and where they lead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dlfield.stencils.lifetime import OfObjects

__all__ = ["Rows", "Tables", "checked_provider"]


@dataclass(frozen=True)
class Rows:
    """Rows of a connectivity that are read; all neighbours, or the one of a number."""

    tag: str
    source: str
    first: int
    end: int
    column: int | None

    def of(self, table: Any) -> Any:  # noqa: ANN401
        """Give their entries in the array of a table."""
        return table[self.first : self.end, slice(None) if self.column is None else self.column]


def checked_provider(given: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Give the connectivities by name; none for None."""
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
    """The connectivities of a call: where the neighbours of rows lie."""

    def __init__(self, provider: Mapping[str, Any]) -> None:
        self.provider = provider

    def get(self, tag: str) -> Any:  # noqa: ANN401
        """Give the connectivity, or the dimension, of an offset."""
        if tag not in self.provider:
            got = ", ".join(map(repr, self.provider)) or "none"
            way_out = "give it to bind, or with the call"
            raise ValueError(f"offset_provider: expected '{tag}', got {got}; {way_out}")
        found = self.provider[tag]
        if hasattr(found, "__gt_type__") or hasattr(found, "kind"):  # a table or a dimension
            return found
        raise TypeError(
            f"offset_provider['{tag}']: expected a connectivity, got an object of type "
            f"'{type(found).__name__}'; make one of a table with gtx.as_connectivity"
        )

    def table(self, tag: str) -> Any:  # noqa: ANN401
        """Give the connectivity of an offset, whose rows and skip value compiled code knows."""
        table, what = self.get(tag), f"offset_provider['{tag}']"
        if table.skip_value not in (None, -1):
            raise ValueError(
                f"{what}: expected the skip value -1, which alone GT4Py knows, got "
                f"{table.skip_value}; write -1 where a neighbour is missing"
            )
        rows = table.domain.ranges[0]
        if rows.start:
            raise ValueError(
                f"{what}: expected rows from point 0 on, got {rows.start} to {rows.stop} along "
                f"{table.domain.dims[0].value}; give as_connectivity the dimensions, no domain"
            )
        return table

    def bounds(self, rows: Rows) -> tuple[int, int]:
        """Find the first index that rows hold, and the end behind the last one."""
        table = self.table(rows.tag)
        what, (count, width) = f"offset_provider['{rows.tag}']", table.ndarray.shape
        if rows.first < 0 or rows.end > count:
            raise ValueError(
                f"{what}: expected a row for each of the points {rows.first} to {rows.end} along "
                f"{rows.source}, got {count} rows; pass a larger table or a smaller domain"
            )
        if rows.column is not None and not 0 <= rows.column < width:
            raise ValueError(f"{what}: expected more than {rows.column} columns, got {width}")
        found = rows.of(table.ndarray)
        first = int(found.min()) if found.size else 0
        if first < 0 and table.skip_value is not None:
            if rows.column is not None and (found == table.skip_value).any():
                raise ValueError(
                    f"{what}: expected a neighbour {rows.column} of all points {rows.first} to "
                    f"{rows.end} along {rows.source}, got the skip value; pass a smaller domain"
                )
            found = found[found != table.skip_value]
            first = int(found.min()) if found.size else 0
        if first < 0:
            skips = "no skip value" if table.skip_value is None else f"skips {table.skip_value}"
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
        found = rows.of(table.ndarray)
        if table.skip_value is not None and (found == table.skip_value).any():
            raise ValueError(
                f"{what}: expected a neighbour everywhere for the points {where}, got the skip "
                "value, which GT4Py takes for a point where it compiles the domain in; give the "
                "program the ends of its domain as scalars, none of them static"
            )
        known = _compiled_in.of(table).rows
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
        for tag, table in self.provider.items():
            if hasattr(table, "ndarray") and table.ndarray.size:
                kind = table.__gt_type__()
                if kind.source_dim.value == dim:
                    count = max(count, table.ndarray.shape[0])
                if kind.codomain.value == dim:
                    largest[tag] = int(table.ndarray.max())
                    known = _compiled_in.of(table)
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
