"""Decided calls of gt4py.next: offsets, levels, scans, neighbours, shared memory, and domains.

Most stencils are those of `support.stencils.next_programs`.
"""

import numpy as np

from support.optional import library
from support.stencils import next_programs
from support.stencils.decided_calls import (
    TAKEN,
    Row,
    buffer_error,
    grid,
    made,
    numbers,
    value_error,
)
from support.stencils.decided_cartesian import changed, in_place, read_only, views
from support.stencils.next_programs import (
    BACKENDS,
    E2C,
    IJK,
    TABLE,
    Cell,
    Dims,
    E2CDim,
    Edge,
    Field,
    I,
    J,
    K,
    OnCells,
    OnEdges,
    float64,
    gtx,
    int32,
    neighbor_sum,
)

concat_where = library("gt4py.next.experimental").concat_where


#: An embedded program asks for a table whose rows are either in the cells or not.
COMPILED = ("roundtrip", "gtfn_cpu")


def backends(row):
    return row.backends or tuple(BACKENDS)


def on(backend, name):
    """Return a stencil of this file or of `next_programs` for a backend."""
    own = globals().get(name)
    if own is None:
        return next_programs.on(backend, name)
    return own.with_backend(BACKENDS[backend])


# --- stencils ------------------------------------------------------------------------------------

Line = Field[Dims[I], float64]


@gtx.field_operator
def difference(inp: Line) -> Line:
    return inp(I + 1) - inp


@gtx.field_operator
def skewed(inp: IJK) -> IJK:
    return inp(J - 2) + 2.0 * inp(K + 1)


@gtx.field_operator
def with_boundary(boundary: IJK, interior: IJK) -> IJK:
    return concat_where(K == 0, boundary, interior(K - 1))


@gtx.scan_operator(axis=K, forward=False, init=0.0)
def running_sum_down(carry: float64, value: float64) -> float64:
    return 2.0 * carry + value


@gtx.field_operator
def sums_from_above(inp: IJK) -> IJK:
    return running_sum_down(inp(K + 1))


@gtx.program
def columns(inp: IJK, out: IJK, ni: int32, nj: int32, first: int32, end: int32):
    sums_from_above(inp, out=out, domain={I: (0, ni), J: (0, nj), K: (first, end)})


@gtx.field_operator
def side_of(cells: OnCells, edges: OnEdges) -> OnEdges:
    return cells(E2C[1]) + neighbor_sum(cells(K + 1)(E2C), axis=E2CDim) + edges


@gtx.program
def sides(cells: OnCells, edges: OnEdges, out: OnEdges, first: int32, end: int32, levels: int32):
    side_of(cells, edges, out=out, domain={Edge: (first, end), K: (0, levels)})


# --- references ----------------------------------------------------------------------------------


def difference_reference(i_s, inp, out):
    for i in i_s:
        out[i] = inp[i + 1] - inp[i]


def skewed_reference(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i, j - 2, k] + 2.0 * inp[i, j, k + 1]


def with_boundary_reference(i_s, j_s, k_s, boundary, interior, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = boundary[i, j, k] if k == 0 else interior[i, j, k - 1]


def columns_reference(i_s, j_s, k_s, inp, out, **_):
    for i, j in grid(i_s, j_s):
        carry = 0.0
        for k in reversed(k_s):
            carry = out[i, j, k] = 2.0 * carry + inp[i, j, k + 1]


def laplacian_reference(i_s, j_s, k_s, inp, out, **_):
    for i, j, k in grid(i_s, j_s, k_s):
        around = inp[i + 1, j, k] + inp[i - 1, j, k] + inp[i, j + 1, k] + inp[i, j - 1, k]
        out[i, j, k] = around - 4.0 * inp[i, j, k]


def lift_reference(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i, j, k + 1]


def cumulate_reference(i_s, j_s, k_s, inp, out):
    for i, j in grid(i_s, j_s):
        carry = 0.0
        for k in k_s:
            carry = out[i, j, k] = carry + inp[i, j, k]


def advance_reference(i_s, j_s, k_s, state, tendency, step):
    for i, j, k in grid(i_s, j_s, k_s):
        tendency[i, j, k] = state[i, j, k] * step
        state[i, j, k] = state[i, j, k] + tendency[i, j, k]


def sum_over_cells_reference(edges, k_s, cells, out):
    for edge, k in grid(edges, k_s):
        out[edge, k] = sum(cells[int(cell), k] for cell in TABLE[edge])


def second_cell_reference(edges, k_s, cells, out):
    for edge, k in grid(edges, k_s):
        out[edge, k] = cells[int(TABLE[edge, 1]), k]


def sides_reference(e_s, k_s, cells, edges, out, **_):
    for edge, k in grid(e_s, k_s):
        around = sum(cells[int(cell), k + 1] for cell in TABLE[edge])
        out[edge, k] = cells[int(TABLE[edge, 1]), k] + around + edges[edge, k]


# --- arguments -----------------------------------------------------------------------------------


def with_scalars(arguments, **scalars):
    """Return a function that makes the arguments, with scalars as programs want them."""
    return lambda: arguments() | {name: np.int32(one) for name, one in scalars.items()}


def table(rows=TABLE, skip_value=None):
    data = np.array(rows, np.int32).reshape(-1, 2)
    domain = {Edge: len(data), E2CDim: 2}
    return gtx.as_connectivity(domain, codomain=Cell, data=data, skip_value=skip_value)


def table_with(edge, side, cell, skip_value=None):
    rows = TABLE.copy()
    rows[edge, side] = cell
    return {"offset_provider": {"E2C": table(rows, skip_value)}}


RING = {"offset_provider": {"E2C": table()}}
GRID = {"ni": 4, "nj": 5, "nk": 3}
DEEP = {"ni": 2, "nj": 3, "first": 1, "end": 4}
MESH = {"first": 0, "end": 4, "levels": 2}
WIDE = made(inp=(6, 7, 3), out=(4, 5, 3))
INNER = {"origin": {"inp": (1, 1, 0)}}
ADVANCE = changed(made(state=(2, 3, 2), tendency=(2, 3, 2)), step=lambda _: 0.5)
ON_MESH = made(cells=(3, 3), edges=(4, 2), out=(4, 2))


# --- the table -----------------------------------------------------------------------------------

OFFSETS = [
    Row(
        "a difference of 8 points to the next ones in 8 outputs is refused",
        "difference",
        made(inp=(8,), out=(8,)),
        value_error("'inp'", "expected", "along I"),
    ),
    Row(
        "a difference of 8 points to the next ones in 7 outputs is taken",
        "difference",
        made(inp=(8,), out=(7,)),
        TAKEN,
        points=(7,),
    ),
    Row(
        "a difference of 8 points to the next ones in 8 outputs on a domain of 7 is taken",
        "difference",
        made(inp=(8,), out=(8,)),
        TAKEN,
        {"domain": (7,)},
    ),
    Row(
        "a difference whose input begins behind the output is refused",
        "difference",
        made(inp=(8,), out=(5,)),
        value_error("'inp'", "expected", "along I"),
        {"origin": {"inp": (-1,), "out": (0,)}},
    ),
    Row(
        "a difference whose input begins before the output is taken",
        "difference",
        made(inp=(9,), out=(5,)),
        TAKEN,
        {"origin": {"inp": (3,)}},
        points=(5,),
    ),
    Row(
        "an offset below along J reads points before the output",
        "skewed",
        made(inp=(2, 5, 4), out=(2, 3, 3)),
        TAKEN,
        {"origin": {"inp": (0, 2, 0)}},
        points=(2, 3, 3),
    ),
    Row(
        "an offset below along J needs both points before the output",
        "skewed",
        made(inp=(2, 5, 4), out=(2, 3, 3)),
        value_error("'inp'", "expected", "along J"),
        {"origin": {"inp": (0, 1, 0)}},
    ),
    Row(
        "an offset above along K needs the level above the output",
        "skewed",
        made(inp=(2, 5, 3), out=(2, 3, 3)),
        value_error("'inp'", "expected", "along K"),
        {"origin": {"inp": (0, 2, 0)}},
    ),
    Row(
        "offsets of both signs along I and J take just their points",
        "laplacian",
        with_scalars(WIDE, **GRID),
        TAKEN,
        INNER,
        points=(4, 5, 3),
    ),
    Row(
        "offsets along I and J need the points before the domain of a program",
        "laplacian",
        with_scalars(WIDE, **GRID),
        value_error("'inp'", "expected", "along I"),
        {"origin": {"inp": (0, 1, 0)}},
    ),
    Row(
        "offsets along I and J need the points behind the domain of a program",
        "laplacian",
        with_scalars(made(inp=(6, 6, 3), out=(4, 5, 3)), **GRID),
        value_error("'inp'", "expected", "along J"),
        INNER,
    ),
    Row(
        "a program that leaves the last level reads no level behind it",
        "lift",
        made(inp=(2, 3, 4), out=(2, 3, 4)),
        TAKEN,
        points=(2, 3, 3),
    ),
    Row(
        "a program that leaves the last level needs the level that it reads",
        "lift",
        made(inp=(2, 3, 3), out=(2, 3, 4)),
        value_error("'inp'", "expected", "along K"),
    ),
]

DOMAINS = [
    Row(
        "an output that is shorter than the domain of a program is refused",
        "laplacian",
        with_scalars(made(inp=(6, 7, 3), out=(3, 5, 3)), **GRID),
        value_error("'out'", "expected", "along I"),
        INNER,
    ),
    Row(
        "a level more than the fields of a program have is refused",
        "laplacian",
        with_scalars(WIDE, **GRID | {"nk": 4}),
        value_error("expected", "along K"),
        INNER,
    ),
    Row(
        "a smaller domain of a program leaves the other points",
        "laplacian",
        with_scalars(WIDE, ni=2, nj=1, nk=3),
        TAKEN,
        INNER,
        points=(2, 1, 3),
    ),
    Row(
        "a domain of a program without points writes nothing",
        "laplacian",
        with_scalars(WIDE, **GRID | {"ni": 0}),
        TAKEN,
        INNER,
        points=(0, 5, 3),
        backends=("embedded", "gtfn_cpu"),  # "roundtrip" itself ends with StopIteration
    ),
    Row(
        "a domain of ranges computes these points alone",
        "skewed",
        made(inp=(4, 6, 4), out=(4, 6, 4)),
        TAKEN,
        {"domain": {I: (1, 3), J: (2, 5), K: (0, 3)}},
        points=((1, 3), (2, 5), (0, 3)),
    ),
    Row(
        "a domain of ranges that reads below the first point is refused",
        "skewed",
        made(inp=(4, 6, 4), out=(4, 6, 4)),
        value_error("'inp'", "expected", "along J"),
        {"domain": {I: (1, 3), J: (1, 5), K: (0, 3)}},
    ),
    Row(
        "a domain of ranges that leaves the output is refused",
        "skewed",
        made(inp=(4, 6, 4), out=(4, 4, 4)),
        value_error("'out'", "expected", "along J"),
        {"domain": {I: (1, 3), J: (2, 5), K: (0, 3)}},
    ),
    Row(
        "an output without points is left alone",
        "difference",
        made(inp=(0,), out=(0,)),
        TAKEN,
        points=(0,),
    ),
]

LEVELS = [
    Row(
        "a value where K is 0 is asked for at that level alone",
        "with_boundary",
        made(boundary=(2, 3, 1), interior=(2, 3, 3), out=(2, 3, 4)),
        TAKEN,
        points=(2, 3, 4),
    ),
    Row(
        "a value where K is not 0 is asked for up to the last level",
        "with_boundary",
        made(boundary=(2, 3, 1), interior=(2, 3, 2), out=(2, 3, 4)),
        value_error("'interior'", "expected", "along K"),
    ),
    Row(
        "a value where K is 0 must exist",
        "with_boundary",
        made(boundary=(2, 3, 0), interior=(2, 3, 3), out=(2, 3, 4)),
        value_error("'boundary'", "expected", "along K"),
    ),
    Row(
        "a value where K is 0 is asked for at all points of a level",
        "with_boundary",
        made(boundary=(2, 2, 1), interior=(2, 3, 3), out=(2, 3, 4)),
        value_error("'boundary'", "expected", "along J"),
    ),
]

SCANS = [
    Row(
        "a scan up computes all levels of its output",
        "cumulate",
        made(inp=(2, 3, 4), out=(2, 3, 4)),
        TAKEN,
        points=(2, 3, 4),
    ),
    Row(
        "a scan up needs the last level of its input",
        "cumulate",
        made(inp=(2, 3, 3), out=(2, 3, 4)),
        value_error("'inp'", "expected", "along K"),
    ),
    Row(
        "a scan up takes an input of more levels than its output",
        "cumulate",
        made(inp=(2, 3, 5), out=(2, 3, 4)),
        TAKEN,
        points=(2, 3, 4),
    ),
    Row(
        "a scan down over the level above takes just these levels",
        "columns",
        with_scalars(made(inp=(2, 3, 5), out=(2, 3, 4)), **DEEP),
        TAKEN,
        points=(2, 3, (1, 4)),
    ),
    Row(
        "a scan down over the level above needs that of the last one",
        "columns",
        with_scalars(made(inp=(2, 3, 4), out=(2, 3, 4)), **DEEP),
        value_error("'inp'", "expected", "along K"),
    ),
    Row(
        "a scan needs all columns",
        "columns",
        with_scalars(made(inp=(2, 2, 5), out=(2, 3, 4)), **DEEP),
        value_error("'inp'", "expected", "along J"),
    ),
    Row(
        "a scan must not leave its output below",
        "columns",
        with_scalars(made(inp=(2, 3, 5), out=(2, 3, 4)), **DEEP | {"first": -1}),
        value_error("expected", "along K"),
    ),
]

NEIGHBOURS = [
    Row(
        "sums over all neighbours read every cell of the table",
        "sum_over_cells",
        made(cells=(3, 2), out=(4, 2)),
        TAKEN,
        RING,
        points=(4, 2),
    ),
    Row(
        "sums over all neighbours need the last cell of the table",
        "sum_over_cells",
        made(cells=(2, 2), out=(4, 2)),
        value_error("'cells'", "expected", "along Cell"),
        RING,
    ),
    Row(
        "sums over all neighbours need a row for each edge",
        "sum_over_cells",
        made(cells=(3, 2), out=(5, 2)),
        value_error("E2C", "expected", "along Edge"),
        RING,
    ),
    Row(
        "sums over all neighbours of one edge need its cells alone",
        "sum_over_cells",
        made(cells=(2, 2), out=(1, 2)),
        TAKEN,
        RING,
        points=(1, 2),
        backends=COMPILED,
    ),
    Row(
        "an index of a table below 0 is refused",
        "sum_over_cells",
        made(cells=(3, 2), out=(4, 2)),
        value_error("expected", "-1"),
        table_with(2, 0, -1),
    ),
    Row(
        "an index of a table behind the last cell is refused",
        "sum_over_cells",
        made(cells=(3, 2), out=(4, 2)),
        value_error("'cells'", "expected", "along Cell"),
        table_with(2, 0, 3),
    ),
    Row(
        "an index behind the last cell in a row that is not computed is taken",
        "sum_over_cells",
        made(cells=(3, 2), out=(2, 2)),
        TAKEN,
        table_with(2, 0, 3),
        points=(2, 2),
        backends=COMPILED,
    ),
    Row(
        "a single neighbour of each edge reads its column of the table alone",
        "second_cell",
        made(cells=(3, 2), out=(4, 2)),
        TAKEN,
        table_with(2, 0, 7),
        points=(4, 2),
    ),
    Row(
        "a single neighbour behind the last cell is refused",
        "second_cell",
        made(cells=(3, 2), out=(4, 2)),
        value_error("'cells'", "expected", "along Cell"),
        table_with(2, 1, 3),
    ),
    Row(
        "a single neighbour must not be skipped",
        "second_cell",
        made(cells=(3, 2), out=(4, 2)),
        value_error("E2C", "expected", "skip"),
        table_with(2, 1, -1, skip_value=-1),
    ),
    Row(
        "a single neighbour beside a skipped one is taken",
        "second_cell",
        made(cells=(3, 2), out=(4, 2)),
        TAKEN,
        table_with(2, 0, -1, skip_value=-1),
        points=(4, 2),
    ),
    Row(
        "a table that is not given is refused",
        "second_cell",
        made(cells=(3, 2), out=(4, 2)),
        value_error("E2C", "expected"),
    ),
    Row(
        "neighbours at the level above take just these levels",
        "sides",
        with_scalars(ON_MESH, **MESH),
        TAKEN,
        RING,
        points=(4, 2),
    ),
    Row(
        "neighbours at the level above need it",
        "sides",
        with_scalars(made(cells=(3, 2), edges=(4, 2), out=(4, 2)), **MESH),
        value_error("'cells'", "expected", "along K"),
        RING,
    ),
    Row(
        "edges of a program that begins behind the first one are taken",
        "sides",
        with_scalars(ON_MESH, **MESH | {"first": 2}),
        TAKEN,
        RING,
        points=((2, 4), 2),
    ),
    Row(
        "edges behind the last one are refused",
        "sides",
        with_scalars(ON_MESH, **MESH | {"end": 5}),
        value_error("expected", "along Edge"),
        RING,
    ),
]

SHARED = [
    Row(
        "an input at an offset must not be the output",
        "difference",
        in_place((8,), "inp", "out"),
        buffer_error("'inp'", "'out'", "expected"),
        {"domain": (7,)},
    ),
    Row(
        "an input at an offset must not overlap the output",
        "difference",
        views((9,), inp=np.s_[:8], out=np.s_[2:]),
        buffer_error("'inp'", "'out'", "expected"),
    ),
    Row(
        "an input and an output in halves of one array are taken",
        "difference",
        views((16,), inp=np.s_[:9], out=np.s_[9:]),
        TAKEN,
        points=(7,),
    ),
    Row(
        "an input and an output of every other point of one array are taken",
        "difference",
        views((16,), inp=np.s_[::2], out=np.s_[1:15:2]),
        TAKEN,
        points=(7,),
    ),
    Row(
        "a scan must not be computed in place",
        "cumulate",
        in_place((2, 3, 4), "inp", "out"),
        buffer_error("'inp'", "'out'", "expected"),
    ),
    Row(
        "a field that a program reads and then writes is computed in place",
        "advance",
        ADVANCE,
        TAKEN,
        points=(2, 3, 2),
    ),
    Row(
        "two outputs of a program must not be one array",
        "advance",
        lambda: in_place((2, 3, 2), "state", "tendency")() | {"step": 0.5},
        buffer_error("'state'", "'tendency'", "expected"),
    ),
    Row(
        "two outputs of a program must not overlap",
        "advance",
        lambda: views((3, 3, 2), state=np.s_[:2], tendency=np.s_[1:])() | {"step": 0.5},
        buffer_error("'state'", "'tendency'", "expected"),
    ),
]

MEMORY = [
    Row(
        "an input may be read-only",
        "difference",
        read_only("inp", made(inp=(8,), out=(7,))),
        TAKEN,
        points=(7,),
    ),
    Row(
        "an output must be writable",
        "difference",
        read_only("out", made(inp=(8,), out=(7,))),
        buffer_error("'out'", "expected"),
    ),
    Row(
        "a field of another dtype is refused",
        "difference",
        changed(made(inp=(8,), out=(7,)), inp=lambda one: one.astype("f4")),
        value_error("'inp'", "expected", "float64", "float32"),
    ),
    Row(
        "fields in Fortran's order are taken",
        "skewed",
        changed(made(inp=(2, 5, 4), out=(2, 3, 3)), inp=np.asfortranarray, out=np.asfortranarray),
        TAKEN,
        {"origin": {"inp": (0, 2, 0)}},
        points=(2, 3, 3),
    ),
    Row(
        "a field whose points are in the reverse order is taken",
        "difference",
        lambda: {"inp": numbers("inp", 8)[::-1], "out": numbers("out", 7)[::-1]},
        TAKEN,
        points=(7,),
    ),
]

ROWS = [*OFFSETS, *DOMAINS, *LEVELS, *SCANS, *NEIGHBOURS, *SHARED, *MEMORY]
REFERENCES = {
    one.__name__.removesuffix("_reference"): one
    for one in (
        difference_reference,
        skewed_reference,
        with_boundary_reference,
        columns_reference,
        laplacian_reference,
        lift_reference,
        cumulate_reference,
        advance_reference,
        sum_over_cells_reference,
        second_cell_reference,
        sides_reference,
    )
}
