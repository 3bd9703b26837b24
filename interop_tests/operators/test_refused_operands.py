"""Operators take what the bound stencil takes: nothing is repeated, converted or written before."""

import copy
import pickle
from typing import Any

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Axes, Boundary, Field

from support.errors import refused
from support.optional import library

torch = library("torch")

SHAPE = (3, 2, 2)
READ: Any = Field[np.float64, Access["in"]]
AROUND: Any = Field[np.float64, Access["in"], Boundary[((1, 1), (0, 0), (0, 0))]]
WRITTEN: Any = Field[np.float64, Access["out"]]
UPDATED: Any = Field[np.float64, Access["inout"]]
PLANE: Any = Field[np.float64, Axes["IJ"], Access["in"]]
UPDATED_PLANE: Any = Field[np.float64, Axes["IJ"], Access["inout"]]


def part(array, origin, domain):
    return array[tuple(slice(at, at + points) for at, points in zip(origin, domain, strict=False))]


def add(inp: READ, t: UPDATED, *, origin, domain):
    part(t, origin["t"], domain)[...] += part(inp, origin["inp"], domain)


def double_and_triple(a: UPDATED, b: UPDATED, *, origin, domain):
    part(a, origin["a"], domain)[...] *= 2
    part(b, origin["b"], domain)[...] *= 3


def scaled(inp: READ, out: WRITTEN, n: np.int32, *, origin, domain):
    part(out, origin["out"], domain)[...] = part(inp, origin["inp"], domain) * n


def full(value, shape=SHAPE):
    return torch.full(shape, value, dtype=torch.float64)


@pytest.fixture(scope="module")
def adds():
    return dlf.torch_op(dlf.bind(add), "refused_operands::add")


def test_an_output_may_be_another_argument_of_a_stencil_that_updates(adds):
    inp = full(1.0)
    adds(inp, full(10.0), out=inp)
    assert (inp == 11.0).all()


def test_outputs_may_be_exchanged_for_updated_arguments():
    op = dlf.torch_op(dlf.bind(double_and_triple), "refused_operands::double_and_triple")
    a, b = full(1.0), full(10.0)
    op(a, b, out=(b, a))
    assert (b == 2.0).all()
    assert (a == 30.0).all()


def test_outputs_that_overlap_are_refused():
    op = dlf.torch_op(dlf.bind(double_and_triple), "refused_operands::overlapping")
    whole = full(-1.0, (4, 2, 2))
    with refused(BufferError, "expected outputs in separate memory"):
        op(full(1.0), full(1.0), out=(whole[:3], whole[1:]))
    assert (whole == -1.0).all()


def test_outputs_may_lie_between_each_other():
    op = dlf.torch_op(dlf.bind(double_and_triple), "refused_operands::between")
    whole = full(-1.0, (6, 2, 2))
    op(full(1.0), full(1.0), out=(whole[::2], whole[1::2]))
    assert whole[:, 0, 0].tolist() == [2, 3] * 3


def test_a_refused_call_has_written_no_output(adds):
    out = full(-1.0)
    with refused(ValueError, "argument 'inp'", "float32"):
        adds(full(1.0).float(), full(10.0), out=out)
    assert (out == -1.0).all()


@pytest.mark.parametrize(
    "given",
    [full(10.0).float(), full(10.0) + 2j, full(10).long()],
    ids=["float32", "complex", "integers"],
)
@pytest.mark.parametrize("out", [None, full(0.0)], ids=["new", "out"])
def test_an_updated_argument_is_not_converted(adds, given, out):
    with refused(ValueError, "argument 't': expected float64 of shape (3, 2, 2)"):
        adds(full(1.0), given, out=out)


@pytest.mark.parametrize("shape", [SHAPE[1:], (), (1, *SHAPE[1:])], ids=str)
def test_an_updated_argument_is_not_repeated_into_a_new_output(adds, shape):
    with refused(ValueError, "argument 't': expected float64 of shape (3, 2, 2)"):
        adds(full(1.0), full(10.0, shape))


@pytest.mark.parametrize("value", [2.7, "3", None, True, 2**40], ids=repr)
def test_a_scalar_is_not_converted_to_another_number(value):
    jax = library("jax")
    run = dlf.bind(scaled)
    with refused(ValueError, "argument 'n': expected a scalar of int32"):
        dlf.torch_op(run, f"refused_operands::scaled_{str(value)[0]}")(full(1.0), value)
    with refused(ValueError, "argument 'n': expected a scalar of int32"):
        dlf.jax_call(run)(jax.numpy.ones(SHAPE), value)


def test_a_number_that_its_type_cannot_hold_does_not_become_infinite():
    jax = library("jax")

    def raised(inp: READ, out: WRITTEN, power: np.float32, *, origin, domain):
        out[...] = inp * power

    run = dlf.bind(raised)
    with refused(ValueError, "argument 'power': expected a scalar of float32, got 1e+300"):
        dlf.torch_op(run, "refused_operands::raised")(full(1.0), 1e300)
    call = dlf.jax_call(run)
    with refused(ValueError, "argument 'power': expected a scalar of float32, got 1e+300"):
        call(jax.numpy.ones(SHAPE), 1e300)
    assert jax.numpy.isinf(call(jax.numpy.ones(SHAPE), float("inf"))).all()


def test_the_summed_gradient_of_an_updated_field_has_its_halo_in_jax():
    jax = library("jax")

    def twice(q: READ, t: UPDATED_PLANE, *, origin, domain):
        part(t, origin["t"], domain[:2])[...] *= 2

    def adjoint(t_bar: PLANE, q_bar: WRITTEN, t_grad: WRITTEN, *, origin, domain):
        whole = part(t_grad, origin["t_grad"], domain)
        whole[..., 0] = 2 * part(t_bar, origin["t_bar"], domain[:2])

    call = dlf.jax_call(dlf.bind(twice), halo=(1, 0, 0), adjoint=dlf.bind(adjoint))
    q, t = jax.numpy.ones((4, 2, 3)), jax.numpy.ones((4, 2))
    gradient = jax.grad(lambda t: call(q, t).sum())(t)
    assert gradient[:, 0].tolist() == [1, 2, 2, 1]


def test_a_callable_that_gets_no_origin_is_refused_a_wider_halo_below():
    def difference(inp: AROUND, out: WRITTEN, *, domain):
        out[1 : 1 + domain[0]] = inp[2 : 2 + domain[0]] - inp[: domain[0]]

    run = dlf.bind(difference)
    dlf.torch_op(run, "refused_operands::difference", halo={"I": (1, 2)})
    with refused(ValueError, "halo: expected the reach of 'difference'"):
        dlf.torch_op(run, "refused_operands::wider", halo={"I": (2, 1)})


def test_a_tangent_that_is_not_told_where_to_compute_serves_jax():
    jax = library("jax")

    def smooth(inp: AROUND, out: WRITTEN):
        out[1:-1] = inp[2:] + inp[:-2]

    def smooth_dot(inp_dot: AROUND, out_dot: WRITTEN):
        out_dot[1:-1] = inp_dot[2:] + inp_dot[:-2]

    call = dlf.jax_call(dlf.bind(smooth), tangent=dlf.bind(smooth_dot))
    x = jax.numpy.arange(5.0)[:, None, None]
    _, along = jax.jvp(call, (x,), (x,))
    assert along[:, 0, 0].tolist() == [0, 2, 4, 6, 0]


def test_an_empty_batch_gives_an_empty_batch():
    op = dlf.torch_op(dlf.bind(scaled), "refused_operands::of_none")
    batch = torch.zeros((0, *SHAPE), dtype=torch.float64)
    assert torch.func.vmap(lambda one: op(one, 2))(batch).shape == batch.shape


# --- what torch's own operators take -----------------------------------------------------------


def times(inp: READ, out: WRITTEN, factor: float, *, origin, domain):
    part(out, origin["out"], domain)[...] = factor * part(inp, origin["inp"], domain)


def times_adjoint(out_bar: READ, inp_bar: WRITTEN, factor: float, *, origin, domain):
    inp_bar[...] = factor * out_bar


@pytest.fixture(scope="module")
def multiplies():
    adjoint = dlf.bind(times_adjoint)
    return dlf.torch_op(dlf.bind(times), "refused_operands::times", adjoint=adjoint)


def negated():
    """Return a tensor of -2, whose memory holds 2."""
    pending = torch.imag((full(1.0) * (1 + 2j)).conj())
    assert pending.is_neg()
    return pending


def test_an_int_stands_for_a_real_number(multiplies):
    inp, out = full(1.0).requires_grad_(), full(0.0)
    multiplies(inp, 2).sum().backward()
    multiplies(inp.detach(), 3, out=out)
    assert (inp.grad == 2.0).all()
    assert (out == 3.0).all()


def test_a_pending_negation_of_an_input_is_resolved(multiplies):
    assert (multiplies(negated(), 2.0) == -4.0).all()
    out = full(0.0)
    for _ in range(2):
        assert (multiplies(negated(), 2.0, out=out) == -4.0).all()


def test_a_pending_negation_of_an_output_is_refused(multiplies):
    for inp in (full(1.0), negated()):
        with refused(BufferError, "out: expected tensors whose memory holds", "resolve_neg()"):
            multiplies(inp, 2.0, out=negated())


# --- what is bound -------------------------------------------------------------------------------


BOUND = {
    "torch_op": lambda run: dlf.torch_op(run, "refused::unbound"),
    "its adjoint": lambda run: dlf.torch_op(dlf.bind(run), "refused::unbound", adjoint=run),
    "jax_call": lambda run: dlf.jax_call(run),
    "its tangent": lambda run: dlf.jax_call(dlf.bind(run), tangent=run),
    "check_adjoint": lambda run: dlf.testing.check_adjoint(dlf.bind(run), run, {}),
}


@pytest.mark.parametrize("call", BOUND.values(), ids=BOUND)
def test_a_stencil_that_is_not_bound_is_refused(call):
    with refused(TypeError, "expected a bound stencil, got", "pass dlfield.bind("):
        call(add)


def test_names_beside_a_derived_derivative_are_for_constants():
    library("gt4py.cartesian.gtscript")
    from support.stencils.differentiable import bound

    run = bound("spread")
    with refused(ValueError, "None for constants alone beside adjoint='derive'", "for 'inp'"):
        dlf.torch_op(run, "refused::renamed", adjoint="derive", names={"inp": "d_inp"})


def test_jax_refuses_an_updated_argument_of_another_shape():
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)  # noqa: FBT003 (JAX's own signature)
    with refused(ValueError, "argument 't': expected float64 of shape (3, 2, 2)", "(3, 1, 2)"):
        dlf.jax_call(dlf.bind(add))(np.ones(SHAPE), np.ones((3, 1, 2)))


@pytest.mark.parametrize("kind", ["adjoint", "tangent"])
def test_a_derivative_that_needs_more_levels_than_a_plane_has_is_refused_at_once(kind):
    gtscript = library("gt4py.cartesian.gtscript")
    from support.stencils.planes import multiplied_in_each_level

    run = dlf.bind(gtscript.stencil(backend="numpy", definition=multiplied_in_each_level))
    with refused(ValueError, f"{kind} of 'multiplied_in_each_level'", "interval(0, 1)"):
        dlf.jax_call(run, **{kind: "derive"})


@pytest.mark.parametrize("out", [np.zeros(SHAPE), [np.zeros(SHAPE)], [None], 5], ids=str)
def test_an_output_that_is_no_tensor_is_refused_by_its_type(adds, out):
    with refused(TypeError, "out: expected tensors for t, got"):
        adds(full(1.0), full(2.0), out=out)


def test_names_are_checked_without_a_derivative():
    with refused(ValueError, "names: expected fields of 'add'", "got 'zzz'"):
        dlf.torch_op(dlf.bind(add), "refused_operands::named", names={"zzz": None})


def doubled(inp: READ, out: WRITTEN, s: np.float64 = 2.0, *, origin, domain):
    part(out, origin["out"], domain)[...] = part(inp, origin["inp"], domain) * s


def test_a_scalar_that_is_left_out_has_its_default():
    op = dlf.torch_op(dlf.bind(doubled), "refused_operands::doubled")
    assert (op(full(3.0)) == 6.0).all()
    assert (op(full(3.0), s=3.0) == 9.0).all()
    jax_call = dlf.jax_call(dlf.bind(doubled))
    assert (np.asarray(jax_call(np.full(SHAPE, 3.0, "f8"))) == 6.0).all()


def test_a_module_that_holds_an_operator_may_be_copied(adds):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.op = adds

    assert copy.deepcopy(Model()).op is adds
    with refused(TypeError, "cannot be pickled; make it again in that process"):
        pickle.dumps(adds)
