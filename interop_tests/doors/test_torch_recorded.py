"""Tensors while torch records: derivatives of forward mode, torch.jit.trace and make_fx."""

import warnings

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

torch = library("torch")
# torch says "is deprecated", and on Python 3.14 "is not supported".
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.(script|trace). is :FutureWarning")
forward_ad = torch.autograd.forward_ad


def test_a_tensor_with_a_tangent_is_refused():
    one = torch.ones(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(one, one.clone())
        with pytest.raises(BufferError, match=r"without a tangent, got a dual one.*Function"):
            dlf.as_storage(dual)


def test_a_tensor_without_a_tangent_is_taken_at_a_level_of_derivatives():
    with forward_ad.dual_level():
        assert dlf.as_storage(torch.ones(3)).shape == (3,)


def test_the_primal_of_a_dual_tensor_is_taken():
    one = torch.ones(3)
    with forward_ad.dual_level():
        primal = forward_ad.unpack_dual(forward_ad.make_dual(one, one.clone())).primal
        assert dlf.as_storage(primal).ptr == one.data_ptr()


class Doubled(torch.autograd.Function):
    """What a stencil computes, with its derivative of forward mode."""

    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(dlf.as_storage(x).to_numpy() * 2)

    @staticmethod
    def jvp(ctx, tangent):
        return 2 * tangent


def test_a_function_with_a_jvp_uses_the_memory_of_a_dual_tensor():
    with forward_ad.dual_level():
        found = Doubled.apply(forward_ad.make_dual(torch.ones(3), torch.full((3,), 5.0)))
        primal, tangent = forward_ad.unpack_dual(found)
    assert primal.tolist() == [2, 2, 2]
    assert tangent.tolist() == [10, 10, 10]


def test_a_tensor_of_a_traced_function_warns_as_torch_does():
    def written(x):
        dlf.as_storage(x)
        return x * 1

    with pytest.warns(torch.jit.TracerWarning, match="does not record what uses its memory"):
        torch.jit.trace(written, torch.ones(3), check_trace=False)


def test_a_tensor_outside_of_a_traced_function_causes_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dlf.as_storage(torch.ones(3))


def test_a_tensor_is_refused_where_make_fx_records():
    from torch.fx.experimental.proxy_tensor import make_fx

    with pytest.raises(BufferError, match=r"outside of make_fx.*custom_op"):
        make_fx(lambda x: torch.from_numpy(dlf.as_storage(x).to_numpy()) * x)(torch.ones(3))


def test_a_tensor_is_taken_in_a_mode_that_does_not_record():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        assert np.array_equal(dlf.as_storage(torch.ones(3)), [1, 1, 1])


def test_a_tensor_without_values_is_named_so():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(3)
    with pytest.raises(BufferError, match=r"expected one with values, got a FakeTensor"):
        dlf.as_storage(fake)


def test_a_tensor_inside_of_vmap_is_refused_with_its_way_out():
    def batch(one):
        with pytest.raises(
            BufferError, match=r"one of a batch inside of torch.vmap.*register_vmap"
        ):
            dlf.as_storage(one)
        return one

    torch.vmap(batch)(torch.ones(2, 3))
