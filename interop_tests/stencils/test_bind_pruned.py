"""Fields that a definition names and that GT4Py leaves out of the code that it generates."""

import inspect

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.stand_ins import Told

SHAPE = (4, 3, 2)
VALUES = np.arange(24.0).reshape(SHAPE)


@pytest.fixture
def run(compiled, backend):
    return dlf.bind(compiled("pruned", backend))


def test_a_pruned_field_that_is_given_is_handed_over(run):
    out = np.zeros(SHAPE)
    run(VALUES, np.ones(SHAPE), out)
    assert (out == VALUES).all()


def test_a_pruned_field_may_come_from_any_framework_and_be_read_only(run):
    xr, jnp = library("xarray"), library("jax.numpy")
    turned = xr.DataArray(np.ones(SHAPE[::-1]), dims=("K", "J", "I"))
    for edge in (turned, jnp.ones(SHAPE), dlf.ones(SHAPE)):
        out = np.zeros(SHAPE)
        run(VALUES, edge, out)
        assert (out == VALUES).all()


@pytest.mark.parametrize("given", [{}, {"edge": None}, {"edge": "no array"}], ids=str)
def test_a_pruned_field_may_be_left_out_or_none_or_anything_at_every_call(run, given):
    for _ in range(4):
        out = np.zeros(SHAPE)
        run(inp=VALUES, out=out, **given)
        assert (out == VALUES).all()


def test_a_pruned_field_is_no_argument_of_functional_calls_and_operators(run):
    torch, jnp = library("torch"), library("jax.numpy")
    name = f"dlfield_tests::pruned_{run.declaration.backend}".replace(":cpu", "")
    op, tensor = dlf.torch_op(run, name), torch.from_numpy(VALUES)
    for _ in range(4):
        assert (run.functional(VALUES) == VALUES).all()
        assert torch.equal(op(tensor), tensor)
    assert (dlf.jax_call(run)(jnp.asarray(VALUES)) == VALUES).all()


def test_a_pruned_field_is_neither_acquired_nor_touched(run):
    log = []
    run(VALUES, Told(log, "edge", np.ones(SHAPE)), np.zeros(SHAPE))
    assert log == []


def test_a_pruned_field_may_share_memory_with_an_output(run):
    out = np.zeros(SHAPE)
    run(VALUES, out, out)
    assert (out == VALUES).all()


def test_a_field_behind_a_scalar_with_a_default_is_needed(compiled, backend):
    run, out = dlf.bind(compiled("optional", backend)), np.zeros(SHAPE)
    assert str(inspect.signature(run)).startswith("(inp, out, scale=2.0, extra=None, *, ")
    run(VALUES, out, extra=np.ones(SHAPE))
    np.testing.assert_array_equal(out, VALUES * 2.0 + 1.0)
    with refused(TypeError, "expected an argument 'extra', got none"):
        run(VALUES, out)
