"""A triangle mesh of the sphere: a refined icosahedron, its tables of neighbours and its geometry.

`icosahedral.py` computes on it. Everything here is NumPy; GT4Py and dlfield are not needed.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

EARTH_RADIUS = 6.371229e6
"""In metres."""

SKIP = -1
"""Where a table has no neighbour: 12 vertices have five edges and cells, all others six."""


@dataclass(frozen=True)
class Mesh:
    """Cells (triangles), edges and vertices of a closed mesh of the sphere.

    A table ``e2c`` has a row for each edge and in it the numbers of its cells, as int32. Positions
    are unit vectors. Lengths are in metres along great circles, areas in square metres on the
    sphere. The line between the centres of two cells crosses their edge at a right angle.
    """

    e2c: np.ndarray
    """Cells beside an edge, (edges, 2)."""
    e2v: np.ndarray
    """Ends of an edge, (edges, 2)."""
    c2e: np.ndarray
    """Edges of a cell, (cells, 3)."""
    c2v: np.ndarray
    """Corners of a cell, (cells, 3), counterclockwise from outside."""
    c2e2c: np.ndarray
    """Cells behind the edges of a cell, (cells, 3)."""
    v2e: np.ndarray
    """Edges at a vertex, (vertices, 6), the last one `SKIP` at 12 vertices."""
    v2c: np.ndarray
    """Cells at a vertex, (vertices, 6), the last one `SKIP` at 12 vertices."""
    orientation: np.ndarray
    """1.0 where a cell is the first of its edge's ``e2c``, else -1.0, (cells, 3)."""
    edge_length: np.ndarray
    """Between the ends of an edge."""
    dual_edge_length: np.ndarray
    """Between the centres of the cells beside an edge."""
    cell_area: np.ndarray
    cell_center: np.ndarray
    """Centre of the circle through the corners, (cells, 3)."""
    vertex: np.ndarray
    """Position, (vertices, 3)."""


def icosahedral_mesh(refinements: int, radius: float = EARTH_RADIUS) -> Mesh:
    """Divide every triangle of an icosahedron into four, `refinements` times.

    The mesh has ``20 * 4**refinements`` cells. Those of one triangle of the icosahedron are
    neighbours in memory, too.
    """
    vertex, c2v = _icosahedron()
    for _ in range(refinements):
        vertex, c2v = _refined(vertex, c2v)
    e2v, c2e = _edges(c2v)
    e2c = _inverse(c2e, (len(e2v), 2))
    first = e2c[c2e, 0] == np.arange(len(c2v))[:, np.newaxis]
    center = _circumcenter(*(vertex[c2v[:, n]] for n in range(3)))
    return Mesh(
        e2c=e2c,
        e2v=e2v,
        c2e=c2e,
        c2v=c2v,
        c2e2c=np.where(first, e2c[c2e, 1], e2c[c2e, 0]),
        v2e=_inverse(e2v, (len(vertex), 6)),
        v2c=_inverse(c2v, (len(vertex), 6)),
        orientation=np.where(first, 1.0, -1.0),
        edge_length=radius * _angle(vertex[e2v[:, 0]], vertex[e2v[:, 1]]),
        dual_edge_length=radius * _angle(center[e2c[:, 0]], center[e2c[:, 1]]),
        cell_area=radius**2 * _solid_angle(*(vertex[c2v[:, n]] for n in range(3))),
        cell_center=center,
        vertex=vertex,
    )


def _icosahedron() -> tuple[np.ndarray, np.ndarray]:
    """Return 12 vertices and 20 triangles, counterclockwise."""
    golden = (1 + np.sqrt(5)) / 2
    signs = [(one, two) for one in (-1, 1) for two in (-golden, golden)]
    corners = [np.roll((0.0, one, two), shift) for shift in range(3) for one, two in signs]
    vertex = _unit(np.array(corners))
    near = np.arccos(np.clip(vertex @ vertex.T, -1, 1)) < 1.2  # neighbours are 1.107 apart
    triples = np.array([t for t in combinations(range(12), 3) if near[np.ix_(t, t)].all()])
    a, b, c = (vertex[triples[:, n]] for n in range(3))
    clockwise = np.einsum("ij,ij->i", np.cross(b - a, c - a), a) < 0
    triples[clockwise] = triples[clockwise][:, ::-1]
    return vertex, triples.astype(np.int32)


def _refined(vertex: np.ndarray, c2v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put a vertex into the middle of every edge."""
    e2v, c2e = _edges(c2v)
    middle = _unit(vertex[e2v].sum(axis=1))
    (a, b, c), (ab, bc, ca) = c2v.T, c2e.T + len(vertex)
    children = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    corners = np.array(children).transpose(2, 0, 1).reshape(-1, 3)
    return np.concatenate([vertex, middle]), corners.astype(np.int32)


def _edges(c2v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give every edge a number. Edge n of a cell leads from its corner n to the next one."""
    ends = np.stack([c2v, np.roll(c2v, -1, axis=1)], axis=-1).reshape(-1, 2)
    e2v, number = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True)
    return e2v, number.reshape(c2v.shape).astype(np.int32)


def _inverse(table: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Find the rows of a table that have each number. Rows of the result end with `SKIP`."""
    order = np.argsort(table.ravel(), kind="stable")
    number = table.ravel()[order]
    counts = np.bincount(number, minlength=shape[0])
    position = np.arange(table.size) - (np.cumsum(counts) - counts)[number]
    inverse = np.full(shape, SKIP, dtype=np.int32)
    inverse[number, position] = order // table.shape[1]
    return inverse


def _unit(vectors: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


def _circumcenter(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the point of the sphere that is equally far from three of its points."""
    return _unit(np.cross(b - a, c - a))


def _angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the angle between unit vectors; exact for small ones, as arccos is not."""
    angle: np.ndarray = np.arctan2(
        np.linalg.norm(np.cross(a, b), axis=-1), np.einsum("ij,ij->i", a, b)
    )
    return angle


def _solid_angle(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the area of triangles on the unit sphere, by Van Oosterom and Strackee."""
    dots = [np.einsum("ij,ij->i", one, two) for one, two in ((a, b), (b, c), (c, a))]
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    half: np.ndarray = np.arctan2(volume, 1 + np.sum(dots, axis=0))
    return 2 * half
