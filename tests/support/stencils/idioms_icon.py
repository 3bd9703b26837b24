"""Programs of our own in the idioms of icon4py: tables with gaps, columns, ranges as scalars."""

import functools
from typing import NamedTuple

import numpy as np

from support.optional import library
from support.stencils.next_programs import BACKENDS

library("gt4py.next")

import gt4py.next as gtx  # noqa: E402 (after the skip)
from gt4py.next import (  # noqa: E402
    Dims,
    Field,
    float64,
    int32,
    maximum,
    neighbor_sum,
)
from gt4py.next.experimental import concat_where  # noqa: E402

CellDim, EdgeDim = gtx.Dimension("Cell"), gtx.Dimension("Edge")
KDim = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
C2EDim = gtx.Dimension("C2E", kind=gtx.DimensionKind.LOCAL)
C2E2CDim = gtx.Dimension("C2E2C", kind=gtx.DimensionKind.LOCAL)
C2E = gtx.FieldOffset("C2E", source=EdgeDim, target=(CellDim, C2EDim))
C2E2C = gtx.FieldOffset("C2E2C", source=CellDim, target=(CellDim, C2E2CDim))
DIMENSIONS = (CellDim, EdgeDim, KDim, C2EDim, C2E2CDim)

CellK = Field[Dims[CellDim, KDim], float64]
EdgeK = Field[Dims[EdgeDim, KDim], float64]
OnCells = Field[Dims[CellDim], float64]
UNSTRUCTURED = gtx.GridType.UNSTRUCTURED

#: Edges and cells around each of six cells in a row; those at the ends lack one.
EDGES = np.array([[0, 1, 7], [1, 2, 8], [2, 3, 9], [3, 4, 10], [4, 5, 11], [5, 6, 12]], np.int32)
CELLS = np.array([[-1, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, -1]], np.int32)


@functools.cache
def provider():
    """Return the tables of the mesh. Backends know them by their address."""
    return {
        "C2E": gtx.as_connectivity([CellDim, C2EDim], EdgeDim, EDGES),
        "C2E2C": gtx.as_connectivity([CellDim, C2E2CDim], CellDim, CELLS, skip_value=-1),
    }


@functools.cache
def on(backend, name):
    """Return a program of this file for one of `BACKENDS`; compiled once, when it first runs."""
    return globals()[name].with_backend(BACKENDS[backend])


# --- sums over neighbours, of which some are missing ---------------------------------------------


@gtx.field_operator
def _diffuse_cells(
    theta: CellK,
    coefficients: Field[Dims[CellDim, C2E2CDim], float64],
    flux: EdgeK,
    geofac_div: Field[Dims[CellDim, C2EDim], float64],
    area: OnCells,
) -> tuple[CellK, CellK]:
    around = neighbor_sum(theta(C2E2C) * coefficients, axis=C2E2CDim)
    divergence = neighbor_sum(flux(C2E) * geofac_div, axis=C2EDim)
    return theta + area * around, divergence / area


@gtx.program(grid_type=UNSTRUCTURED)
def diffuse_cells(
    theta: CellK,
    coefficients: Field[Dims[CellDim, C2E2CDim], float64],
    flux: EdgeK,
    geofac_div: Field[Dims[CellDim, C2EDim], float64],
    area: OnCells,
    theta_new: CellK,
    divergence: CellK,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _diffuse_cells(
        theta,
        coefficients,
        flux,
        geofac_div,
        area,
        out=(theta_new, divergence),
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


# --- a column with a state of several values -----------------------------------------------------


class Precipitation(NamedTuple):
    rain: Field[Dims[CellDim, KDim], float64]
    snow: Field[Dims[CellDim, KDim], float64]


@gtx.scan_operator(axis=KDim, forward=True, init=(0.0, 0.0))
def _precipitate(
    state: tuple[float64, float64], rain: float64, snow: float64, melting: float64
) -> tuple[float64, float64]:
    above_rain, above_snow = state
    melted = melting * (snow + above_snow) if melting > 0.0 else 0.0
    return above_rain + rain + melted, above_snow + snow - melted


@gtx.field_operator
def _fallen(content: Precipitation, melting: CellK) -> Precipitation:
    rain, snow = _precipitate(content.rain, content.snow, melting)
    return Precipitation(rain=rain, snow=snow)


@gtx.program(grid_type=UNSTRUCTURED)
def precipitate(
    content: Precipitation,
    melting: CellK,
    fallen: Precipitation,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _fallen(
        content,
        melting,
        out=fallen,
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


@gtx.scan_operator(axis=KDim, forward=True, init=(0.0, 0.0))
def _forward_sweep(
    state: tuple[float64, float64], a: float64, b: float64, c: float64, d: float64
) -> tuple[float64, float64]:
    c_above, d_above = state
    norm = 1.0 / (b - a * c_above)
    return c * norm, (d - a * d_above) * norm


@gtx.scan_operator(axis=KDim, forward=False, init=0.0)
def _back_substitution(below: float64, c: float64, d: float64) -> float64:
    return d - c * below


@gtx.program(grid_type=UNSTRUCTURED)
def solve_columns(
    a: CellK,
    b: CellK,
    c: CellK,
    d: CellK,
    c_new: CellK,
    d_new: CellK,
    w: CellK,
    horizontal_end: int32,
    vertical_end: int32,
):
    _forward_sweep(
        a,
        b,
        c,
        d,
        out=(c_new, d_new),
        domain={CellDim: (0, horizontal_end), KDim: (0, vertical_end)},
    )
    _back_substitution(
        c_new, d_new, out=w, domain={CellDim: (0, horizontal_end), KDim: (0, vertical_end)}
    )


# --- levels that are treated apart ---------------------------------------------------------------


@gtx.field_operator
def _to_half_levels(full: CellK, weight: CellK, boundary: CellK, nlev: int32) -> CellK:
    inner = weight * full + (1.0 - weight) * full(KDim - 1)
    upper = concat_where(KDim == 0, boundary, inner)
    return concat_where(KDim < nlev, upper, boundary)


@gtx.program(grid_type=UNSTRUCTURED)
def to_half_levels(
    full: CellK,
    weight: CellK,
    boundary: CellK,
    half: CellK,
    nlev: int32,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _to_half_levels(
        full,
        weight,
        boundary,
        nlev,
        out=half,
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


@gtx.field_operator
def _damped(w: CellK, depth: Field[Dims[KDim], float64], limit: float64) -> CellK:
    return maximum(w - depth * (w - w(KDim - 1)), limit)


@gtx.program(grid_type=UNSTRUCTURED)
def damp(
    w: CellK,
    depth: Field[Dims[KDim], float64],
    w_new: CellK,
    limit: float64,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _damped(
        w,
        depth,
        limit,
        out=w_new,
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )
