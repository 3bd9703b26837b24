"""HTML for notebooks: a storage, an explanation of an array, the plan of a call."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dlfield.show.drawing import LayoutDrawing, dtype_of, names_of, place_of, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Storage

    #: A text, and whether it is bold.
    Cell = tuple[str, bool]

__all__ = ["page_of_facts", "page_of_plan", "render"]

#: The longer side of the drawing, in pixels.
_SIZE = 120
_LEFT = "style='text-align:left'"


def render(storage: Storage) -> str:
    """Make a table of properties, and a drawing of the two dimensions with the smallest strides.

    The drawing shows the domain inside its halo, padding, and the order in memory.
    """
    title = escape(type(storage).__name__)
    beside = "display:flex;flex-wrap:wrap;gap:1.5em;align-items:center"
    return (
        f"<div><b>dlfield.{title}</b><div style='{beside}'>"
        f"{_listed(_facts(storage))}{LayoutDrawing(storage, _SIZE).inline}</div></div>"
    )


def _listed(facts: Sequence[tuple[str, str]]) -> str:
    """Make a table with a name and a text in each row."""
    rows = "".join(
        f"<tr><th {_LEFT}>{escape(name)}</th><td {_LEFT}>{escape(text)}</td></tr>"
        for name, text in facts
    )
    return f"<table>{rows}</table>"


def _facts(storage: Storage) -> list[tuple[str, str]]:
    order = sorted(range(storage.ndim), key=lambda axis: storage.layout[axis])
    names = names_of(storage)
    return [
        ("shape", " x ".join(f"{name} {n}" for name, n in zip(names, storage.shape, strict=True))),
        ("dtype", dtype_of(storage)),
        ("halo", "unknown" if storage.halo is None else _widths(storage.halo)),
        ("memory order", " → ".join(names[axis] for axis in order) + _contiguity(storage, order)),
        ("alignment", f"{storage.alignment_size} bytes" if storage.alignment_size > 1 else "any"),
        ("bytes", f"{storage.nbytes:,}"),
        ("memory", place_of(storage) + (", read-only" if storage.readonly else "")),
        *([("newer buffer", state)] if (state := state_of(storage)) else []),
    ]


def _contiguity(storage: Storage, order: list[int]) -> str:
    """Return whether elements have no gaps between them: all of them, or those of each row."""
    if not order or storage.strides[order[-1]] != storage.itemsize:
        return ""
    step = storage.itemsize
    for axis in reversed(order):
        if storage.shape[axis] > 1 and storage.strides[axis] != step:
            return " (rows contiguous)"
        step *= max(storage.shape[axis], 1)
    return " (contiguous)"


def _widths(halo: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"{low}+{high}" for low, high in halo) if any(map(any, halo)) else "none"


def page_of_facts(title: str, facts: Sequence[tuple[str, str]]) -> str:
    """Make a table of an explanation: a name and a text in each row."""
    return f"<div><b>{escape(title)}</b>{_listed(facts)}</div>"


def page_of_plan(
    title: str, names: Sequence[str], rows: Sequence[Sequence[Cell]], remarks: Sequence[str]
) -> str:
    """Make a table of the plan of a call: a row for each argument, and remarks below.

    The last columns may be missing in a row, and are left out if they are in all.
    """
    width = max(map(len, rows), default=0)
    head = "".join(f"<th {_LEFT}>{escape(name)}</th>" for name in names[:width])
    filled = ([*row, *[("", False)] * (width - len(row))] for row in rows)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in filled)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    scrolled = f"<div style='overflow-x:auto'>{table}</div>" if rows else ""
    below = "".join(f"<div>{escape(text)}</div>" for text in remarks)
    return f"<div><b>{escape(title)}</b>{scrolled}{below}</div>"


def _cell(cell: Cell) -> str:
    text, striking = cell
    shown = f"<b>{escape(text)}</b>" if striking else escape(text)
    return f"<td {_LEFT}>{shown}</td>"
