"""Operators of PyTorch whose stencil computes on a GPU: with CuPy, or compiled by GT4Py."""

import shutil
from itertools import count

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.libraries import library
from support.stencils.stand_ins import StandIn, field

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("default"),  # what torch, CuPy and GT4Py warn of is theirs
]

SHAPE = (6, 5, 3)
INSIDE = (slice(0, 5), slice(1, 5), slice(0, 3))
AROUND = ((0, 1), (1, 0), (0, 0))
BACK = ((1, 0), (0, 1), (0, 0))
RATE = 1.5


class WithCupy(StandIn):
    """Computes a formula of arrays of CuPy, each with a function that moves it."""

    device = "gpu"

    def __init__(self, formula, **fields):
        super().__init__(**fields)
        self.formula = formula

    def run(self, *, _domain_, _origin_, exec_info, **arrays):
        cupy = library("cupy")

        def of(name):
            array, first = cupy.asarray(arrays[name]), _origin_[name]

            def at(*by):
                by = (*by, 0, 0, 0)[:3]
                starts = [start + step for start, step in zip(first, by, strict=True)]
                ends = [start + n for start, n in zip(starts, _domain_, strict=True)]
                return array[tuple(map(slice, starts, ends))]

            return at

        self.formula(**{name: of(name) for name in arrays})


def spread(inp, c, out):
    out()[...] = RATE * c() * (inp(1) - 2.0 * inp(0, -1)) + inp()


def spread_adjoint(out_bar, inp, c, inp_bar, c_bar):
    west, north = c(-1) * out_bar(-1), c(0, 1) * out_bar(0, 1)
    inp_bar()[...] = out_bar() + RATE * west - 2.0 * RATE * north
    c_bar()[...] = RATE * out_bar() * (inp(1) - 2.0 * inp(0, -1))


def with_cupy(**backend_opts):
    library("cupy")
    forward = WithCupy(
        spread, inp=field("READ", boundary=AROUND), c=field("READ"), out=field("WRITE")
    )
    adjoint = WithCupy(
        spread_adjoint,
        out_bar=field("READ", boundary=BACK),
        inp=field("READ", boundary=AROUND),
        c=field("READ", boundary=BACK),
        inp_bar=field("WRITE"),
        c_bar=field("WRITE"),
    )
    for one in (forward, adjoint):
        one.options["backend_opts"] = backend_opts
    return dlf.bind(forward), dlf.bind(adjoint), ()


def in_order():
    return with_cupy(device_sync=False)


def compiled():
    library("gt4py.cartesian.gtscript")
    library("cupy")
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc compiles stencils for a GPU, and is not there")
    from support.stencils import differentiable

    forward, adjoint = (
        differentiable.bound(name, "gt:gpu") for name in ("spread", "spread_adjoint")
    )
    return forward, adjoint, (RATE,)


@pytest.fixture
def torch():
    torch = library("torch")
    yield torch
    torch.cuda.synchronize()


_numbers = count()


@pytest.fixture(params=[with_cupy, in_order, compiled])
def spreading(request, torch):
    """Return an operator, and a function that calls it with the numbers it takes."""
    forward, adjoint, numbers = request.param()
    name = f"dlfield_tests::spread_gpu_{next(_numbers)}"
    operator = dlf.torch_op(forward, name, adjoint=adjoint)
    return operator, lambda inp, c, **options: operator(inp, c, *numbers, **options)


def tensors(torch, **options):
    random = np.random.default_rng(3)
    return [torch.tensor(random.random(SHAPE), device="cuda", **options) for _ in range(2)]


def reference(torch, inp, c):
    """Return the output by torch's own operations."""
    out = torch.zeros_like(inp)
    inner, low = inp[:-1, 1:], inp[:-1, :-1]
    out[INSIDE] = RATE * c[INSIDE] * (inp[1:, 1:] - 2.0 * low) + inner
    return out


def test_the_output_is_a_tensor_of_the_gpu_with_the_values(torch, spreading):
    _, call = spreading
    inp, c = tensors(torch)
    out = call(inp, c)
    assert out.device == inp.device
    assert torch.allclose(out, reference(torch, inp, c))


def test_the_callers_tensor_of_the_gpu_is_written(torch, spreading):
    _, call = spreading
    inp, c = tensors(torch)
    out = torch.zeros_like(inp)
    assert call(inp, c, out=out) is out
    assert torch.allclose(out, reference(torch, inp, c))


def test_gradients_on_the_gpu_are_those_of_torch(torch, spreading):
    _, call = spreading
    inputs = tensors(torch, requires_grad=True)
    got = torch.autograd.grad((call(*inputs) ** 2).sum(), inputs)
    expected = torch.autograd.grad((reference(torch, *inputs) ** 2).sum(), inputs)
    for one, other in zip(got, expected, strict=True):
        assert one.device == inputs[0].device
        assert torch.allclose(one, other)


def test_gradients_are_right_on_a_stream_of_torch(torch, spreading):
    """Torch's kernels before and behind are late, and on a stream without order with any other."""
    _, call = spreading
    inputs = tensors(torch, requires_grad=True)
    expected = torch.autograd.grad((reference(torch, *inputs) ** 2).sum(), inputs)
    late = torch.cuda.Stream()
    late.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(late):
        torch.cuda._sleep(100_000_000)
        doubled = [one * 2.0 for one in inputs]
        halved = [one * 0.5 for one in doubled]
        got = torch.autograd.grad((call(*halved) ** 2).sum(), inputs)
    late.synchronize()
    for one, other in zip(got, expected, strict=True):
        assert torch.allclose(one, other)


def test_operators_of_the_gpu_pass_the_check_of_torch(torch, spreading):
    operator, _ = spreading
    numbers = (RATE,) if len(operator.function.arguments) == 3 else ()
    torch.library.opcheck(operator.op, (*tensors(torch, requires_grad=True), *numbers))


def test_compiled_by_torch_the_operator_gives_the_same(torch, spreading):
    _, call = spreading
    inputs = tensors(torch, requires_grad=True)
    compiled = torch.compile(lambda inp, c: call(inp * 1.0, c), fullgraph=True)
    out = compiled(*inputs)
    assert torch.allclose(out, reference(torch, *inputs))
    got = torch.autograd.grad((out**2).sum(), inputs)
    expected = torch.autograd.grad((reference(torch, *inputs) ** 2).sum(), inputs)
    assert all(torch.allclose(*pair) for pair in zip(got, expected, strict=True))


def test_a_graph_of_cuda_cannot_record_the_operator(torch, spreading):
    _, call = spreading
    inp, c = tensors(torch)
    call(inp, c)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="CUDA graph"), torch.cuda.graph(graph):
        call(inp, c)
    assert torch.allclose(call(inp, c), reference(torch, inp, c))


def test_tensors_of_the_host_are_refused(torch, spreading):
    _, call = spreading
    expected = r"argument 'inp': expected memory of (a GPU|GPU 0), got cpu; copy it there first"
    with pytest.raises(BufferError, match=expected):
        call(*(one.cpu() for one in tensors(torch)))


def test_a_stencil_of_the_gpu_is_refused_for_jax(torch):
    library("jax")
    forward, _, _ = with_cupy()
    with pytest.raises(TypeError, match="expected a stencil that computes on the host, got gpu"):
        dlf.jax_call(forward)
