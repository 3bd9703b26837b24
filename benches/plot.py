"""Plots the copies: which part of the limit each candidate reaches.

`make bench BENCH="copies --plot target/copies.png"` measures and draws; this file alone draws what
was measured before:

    python benches/plot.py benches/results/copies.csv target/copies.png
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from copy_table import Line, lines_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tables import Row, read_csv

TARGET = 0.75
# Colours of Okabe and Ito, which those who see fewer can tell apart too; and a shape for each, for
# those who see none, and for printers.
STYLES = {
    "dlfield": ("#000000", "o"),
    "NumPy": ("#E69F00", "s"),
    "torch": ("#D55E00", "^"),
    "Numba": ("#009E73", "D"),
    "JAX": ("#0072B2", "v"),
}
WIDTH, MARGIN, HEIGHT_OF_A_LINE = 10.0, 0.55, 0.27
"""In inches."""
FURTHEST = 1.3
"""What goes further is drawn there."""

Panels = dict[tuple[str, int], list[Line]]
"""By field and number of threads."""


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw a panel for each field and number of threads, with a line for each copy."""
    panels = _panels(lines_of(rows))
    fields = list(dict.fromkeys(field for field, _ in panels))
    counts = sorted({threads for _, threads in panels})
    heights = [MARGIN + HEIGHT_OF_A_LINE * len(panels[field, counts[0]]) for field in fields]
    figure = Figure(figsize=(WIDTH, sum(heights) + 2 * MARGIN), layout="constrained")
    grid = figure.subplots(
        len(fields), len(counts), sharex=True, sharey="row", squeeze=False, height_ratios=heights
    )
    for row, field in zip(grid, fields, strict=True):
        for axes, threads in zip(row, counts, strict=True):
            axes.set_title(f"{field}, {threads} thread{'s'[: threads > 1]}", fontsize=10)
            _draw(axes, panels[field, threads])
    for axes in grid[-1]:
        axes.set_xlabel("rate as a part of that of a non-temporal memcpy")
    # All threads have every candidate; one thread lacks JAX.
    handles = grid[0][-1].get_legend_handles_labels()[0]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _panels(lines: Sequence[Line]) -> Panels:
    """Sort the lines; fields that are copied in one way alone share a panel."""
    ways = Counter(_field(line) for line in lines if line.threads == lines[0].threads)
    panels: Panels = {}
    for line in lines:
        field = _field(line) if ways[_field(line)] > 1 else "other items"
        panels.setdefault((field, line.threads), []).append(line)
    return panels


def _field(line: Line) -> str:
    return line.what.partition(", ")[0]


def _draw(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw a dot for each candidate of each line, the first line on top."""
    axes.set_yticks(range(len(lines)), [_label(line, lines) for line in lines], fontsize=8)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xlim(0, FURTHEST + 0.05)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)
    for name, (colour, shape) in STYLES.items():
        dots = [(part, n) for n, line in enumerate(lines) if (part := _part(line, name))]
        if dots:
            x, y = zip(*dots, strict=True)
            front = 4 if name == "dlfield" else 3
            axes.scatter(x, y, s=36, c=colour, marker=shape, label=name, alpha=0.9, zorder=front)
    axes.axvline(TARGET, color="#888888", linestyle="--", label="target")
    axes.axvline(1, color="#888888", label="limit")


def _label(line: Line, lines: Sequence[Line]) -> str:
    """Leave out what the title of the panel says already."""
    field, _, copy = line.what.partition(", ")
    same = {_field(other) for other in lines} == {field}
    return copy if same else f"{field.rpartition(' ')[2]}, {copy}"


def _part(line: Line, name: str) -> float | None:
    rate, limit = line.rate(name), line.rate("limit")
    return min(rate / limit, FURTHEST) if rate and limit else None


if __name__ == "__main__":
    plot(read_csv(Path(sys.argv[1])), Path(sys.argv[2]))
