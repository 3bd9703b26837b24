"""Stencils of our own in the idioms of NDSL: edges of a tile, columns up and down, tracers."""

import numpy as np

from support.optional import library

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    BACKWARD,
    FORWARD,
    IJ,
    PARALLEL,
    Field,
    I,
    J,
    computation,
    horizontal,
    interval,
    region,
)

FloatField = Field[np.float64]
FloatFieldIJ = Field[IJ, np.float64]
#: What `gtscript.stencil` gets as `dtypes`, for temporaries.
TEMPORARIES = {"FloatFieldIJ": FloatFieldIJ}
TRACERS = 3
TracerField = Field[(np.float64, (TRACERS,))]


def solve_columns(
    delta: FloatField, wind: FloatField, ratio: FloatField, gam: FloatField, *, beta: np.float64
):
    """Eliminate from the top down, substitute from the bottom up."""
    with computation(FORWARD):
        with interval(0, 1):
            diagonal = 2.0 + ratio * beta
            wind = delta / diagonal
        with interval(1, -1):
            gam = ratio[0, 0, -1] / diagonal[0, 0, -1]
            diagonal = 2.0 + ratio * beta - gam
            wind = (delta - wind[0, 0, -1] * gam) / diagonal
        with interval(-1, None):
            gam = ratio[0, 0, -1] / diagonal[0, 0, -1]
            diagonal = 1.0 + ratio - gam
            wind = (delta - wind[0, 0, -1]) / diagonal
    with computation(BACKWARD), interval(0, -1):
        wind = wind - gam[0, 0, 1] * wind[0, 0, 1]


#: Where the edges of a tile are, as a rank without neighbours has them.
EDGES = {"i_start": I[0], "i_end": I[-1], "j_start": J[0], "j_end": J[-1]}


def divergence_damping(u: FloatField, v: FloatField, delpc: FloatField, ptc: FloatField):
    """Treat the edges of a tile apart, and its corners."""
    from __externals__ import i_end, i_start, j_end, j_start

    with computation(PARALLEL), interval(...):
        delpc = u[0, 1, 0] - u + v - v[1, 0, 0]
        with horizontal(region[i_start, :], region[i_end, :]):
            delpc = 2.0 * (u[0, 1, 0] - u)
        with horizontal(region[:, j_start], region[:, j_end]):
            delpc = 0.5 * (v - v[1, 0, 0])
        with horizontal(region[i_start, j_start], region[i_end, j_end]):
            delpc = 0.0
        ptc = delpc + u[-1, 0, 0]
        with horizontal(region[i_start - 1, :], region[:, j_end + 1]):
            ptc = u  # noqa: F841


def fill_tracers(q: TracerField, dp: FloatField, filled: FloatField):
    """Borrow from the level above what a tracer lacks; a data dimension counts the tracers."""
    with computation(FORWARD):
        with interval(0, 1):
            filled = 0.0
        with interval(1, None):
            filled = filled[0, 0, -1]
            if q[0, 0, 0][1] < 0.0:
                filled = filled - q[0, 0, 0][1] * dp
    with computation(PARALLEL), interval(...):
        q[0, 0, 0][1] = q[0, 0, 0][1] if q[0, 0, 0][1] > 0.0 else 0.0
        q[0, 0, 0][2] = q[0, 0, 0][0] + q[0, 0, 0][1]


def add_lowest(q: FloatField):
    """Keep a level in a temporary of two dimensions, whose type has a name."""
    with computation(FORWARD), interval(0, 1):
        lowest: FloatFieldIJ = 1.0
        lowest = q
    with computation(PARALLEL), interval(...):
        q = q + lowest
