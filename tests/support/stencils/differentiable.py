"""Stencils with their adjoints and tangents, written by hand, and what makes operators of them.

GT4Py reads the source of these functions and compiles them: they are never called from Python. "wp"
is the working precision.
"""

# ruff: noqa: F821

import functools
import itertools

import dlfield as dlf
import numpy as np

from support.optional import library
from support.processes import one_at_a_time

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    FORWARD,
    PARALLEL,
    Field,
    K,
    computation,
    interval,
    stencil,
)

#: The shape of arrays with the halo that `spread` needs, and its scalar.
SHAPE, RATE = (6, 5, 3), 1.5


def spread(inp: Field["wp"], c: Field["wp"], out: Field["wp"], *, s: "wp"):
    with computation(PARALLEL), interval(...):
        out = s * c * (inp[1, 0, 0] - 2.0 * inp[0, -1, 0]) + inp  # noqa: F841 (writes the field)


def spread_adjoint(
    out_bar: Field["wp"],
    inp: Field["wp"],
    c: Field["wp"],
    inp_bar: Field["wp"],
    c_bar: Field["wp"],
    *,
    s: "wp",
):
    with computation(PARALLEL), interval(...):
        inp_bar = (  # noqa: F841
            out_bar + s * c[-1, 0, 0] * out_bar[-1, 0, 0] - 2.0 * s * c[0, 1, 0] * out_bar[0, 1, 0]
        )
        c_bar = s * out_bar * (inp[1, 0, 0] - 2.0 * inp[0, -1, 0])  # noqa: F841


def spread_tangent(
    inp: Field["wp"],
    c: Field["wp"],
    inp_dot: Field["wp"],
    c_dot: Field["wp"],
    out_dot: Field["wp"],
    *,
    s: "wp",
):
    with computation(PARALLEL), interval(...):
        out_dot = (  # noqa: F841
            s * c * (inp_dot[1, 0, 0] - 2.0 * inp_dot[0, -1, 0])
            + s * c_dot * (inp[1, 0, 0] - 2.0 * inp[0, -1, 0])
            + inp_dot
        )


def spread_tangent_of_inp(c: Field["wp"], inp_dot: Field["wp"], out_dot: Field["wp"], *, s: "wp"):
    with computation(PARALLEL), interval(...):
        out_dot = s * c * (inp_dot[1, 0, 0] - 2.0 * inp_dot[0, -1, 0]) + inp_dot  # noqa: F841


def spread_tangent_without_a_term(
    c: Field["wp"], inp_dot: Field["wp"], out_dot: Field["wp"], *, s: "wp"
):
    with computation(PARALLEL), interval(...):
        out_dot = s * c * (inp_dot[1, 0, 0] - 2.0 * inp_dot[0, -1, 0])  # noqa: F841


def spread_slightly_wrong(
    out_bar: Field["wp"],
    inp: Field["wp"],
    c: Field["wp"],
    inp_bar: Field["wp"],
    c_bar: Field["wp"],
    *,
    s: "wp",
):
    with computation(PARALLEL), interval(...):
        inp_bar = (  # noqa: F841
            out_bar + s * c[-1, 0, 0] * out_bar[-1, 0, 0] - 2.0 * s * c[0, 1, 0] * out_bar[0, 1, 0]
        )
        c_bar = 1.000025 * s * out_bar * (inp[1, 0, 0] - 2.0 * inp[0, -1, 0])  # noqa: F841


def spread_adjoint_of_inp(out_bar: Field["wp"], c: Field["wp"], inp_bar: Field["wp"], *, s: "wp"):
    with computation(PARALLEL), interval(...):
        inp_bar = (  # noqa: F841
            out_bar + s * c[-1, 0, 0] * out_bar[-1, 0, 0] - 2.0 * s * c[0, 1, 0] * out_bar[0, 1, 0]
        )


def spread_wrong_side(out_bar: Field["wp"], c: Field["wp"], inp_bar: Field["wp"], *, s: "wp"):
    with computation(PARALLEL), interval(...):
        inp_bar = (  # noqa: F841
            out_bar + s * c[1, 0, 0] * out_bar[1, 0, 0] - 2.0 * s * c[0, 1, 0] * out_bar[0, 1, 0]
        )


def without_c(out_bar: Field["wp"], c: Field["wp"], inp_bar: Field["wp"], *, s: "wp"):
    with computation(PARALLEL), interval(...):
        inp_bar = (  # noqa: F841
            out_bar + s * c[-1, 0, 0] * out_bar[-1, 0, 0] - 2.0 * s * c[0, 1, 0] * out_bar[0, 1, 0]
        )


def squeeze(t: Field["wp"], p: Field[K, "wp"], total: Field["wp"]):
    """Update one field in place, and write another; `p` has no I and J."""
    with computation(PARALLEL), interval(...):
        total = t * p  # noqa: F841
        t = t * t


def squeeze_adjoint(
    t: Field["wp"],
    p: Field[K, "wp"],
    t_bar: Field["wp"],
    total_bar: Field["wp"],
    t_grad: Field["wp"],
    p_bar: Field["wp"],
):
    with computation(PARALLEL), interval(...):
        t_grad = 2.0 * t * t_bar + p * total_bar  # noqa: F841
        p_bar = t * total_bar  # noqa: F841


def smooth(inp: Field["wp"], out: Field["wp"]):
    """Add neighbours: linear, and its own adjoint but for the side."""
    with computation(PARALLEL), interval(...):
        out = inp + 0.5 * inp[1, 0, 0]  # noqa: F841


def smooth_tangent(inp_dot: Field["wp"], out_dot: Field["wp"]):
    with computation(PARALLEL), interval(...):
        out_dot = inp_dot + 0.5 * inp_dot[1, 0, 0]  # noqa: F841


def smooth_adjoint(out_bar: Field["wp"], inp_bar: Field["wp"]):
    with computation(PARALLEL), interval(...):
        inp_bar = out_bar + 0.5 * out_bar[-1, 0, 0]  # noqa: F841


def divide(inp: Field["wp"], out: Field["wp"]):
    with computation(PARALLEL), interval(...):
        out = inp[1, 0, 0] / inp  # noqa: F841


def divide_adjoint(out_bar: Field["wp"], inp: Field["wp"], inp_bar: Field["wp"]):
    with computation(PARALLEL), interval(...):
        inp_bar = (  # noqa: F841
            out_bar[-1, 0, 0] / inp[-1, 0, 0] - inp[1, 0, 0] / (inp * inp) * out_bar
        )


def move(t: Field["wp"], p: Field["wp"]):
    """Update a field in place, from a neighbour of another."""
    with computation(PARALLEL), interval(...):
        t = t * t + p[1, 0, 0]


def move_adjoint(t: Field["wp"], t_bar: Field["wp"], t_grad: Field["wp"], p_bar: Field["wp"]):
    with computation(PARALLEL), interval(...):
        t_grad = 2.0 * t * t_bar  # noqa: F841
        p_bar = t_bar[-1, 0, 0]  # noqa: F841


def move_tangent(t: Field["wp"], p_dot: Field["wp"], t_dot: Field["wp"]):
    with computation(PARALLEL), interval(...):
        t_dot = 2.0 * t * t_dot + p_dot[1, 0, 0]


def root(inp: Field["wp"], out: Field["wp"]):
    with computation(PARALLEL), interval(...):
        out = (inp[-1, 0, 0] + inp[1, 0, 0]) ** 0.5  # noqa: F841


def root_adjoint(out: Field["wp"], out_bar: Field["wp"], inp_bar: Field["wp"]):
    with computation(PARALLEL), interval(...):
        inp_bar = (  # noqa: F841
            0.5 * out_bar[-1, 0, 0] / out[-1, 0, 0] + 0.5 * out_bar[1, 0, 0] / out[1, 0, 0]
        )


def scale(inp: Field["wp"], out: Field["wp"], *, s: "wp"):
    with computation(PARALLEL), interval(...):
        out = inp / s  # noqa: F841


def lowest_free(inp: Field["wp"], out: Field["wp"]):
    """Do not depend on the lowest level."""
    with computation(PARALLEL):
        with interval(0, 1):
            out = 1.0
        with interval(1, None):
            out = inp  # noqa: F841


def lowest_free_wrong(out_bar: Field["wp"], inp_bar: Field["wp"]):
    with computation(PARALLEL):
        with interval(0, 1):
            inp_bar = 7.0 * out_bar
        with interval(1, None):
            inp_bar = out_bar  # noqa: F841


def upwards(inp: Field["wp"], out: Field["wp"]):
    """Read below and above the own level, and never outside of the domain."""
    with computation(FORWARD):
        with interval(0, 1):
            out = inp
        with interval(1, None):
            out = inp + 0.5 * out[0, 0, -1]


def from_above(inp: Field["wp"], out: Field["wp"]):
    with computation(PARALLEL), interval(...):
        out = inp[0, 0, 1]  # noqa: F841


@functools.cache
def bound(name, backend="numpy", dtype=np.float64):
    """Bind a stencil of this file, compiled once."""
    definition = globals()[name]
    with one_at_a_time(f"{name}-{backend}-{np.dtype(dtype)}".replace(":", "-")):
        return dlf.bind(stencil(backend=backend, definition=definition, dtypes={"wp": dtype}))


_numbers = itertools.count()


def operator(name="spread", backend="numpy", dtype=np.float64, adjoint="spread_adjoint", **options):
    """Make an operator of torch, under a name of its own."""
    adjoint = adjoint and bound(adjoint, backend, dtype)
    free = f"dlfield_tests::{name}_{next(_numbers)}"
    return dlf.torch_op(bound(name, backend, dtype), free, adjoint=adjoint, **options)


def spread_reference(inp, c, s, around=((0, 1), (1, 0), (0, 0))):
    """Return the output of `spread` by NumPy, with zeros in a halo of these widths."""
    out = np.zeros_like(inp)
    part = tuple(slice(low, n - high) for (low, high), n in zip(around, inp.shape, strict=True))
    east, north = np.roll(inp, -1, 0), np.roll(inp, 1, 1)
    out[part] = (s * c * (east - 2.0 * north) + inp)[part]
    return out


def call(name="spread", backend="numpy", dtype=np.float64, adjoint="spread_adjoint", **options):
    """Make a function for JAX."""
    if "tangent" in options:
        options["tangent"] = bound(options["tangent"], backend, dtype)
    return dlf.jax_call(
        bound(name, backend, dtype),
        adjoint=adjoint and bound(adjoint, backend, dtype),
        **options,
    )
