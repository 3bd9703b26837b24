"""GT4Py's backend "debug" writes ternaries without parentheses."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    PARALLEL,
    Field,
    computation,
    interval,
    stencil,
)

from support.derived import checked  # noqa: E402

# ruff: noqa: F821, F841, SIM108

F = Field[np.float64]


def added(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = inp
        out = (inp if inp > 0.0 else 2.0) + 10.0


def negated(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = -(inp if inp > 0.0 else 2.0)


def compared(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        if (1.0 if inp > 0.0 else inp) > 1.5:
            out = 1.0
        else:
            out = 2.0


def first_of_a_choice(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = (1.0 if inp > 0.0 else 2.0) if inp < -5.0 else 3.0


def repeated(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = 0.0
        while (out if inp > 0.0 else 2.0) + out < 4.0:
            out = out + 1.0


def converted(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = float64(inp if inp > 0.0 else 2.0) + 10.0


def of_a_function(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = min((inp if inp > 0.0 else 2.0), 1.5) + 10.0


def last_of_a_choice(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = inp if inp > 5.0 else (1.0 if inp > 0.0 else 2.0)


def computed(definition, backend):
    out = np.zeros((2, 1, 1))
    inp = np.array([1.0, -1.0]).reshape(out.shape)
    stencil(backend=backend, definition=definition)(inp, out)
    return out.ravel().tolist()


TORN = [(added, 4), (negated, 3), (compared, 3), (first_of_a_choice, 3), (repeated, 4)]
WHOLE = [converted, of_a_function, last_of_a_choice]


@pytest.mark.parametrize(("definition", "line"), TORN, ids=lambda one: getattr(one, "__name__", ""))
def test_bind_refuses_a_ternary_that_debug_computes_wrong(definition, line):
    assert computed(definition, "debug") != computed(definition, "numpy")
    name = definition.__name__
    text = f"'{name}': expected a backend that computes the ternary in line {line} as one value"
    with refused(ValueError, text, "got 'debug'", "assign it to a variable"):
        dlf.bind(stencil(backend="debug", definition=definition))
    dlf.bind(stencil(backend="numpy", definition=definition))


@pytest.mark.parametrize("definition", WHOLE, ids=lambda one: one.__name__)
def test_bind_takes_a_ternary_that_debug_computes_right(definition):
    assert computed(definition, "debug") == computed(definition, "numpy")
    dlf.bind(stencil(backend="debug", definition=definition))


def limited(inp: F, c: F, out: F):
    with computation(PARALLEL), interval(...):
        if inp > 1.0:
            value = inp * c
        else:
            value = max(c[1, 0, 0], abs(inp) * inp)
        out = min(value, c) * value + inp ** max(c, inp)


def test_derivatives_on_debug_equal_those_of_dual_numbers():
    checked(stencil(backend="debug", definition=limited))
