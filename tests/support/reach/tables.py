"""Random connectivities between the cells and edges of a mesh, in GT4Py's form."""

import functools

import gt4py.next as gtx
import numpy as np

#: The most points of a mesh, which the ample arrays have.
POINTS = 9
MESH = ("Cell", "Edge")
#: Dimension of the rows, dimension that the indices count, number of columns; by the offset.
TABLES = {"E2C": ("Edge", "Cell", 2), "C2E": ("Cell", "Edge", 3)}


def random_tables(rng):
    """Draw the rows of each table. Cells lack some of their edges."""
    points = {dim: rng.randint(2, POINTS) for dim in MESH}
    found = {}
    for tag, (source, codomain, width) in TABLES.items():
        lowest = -1 if tag == "C2E" else 0
        count = rng.choice((POINTS, points[source]))
        highest = points[codomain] - 1
        found[tag] = [[rng.randint(lowest, highest) for _ in range(width)] for _ in range(count)]
    return found


def connectivities(tables):
    """Return the offset provider for tables, by their names. GT4Py knows tables by their addresses,
    so they live as long as the process."""
    return _connectivities(tuple((tag, tuple(map(tuple, rows))) for tag, rows in tables.items()))


@functools.cache
def _connectivities(tables):
    found = {}
    for tag, rows in tables:
        source, codomain, width = TABLES[tag]
        data = np.array(rows, np.int32).reshape(-1, width)
        domain = {
            gtx.Dimension(source): len(data),
            gtx.Dimension(tag, gtx.DimensionKind.LOCAL): width,
        }
        skip = -1 if tag == "C2E" else None
        found[tag] = gtx.as_connectivity(domain, gtx.Dimension(codomain), data, skip_value=skip)
    return found
