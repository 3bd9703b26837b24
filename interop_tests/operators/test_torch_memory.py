"""Operators whose outputs and gradients are in memory of torch, as on a GPU; here, on the host."""

import itertools
from functools import partial

import numpy as np
import pytest
from dlfield.operators.adjoints import Adjoint
from dlfield.operators.function import StencilFunction

from support.optional import library
from support.stencils import differentiable

torch = library("torch")
in_torch = pytest.importorskip("dlfield.operators.in_torch")
torch_operators = pytest.importorskip("dlfield.operators.torch_operators")
_numbers = itertools.count()

#: Of the stencil: its inputs. The adjoints pad by the edge, sum, and keep values in the halo.
INPUTS = {"divide": [(7, 6, 3)], "squeeze": [(6, 5, 3), (3,)], "move": [(7, 6, 3), (7, 6, 3)]}
every_stencil = pytest.mark.parametrize("name", INPUTS)


@pytest.fixture
def made(name, monkeypatch):
    """Return an operator with torch's memory, which computes with tensors, and a usual one."""
    forward, adjoint = (differentiable.bound(one) for one in (name, f"{name}_adjoint"))
    function = StencilFunction(forward, memory=partial(torch_operators.TorchMemory, device="cpu"))
    free = f"dlfield_tests::of_torch_{next(_numbers)}"
    monkeypatch.setattr(Adjoint, "_seen", lambda _, array: array)
    return in_torch.TorchOp(function, free, adjoint, None), differentiable.operator(
        name, adjoint=f"{name}_adjoint"
    )


def inputs(name):
    random = np.random.default_rng(4)
    made = [torch.from_numpy(random.uniform(0.5, 1.5, shape)) for shape in INPUTS[name]]
    return [one.requires_grad_() for one in made]


def outputs(op, given):
    made = op(*given)
    return [made] if isinstance(made, torch.Tensor) else list(made)


@every_stencil
def test_values_and_gradients_are_those_of_the_usual_operator(name, made):
    given = inputs(name)
    got, expected = (outputs(op, given) for op in made)
    assert all(map(torch.equal, got, expected))
    ways = (
        torch.autograd.grad(sum((one**2).sum() for one in made), given) for made in (got, expected)
    )
    for one, other in zip(*ways, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-14, atol=0.0)


@every_stencil
def test_outputs_are_of_the_pool_of_torch(name, made):
    """Torch can use them on other streams (`record_stream`): no other library frees them."""
    with torch.no_grad():
        of_torch, usual = (
            [one.untyped_storage().resizable() for one in outputs(op, inputs(name))] for op in made
        )
    assert all(of_torch)
    assert not any(usual)
