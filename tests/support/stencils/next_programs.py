"""Programs and operators of gt4py.next that several tests run, and their NumPy references.

A shift such as ``inp(K + 1)`` needs no offset provider, a connectivity such as ``E2C`` does. None
of them is decorated for a backend: `on` gives the program for one, which is compiled once.
"""

import functools

import numpy as np

from support.optional import library

library("gt4py.next")

import gt4py.next as gtx  # noqa: E402 (after the skip)
from gt4py.next import (  # noqa: E402
    Dims,
    Field,
    astype,
    config,
    float64,
    int32,
    neighbor_sum,
)
from gt4py.next.experimental import as_offset  # noqa: E402

config.BUILD_JOBS = 0  # tests clear caches of the compiler, which then is in this process

#: Of programs that are run by Python, and of the first compilation; both are advice about speed.
QUIET = (
    "ignore:Field View Program:UserWarning",
    "ignore:Python is not running in optimized mode:UserWarning",
)

BACKENDS = {"embedded": None, "roundtrip": gtx.itir_python, "gtfn_cpu": gtx.gtfn_cpu}

I, J = gtx.Dimension("I"), gtx.Dimension("J")  # noqa: E741 (GT4Py's own name)
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Cell, Edge = gtx.Dimension("Cell"), gtx.Dimension("Edge")
E2CDim = gtx.Dimension("E2C", kind=gtx.DimensionKind.LOCAL)
E2C = gtx.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))

IJK = Field[Dims[I, J, K], float64]
OnCells = Field[Dims[Cell, K], float64]
OnEdges = Field[Dims[Edge, K], float64]


@functools.cache
def on(backend, name):
    """Return a program or operator for one of `BACKENDS`; compiled once, when it first runs."""
    return globals()[name].with_backend(BACKENDS[backend])


Level = gtx.FieldOffset("Level", source=K, target=(K,))


@gtx.field_operator
def gathered_of(inp: IJK, by: Field[Dims[I, J, K], int32]) -> IJK:
    return inp(as_offset(Level, by)) + astype(by, float64)


@gtx.field_operator
def laplacian_of(inp: IJK) -> IJK:
    return inp(I + 1) + inp(I - 1) + inp(J + 1) + inp(J - 1) - 4.0 * inp


def laplacian_reference(values):
    """Return what `laplacian_of` makes of `values` inside a halo of one point in I and J."""
    inner = 4.0 * values[1:-1, 1:-1]
    east, west = values[2:, 1:-1], values[:-2, 1:-1]
    return east + west + values[1:-1, 2:] + values[1:-1, :-2] - inner


@gtx.program
def laplacian(inp: IJK, out: IJK, ni: int32, nj: int32, nk: int32):
    laplacian_of(inp, out=out, domain={I: (0, ni), J: (0, nj), K: (0, nk)})


@gtx.field_operator
def next_level(inp: IJK) -> IJK:
    return inp(K + 1)


@gtx.program
def lift(inp: IJK, out: IJK):
    next_level(inp, out=out[:, :, :-1])


@gtx.field_operator
def scaled(inp: IJK, factor: float64) -> IJK:
    return inp * factor


@gtx.field_operator
def sum_of(left: IJK, right: IJK) -> IJK:
    return left + right


@gtx.program
def advance(state: IJK, tendency: IJK, step: float64):
    """`tendency` is written, then read; `state` is read, then written."""
    scaled(state, step, out=tendency)
    sum_of(state, tendency, out=state)


def advance_reference(state, step):
    """Return `state` and `tendency` after `advance`."""
    return state + state * step, state * step


@gtx.field_operator
def blown(wind: tuple[IJK, IJK]) -> IJK:
    return wind[0] + wind[1]


@gtx.field_operator
def both_ways(inp: IJK) -> tuple[IJK, IJK]:
    return inp + 1.0, inp - 1.0


@gtx.program
def split(inp: IJK, up: IJK, down: IJK, spare: IJK):
    both_ways(inp, out=(up, down))


@gtx.scan_operator(axis=K, forward=True, init=0.0)
def running_sum(carry: float64, value: float64) -> float64:
    return carry + value


@gtx.program
def cumulate(inp: IJK, out: IJK):
    running_sum(inp, out=out)


@gtx.field_operator
def sum_over_cells(cells: OnCells) -> OnEdges:
    return neighbor_sum(cells(E2C), axis=E2CDim)


@gtx.program
def to_edges(cells: OnCells, edges: OnEdges):
    sum_over_cells(cells, out=edges)


@gtx.field_operator
def second_cell(cells: OnCells) -> OnEdges:
    return cells(E2C[1])


@gtx.field_operator
def sums_over_cells(cells: OnCells) -> OnEdges:
    return neighbor_sum(running_sum(cells)(E2C), axis=E2CDim)


@gtx.program
def sums_to_edges(cells: OnCells, edges: OnEdges, count: int32, levels: int32):
    """Sums along K in every cell, which no compiler merges with the sum over neighbours."""
    sums_over_cells(cells, out=edges, domain={Edge: (0, count), K: (0, levels)})


#: Four edges between three cells in a ring.
TABLE = np.array([[0, 1], [1, 2], [2, 0], [0, 2]], dtype=np.int32)


def connectivities():
    """Return a new offset provider for the programs on edges and cells."""
    domain = {Edge: TABLE.shape[0], E2CDim: TABLE.shape[1]}
    return {"E2C": gtx.as_connectivity(domain, codomain=Cell, data=TABLE)}
