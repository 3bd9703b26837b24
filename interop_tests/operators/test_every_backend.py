"""What PyTorch does with an operator, on every kind of backend and in both precisions."""

import functools
import itertools

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library
from support.stencils import differentiable, differentiable_next

torch = library("torch")
gtx = library("gt4py.next")

# torch warns of some versions of Python when it compiles.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Field View Program:UserWarning"),
    pytest.mark.filterwarnings("ignore:Python is not running in optimized mode:UserWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),  # opcheck's
]
CASES = [*itertools.product(["numpy", "gt:cpu_kfirst", "gt:cpu_ifirst"], ["float64", "float32"])]
CASES += [("gtfn_cpu", "float64")]
SHAPE = (6, 5, 3)
_numbers = itertools.count()


@functools.cache
def made(backend, dtype):
    """Return the operator, and the numbers that follow its tensors."""
    if backend != "gtfn_cpu":
        # GT4Py takes types here, no dtypes.
        operator = differentiable.operator("spread", backend, getattr(np, dtype))
        return operator, (differentiable.RATE,)
    moved, adjoint = (
        differentiable_next.bound(name, gtx.gtfn_cpu) for name in ("moved", "moved_adjoint")
    )
    name = f"dlfield_tests::every_{next(_numbers)}"
    return dlf.torch_op(moved, name, differentiable_next.HALO, adjoint=adjoint), ()


class Case:
    def __init__(self, backend, dtype):
        self.op, self.numbers = made(backend, dtype)
        self.dtype = getattr(torch, dtype)

    def __call__(self, inp, c):
        return self.op(inp, c, *self.numbers)

    def tensors(self, *, wanted=False, shape=SHAPE):
        random = np.random.default_rng(3)
        made = [torch.from_numpy(0.5 + random.random(shape)).to(self.dtype) for _ in range(2)]
        return [one.requires_grad_(wanted) for one in made]

    def gradients(self, call, tensors):
        return torch.autograd.grad((call(*tensors) ** 2).sum(), tensors)

    def expect_alike(self, call, **options):
        """Expect values and gradients of the operator itself."""
        tensors = self.tensors(wanted=True, **options)
        torch.testing.assert_close(call(*tensors), self(*tensors))
        torch.testing.assert_close(self.gradients(call, tensors), self.gradients(self, tensors))


@pytest.fixture(params=CASES, ids="-".join)
def case(request):
    library("gt4py.cartesian.gtscript")
    return Case(*request.param)


@pytest.mark.parametrize("wanted", [False, True], ids=["no gradient", "gradient"])
def test_opcheck_passes(case, wanted):
    tensors = case.tensors(wanted=wanted)
    torch.library.opcheck(case.op.op, (*tensors, *case.numbers))


def test_opcheck_passes_with_out(case):
    inp, c = case.tensors()
    torch.library.opcheck(case.op.out_op, (inp, c, *case.numbers), {"out": torch.zeros_like(inp)})


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_it_is_compiled_in_one_graph(case, dynamic):
    torch._dynamo.reset()  # which counts the cases as compilations of one function
    compiled = torch.compile(
        lambda a, b: case(2 * a, b) + 1, fullgraph=True, dynamic=dynamic, backend="aot_eager"
    )
    for shape in (SHAPE, (7, 6, 2)):
        inp, c = case.tensors(wanted=True, shape=shape)
        torch.testing.assert_close(compiled(inp, c), case(2 * inp, c) + 1)
        found, expected = (
            torch.autograd.grad(one.sum(), (inp, c))
            for one in (compiled(inp, c), case(2 * inp, c) + 1)
        )
        torch.testing.assert_close(found, expected)


def test_it_is_exported_with_every_extent_dynamic(case):
    class Model(torch.nn.Module):
        def forward(self, inp, c):
            return case(inp, c) * 2

    sizes = {axis: torch.export.Dim(name, min=3) for axis, name in enumerate("ijk")}
    program = torch.export.export(Model(), tuple(case.tensors()), dynamic_shapes=(sizes, sizes))
    inp, c = case.tensors(shape=(9, 8, 4))
    torch.testing.assert_close(program.module()(inp, c), 2 * case(inp, c))


def test_torch_func_differentiates_it(case):
    inp, c = case.tensors()
    found = torch.func.grad(lambda *both: (case(*both) ** 2).sum(), argnums=(0, 1))(inp, c)
    torch.testing.assert_close(found, case.gradients(case, case.tensors(wanted=True)))


def test_a_batch_has_the_gradients_of_its_elements(case):
    inp, c = case.tensors()
    batch = torch.stack([inp, 2 * inp, -inp])
    gradient = torch.func.grad(lambda a: (case(a, c) ** 2).sum())
    torch.testing.assert_close(
        torch.func.vmap(gradient)(batch), torch.stack([gradient(one) for one in batch])
    )


def test_a_checkpoint_computes_again(case):
    case.expect_alike(
        lambda *both: torch.utils.checkpoint.checkpoint(case, *both, use_reentrant=False)
    )


def test_autocast_changes_nothing(case):
    def within(*both):
        with torch.autocast("cpu", torch.bfloat16):
            return case(*both)

    case.expect_alike(within)


def test_inference_mode_changes_nothing(case):
    inp, c = case.tensors()
    with torch.inference_mode():
        torch.testing.assert_close(case(inp, c), case(inp, c).clone())
        inside = case(inp, c)
    torch.testing.assert_close(inside, case(inp, c))
