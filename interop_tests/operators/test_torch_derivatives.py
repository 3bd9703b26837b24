"""`torch_op`: gradients against finite differences, transformations, and what is refused."""

import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.differentiable import RATE, SHAPE, operator

torch = library("torch")

# torch warns of some versions of Python when it compiles.
pytestmark = pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")


def tensors(count=2, shape=SHAPE, seed=0, dtype=torch.float64):
    random = np.random.default_rng(seed)
    made = [torch.from_numpy(0.5 + random.random(shape)).to(dtype) for _ in range(count)]
    return [one.requires_grad_() for one in made]


HALOS = {
    "the reach": None,
    "wider": {"I": (2, 3), "J": (2, 1), "K": 1},
    "wider on some axes": {"I": (0, 1), "J": (3, 2), "K": 0},
}


@pytest.mark.parametrize("halo", HALOS.values(), ids=HALOS)
def test_gradients_are_those_of_finite_differences(backend, halo):
    op = operator(backend=backend, halo=halo)
    inp, c = tensors(shape=(7, 6, 3))
    assert torch.autograd.gradcheck(lambda a, b: op(a, b, RATE), (inp, c))


def test_gradients_in_another_order_of_the_axes():
    op = operator(dims="KJI")
    assert torch.autograd.gradcheck(lambda a, b: op(a, b, RATE), tensors(shape=(2, 5, 4)))


def test_gradients_of_a_batch_are_those_of_each_element():
    """Such a batch comes as one tensor of torch's own class that has no memory."""
    op = operator()
    inp, c = tensors()
    made = op(inp, c, RATE)
    batch = torch.stack([torch.ones_like(made), torch.linspace(0, 1, 3) * torch.ones_like(made)])
    together = torch.autograd.grad(made, (inp, c), batch, retain_graph=True, is_grads_batched=True)
    each = [torch.autograd.grad(made, (inp, c), one, retain_graph=True) for one in batch]
    assert all(map(torch.equal, together, map(torch.stack, zip(*each, strict=True))))


def test_a_cotangent_with_a_pending_negation_is_resolved():
    """Torch makes such a cotangent behind a conjugate."""
    op = operator()
    inp, c = tensors()
    made = op(inp, c, RATE)
    weights = torch.linspace(1, 2, 3, dtype=torch.float64) * torch.ones_like(made)
    negated = torch.complex(torch.zeros_like(weights), weights).conj().imag
    assert negated.is_neg()
    got = torch.autograd.grad(made, (inp, c), negated, retain_graph=True)
    assert all(map(torch.equal, got, torch.autograd.grad(made, (inp, c), -weights)))


VIEWS = {
    "permuted": lambda one: one.permute(2, 1, 0),
    "sliced": lambda one: one[1:],
    "strided": lambda one: one[:, ::2],
    "expanded": lambda one: one[:, :, :1].expand(-1, -1, 3),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("halo", HALOS.values(), ids=HALOS)
def test_gradients_of_views(backend, halo, view):
    op = operator(backend=backend, halo=halo)
    shape = (3, 6, 7) if view is VIEWS["permuted"] else (7, 11, 3)
    inp, c = tensors(shape=shape)
    assert torch.autograd.gradcheck(
        lambda a, b: op(view(a), view(b), RATE), (inp, c), fast_mode=True
    )


def test_an_input_that_is_too_small_for_its_gradient_is_refused_by_the_call():
    op = operator()
    (inp,), (c,) = tensors(1), tensors(1, shape=(5, 5, 3))
    with refused(ValueError, "'c'", "at least 6 points along I for a derivative", "got 5"):
        op(inp, c, RATE)
    assert torch.equal(op(inp.detach(), c.detach(), RATE)[5:], torch.zeros(1, 5, 3))


def test_the_registered_operator_with_out_refuses_a_gradient():
    op = operator()
    inp, c = tensors()
    with refused(BufferError, "'inp'", "without a gradient", "torch.no_grad()"):
        op.out_op(inp, c, RATE, out=torch.zeros(SHAPE, dtype=torch.float64))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch 2.10 asks for it itself
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_write_in_the_forward_of_a_function_has_the_right_gradient_when_compiled(backend):
    """torch 2.11 and later have had wrong gradients for writes of their own operators there."""
    op = operator(dtype=np.float64)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, inp, c):
            ctx.save_for_backward(inp, c)
            made = torch.zeros_like(inp)
            op(inp, c, RATE, out=made)
            return made

        @staticmethod
        def backward(ctx, cotangent):
            inp, c = ctx.saved_tensors
            return op.backward(cotangent, inp, c, RATE, [*inp.shape, *c.shape])

    def program(inp, c):
        return (Twice.apply(inp * 2.0, c) ** 2).sum()

    inp, c = tensors()
    expected = torch.autograd.grad((op(inp * 2.0, c, RATE) ** 2).sum(), (inp, c))
    found = torch.autograd.grad(torch.compile(program, backend=backend)(inp, c), (inp, c))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-13)


def test_what_the_adjoint_reads_beyond_the_halo_continues_by_its_edge():
    # Zeros would divide by zero.
    op = operator("divide", adjoint="divide_adjoint")
    (inp,) = tensors(1)
    assert torch.autograd.gradcheck(op, inp)


def test_gradients_of_a_field_in_place_of_several_outputs_and_of_a_profile():
    op = operator("squeeze", adjoint="squeeze_adjoint")
    t = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    p = torch.rand(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(op, (t, p))
    # One output alone: the cotangent of the other is zero.
    assert torch.autograd.gradcheck(lambda *args: op(*args)[1], (t, p))


def test_a_gradient_in_float32_has_its_type_and_place():
    op = operator(dtype=np.float32)
    inp, c = tensors(dtype=torch.float32)
    op(inp, c, RATE).sum().backward()
    double = operator()
    wide = [one.detach().double().requires_grad_() for one in (inp, c)]
    double(*wide, RATE).sum().backward()
    for one, other in zip((inp, c), wide, strict=True):
        assert one.grad.dtype == torch.float32
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-5, atol=1e-5)


def gradients(op, inp, c):
    inp, c = (one.detach().clone().requires_grad_() for one in (inp, c))
    (op(inp, c, RATE) ** 2).sum().backward()
    return inp.grad, c.grad


def test_gradients_in_a_compiled_program():
    op = operator()
    inp, c = tensors()
    compiled = torch.compile(lambda a, b: (op(a, b, RATE) ** 2).sum(), fullgraph=True)
    compiled(inp, c).backward()
    torch.testing.assert_close((inp.grad, c.grad), gradients(op, inp, c))


def test_the_gradient_of_torch_func():
    op = operator()
    inp, c = (one.detach() for one in tensors())
    found = torch.func.grad(lambda a, b: (op(a, b, RATE) ** 2).sum(), argnums=(0, 1))(inp, c)
    torch.testing.assert_close(found, gradients(op, inp, c))


def test_gradients_of_a_batch_and_of_each_of_its_elements():
    op = operator()
    inp, c = (one.detach() for one in tensors())
    batch = torch.stack([inp, 2 * inp])
    each = torch.func.vmap(torch.func.grad(lambda a: (op(a, c, RATE) ** 2).sum()))(batch)
    for one, found in zip(batch, each, strict=True):
        torch.testing.assert_close(found, gradients(op, one, c)[0])
    batch.requires_grad_()
    (torch.func.vmap(lambda a: op(a, c, RATE))(batch) ** 2).sum().backward()
    torch.testing.assert_close(batch.grad, each)


def test_a_checkpoint_computes_again_and_gives_the_same_gradient():
    from torch.utils.checkpoint import checkpoint

    op = operator()
    inp, c = tensors()
    (checkpoint(lambda a, b: op(a, b, RATE), inp, c, use_reentrant=False) ** 2).sum().backward()
    torch.testing.assert_close((inp.grad, c.grad), gradients(op, inp, c))


def test_a_gradient_through_a_loop_of_calls():
    op = operator()
    (inp, c), steps = tensors(), 3

    def loop(inp, c):
        for _ in range(steps):
            inp = inp + 0.1 * op(inp, c, RATE)
        return inp

    assert torch.autograd.gradcheck(loop, (inp, c))


def test_what_out_overwrites_is_noticed_by_autograd():
    op = operator()
    (inp, c), y = tensors(), torch.ones(SHAPE, dtype=torch.float64, requires_grad=True)
    kept = y * 1
    product = (kept * kept).sum()
    with torch.no_grad():
        op(inp, c, RATE, out=kept)
    with refused(RuntimeError, "modified by an inplace operation"):
        product.backward()


def test_out_is_refused_while_a_gradient_is_wanted():
    op = operator()
    inp, c = tensors()
    with refused(RuntimeError, "out=", "requires a gradient", "leave out out="):
        op(inp, c, RATE, out=torch.zeros(SHAPE, dtype=torch.float64))


def test_without_an_adjoint_a_derivative_says_what_is_missing():
    op = operator(adjoint=None)
    inp, c = tensors()
    out = op(inp, c, RATE)
    with refused(NotImplementedError, op.name, "needs an adjoint", "adjoint=dlfield.bind(...)"):
        out.sum().backward()
    with refused(NotImplementedError, "needs an adjoint"):
        op.op(inp, c, RATE).sum().backward()
    with refused(NotImplementedError, "needs an adjoint"):
        torch.func.grad(lambda a: op(a, c.detach(), RATE).sum())(inp.detach())


def test_an_adjoint_without_a_gradient_that_is_asked_for_is_an_error_and_not_zero():
    op = operator(adjoint="without_c")
    inp, c = tensors()
    with refused(NotImplementedError, "'c'", "names={'c': None}"):
        op(inp, c, RATE).sum().backward()
    op(inp, c.detach(), RATE).sum().backward()
    constant = operator(adjoint="without_c", names={"c": None})
    constant(inp, c, RATE).sum().backward()
    assert c.grad is None


def test_second_derivatives_are_refused():
    op = operator()
    inp, c = tensors()
    (first,) = torch.autograd.grad((op(inp, c, RATE) ** 2).sum(), inp, create_graph=True)
    with refused(NotImplementedError, "one derivative"):
        first.sum().backward()
    (first,) = torch.autograd.grad((op.op(inp, c, RATE) ** 2).sum(), inp, create_graph=True)
    with refused(NotImplementedError, "one derivative"):
        first.sum().backward()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is :FutureWarning")
def test_forward_derivatives_are_refused():
    op = operator()
    inp, c = (one.detach() for one in tensors())
    with refused(NotImplementedError, "needs a tangent"):
        torch.func.jvp(lambda a: op(a, c, RATE), (inp,), (inp,))
    with torch.autograd.forward_ad.dual_level(), refused(NotImplementedError, "needs a tangent"):
        op(torch.autograd.forward_ad.make_dual(inp, inp), c, RATE)


def test_a_number_that_requires_a_gradient_is_to_be_a_field():
    op = operator()
    inp, c = tensors()
    with refused(TypeError, "'s'", "declare 's' as a field", "s.expand"):
        op(inp, c, torch.tensor(RATE, requires_grad=True))


@pytest.mark.parametrize(
    ("stencil", "adjoint", "names", "texts"),
    [
        ("spread", "spread", None, ("adjoint of 'spread'", "needs the argument 'out_bar'")),
        ("spread", "spread_adjoint", {"x": "y"}, ("names", "'x'")),
        ("spread", "spread_adjoint", {"out": "cotangent"}, ("'out_bar'",)),
        (
            "spread",
            "spread_adjoint",
            {"c": "inp_bar"},
            ("an argument of its own", "'inp_bar' for two"),
        ),
        ("from_above", "divide_adjoint", None, ("along K", "(0, 1)")),
    ],
)
def test_an_adjoint_against_the_convention_is_refused(stencil, adjoint, names, texts):
    with refused(ValueError, *texts):
        operator(stencil, adjoint=adjoint, names=names)


def test_a_halo_narrower_than_the_reach_has_no_adjoint():
    with refused(ValueError, "halo", "(0, 1)", "(0, 0)"):
        operator(halo={"J": 1})
