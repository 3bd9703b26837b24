"""`op(..., out=...)` that comes again: right whatever has changed since the last call."""

import dlfield as dlf
import numpy as np
import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from support.errors import refused
from support.optional import library
from support.stencils.differentiable import RATE, SHAPE, bound, operator, spread_reference

torch = library("torch")


def tensors(shape=SHAPE, seed=0):
    random = np.random.default_rng(seed)
    return [torch.from_numpy(random.random(shape)) for _ in range(2)]


def inside(inp, c, s=RATE):
    """Return the values of the domain, which is the whole array without its halo."""
    return torch.from_numpy(spread_reference(inp.numpy(), c.numpy(), s))[:-1, 1:]


def check(op, shape=SHAPE, s=RATE, seed=0):
    inp, c = tensors(shape, seed)
    out = torch.full(shape, -1.0, dtype=torch.float64)
    version = out._version
    assert op(inp, c, s, out=out) is out
    torch.testing.assert_close(out[:-1, 1:], inside(inp, c, s))
    assert (out[-1] == -1).all()
    assert (out[:, 0] == -1).all()
    assert out._version > version


@pytest.fixture(scope="module")
def op():
    return operator()


@pytest.fixture
def ready(op):
    """An operator that has been called several times in the same way."""
    for _ in range(4):
        check(op)
    return op


def test_other_tensors_and_numbers_give_other_values(ready):
    check(ready, seed=1)
    check(ready, s=0.125, seed=2)


@pytest.mark.parametrize("at", range(3))
def test_each_of_other_extents_are_computed_where_they_are(ready, at):
    shape = [extent + (at == axis) for axis, extent in enumerate(SHAPE)]
    for one in (shape, SHAPE, shape, shape, shape, SHAPE):
        check(ready, tuple(one))


def test_a_call_of_the_bound_stencil_with_other_extents_in_the_same_place_changes_nothing(op):
    run = op.function.run
    wider = tuple(extent + 1 for extent in SHAPE)
    check(op)
    options = op.function.plan([SHAPE, SHAPE]).options
    inp, c = tensors(wider)
    out = torch.zeros_like(inp)
    for _ in range(4):
        run(inp=inp, c=c, s=RATE, out=out, **options)
    check(op, wider)
    check(op)


def test_an_output_along_the_input_is_refused_after_calls_without_overlap(ready):
    inp, c = tensors((SHAPE[0] + 1, *SHAPE[1:]))
    with refused(BufferError, "'inp' and 'out'", "overlap"):
        ready(inp[:-1], c[:-1], RATE, out=inp[1:])


def test_a_tensor_that_has_come_to_require_a_gradient_is_refused(ready):
    inp, c = tensors()
    with refused(RuntimeError, "out=", "requires a gradient"):
        ready(inp.requires_grad_(), c, RATE, out=torch.zeros_like(c))
    with refused(RuntimeError, "out=", "requires a gradient"):
        ready(c, c, RATE, out=torch.zeros_like(c).requires_grad_())
    with torch.no_grad():
        out = torch.zeros_like(c)
        ready(inp, c, RATE, out=out)
    torch.testing.assert_close(out[:-1, 1:], inside(inp.detach(), c))


def test_a_tensor_in_the_place_of_a_number_and_an_array_in_that_of_a_tensor_are_refused(ready):
    inp, c = tensors()
    with pytest.raises((TypeError, RuntimeError)):
        ready(inp, c, torch.tensor(RATE), out=torch.zeros_like(c))
    with pytest.raises((TypeError, RuntimeError)):
        ready(dlf.as_storage(inp), c, RATE, out=torch.zeros_like(c))


def test_arrays_are_refused_also_if_the_bound_stencil_took_them_last(ready):
    arrays = [one.numpy() for one in (*tensors(), torch.zeros(SHAPE, dtype=torch.float64))]
    inp, c, out = arrays
    options = ready.function.plan([SHAPE, SHAPE]).options
    for _ in range(4):
        ready.function.run(inp=inp, c=c, s=RATE, out=out, **options)
    with refused(TypeError, "out: expected tensors for out", "got ndarray"):
        ready(inp, c, RATE, out=out)


@pytest.mark.parametrize("which", [(0,), (2,), (0, 1, 2)], ids=["an input", "the output", "all"])
def test_a_tensor_without_memory_is_treated_as_in_a_first_call(ready, which):
    def told(op):
        given = [*tensors(), torch.zeros(SHAPE, dtype=torch.float64)]
        given = [one.to("meta") if at in which else one for at, one in enumerate(given)]
        try:
            return op(given[0], given[1], RATE, out=given[2]).device
        except RuntimeError as error:
            return str(error).replace(op.name, "the operator")

    assert told(ready) == told(operator())


def test_a_number_that_is_refused_comes_after_what_autograd_refuses(ready):
    inp, c = tensors()
    with refused(RuntimeError, "out=", "requires a gradient"):
        ready(inp.requires_grad_(), c, "no number", out=torch.zeros_like(c))


@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")
def test_compiled_code_does_not_ask_for_the_last_call():
    op = operator()
    compiled = torch.compile(
        lambda a, b, o: 2 * op(a, b, RATE, out=o), backend="aot_eager", fullgraph=True
    )
    inp, c = tensors()
    out = torch.zeros_like(inp)
    compiled(inp, c, out)
    check(op)
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(inp, c, out)
    torch.testing.assert_close(out[:-1, 1:], inside(inp, c))


def test_who_listens_to_the_dispatcher_sees_a_call_that_comes_again(ready):
    class Listening(TorchDispatchMode):
        def __torch_dispatch__(self, func, _types, args=(), kwargs=None):
            heard.append(func)
            return func(*args, **(kwargs or {}))

    heard = []
    inp, c = tensors()
    with Listening():
        ready(inp, c, RATE, out=torch.zeros_like(c))
    assert ready.out_op in heard


def test_two_operators_of_one_stencil_compute_in_their_own_places():
    run = bound("spread")
    narrow = dlf.torch_op(run, "dlfield_tests::spread_narrow_again")
    wide = dlf.torch_op(run, "dlfield_tests::spread_wide_again", halo={"I": 2, "J": 2})
    inp, c = tensors((7, 7, 3))
    expected = inside(inp, c)
    for _ in range(3):
        for _ in range(3):
            out = torch.zeros_like(inp)
            narrow(inp, c, RATE, out=out)
            torch.testing.assert_close(out[:-1, 1:], expected)
        for _ in range(3):
            out = torch.zeros_like(inp)
            wide(inp, c, RATE, out=out)
            torch.testing.assert_close(out[2:-2, 2:-2], expected[2:-1, 1:-2])
            assert not out[:2].any()
            assert not out[:, -2:].any()
