"""The HTML of a storage in a notebook: its properties, its halo, and the order in memory."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlfield._core import Storage

__all__ = ["render"]

#: The longer side of the drawing, in pixels.
_SIZE = 120


def render(storage: Storage) -> str:
    """Make a table of properties, and a drawing of the two dimensions with the smallest strides.

    The drawing shows the domain inside its halo. The arrow points along the contiguous dimension.
    """
    left = "style='text-align:left'"
    rows = "".join(
        f"<tr><th {left}>{name}</th><td {left}>{escape(text)}</td></tr>"
        for name, text in _facts(storage)
    )
    title = escape(type(storage).__name__)
    return (
        f"<div><b>dlfield.{title}</b><div style='display:flex;gap:1.5em;align-items:center'>"
        f"<table>{rows}</table>{_drawing(storage)}</div></div>"
    )


def _facts(storage: Storage) -> list[tuple[str, str]]:
    order = sorted(range(storage.ndim), key=lambda axis: storage.layout[axis])
    names = _names(storage)
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


def _names(storage: Storage) -> tuple[str, ...]:
    return storage.dims or tuple(f"axis {axis}" for axis in range(storage.ndim))


def _widths(halo: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"{low}+{high}" for low, high in halo) if any(map(any, halo)) else "none"


def _drawing(storage: Storage) -> str:
    """Draw the two dimensions with the smallest strides: rows across, the other one down."""
    if storage.ndim == 0 or storage.size == 0:
        return ""
    inner = sorted(range(storage.ndim), key=lambda axis: -storage.layout[axis])
    across, down = inner[0], inner[1] if storage.ndim > 1 else None
    width, height = storage.shape[across], 1 if down is None else storage.shape[down]
    scale = _SIZE / max(width, height)
    box = (max(width * scale, 4.0), max(height * scale, 4.0))
    left, right = _inside(storage, across)
    above, below = (0, 0) if down is None else _inside(storage, down)
    step_x, step_y = box[0] / width, box[1] / height
    inside = ((width - left - right) * step_x, (height - above - below) * step_y)
    domain = [left * step_x, above * step_y, *inside]
    names = _names(storage)
    label = escape(f"{names[across]} →" + ("" if down is None else f", {names[down]} ↓"))
    return _svg(box, domain, label)


def _inside(storage: Storage, axis: int) -> tuple[int, int]:
    return (0, 0) if storage.halo is None else storage.halo[axis]


def _svg(box: tuple[float, float], domain: list[float], label: str) -> str:
    width, height = box
    x, y, across, down = domain
    return (
        f"<svg width='{width + 10:.0f}' height='{height + 24:.0f}' role='img' aria-label='{label}'>"
        f"<rect x='1' y='1' width='{width:.1f}' height='{height:.1f}' fill='#ddd' stroke='#666'/>"
        f"<rect x='{x + 1:.1f}' y='{y + 1:.1f}' width='{across:.1f}' height='{down:.1f}' "
        f"fill='#8ab4d8' stroke='#666'/>"
        f"<text x='1' y='{height + 18:.1f}' font-size='12'>{label}</text></svg>"
    )
