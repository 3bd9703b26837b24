"""`check_adjoint` and `check_tangent` find what is wrong, and name it."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.stencils.differentiable import RATE, SHAPE, bound
from support.stencils.integers import jumping, jumping_adjoint, jumping_tangent

RANDOM = np.random.default_rng(0)
VALUES = {"inp": RANDOM.random(SHAPE), "c": RANDOM.random(SHAPE), "s": RATE}


def check(adjoint="spread_adjoint", **options):
    dlf.testing.check_adjoint(bound("spread"), bound(adjoint), VALUES, **options)


def test_a_right_adjoint_passes():
    check()
    check(halo={"I": 2, "J": (2, 1), "K": 1})


def test_with_a_tangent_it_passes_to_rounding():
    check(tangent=bound("spread_tangent"), rtol=1e-13)


def test_a_factor_of_1_000025_is_found():
    with refused(AssertionError, "gradient of 'c'", "adjoint of 'spread'", "2.5e-05"):
        check("spread_slightly_wrong")


def test_a_read_at_the_wrong_side_is_found():
    with refused(AssertionError, "gradient of 'inp'"):
        check("spread_wrong_side")


def test_an_update_in_place_and_a_profile_pass():
    values = {"t": RANDOM.random((2, 3, 4)), "p": RANDOM.random(4)}
    dlf.testing.check_adjoint(bound("squeeze"), bound("squeeze_adjoint"), values)


def test_values_are_not_changed():
    before = {name: np.copy(value) for name, value in VALUES.items()}
    check()
    assert all(np.array_equal(VALUES[name], value) for name, value in before.items())


def test_a_right_tangent_passes():
    dlf.testing.check_tangent(bound("spread"), bound("spread_tangent"), VALUES)


def test_a_wrong_tangent_is_found():
    with refused(AssertionError, "tangent of 'spread'", "'inp'", "'out'"):
        dlf.testing.check_tangent(bound("spread"), bound("spread_tangent_without_a_term"), VALUES)


def test_float32_passes_with_a_wider_tolerance():
    values = {name: np.float32(value) for name, value in VALUES.items()} | {"s": RATE}
    single = [bound(name, dtype=np.float32) for name in ("spread", "spread_adjoint")]
    dlf.testing.check_adjoint(*single, values, rtol=1e-3)


def test_integers_have_no_derivative_and_may_be_saved():
    jumps = dlf.bind(jumping), {"inp": 3.0 * RANDOM.random((2, 3, 4))}
    dlf.testing.check_tangent(jumps[0], dlf.bind(jumping_tangent), jumps[1])
    dlf.testing.check_adjoint(jumps[0], dlf.bind(jumping_adjoint), jumps[1])


@pytest.mark.parametrize(
    ("check_one", "derivative"),
    [
        (dlf.testing.check_adjoint, "spread_adjoint_of_inp"),
        (dlf.testing.check_tangent, "spread_tangent_of_inp"),
    ],
)
def test_a_derivative_that_leaves_an_input_out_is_found_unless_it_is_said(check_one, derivative):
    pair = bound("spread"), bound(derivative)
    with refused(AssertionError, "of 'spread': needs a derivative for 'c'", "names={'c': None}"):
        check_one(*pair, VALUES)
    check_one(*pair, VALUES, names={"c": None})


def test_values_are_named_and_taken_of_any_array():
    lists = {name: np.asarray(value).tolist() for name, value in VALUES.items()}
    dlf.testing.check_adjoint(bound("spread"), bound("spread_adjoint"), lists)
    with refused(TypeError, "spread(inp, c, s): expected these arguments, got no c"):
        dlf.testing.check_adjoint(
            bound("spread"), bound("spread_adjoint"), {"inp": VALUES["inp"], "s": RATE}
        )
