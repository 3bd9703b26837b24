"""icon4py's way to call: a program for a backend in a `functools.partial` with its constants."""

from functools import partial

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.stencils.next_programs import QUIET, I, gtx, on

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]
SHAPE = (6, 5, 4)
OnI = gtx.Field[gtx.Dims[I], gtx.float64]


def set_up(backend, **constants):
    """Return what `setup_program` of icon4py returns."""
    return partial(on(backend, "laplacian"), **constants, offset_provider={})


@pytest.mark.parametrize("backend", ["embedded", "gtfn_cpu"])
def test_a_program_with_its_constants_takes_arrays(backend):
    run = dlf.bind(set_up(backend, ni=np.int64(4), nj=3, nk=4))
    inp, out = np.random.default_rng(0).random(SHAPE), np.zeros((4, 3, 4))
    run(inp=inp, out=out, origin={"inp": (1, 1, 0)})
    expected = inp[2:, 1:-1] + inp[:-2, 1:-1] + inp[1:-1, 2:] + inp[1:-1, :-2]
    np.testing.assert_allclose(out, expected - 4.0 * inp[1:-1, 1:-1])


def test_the_connectivities_of_a_partial_are_those_of_its_calls():
    run = dlf.bind(partial(on("embedded", "lift"), offset_provider=(given := {})))
    assert run.declaration.connectivities is given


def test_a_field_may_be_a_constant():
    values = np.random.default_rng(0).random(SHAPE)
    dlf.bind(partial(on("embedded", "lift"), inp=values, offset_provider={}))(
        out=(out := values * 0)
    )
    assert np.array_equal(out[..., :-1], values[..., 1:])


def test_a_constant_that_is_too_large_is_refused_at_the_call():
    run = dlf.bind(set_up("embedded", ni=np.int64(2**40), nj=3, nk=4))
    with refused(ValueError, "argument 'ni': expected a scalar of int32", "of type int64"):
        run(inp=np.zeros(SHAPE), out=np.zeros(SHAPE))


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint64])
def test_an_int_of_numpy_that_is_an_int32_is_taken(kind):
    run = dlf.bind(on("gtfn_cpu", "laplacian"))
    inp, out = np.ones(SHAPE), np.full((4, 3, 4), -1.0)
    run(inp, out, kind(4), kind(3), kind(4), origin={"inp": (1, 1, 0)})
    assert not out.any()


@pytest.mark.parametrize("value", [np.float64(4.0), np.array(4), np.True_, True])
def test_what_is_no_int_is_refused_for_an_int32(value):
    with refused(ValueError, "argument 'ni': expected a scalar of int32"):
        dlf.bind(on("gtfn_cpu", "laplacian"))(np.ones(SHAPE), np.ones(SHAPE), value, 3, 4)


def test_a_program_for_another_backend_is_bound():
    run = dlf.bind(on("embedded", "lift"), dims={"x": I}).with_backend(gtx.itir_python)
    assert isinstance(run, dlf._core.BoundStencil)
    assert run.backend is gtx.itir_python
    labelled = dlf.storage(np.random.default_rng(0).random(SHAPE), dims=("x", "J", "K"))
    run(labelled, out=(out := np.zeros(SHAPE)))
    assert np.array_equal(out[..., :-1], labelled.to_numpy()[..., 1:])


def test_a_program_that_is_compiled_ahead_is_the_bound_one():
    run = dlf.bind(on("gtfn_cpu", "lift").with_compilation_options(enable_jit=False))
    assert run.compile(offset_provider={}) is run
    values = np.random.default_rng(0).random(SHAPE)
    run(values, out := np.zeros(SHAPE))
    assert np.array_equal(out[..., :-1], values[..., 1:])


def test_options_of_compilation_make_another_bound_program():
    run = dlf.bind(on("gtfn_cpu", "laplacian")).with_compilation_options(static_params=("nk",))
    assert run.compilation_options.static_params == ("nk",)
    assert isinstance(run, dlf._core.BoundStencil)


def test_a_functional_call_gets_the_collection_of_a_partial():
    @gtx.field_operator
    def total(pair: tuple[OnI, OnI], scale: gtx.float64) -> OnI:
        return scale * (pair[0] + pair[1])

    one, other = np.arange(5.0), np.ones(5)
    for given in (partial(total, pair=(one, other)), partial(total, (one, other))):
        made = dlf.bind(given).functional(scale=2.0)
        np.testing.assert_allclose(made, 2.0 * (one + other))
