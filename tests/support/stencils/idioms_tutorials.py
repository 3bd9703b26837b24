"""Programs of our own in the idioms of GT4Py's tutorials, cartesian and next.

Horizontal diffusion with a limiter, a Laplacian in both languages, and a step of Burgers' equation.
"""

import functools

import numpy as np

from support.optional import library
from support.stencils.next_programs import BACKENDS

library("gt4py.cartesian.gtscript")
library("gt4py.next")

import gt4py.next as gtx  # noqa: E402 (after the skip)
from gt4py.cartesian import gtscript  # noqa: E402
from gt4py.cartesian.gtscript import PARALLEL, computation, interval  # noqa: E402
from gt4py.next import Dims, float64, int32, where  # noqa: E402

Scalars = gtscript.Field[np.float64]


@gtscript.function
def laplacian_at(field):
    return -4.0 * field + (field[1, 0, 0] + field[-1, 0, 0] + field[0, 1, 0] + field[0, -1, 0])


def laplacian(inp: Scalars, out: Scalars):
    with computation(PARALLEL), interval(...):
        out = laplacian_at(inp)  # noqa: F841


def horizontal_diffusion(in_field: Scalars, out_field: Scalars, coeff: Scalars):
    with computation(PARALLEL), interval(...):
        lap = laplacian_at(in_field)
        along = lap[1, 0, 0] - lap
        flux_i = 0.0 if along * (in_field[1, 0, 0] - in_field) > 0.0 else along
        across = lap[0, 1, 0] - lap
        flux_j = 0.0 if across * (in_field[0, 1, 0] - in_field) > 0.0 else across
        out_field = in_field - coeff * (flux_i - flux_i[-1, 0, 0] + flux_j - flux_j[0, -1, 0])  # noqa: F841


@gtscript.function
def upwind(velocity, field):
    slope = 8.0 * (field[1, 0, 0] - field[-1, 0, 0]) - (field[2, 0, 0] - field[-2, 0, 0])
    return velocity * slope / 12.0 + abs(velocity) * (field[3, 0, 0] - field[-3, 0, 0]) / 60.0


def advance(now: Scalars, tmp: Scalars, out: Scalars, *, dt: np.float64):
    """A stage of a step: `tmp` is read three points away."""
    with computation(PARALLEL), interval(...):
        out = now - dt * upwind(tmp, tmp)  # noqa: F841


I, J = gtx.Dimension("I"), gtx.Dimension("J")  # noqa: E741 (GT4Py's own name)
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
DIMENSIONS = (I, J, K)
IJK = gtx.Field[Dims[I, J, K], float64]


@gtx.field_operator
def _laplacian(inp: IJK) -> IJK:
    return -4.0 * inp + (inp(I + 1) + inp(I - 1) + inp(J + 1) + inp(J - 1))


@gtx.field_operator
def _diffusion(inp: IJK, coeff: IJK) -> IJK:
    lap = _laplacian(inp)
    along = lap(I + 1) - lap
    flux_i = where(along * (inp(I + 1) - inp) > 0.0, 0.0, along)
    across = lap(J + 1) - lap
    flux_j = where(across * (inp(J + 1) - inp) > 0.0, 0.0, across)
    return inp - coeff * (flux_i - flux_i(I - 1) + flux_j - flux_j(J - 1))


@gtx.program
def laplacian_next(inp: IJK, out: IJK, ni: int32, nj: int32, nk: int32):
    _laplacian(inp, out=out, domain={I: (0, ni), J: (0, nj), K: (0, nk)})


@gtx.program
def diffusion_next(in_field: IJK, out_field: IJK, coeff: IJK, ni: int32, nj: int32, nk: int32):
    _diffusion(in_field, coeff, out=out_field, domain={I: (0, ni), J: (0, nj), K: (0, nk)})


@functools.cache
def on(backend, name):
    """Return a program of this file for one of `BACKENDS`; compiled once, when it first runs."""
    return globals()[name].with_backend(BACKENDS[backend])
