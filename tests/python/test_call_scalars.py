"""Parameters of a stencil that are no fields."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Field
from stand_in import SHAPE, refused


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
