"""`torch_op`: values, memory, compilers, export and refusals."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.processes import run_in_subprocess
from support.stencils.differentiable import RATE, SHAPE, bound, operator, spread_reference

torch = library("torch")

# torch warns of some versions of Python when it compiles.
pytestmark = pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")

DTYPES = [np.float64, np.float32]


def tensors(dtype=np.float64, shape=SHAPE, seed=0):
    random = np.random.default_rng(seed)
    return [torch.from_numpy(random.random(shape).astype(dtype)) for _ in range(2)]


def expected(inp, c, s=RATE, **around):
    return torch.from_numpy(spread_reference(inp.numpy(), c.numpy(), s, **around))


@pytest.fixture(scope="module")
def op():
    return operator()


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_operator_computes_what_the_stencil_does_with_zeros_in_the_halo(backend, dtype):
    inp, c = tensors(dtype)
    out = operator(backend=backend, dtype=dtype)(inp, c, RATE)
    torch.testing.assert_close(out, expected(inp, c))
    assert not out[-1].any()
    assert not out[:, 0].any()


def test_a_wider_halo_is_zero_in_the_output():
    inp, c = tensors()
    halo = {"I": (1, 2), "J": 1, "K": (0, 1)}
    around = ((1, 2), (1, 1), (0, 1))
    out = operator(halo=halo)(inp, c, RATE)
    torch.testing.assert_close(out, expected(inp, c, around=around))


def test_tensors_may_have_their_axes_in_another_order():
    inp, c = tensors()
    turned = operator(dims="KJI")(inp.permute(2, 1, 0), c.permute(2, 1, 0).contiguous(), RATE)
    torch.testing.assert_close(turned.permute(2, 1, 0), expected(inp, c))
    assert turned.is_contiguous()


def test_arguments_may_be_passed_by_name(op):
    inp, c = tensors()
    torch.testing.assert_close(op(inp, s=RATE, c=c), expected(inp, c))
    with refused(TypeError, "inp, c, s", "got no s"):
        op(inp, c)
    with refused(TypeError, "inp, c, s", "got d"):
        op(inp, c, RATE, d=1)


def test_permuted_sliced_and_expanded_tensors_reach_the_stencil_at_their_own_addresses():
    seen = []
    Field, Access, IJK = (getattr(dlf.annotations, name) for name in ("Field", "Access", "IJK"))
    fields = {
        "inp": Field[float, IJK, Access["in"]],
        "out": Field[float, IJK, Access["out"]],
    }

    def spy(inp, out):
        seen.append((inp.__array_interface__["data"][0], inp.strides))
        out[...] = inp

    run = dlf.bind(spy, fields=fields)
    copy = dlf.torch_op(run, "dlfield_tests::copy_of_any_memory")
    whole = torch.arange(120.0, dtype=torch.float64).reshape(4, 5, 6)
    for view in (
        whole.permute(2, 0, 1),
        whole[::2, 1:, ::3],
        torch.ones(1, dtype=torch.float64).expand(2, 3, 4),
    ):
        assert torch.equal(copy(view), view)
        address, strides = seen.pop()
        assert address == view.data_ptr()
        assert strides == tuple(8 * one for one in view.stride())


def test_out_is_written_and_its_halo_stays(op):
    inp, c = tensors()
    out = torch.full(SHAPE, -1.0, dtype=torch.float64)
    version, address = out._version, out.data_ptr()
    assert op(inp, c, RATE, out=out) is out
    assert (out.data_ptr(), out._version > version) == (address, True)
    inside = expected(inp, c)[:-1, 1:]
    torch.testing.assert_close(out[:-1, 1:], inside)
    assert (out[-1] == -1).all()
    assert (out[:, 0] == -1).all()


def test_a_field_that_is_read_and_written_is_copied_and_with_out_is_not():
    squeeze = operator("squeeze", adjoint=None)
    t, p = torch.rand(2, 3, 4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    before = t.clone()
    squared, total = squeeze(t, p)
    assert torch.equal(t, before)
    torch.testing.assert_close((squared, total), (before * before, before * p))
    total = torch.zeros_like(t)
    squeeze(t, p, out=(t, total))
    torch.testing.assert_close((t, total), (before * before, before * p))


def test_the_shapes_of_outputs_are_told_without_memory():
    shapes = bound("squeeze").outputs({"t": (2, 3, 4), "p": (4,)})
    assert shapes == {"t": (2, 3, 4), "total": (2, 3, 4)}


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # opcheck's own
@pytest.mark.parametrize("wanted", [False, True], ids=["no gradient", "gradient"])
@pytest.mark.parametrize("backend", ["numpy", "gt:cpu_kfirst"])
def test_opcheck_passes(backend, wanted):
    op = operator(backend=backend)
    inp, c = (one.requires_grad_(wanted) for one in tensors())
    torch.library.opcheck(op.op, (inp, c, RATE))
    turned = inp.detach().permute(2, 1, 0).contiguous().permute(2, 1, 0).requires_grad_(wanted)
    torch.library.opcheck(op.op, (turned, c, RATE))


def test_opcheck_passes_with_out(op):
    inp, c = tensors()
    torch.library.opcheck(op.out_op, (inp, c, RATE), {"out": torch.zeros_like(inp)})


def test_a_field_that_is_read_and_written_takes_the_extents_of_out():
    """The argument is broadcast into it, and the stencil computes at all of its points."""
    total, t = (torch.zeros(4, 1, 1, dtype=torch.float64) for _ in range(2))
    three, two = (torch.tensor(one, dtype=torch.float64) for one in (3.0, 2.0))
    op = operator("squeeze", adjoint=None)
    for given in (three.reshape(1, 1, 1), three):
        op(given, two.reshape(1), out=(t, total))
        assert t.flatten().tolist() == [9.0] * 4
        assert total.flatten().tolist() == [6.0] * 4


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_a_compiled_program_is_one_graph_and_computes_the_same(op, dynamic):
    compiled = torch.compile(lambda a, b: op(2 * a, b, RATE) + 1, fullgraph=True, dynamic=dynamic)
    for shape in (SHAPE, (7, 4, 2)):
        inp, c = tensors(shape=shape)
        out = compiled(inp, c)
        torch.testing.assert_close(out, expected(2 * inp, c) + 1)
        assert out.stride() == (op(2 * inp, c, RATE) + 1).stride()


def test_out_is_written_in_a_compiled_program(op):
    inp, c = tensors()
    out = torch.zeros(SHAPE, dtype=torch.float64)

    def program(a, b, out):
        op(a, b, RATE, out=out)
        return out + 1

    result = torch.compile(program, fullgraph=True)(inp, c, out)
    torch.testing.assert_close((out, result), (expected(inp, c), expected(inp, c) + 1))


def test_a_program_is_exported_with_every_extent_dynamic(op):
    class Model(torch.nn.Module):
        def forward(self, inp, c):
            return op(inp, c, RATE) * 2

    sizes = {axis: torch.export.Dim(name, min=3) for axis, name in enumerate("ijk")}
    program = torch.export.export(Model(), tuple(tensors()), dynamic_shapes=(sizes, sizes))
    inp, c = tensors(shape=(9, 8, 4))
    torch.testing.assert_close(program.module()(inp, c), 2 * expected(inp, c))


def test_no_grad_inference_mode_and_autocast_change_nothing(op):
    inp, c = tensors()
    for mode in (torch.no_grad(), torch.inference_mode(), torch.autocast("cpu", torch.bfloat16)):
        with mode:
            torch.testing.assert_close(op(inp, c, RATE), expected(inp, c))


def test_a_call_in_each_element_of_a_batch(op):
    inp, c = tensors()
    batch = torch.stack([inp, 2 * inp, -inp])
    out = torch.func.vmap(lambda one: op(one, c, RATE))(batch)
    torch.testing.assert_close(out, torch.stack([expected(one, c) for one in batch]))
    last = torch.func.vmap(lambda one: op(one, c, RATE), in_dims=-1)(batch.movedim(0, -1))
    torch.testing.assert_close(last, out)
    registered = torch.func.vmap(lambda one: op.op(one, c, RATE))(batch)
    torch.testing.assert_close(registered, out)


def test_several_outputs_in_a_batch():
    squeeze = operator("squeeze", adjoint=None)
    batch = torch.rand(3, 2, 2, 4, dtype=torch.float64)
    p = torch.rand(4, dtype=torch.float64)
    squared, total = torch.func.vmap(squeeze, in_dims=(0, None))(batch, p)
    torch.testing.assert_close((squared, total), (batch * batch, batch * p))


def test_a_mode_that_listens_to_operators_sees_this_one(op):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Listening(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    inp, c = tensors()
    with Listening():
        op(inp, c, RATE)
    assert [name for name in seen if name.startswith("dlfield_tests.spread")]


def test_errors_of_the_stencil_name_the_argument(op):
    inp, c = tensors()
    with refused(ValueError, "'inp'", "float64", "float32"):
        op(inp.float(), c, RATE)
    with refused(ValueError, "at least 1 points along I", "halo of (0, 1)", "got 0"):
        op(inp[:0], c[:0], RATE)
    with refused(ValueError, "3 dimensions, I, J, K", "(6, 5)"):
        op(inp[..., 0], c, RATE)
    with refused((ValueError, RuntimeError), "'c'"):
        op(inp, c[:3], RATE)


def test_names_are_taken_once_and_need_a_namespace(op):
    with refused(ValueError, "'namespace::operator'", "'lap'"):
        dlf.torch_op(bound("spread"), "lap")
    with refused(ValueError, "names that are free", op.name):
        dlf.torch_op(bound("spread"), op.name)


def test_wrong_halos_and_orders_are_refused():
    run = bound("spread")
    with refused(ValueError, "halo", "I, J, K", "'x'"):
        dlf.torch_op(run, "dlfield_tests::wrong", halo={"x": 1})
    with refused(ValueError, "halo", "a width for each of I, J, K"):
        dlf.torch_op(run, "dlfield_tests::wrong", halo=(1, 1))
    with refused(TypeError, "halo", "an int or a pair of ints", "1.5"):
        dlf.torch_op(run, "dlfield_tests::wrong", halo=1.5)
    with refused(ValueError, "halo", "at least 0 points"):
        dlf.torch_op(run, "dlfield_tests::wrong", halo=-1)
    with refused(ValueError, "dims", "each of I, J, K once", "'IJ'"):
        dlf.torch_op(run, "dlfield_tests::wrong", dims="IJ")


def test_calls_leave_nothing_behind(op):
    inp, c = tensors()
    op(inp, c, RATE)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        op(inp, c, RATE)
        op(inp, c, RATE, out=torch.empty_like(inp))
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def test_workers_of_a_data_loader_may_call_an_operator():
    code = """
import torch
from support.stencils.differentiable import operator, RATE, SHAPE

op = operator()

class Fields(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, at):
        inp = torch.full(SHAPE, float(at), dtype=torch.float64)
        return op(inp, torch.zeros_like(inp), RATE)

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Fields(), num_workers=2, multiprocessing_context="fork")
    print([float(one.max()) for one in loader])
"""
    assert run_in_subprocess(code, warnings="ignore") == "[0.0, 1.0, 2.0, 3.0]"
