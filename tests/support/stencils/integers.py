"""A stencil with an output of integers beside one of real numbers, with its derivatives.

The number of whole units of each value is an output, and what the other output depends on.
"""

from typing import Any

import numpy as np
from dlfield.annotations import Access, Field

READ: Any = Field[np.float64, Access["in"]]
WRITTEN: Any = Field[np.float64, Access["out"]]
COUNTED: Any = Field[np.int64, Access["in"]]
COUNTS: Any = Field[np.int64, Access["out"]]


def jumping(inp: READ, count: COUNTS, out: WRITTEN, *, origin, domain):
    count[...] = np.floor(inp)
    out[...] = count * inp


def jumping_tangent(inp: READ, inp_dot: READ, out_dot: WRITTEN, *, origin, domain):
    out_dot[...] = np.floor(inp) * inp_dot


def jumping_adjoint(count: COUNTED, out_bar: READ, inp_bar: WRITTEN, *, origin, domain):
    inp_bar[...] = count * out_bar
