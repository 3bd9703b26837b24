"""Draws a field on the cells of the mesh before and after, as seen from far away."""

from pathlib import Path

import numpy as np
from icosahedral_mesh import Mesh
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

LONGITUDE, LATITUDE = np.radians(20), np.radians(35)
"""Of the point in the middle of the picture."""
COLOURS = "RdYlBu_r"  # those who see no red or no green can tell them apart
VISIBLE = 0.02
"""How far before the edge of the sphere a triangle must lie to be drawn, in radii."""


def plot(
    path: Path, mesh: Mesh, start: np.ndarray, end: np.ndarray, end_v: np.ndarray, days: float
) -> None:
    """Draw the values of one level on cells; after `days`, also isolines from the vertices."""
    position = _seen(mesh.vertex)
    norm = Normalize(*np.percentile(start, (1, 99)))
    figure = Figure(figsize=(7.6, 3.7), layout="constrained", facecolor="white")
    before, after = figure.subplots(1, 2)
    _draw(before, mesh, position, start, norm)
    before.set_title("at the start")
    _draw(after, mesh, position, end, norm)
    _isolines(after, mesh, position, end_v)
    after.set_title(f"after {days:.1f} days of diffusion")
    bar = figure.colorbar(
        ScalarMappable(norm, COLOURS), ax=(before, after), extend="both", shrink=0.8
    )
    bar.set_label("temperature in K")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})


def _seen(vertex: np.ndarray) -> np.ndarray:
    """Turn positions so that the last coordinate leads to the viewer."""
    east = np.array([-np.sin(LONGITUDE), np.cos(LONGITUDE), 0.0])
    level = np.array([np.cos(LONGITUDE), np.sin(LONGITUDE), 0.0])
    up = np.array([0.0, 0.0, 1.0])
    north = np.cos(LATITUDE) * up - np.sin(LATITUDE) * level
    turned: np.ndarray = vertex @ np.stack([east, north, np.cross(east, north)]).T
    return turned


def _draw(
    axes: Axes, mesh: Mesh, position: np.ndarray, values: np.ndarray, norm: Normalize
) -> None:
    corners = position[mesh.c2v]
    front = corners[..., 2].max(axis=1) > 0
    cells = PolyCollection(
        corners[front][..., :2],
        array=values[front],
        norm=norm,
        cmap=COLOURS,
        antialiased=False,
        linewidths=0,
    )
    axes.add_collection(cells)
    axes.set(aspect="equal", xlim=(-1.02, 1.02), ylim=(-1.02, 1.02))
    axes.set_axis_off()


def _isolines(axes: Axes, mesh: Mesh, position: np.ndarray, values: np.ndarray) -> None:
    front = (position[mesh.c2v][..., 2] > VISIBLE).all(axis=1)
    triangles = mesh.c2v[front]
    lines = axes.tricontour(
        *position.T[:2],
        triangles,
        values,
        levels=np.arange(280, 300, 4),
        colors="black",
        linewidths=0.8,
    )
    axes.clabel(lines, fontsize=7, fmt="%d K")
