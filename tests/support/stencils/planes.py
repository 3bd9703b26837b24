"""Stencils of planes alone."""

import numpy as np

from support.optional import library

library("gt4py.cartesian.gtscript")
from gt4py.cartesian.gtscript import FORWARD, IJ, Field, computation, interval  # noqa: E402


def multiplied_in_each_level(h: Field[IJ, np.float64], g: Field[IJ, np.float64]):
    with computation(FORWARD), interval(...):
        h = g * h
