"""Seven stencils that are differentiated: one of each kind.

GT4Py reads the source of these functions and compiles them: they are never called from Python.
"""

# ruff: noqa: F841

import numpy as np

from support.optional import library

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    BACKWARD,
    FORWARD,
    PARALLEL,
    Field,
    computation,
    interval,
)

F = Field[np.float64]


def diffusion(inp: F, coeff: F, out: F):
    with computation(PARALLEL), interval(...):
        lap = 4.0 * inp - (inp[1, 0, 0] + inp[-1, 0, 0] + inp[0, 1, 0] + inp[0, -1, 0])
        flux_i = lap[1, 0, 0] - lap
        flux_i = flux_i if flux_i * (inp[1, 0, 0] - inp) < 0.0 else 0.0
        flux_j = lap[0, 1, 0] - lap
        flux_j = flux_j if flux_j * (inp[0, 1, 0] - inp) < 0.0 else 0.0
        out = inp - coeff * (flux_i - flux_i[-1, 0, 0] + flux_j - flux_j[0, -1, 0])


def upwind(inp: F, u: F, out: F, *, courant: np.float64):
    with computation(PARALLEL), interval(...):
        flux = u * (inp - inp[-1, 0, 0]) if u > 0.0 else u * (inp[1, 0, 0] - inp)
        out = inp - courant * flux


def tridiagonal(low: F, diagonal: F, high: F, right: F, out: F):
    with computation(FORWARD):
        with interval(0, 1):
            factor = high / diagonal
            value = right / diagonal
        with interval(1, None):
            pivot = diagonal - low * factor[0, 0, -1]
            factor = high / pivot
            value = (right - low * value[0, 0, -1]) / pivot
    with computation(BACKWARD):
        with interval(-1, None):
            out = value
        with interval(0, -1):
            out = value - factor * out[0, 0, 1]


def vertical_advection(inp: F, w: F, out: F):
    with computation(PARALLEL):
        with interval(0, 1):
            out = inp - w * (inp[0, 0, 1] - inp)
        with interval(1, -1):
            out = inp - 0.5 * w * (inp[0, 0, 1] - inp[0, 0, -1])
        with interval(-1, None):
            out = inp - w * (inp - inp[0, 0, -1])


def hydrostatic(density: F, depth: F, out: F):
    with computation(BACKWARD):
        with interval(-1, None):
            out = 9.81 * max(density, 0.1) * depth
        with interval(0, -1):
            out = out[0, 0, 1] + 9.81 * max(density, 0.1) * depth


def in_place(speed: F, force: F):
    with computation(PARALLEL), interval(...):
        gradient = force[1, 0, 0] * force[1, 0, 0] - force[-1, 0, 0]
        speed = speed - 0.1 * gradient * speed * speed
        speed = speed / (1.0 + 0.1 * speed * speed)


def recurrences(inp: F, decay: F, one: F, other: F):
    with computation(FORWARD):
        with interval(0, 1):
            one = inp
            other = inp * decay
        with interval(1, None):
            one = inp + 0.1 * decay * other[0, 0, -1] * one[0, 0, -1]
            other = 0.3 * one * decay + 0.5 * other[0, 0, -1]


SEVEN = [diffusion, upwind, tridiagonal, vertical_advection, hydrostatic, in_place, recurrences]
