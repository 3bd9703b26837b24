"""Programs of gt4py.next as operators: values and gradients."""

import itertools

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.differentiable_next import HALO, bound

torch = library("torch")
jnp = library("jax.numpy")
gtx = library("gt4py.next")

SHAPE = (6, 3, 2)
numbers = itertools.count()
pytestmark = [
    pytest.mark.filterwarnings("ignore:Field View Program:UserWarning"),
    pytest.mark.filterwarnings("ignore:Python is not running in optimized mode:UserWarning"),
]


@pytest.fixture(params=[None, "gtfn_cpu"], ids=["embedded", "gtfn_cpu"])
def backend(request):
    return request.param and getattr(gtx, request.param)


def expected(inp, c):
    out = inp + c * (np.roll(inp, -1, 0) - inp)
    out[-1] = 0
    return out


def test_a_program_is_an_operator_with_gradients(backend):
    name = f"dlfield_tests::moved_{next(numbers)}"
    op = dlf.torch_op(bound("moved", backend), name, HALO, adjoint=bound("moved_adjoint", backend))
    inp, c = (torch.rand(SHAPE, dtype=torch.float64, requires_grad=True) for _ in range(2))
    with torch.no_grad():
        np.testing.assert_allclose(op(inp, c), expected(inp.numpy(), c.numpy()))
    assert torch.autograd.gradcheck(op, (inp, c))


def test_a_program_is_a_function_of_jax_with_gradients():
    from jax.test_util import check_grads

    made = dlf.jax_call(bound("moved"), HALO, adjoint=bound("moved_adjoint"))
    random = np.random.default_rng(0)
    inp, c = (jnp.asarray(random.random(SHAPE)) for _ in range(2))
    np.testing.assert_allclose(made(inp, c), expected(np.array(inp), np.array(c)))
    check_grads(made, (inp, c), order=1, modes=["rev"])


def test_a_check_of_its_adjoint_passes():
    random = np.random.default_rng(0)
    values = {name: random.random(SHAPE) for name in ("inp", "c")}
    dlf.testing.check_adjoint(bound("moved"), bound("moved_adjoint"), values, halo=HALO)


def test_without_a_halo_it_is_asked_for():
    with refused(ValueError, "halo", "needs a width", "depends on the arguments", "pass halo="):
        dlf.torch_op(bound("moved"), "dlfield_tests::moved_without")
