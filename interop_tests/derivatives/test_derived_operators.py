"""``"derive"`` in place of an adjoint or a tangent."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.seven import diffusion, upwind

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    PARALLEL,
    Field,
    K,
    computation,
    interval,
    stencil,
)

SHAPE = (9, 8, 4)


def heated(inp: Field[np.float64], profile: Field[K, np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp + profile * profile  # noqa: F841


def values(seed, count=2):
    random = np.random.default_rng(seed)
    return [0.5 + random.random(SHAPE) for _ in range(count)]


def test_torch_differentiates_through_a_derived_adjoint():
    torch = library("torch")
    op = dlf.torch_op(dlf.bind(stencil("numpy", upwind)), "derived::upwind", adjoint="derive")
    inputs = [torch.from_numpy(one).requires_grad_() for one in values(0)]
    assert torch.autograd.gradcheck(lambda *args: op(*args, courant=0.3), inputs)


def test_a_constant_has_no_gradient_in_a_derived_adjoint():
    torch = library("torch")
    op = dlf.torch_op(
        dlf.bind(stencil("numpy", diffusion)),
        "derived::diffusion",
        adjoint="derive",
        names={"coeff": None},
    )
    inp, coeff = (torch.from_numpy(one).requires_grad_() for one in values(1))
    op(inp, coeff).sum().backward()
    assert inp.grad is not None
    assert coeff.grad is None


def test_jax_differentiates_both_ways_through_derived_stencils():
    jax = library("jax")
    from jax.test_util import check_grads

    with jax.enable_x64(new_val=True):
        call = dlf.jax_call(
            dlf.bind(stencil("numpy", diffusion)), adjoint="derive", tangent="derive"
        )
        check_grads(call, tuple(map(jax.numpy.asarray, values(2))), order=1, rtol=1e-6)


def heated_with_a_tangent_of_the_profile():
    made = stencil("numpy", heated)
    run, tangent = dlf.bind(made), dlf.bind(dlf.tangent(made, wrt=["profile"]))
    assert {field.dims for field in tangent.declaration.fields} == {("K",), ("I", "J", "K")}
    return run, tangent, {"inp": values(3, 1)[0], "profile": np.arange(1.0, 5.0)}


def test_a_tangent_without_an_input_as_wide_as_its_output_is_checked():
    run, tangent, given = heated_with_a_tangent_of_the_profile()
    dlf.testing.check_tangent(run, tangent, given, names={"inp": None})


def test_jax_takes_a_tangent_without_an_input_as_wide_as_its_output():
    jax = library("jax")
    run, tangent, given = heated_with_a_tangent_of_the_profile()
    with jax.enable_x64(new_val=True):
        call = dlf.jax_call(run, tangent=tangent, names={"inp": None})
        inp, profile = map(jax.numpy.asarray, given.values())
        _, dot = jax.jvp(lambda profile: call(inp, profile), [profile], [profile])
        np.testing.assert_allclose(dot, np.broadcast_to(2 * given["profile"] ** 2, SHAPE))


@pytest.mark.parametrize("make", [lambda run: dlf.torch_op(run, "derived::no", adjoint="deriv")])
def test_another_word_is_refused(make):
    library("torch")
    with refused(ValueError, "adjoint: expected a bound stencil, None or 'derive', got 'deriv'"):
        make(dlf.bind(stencil("numpy", upwind)))
