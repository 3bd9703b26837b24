"""Connectivities of ``gt4py.next``: which rows of a table are read, and where they lead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Rows", "Tables"]


@dataclass(frozen=True)
class Rows:
    """Rows of a connectivity that are read; all neighbours, or the one of a number."""

    tag: str
    source: str
    first: int
    end: int
    column: int | None


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
        return self.provider[tag]

    def bounds(self, rows: Rows) -> tuple[int, int]:
        """Find the first index that rows hold, and the end behind the last one."""
        table = self.get(rows.tag)
        what, (count, width) = f"offset_provider['{rows.tag}']", table.ndarray.shape
        if rows.first < 0 or rows.end > count:
            raise ValueError(
                f"{what}: expected a row for each of the points {rows.first} to {rows.end} along "
                f"{rows.source}, got {count} rows; pass a larger table or a smaller domain"
            )
        column = slice(None) if rows.column is None else rows.column
        if rows.column is not None and not 0 <= rows.column < width:
            raise ValueError(f"{what}: expected more than {rows.column} columns, got {width}")
        found = table.ndarray[rows.first : rows.end, column]
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

    def size(self, dim: str) -> int:
        """Points of a dimension, as GT4Py counts them for what it computes in between."""
        found = 0
        for table in self.provider.values():
            if hasattr(table, "ndarray") and table.ndarray.size:
                kind = table.__gt_type__()
                if kind.source_dim.value == dim:
                    found = max(found, table.ndarray.shape[0])
                if kind.codomain.value == dim:
                    found = max(found, int(table.ndarray.max()) + 1)
        return found
