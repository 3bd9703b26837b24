"""Parameters of a stencil that are no fields."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Field

from support.errors import refused
from support.stencils.stand_ins import SHAPE


def test_an_array_for_a_parameter_that_is_not_declared_is_refused():
    seen = []
    run = dlf.bind(lambda inp, other: seen.append(other), fields={"inp": Field[float]})
    with refused(TypeError, "argument 'other'", "expected a scalar", "got an array", "fields="):
        run(np.zeros(SHAPE), np.zeros(SHAPE))
    for scalar in (3, "text", np.float32(2.0), np.array(5.0), [1, 2]):
        run(np.zeros(SHAPE), scalar)
    assert len(seen) == 5


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70])
def test_a_python_int_that_is_too_large_for_its_type_is_refused(number):
    def count(inp: Field[float], n: int): ...

    run = dlf.bind(count)
    run(np.zeros(SHAPE), 2**63 - 1)
    with refused(ValueError, "argument 'n'", "expected a scalar of int64", str(number)):
        run(np.zeros(SHAPE), number)


@pytest.mark.parametrize("given", [{"scale": None}, {}])
def test_none_for_a_scalar_that_gt4py_gives_the_default_none_is_a_missing_argument(given):
    def step(inp: Field[float], scale: float = None): ...  # noqa: RUF013 (as GT4Py's signature)

    with refused(TypeError, "expected an argument 'scale', got none"):
        dlf.bind(step)(np.zeros(SHAPE), **given)


def test_none_is_a_value_where_no_type_is_declared():
    seen = []
    run = dlf.bind(lambda inp, other=None: seen.append(other), fields={"inp": Field[float]})
    run(np.zeros(SHAPE))
    assert seen == [None]


def test_none_is_passed_on_where_the_default_is_something_else():
    seen = []
    run = dlf.bind(lambda inp, limit=3.0: seen.append(limit), fields={"inp": Field[float]})
    run(np.zeros(SHAPE), limit=None)
    run(np.zeros(SHAPE))
    assert seen == [None, 3.0]


def test_none_is_no_number_where_the_default_is_one():
    def step(inp: Field[float], scale: float = 2.0): ...

    text = "expected a scalar of float64, got None of type NoneType; leave it out for its default"
    with refused(ValueError, "argument 'scale'", text):
        dlf.bind(step)(np.zeros(SHAPE), scale=None)


@pytest.mark.parametrize("number", [2**40, np.int64(2**40)])
def test_an_int_that_its_type_cannot_hold_is_not_to_be_converted(number):
    def count(inp: Field[float], n: np.int32): ...

    with refused(ValueError, "argument 'n'", "pass a number that the type holds"):
        dlf.bind(count)(np.zeros(SHAPE), number)
