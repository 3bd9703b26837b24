"""Stencils that a module has which other processes import."""

import numpy as np

from support.optional import library

gtscript = library("gt4py.cartesian.gtscript")
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval  # noqa: E402


@gtscript.stencil(backend="numpy")
def shifted(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp + 1.0  # noqa: F841 (writes the field)


CONSTANT = 4.0


@gtscript.stencil(backend="numpy")
def scaled_by_a_constant(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp * CONSTANT  # noqa: F841


@gtscript.lazy_stencil(backend="numpy")
def lazily_shifted(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp + 2.0  # noqa: F841
