"""A drawing of how a storage lies in memory, as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dlfield._core import CUDAManagedGPUStorage, GPUStorage, SoftwareManagedGPUStorage
from dlfield.functions.host import is_on_host_alone

if TYPE_CHECKING:
    import os

    from dlfield._core import Storage

__all__ = ["LayoutDrawing", "dtype_of", "names_of", "place_of", "state_of"]

#: Fills that are legible on light and on dark pages; lines and text have the colour of the page.
_DOMAIN, _HALO = "#2f81c7", "#8a8a8a"
#: What a drawing needs that is no part of a page.
_ALONE = "xmlns='http://www.w3.org/2000/svg' font-family='system-ui, sans-serif'"
#: Characters of a name, at most.
_LONGEST = 40
#: The shorter side of the face has room for an arrow, however few points it has.
_LEAST = 20.0


class LayoutDrawing:
    """Result of `plot_layout`: a notebook shows it, `save` writes it into a file.

    Parameters
    ----------
    storage
        What is drawn. No element is read.
    size
        The longer side of the face that is drawn, in pixels.

    Attributes
    ----------
    svg : str
        The drawing.
    """

    def __init__(self, storage: Storage, size: int = 240) -> None:
        if not size >= 1:
            raise ValueError(f"size: expected at least 1 pixel, got {size}; 240 is the default")
        drawn = "" if storage.ndim == 0 or storage.size == 0 else _drawn(_Face(storage, size))
        #: As part of a page of HTML, which knows SVG, and has a font.
        self.inline = drawn
        self.svg = drawn.replace("<svg", f"<svg {_ALONE}", 1)

    def _repr_html_(self) -> str | None:
        """Show the drawing in a notebook, in the colours of the page: as an image it has none."""
        return self.inline or None

    def _repr_svg_(self) -> str | None:
        return self.svg or None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing into a file, which browsers and word processors show."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<dlfield.LayoutDrawing, {len(self.svg)} characters of SVG>"


def names_of(storage: Storage) -> tuple[str, ...]:
    """Name the axes, also of a storage without names, in characters that a page may contain."""
    names = storage.dims or tuple(f"axis {axis}" for axis in range(storage.ndim))
    return tuple(
        repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")[1:-1] for name in names
    )


def dtype_of(storage: Storage) -> str:
    """Return the name of the type of the elements."""
    try:
        return str(storage.dtype)
    except ImportError as error:
        return f"a type unknown without ml_dtypes ({error})"


def place_of(storage: Storage) -> str:
    """Say where the memory is."""
    if isinstance(storage, GPUStorage):
        return f"memory of GPU {storage.device_id}"
    if isinstance(storage, SoftwareManagedGPUStorage):
        return f"host memory and memory of GPU {storage.device_id}"
    if isinstance(storage, CUDAManagedGPUStorage):
        return f"memory that CUDA manages for GPU {storage.device_id}"
    return "host memory"


def state_of(storage: Storage) -> str:
    """Say which buffer of a pair is newer; "" unless it is one."""
    if not isinstance(storage, SoftwareManagedGPUStorage):
        return ""
    state, kinds = storage.sync_state.state, type(storage.sync_state)
    if state == kinds.SYNC_HOST_DIRTY:
        return "host ● newer, GPU ○"
    return "host ○, GPU ● newer" if state == kinds.SYNC_DEVICE_DIRTY else "host ●, GPU ● equal"


@dataclass(frozen=True)
class _Side:
    """A dimension of the face: its points, and pixels for each."""

    name: str
    extent: int
    halo: tuple[int, int] | None
    scale: float

    @property
    def length(self) -> float:
        return max(self.extent * self.scale, _LEAST)

    @property
    def domain(self) -> tuple[float, float]:
        """First pixel of the domain, and how many there are."""
        low, high = self.halo or (0, 0)
        point = self.length / self.extent
        return low * point, (self.extent - low - high) * point

    @property
    def text(self) -> str:
        if self.halo is None:
            return f"{self.name} {self.extent}, halo unknown"
        low, high = self.halo
        inner = self.extent - low - high
        parts = f" = {low} + {inner} + {high}" if low or high else ""
        return f"{self.name} {self.extent}{parts}"


class _Face:
    """The two dimensions with the smallest strides: rows across, the other one down."""

    def __init__(self, storage: Storage, size: int) -> None:
        inner = sorted(range(storage.ndim), key=lambda axis: -storage.layout[axis])
        names, halo = names_of(storage), storage.halo
        across, down = inner[0], inner[1] if storage.ndim > 1 else None
        scale = size / max(storage.shape[across], 1 if down is None else storage.shape[down])

        def side(axis: int) -> _Side:
            widths = None if halo is None else halo[axis]
            return _Side(names[axis], storage.shape[axis], widths, scale)

        self.across = side(across)
        self.down = _Side("", 1, (0, 0), scale) if down is None else side(down)
        self.has_rows = down is not None
        self.behind = [side(axis) for axis in inner[2:]]
        point = self.across.length / self.across.extent
        self.padding = 0.0 if down is None else _gap(storage, across, down) * point
        self.alignment = storage.alignment_size
        self.aligned = storage.aligned_index[across] * point
        self.place = "" if is_on_host_alone(storage) else place_of(storage)
        self.state = state_of(storage)
        self.size = size


def _gap(storage: Storage, across: int, down: int) -> int:
    """Elements between the end of a row and the next row; 0 where strides do not tell."""
    if storage.shape[down] == 1 or storage.strides[across] != storage.itemsize:
        return 0
    return max(abs(storage.strides[down]) // storage.itemsize - storage.shape[across], 0)


def _drawn(face: _Face) -> str:
    width, height = face.across.length, face.down.length
    depth = min(8.0, face.size / 12) if face.behind else 0.0
    padding = min(face.padding, face.size / 2)
    (x, across), (y, down) = face.across.domain, face.down.domain
    top = 1 + 2 * depth
    label = f"{face.across.text} →" + (f", {face.down.text} ↓" if face.has_rows else "")
    lines = [label, *_captions(face)]
    parts = [
        *(_behind(1 + n * depth, top - n * depth, width, height, depth) for n in (2, 1) if depth),
        _box(1, top, width, height, _HALO, 0.25),
        _box(1 + x, top + y, across, down, _DOMAIN, 0.55),
        _hatched(1 + width, top, padding, height),
        _aligned(face, top, height),
        _order(top, width, height, has_rows=face.has_rows),
        *(
            f"<text x='1' y='{top + height + 18 + 16 * n:.1f}' font-size='12' "
            f"fill='currentColor'>{escape(line)}</text>"
            for n, line in enumerate(lines)
        ),
    ]
    longest = 7 * max(map(len, lines))
    page = (max(width + padding + 2 * depth, longest) + 4, top + height + 8 + 16 * len(lines))
    return (
        f"<svg width='{min(page[0], 2.45 * face.size):.0f}' "
        f"height='{page[1]:.0f}' role='img' aria-label='{escape(label)}'>{''.join(parts)}</svg>"
    )


def _captions(face: _Face) -> list[str]:
    lines = []
    if any(map(any, (side.halo or () for side in (face.across, face.down)))):
        lines.append("grey: halo")
    if face.behind:
        lines.append("behind it: " + ", ".join(side.text for side in face.behind))
    if face.padding:
        lines.append("hatched: memory between rows")
    if face.alignment > 1:
        lines.append(f"┆ on a boundary of {face.alignment} bytes")
    return [*lines, *filter(None, (face.place, face.state))]


def _box(x: float, y: float, width: float, height: float, fill: str, opacity: float) -> str:
    return (
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' fill='{fill}' "
        f"fill-opacity='{opacity}' stroke='currentColor'/>"
    )


def _path(d: str, **style: str) -> str:
    given = "".join(f" {name.replace('_', '-')}='{value}'" for name, value in style.items())
    return f"<path d='{d}' fill='none' stroke='currentColor'{given}/>"


def _behind(x: float, y: float, width: float, height: float, depth: float) -> str:
    """Draw what is seen of a face that lies behind another one."""
    edge = f"M{x:.1f} {y + depth:.1f}v{-depth:.1f}h{width:.1f}v{height:.1f}h{-depth:.1f}"
    return _path(edge, stroke_opacity="0.5")


def _hatched(x: float, y: float, width: float, height: float) -> str:
    if not width:
        return ""
    strokes = (
        f"M{x + max(at - height, 0):.1f} {y + min(at, height):.1f}"
        f"L{x + min(at, width):.1f} {y + max(at - width, 0):.1f}"
        for at in range(6, int(height + width), 6)
    )
    border = f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}"
    return _path(border + "".join(strokes), stroke_opacity="0.55")


def _aligned(face: _Face, top: float, height: float) -> str:
    if face.alignment <= 1:
        return ""
    return _path(f"M{1 + face.aligned:.1f} {top:.1f}v{height:.1f}", stroke_dasharray="3 2")


def _order(top: float, width: float, height: float, *, has_rows: bool) -> str:
    """Draw how memory goes: along a row, and on in the next one."""
    left, right, y = 1 + width * 0.12, 1 + width * 0.88, top + min(height * 0.25, 12)
    head = "l-6 -4m6 4l-6 4"
    if not has_rows or height < 12 or width < 12:
        return _path(f"M{left:.1f} {top + height / 2:.1f}H{right:.1f}{head}")
    step = min(height * 0.25, 14)
    return _path(f"M{left:.1f} {y:.1f}H{right:.1f}L{left:.1f} {y + step:.1f}H{right:.1f}{head}")
