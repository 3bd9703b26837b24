"""``"derive"`` in place of an adjoint or a tangent."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.seven import diffusion, upwind

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import stencil  # noqa: E402 (after the skip)

SHAPE = (9, 8, 4)


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


@pytest.mark.parametrize("make", [lambda run: dlf.torch_op(run, "derived::no", adjoint="deriv")])
def test_another_word_is_refused(make):
    library("torch")
    with refused(ValueError, "adjoint: expected a bound stencil, None or 'derive', got 'deriv'"):
        make(dlf.bind(stencil("numpy", upwind)))
