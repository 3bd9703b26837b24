"""Fields of gt4py.next over JAX arrays, in calls and in what JAX transforms."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import gt4py, library
from support.stencils.next_programs import QUIET, Dims, Field, I, J, float64, gtx

jax = library("jax")
import jax.numpy as jnp  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

Plane = Field[Dims[I, J], float64]


@gtx.field_operator
def slope_of(inp: Plane) -> Plane:
    return inp(I + 1) - inp


VALUES = np.arange(24.0).reshape(6, 4) ** 2
SLOPE = VALUES[1:] - VALUES[:-1]
PLACE = {"domain": {I: 5, J: 4}}


def field():
    return gtx.as_field([I, J], jnp.asarray(VALUES), allocator=jnp)


def test_a_field_of_a_jax_array_is_read_where_it_is():
    given, out = field(), np.zeros((5, 4))
    dlf.bind(slope_of)(given, out=out)
    np.testing.assert_array_equal(out, SLOPE)
    address = given.ndarray.unsafe_buffer_pointer()
    assert dlf.from_field(given).to_numpy().ctypes.data == address


def test_the_result_for_a_field_of_a_jax_array_is_a_jax_array():
    made = dlf.bind(slope_of).functional(field(), **PLACE)
    assert isinstance(made, jax.Array)
    np.testing.assert_array_equal(made, SLOPE)


def test_a_field_of_a_jax_array_says_like_which_array_the_result_is():
    made = dlf.bind(slope_of).functional(VALUES, like=field(), **PLACE)
    assert isinstance(made, jax.Array)


def test_the_result_for_a_field_of_a_numpy_array_stays_one_of_numpy():
    made = dlf.bind(slope_of).functional(gtx.as_field([I, J], VALUES), **PLACE)
    assert type(made) is np.ndarray


def test_a_field_that_jax_has_transformed_goes_into_a_stencil():
    gt4py(since=(1, 2))
    doubled = jax.jit(lambda one: one + one)(field())
    (leaf,) = jax.tree.leaves(doubled)
    assert leaf is doubled.ndarray
    out = np.zeros((5, 4))
    dlf.bind(slope_of)(doubled, out=out)
    np.testing.assert_array_equal(out, 2.0 * SLOPE)
