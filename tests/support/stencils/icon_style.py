"""Five programs in the style of ICON's dynamical core in gt4py.next, and references of NumPy.

Names and arguments are icon4py's; what they compute is written from the formulas. Working precision
is float64, variable precision float32, so that one program has fields of both.
"""

import functools
import runpy
from pathlib import Path

import numpy as np

from support.optional import library
from support.stencils.next_programs import BACKENDS

library("gt4py.next")

import gt4py.next as gtx  # noqa: E402 (after the skip)
from gt4py.next import Dims, Field, astype, int32, neighbor_sum  # noqa: E402
from gt4py.next import float32 as vpfloat  # noqa: E402
from gt4py.next import float64 as wpfloat  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

CellDim, EdgeDim = gtx.Dimension("Cell"), gtx.Dimension("Edge")
KDim = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
E2CDim = gtx.Dimension("E2C", kind=gtx.DimensionKind.LOCAL)
C2EDim = gtx.Dimension("C2E", kind=gtx.DimensionKind.LOCAL)
C2E2CODim = gtx.Dimension("C2E2CO", kind=gtx.DimensionKind.LOCAL)
E2C = gtx.FieldOffset("E2C", source=CellDim, target=(EdgeDim, E2CDim))
C2E = gtx.FieldOffset("C2E", source=EdgeDim, target=(CellDim, C2EDim))
C2E2CO = gtx.FieldOffset("C2E2CO", source=CellDim, target=(CellDim, C2E2CODim))

CellField = Field[Dims[CellDim], wpfloat]
CellKField = Field[Dims[CellDim, KDim], wpfloat]
CellKFieldVp = Field[Dims[CellDim, KDim], vpfloat]
EdgeField = Field[Dims[EdgeDim], wpfloat]
EdgeKFieldVp = Field[Dims[EdgeDim, KDim], vpfloat]
EdgeCells = Field[Dims[EdgeDim, E2CDim], wpfloat]
CellCells = Field[Dims[CellDim, C2E2CODim], wpfloat]


@functools.cache
def on(backend, name):
    """Return a program of this file for one of `BACKENDS`; compiled once, when it first runs."""
    return globals()[name].with_backend(BACKENDS[backend])


@functools.cache
def mesh():
    """Return 80 cells and 120 edges."""
    return runpy.run_path(str(EXAMPLES / "icosahedral_mesh.py"))["icosahedral_mesh"](1)


def tables():
    """Return tables of neighbours that may be written."""
    cells = np.arange(len(mesh().c2e), dtype=np.int32)
    return {"E2C": mesh().e2c.copy(), "C2E2CO": np.column_stack([cells, mesh().c2e2c])}


def connectivities(e2c=None, c2e2co=None):
    """Return an offset provider for all programs, with these tables in place of the right ones."""
    right = tables()
    e2c = right["E2C"] if e2c is None else e2c
    c2e2co = right["C2E2CO"] if c2e2co is None else c2e2co
    return {
        "E2C": gtx.as_connectivity([EdgeDim, E2CDim], CellDim, e2c),
        "C2E": gtx.as_connectivity([CellDim, C2EDim], EdgeDim, mesh().c2e),
        "C2E2CO": gtx.as_connectivity([CellDim, C2E2CODim], CellDim, c2e2co),
    }


# --- gradients of two fields: four outputs, coefficients for each neighbour ----------------------


@gtx.field_operator
def _gradient(
    p_ccpr: CellKFieldVp, geofac_grg_x: CellCells, geofac_grg_y: CellCells
) -> tuple[CellKFieldVp, CellKFieldVp]:
    around = astype(p_ccpr, wpfloat)(C2E2CO)
    u = neighbor_sum(around * geofac_grg_x, axis=C2E2CODim)
    v = neighbor_sum(around * geofac_grg_y, axis=C2E2CODim)
    return astype(u, vpfloat), astype(v, vpfloat)


@gtx.field_operator
def _gradients(
    p_ccpr1: CellKFieldVp, p_ccpr2: CellKFieldVp, geofac_grg_x: CellCells, geofac_grg_y: CellCells
) -> tuple[CellKFieldVp, CellKFieldVp, CellKFieldVp, CellKFieldVp]:
    first_u, first_v = _gradient(p_ccpr1, geofac_grg_x, geofac_grg_y)
    second_u, second_v = _gradient(p_ccpr2, geofac_grg_x, geofac_grg_y)
    return first_u, first_v, second_u, second_v


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)
def mo_math_gradients_grad_green_gauss_cell_dsl(
    p_grad_1_u: CellKFieldVp,
    p_grad_1_v: CellKFieldVp,
    p_grad_2_u: CellKFieldVp,
    p_grad_2_v: CellKFieldVp,
    p_ccpr1: CellKFieldVp,
    p_ccpr2: CellKFieldVp,
    geofac_grg_x: CellCells,
    geofac_grg_y: CellCells,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _gradients(
        p_ccpr1,
        p_ccpr2,
        geofac_grg_x,
        geofac_grg_y,
        out=(p_grad_1_u, p_grad_1_v, p_grad_2_u, p_grad_2_v),
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


def gradients_reference(p_ccpr1, p_ccpr2, geofac_grg_x, geofac_grg_y):
    """Sum over a cell and its three neighbours, each with a coefficient."""
    table = tables()["C2E2CO"]
    pairs = [(p, geofac) for p in (p_ccpr1, p_ccpr2) for geofac in (geofac_grg_x, geofac_grg_y)]
    names = ("p_grad_1_u", "p_grad_1_v", "p_grad_2_u", "p_grad_2_v")
    sums = (np.einsum("cnk,cn->ck", p.astype("f8")[table], geofac) for p, geofac in pairs)
    return dict(zip(names, sums, strict=True))


# --- pressure gradient on edges: two neighbours by number, and a sum -----------------------------


@gtx.field_operator
def _pressure_gradient(
    inv_dual_edge_length: EdgeField,
    exner: CellKFieldVp,
    ddxn_z_full: EdgeKFieldVp,
    c_lin_e: EdgeCells,
    ddz_exner: CellKFieldVp,
) -> EdgeKFieldVp:
    along = inv_dual_edge_length * astype(exner(E2C[1]) - exner(E2C[0]), wpfloat)
    vertical = neighbor_sum(c_lin_e * astype(ddz_exner, wpfloat)(E2C), axis=E2CDim)
    return astype(along - astype(ddxn_z_full, wpfloat) * vertical, vpfloat)


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)
def compute_horizontal_gradient_of_exner_pressure_for_nonflat_coordinates(
    inv_dual_edge_length: EdgeField,
    temporal_extrapolation_of_perturbed_exner: CellKFieldVp,
    ddxn_z_full: EdgeKFieldVp,
    c_lin_e: EdgeCells,
    ddz_of_temporal_extrapolation_of_perturbed_exner_on_model_levels: CellKFieldVp,
    horizontal_pressure_gradient: EdgeKFieldVp,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _pressure_gradient(
        inv_dual_edge_length,
        temporal_extrapolation_of_perturbed_exner,
        ddxn_z_full,
        c_lin_e,
        ddz_of_temporal_extrapolation_of_perturbed_exner_on_model_levels,
        out=horizontal_pressure_gradient,
        domain={
            EdgeDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


def pressure_gradient_reference(
    inv_dual_edge_length,
    temporal_extrapolation_of_perturbed_exner,
    ddxn_z_full,
    c_lin_e,
    ddz_of_temporal_extrapolation_of_perturbed_exner_on_model_levels,
):
    """Differentiate along the line between two cells, and correct for the slope of the level."""
    first, second = tables()["E2C"].T
    exner = temporal_extrapolation_of_perturbed_exner
    slope = ddz_of_temporal_extrapolation_of_perturbed_exner_on_model_levels
    along = inv_dual_edge_length[:, None] * (exner[second] - exner[first])
    vertical = c_lin_e[:, :1] * slope[first] + c_lin_e[:, 1:] * slope[second]
    return {"horizontal_pressure_gradient": along - ddxn_z_full * vertical}


# --- diffusion of temperature: one table read through another ------------------------------------


@gtx.field_operator
def _nabla2(
    theta_v: CellKField,
    inv_dual_edge_length: EdgeField,
    geofac_div: Field[Dims[CellDim, C2EDim], wpfloat],
) -> CellKField:
    gradient = inv_dual_edge_length * (theta_v(E2C[1]) - theta_v(E2C[0]))
    return neighbor_sum(geofac_div * gradient(C2E), axis=C2EDim)


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)
def calculate_nabla2_for_theta(
    theta_v: CellKField,
    inv_dual_edge_length: EdgeField,
    geofac_div: Field[Dims[CellDim, C2EDim], wpfloat],
    z_temp: CellKField,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _nabla2(
        theta_v,
        inv_dual_edge_length,
        geofac_div,
        out=z_temp,
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


def nabla2_reference(theta_v, inv_dual_edge_length, geofac_div):
    """Add the gradients over the edges of each cell."""
    first, second = theta_v[mesh().e2c].transpose(1, 0, 2)
    gradient = inv_dual_edge_length[:, None] * (second - first)
    return {"z_temp": np.einsum("cek,ce->ck", gradient[mesh().c2e], geofac_div)}


# --- implicit vertical wind: scans with a tuple of two precisions, down and up -------------------


@gtx.scan_operator(axis=KDim, forward=True, init=(vpfloat(0.0), wpfloat(0.0)))
def _eliminate(
    above: tuple[vpfloat, wpfloat],
    lower: vpfloat,
    diagonal: vpfloat,
    upper: vpfloat,
    right: wpfloat,
) -> tuple[vpfloat, wpfloat]:
    pivot = diagonal + lower * above[0]
    reduced = right - astype(lower, wpfloat) * above[1]
    return (vpfloat(0.0) - upper) / pivot, reduced / astype(pivot, wpfloat)


@gtx.field_operator
def _forward_sweep(
    vwind_impl_wgt: CellField,
    theta_v_ic: CellKField,
    ddqz_z_half: CellKFieldVp,
    z_alpha: CellKFieldVp,
    z_beta: CellKFieldVp,
    z_w_expl: CellKField,
    z_exner_expl: CellKFieldVp,
    dtime: wpfloat,
    cpd: wpfloat,
) -> tuple[CellKFieldVp, CellKField]:
    gamma = dtime * cpd * vwind_impl_wgt * theta_v_ic / astype(ddqz_z_half, wpfloat)
    factor = astype(gamma, vpfloat)
    lower = -factor * z_beta(KDim - 1) * z_alpha(KDim - 1)
    upper = -factor * z_beta * z_alpha(KDim + 1)
    diagonal = vpfloat(1.0) + factor * z_alpha * (z_beta(KDim - 1) + z_beta)
    right = z_w_expl - gamma * astype(z_exner_expl(KDim - 1) - z_exner_expl, wpfloat)
    return _eliminate(lower, diagonal, upper, right)


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)
def solve_tridiagonal_matrix_for_w_forward_sweep(
    vwind_impl_wgt: CellField,
    theta_v_ic: CellKField,
    ddqz_z_half: CellKFieldVp,
    z_alpha: CellKFieldVp,
    z_beta: CellKFieldVp,
    z_w_expl: CellKField,
    z_exner_expl: CellKFieldVp,
    z_q: CellKFieldVp,
    w: CellKField,
    dtime: wpfloat,
    cpd: wpfloat,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _forward_sweep(
        vwind_impl_wgt,
        theta_v_ic,
        ddqz_z_half,
        z_alpha,
        z_beta,
        z_w_expl,
        z_exner_expl,
        dtime,
        cpd,
        out=(z_q, w),
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


@gtx.scan_operator(axis=KDim, forward=False, init=wpfloat(0.0))
def _substitute(below: wpfloat, z_q: vpfloat, w: wpfloat) -> wpfloat:
    return w + astype(z_q, wpfloat) * below


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)
def solve_tridiagonal_matrix_for_w_back_substitution(
    z_q: CellKFieldVp,
    w: CellKField,
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
):
    _substitute(
        z_q,
        w,
        out=w,
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


def vertical_wind_reference(
    vwind_impl_wgt, theta_v_ic, ddqz_z_half, z_alpha, z_beta, z_w_expl, z_exner_expl, dtime, cpd
):
    """Solve the system of each column as a whole; the wind is zero above level 1 and at the end."""
    gamma = dtime * cpd * vwind_impl_wgt[:, None] * theta_v_ic / ddqz_z_half
    w = np.zeros(z_w_expl.shape)
    for cell in range(len(w)):
        alpha, beta, factor = z_alpha[cell], z_beta[cell], gamma[cell]
        inner = np.arange(1, len(factor))
        matrix = np.eye(len(factor))
        matrix[inner, inner] += factor[1:] * alpha[inner] * (beta[inner - 1] + beta[inner])
        matrix[inner, inner - 1] -= factor[1:] * beta[inner - 1] * alpha[inner - 1]
        matrix[inner[:-1], inner[1:]] -= factor[1:-1] * beta[inner[:-1]] * alpha[inner[1:]]
        right = z_w_expl[cell] + factor * np.diff(z_exner_expl[cell], prepend=0.0)
        w[cell, 1:] = np.linalg.solve(matrix[1:, 1:], right[1:])
    return w
