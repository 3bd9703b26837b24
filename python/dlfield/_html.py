"""The HTML of a storage in a notebook: its properties, its halo, and the order in memory."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dlfield._layout import LayoutDrawing, names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Storage

__all__ = ["page_of_plan", "render"]

#: The longer side of the drawing, in pixels.
_SIZE = 120


def render(storage: Storage) -> str:
    """Make a table of properties, and a drawing of the two dimensions with the smallest strides.

    The drawing shows the domain inside its halo, padding, and the order in memory.
    """
    left = "style='text-align:left'"
    rows = "".join(
        f"<tr><th {left}>{name}</th><td {left}>{escape(text)}</td></tr>"
        for name, text in _facts(storage)
    )
    title = escape(type(storage).__name__)
    return (
        f"<div><b>dlfield.{title}</b><div style='display:flex;gap:1.5em;align-items:center'>"
        f"<table>{rows}</table>{LayoutDrawing(storage, _SIZE).inline}</div></div>"
    )


def _facts(storage: Storage) -> list[tuple[str, str]]:
    order = sorted(range(storage.ndim), key=lambda axis: storage.layout[axis])
    names = names_of(storage)
    return [
        ("shape", " x ".join(f"{name} {n}" for name, n in zip(names, storage.shape, strict=True))),
        ("dtype", str(storage.dtype)),
        ("halo", "unknown" if storage.halo is None else _widths(storage.halo)),
        ("memory order", " → ".join(names[axis] for axis in order) + _contiguity(storage, order)),
        ("alignment", f"{storage.alignment_size} bytes"),
        ("bytes", f"{storage.nbytes:,}"),
        ("memory", "host" + (", read-only" if storage.readonly else "")),
    ]


def _contiguity(storage: Storage, order: list[int]) -> str:
    """Tell if elements follow each other without a gap: all of them, or those of each row."""
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


def page_of_plan(title: str, rows: Sequence[Sequence[str]], remarks: Sequence[str]) -> str:
    """Make a table of the plan of a call: a row for each argument, and remarks below.

    What is copied, or not checked, is bold.
    """
    body = "".join(
        "<tr>" + "".join(map(_cell, (*row, *[""] * (8 - len(row))))) + "</tr>" for row in rows
    )
    below = "".join(f"<div>{escape(text)}</div>" for text in remarks)
    return f"<div><b>{escape(title)}</b><table>{body}</table>{below}</div>"


def _cell(text: str) -> str:
    shown = escape(text)
    if text.startswith("copied") or text == "reach unknown":
        shown = f"<b>{shown}</b>"
    return f"<td style='text-align:left'>{shown}</td>"
