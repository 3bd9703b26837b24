"""An exchange that is differentiated: its transpose adds up what halos have received."""

import gc
import os
import sys
from contextlib import contextmanager

import dlfield as dlf
import numpy as np
import pytest
from dlfield import _core
from dlfield.halo import Edge, Neighbours

from support.errors import refused
from support.optional import library
from support.processes import one_at_a_time
from support.ranks import mpi_is_needed, on_ranks

mpi_is_needed()
torch = library("torch")
jax = library("jax")
gtscript = library("gt4py.cartesian.gtscript")
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval  # noqa: E402

os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
jax.config.update("jax_enable_x64", True)  # noqa: FBT003 (JAX's own signature)

SHAPE, STEPS = (12, 10, 2), 25


def made(comm, periodic):
    """Plan an exchange, and draw a field and a cotangent of a block."""
    block = dlf.halo.decompose(
        SHAPE, comm, "IJK", halo={"I": (2, 1), "J": 1}, periodic=dict.fromkeys("IJ", periodic)
    )
    random = np.random.default_rng(0 if comm is None else comm.rank)
    shape = block.zeros().shape
    x, y = (random.standard_normal(shape) for _ in range(2))
    return dlf.halo_exchange([block.zeros()], block.cart, dims=block.divided), x, y


def total(comm, number):
    return number if comm is None else comm.allreduce(number)


def in_torch(plan, x, y):
    tensor = torch.from_numpy(x).requires_grad_()
    result = plan.torch_op()(tensor)
    result.backward(torch.from_numpy(y))
    return result.detach().numpy(), tensor.grad.numpy()


def in_jax(plan, x, y):
    result, transposed = jax.vjp(jax.jit(plan.jax_call()), x)
    return np.asarray(result), np.asarray(transposed(jax.numpy.asarray(y))[0])


def expect_transpose(comm, way, periodic):
    plan, x, y = made(comm, periodic)
    with plan:
        result, gradient = way(plan, x, y)
    one, other = total(comm, np.vdot(result, y)), total(comm, np.vdot(x, gradient))
    assert abs(one - other) <= 1e-13 * abs(total(comm, np.abs(result * y).sum()))
    assert periodic is False or not np.array_equal(result, x)


@on_ranks(2, 4)
def test_the_gradient_of_torch_is_the_transpose(comm):
    for periodic in (True, False):
        expect_transpose(comm, in_torch, periodic)


@on_ranks(2, 4)
def test_the_gradient_of_jax_is_the_transpose(comm):
    for periodic in (True, False):
        expect_transpose(comm, in_jax, periodic)


@pytest.mark.parametrize("way", [in_torch, in_jax])
def test_on_one_rank_the_gradient_is_the_transpose(way):
    expect_transpose(None, way, periodic=True)


# GT4Py reads the source of this function and compiles it: it is never called from Python.
def diffusion(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp + 0.1 * inp * (  # noqa: F841 (writes the field)
            inp[-1, 0, 0] + 0.7 * inp[1, 0, 0] + inp[0, -1, 0] + 0.9 * inp[0, 1, 0] - 3.6 * inp
        )


def of_torch(run, adjoint, plan, start):
    step, exchange = dlf.torch_op(run, f"halo::step{id(plan)}", adjoint=adjoint), plan.torch_op()
    first = torch.from_numpy(start).requires_grad_()
    state = first
    for _ in range(STEPS):
        state = step(exchange(state))
    (state**2).sum().backward()
    return first.grad.numpy()


def of_jax(run, adjoint, plan, start):
    step, exchange = dlf.jax_call(run, adjoint=adjoint), plan.jax_call()

    def loss(state):
        state, _ = jax.lax.scan(lambda q, _: (step(exchange(q)), None), state, None, STEPS)
        return (state**2).sum()

    return np.asarray(jax.jit(jax.grad(loss))(start))


def gradient_of_a_model(comm, way):
    """Return the gradient on all points of the domain, as the first rank has it."""
    with one_at_a_time("diffusion-numpy-derived"):
        run = dlf.bind(gtscript.stencil(backend="numpy", definition=diffusion))
        adjoint = dlf.bind(dlf.adjoint(run))
    block = dlf.halo.decompose(
        SHAPE, comm, "IJK", halo={"I": 1, "J": 1}, periodic={"I": True, "J": True}
    )
    start = block.zeros()
    region = tuple(block.region.get(dim, slice(None)) for dim in "IJK")
    values = 0.5 + 0.2 * np.random.default_rng(1).random(SHAPE)
    start.domain_view.to_numpy()[...] = values[region]
    with dlf.halo_exchange([start], block.cart, dims=block.divided) as plan:
        gradient = way(run, adjoint, plan, start.to_numpy().copy())
    inner = gradient[1:-1, 1:-1]
    parts = [(region, inner)] if comm is None else comm.gather((region, inner))
    whole = np.zeros(SHAPE)
    for where, part in parts or []:
        whole[where] = part
    return whole


@on_ranks(4)
def test_a_model_of_torch_on_four_ranks_has_the_gradient_of_one(comm):
    expect_the_gradient_of_one_rank(comm, of_torch)


@on_ranks(4)
def test_a_model_of_jax_on_four_ranks_has_the_gradient_of_one(comm):
    expect_the_gradient_of_one_rank(comm, of_jax)


def expect_the_gradient_of_one_rank(comm, way):
    found = gradient_of_a_model(comm, way)
    if comm.rank == 0:
        alone = gradient_of_a_model(None, way)
        assert np.abs(found - alone).max() <= 1e-13 * np.abs(alone).max()
        assert np.abs(alone).max() > 0


def test_another_number_of_tensors_is_refused():
    plan, x, _ = made(None, periodic=True)
    with plan, refused(ValueError, "fields: expected 1, as many as the plan has, got 2"):
        plan.torch_op()(torch.from_numpy(x), torch.from_numpy(x))


@on_ranks(2)
def test_messages_whose_tags_are_crossed_have_the_transpose(comm):
    other = 1 - comm.rank
    up, down = {"I": 1}, {"I": -1}
    edges = {
        0: [Edge(other, up, up, tag=0), Edge(other, down, down, tag=1)],
        1: [
            Edge(other, up, down, tag=1, receive_tag=0),
            Edge(other, down, up, tag=0, receive_tag=1),
        ],
    }
    field = dlf.zeros((6, 3), dims="IJ", halo={"I": 1})
    with dlf.halo_exchange([field], Neighbours(comm, edges[comm.rank])) as plan:
        random = np.random.default_rng(comm.rank)
        x, y = (random.standard_normal(field.shape) for _ in range(2))
        result, gradient = in_torch(plan, x, y)
    one, rest = total(comm, np.vdot(result, y)), total(comm, np.vdot(x, gradient))
    assert abs(one - rest) <= 1e-13 * total(comm, np.abs(result * y).sum())


@contextmanager
def two_plans(comm):
    """Make two plans of one communicator."""
    block = dlf.halo.decompose((6, 4), comm, "IJ", halo={"I": 1})
    with (
        dlf.halo_exchange({"q": block.zeros()}, block.cart, dims=block.divided) as one,
        dlf.halo_exchange({"s": block.zeros()}, block.cart, dims=block.divided) as other,
    ):
        yield one, other, np.full(block.zeros().shape, float(comm.rank))


def expect_another_order_is_refused(comm, step, error, plans):
    """Let ranks begin with another plan, and then with the same one."""
    one, other, array = plans
    with pytest.raises(error) as caught:
        step(other if comm.rank else one, array)
    texts = comm.allgather(str(caught.value))
    expected = "step: expected exchange of (q) by plan 0, as on rank 0, got exchange of (s) by plan"
    assert all(f"rank 1: {expected} 1; take the same steps" in text for text in texts), texts
    filled = np.asarray(step(one, array))
    assert filled[-1 if comm.rank == 0 else 0, 0] == 1 - comm.rank


@on_ranks(2)
def test_another_order_of_steps_is_an_error_of_torch_on_all_ranks(comm):
    with two_plans(comm) as plans:
        expect_another_order_is_refused(
            comm, lambda plan, x: plan.torch_op()(torch.from_numpy(x)), ValueError, plans
        )


@on_ranks(2)
def test_another_order_of_steps_is_an_error_of_jax_on_all_ranks(comm):
    def step(plan, x):
        return jax.jit(plan.jax_call())(x).block_until_ready()

    with two_plans(comm) as plans:
        expect_another_order_is_refused(comm, step, jax.errors.JaxRuntimeError, plans)


@on_ranks(2)
def test_arrays_that_do_not_fit_on_one_rank_are_an_error_on_all(comm):
    with two_plans(comm) as (plan, _, array):
        wrong = array[1:] if comm.rank else array
        with pytest.raises(ValueError, match=r"^rank 1: field 'q': expected dtype, shape, dims"):
            plan.torch_op()(torch.from_numpy(wrong.copy()))


@on_ranks(2)
def test_jax_makes_an_exchange_whose_result_one_rank_does_not_use(comm):
    with two_plans(comm) as (one, other, array):
        first, second = one.jax_call(), other.jax_call()

        @jax.jit
        def program(x):
            unused = first(x)
            return second(x) if comm.rank else second(x) + 0 * unused

        assert program(array)[-1 if comm.rank == 0 else 0, 0] == 1 - comm.rank


def test_jax_makes_exchanges_that_do_not_depend_on_each_other_in_the_order_of_the_program():
    order = []
    plans = [made(None, periodic=True)[0] for _ in range(6)]
    x = np.ones(plans[0].fields[0].shape)
    for number, plan in enumerate(plans):
        carry_out = plan._engine.start
        plan._engine.start = lambda fields, number=number, go=carry_out: (
            order.append(number),
            go(fields),
        )
    calls = [plan.jax_call() for plan in plans]
    program = jax.jit(lambda x: [calls[number](x) for number in (3, 1, 5, 0, 4, 2)])
    jax.block_until_ready((program(x), program(2 * x)))
    assert order == [3, 1, 5, 0, 4, 2] * 2


def test_a_batch_of_jax_is_exchanged_element_by_element():
    plan, x, y = made(None, periodic=True)
    with plan:
        exchange = plan.jax_call()
        batch = np.stack([x, y, x - y])
        found = jax.jit(jax.vmap(exchange))(batch)
        gradients = jax.vmap(jax.grad(lambda z: (exchange(z) ** 2).sum()))(batch)
        for at, one in enumerate(batch):
            np.testing.assert_array_equal(found[at], exchange(one))
            expected = jax.grad(lambda z: (exchange(z) ** 2).sum())(one)
            np.testing.assert_array_equal(gradients[at], expected)


def test_a_program_whose_plan_was_freed_is_refused():
    plan, x, _ = made(None, periodic=True)
    program = jax.jit(plan.jax_call())
    program(x).block_until_ready()
    plan.free()
    expected = "exchange: expected an exchange that is idle, got one that is freed"
    with pytest.raises(jax.errors.JaxRuntimeError, match=expected):
        program(x).block_until_ready()


def test_what_xla_calls_goes_with_the_plan():
    plan, x, _ = made(None, periodic=True)
    jax.clear_caches()
    gc.collect()  # what other tests have left
    before = len(_core.xla_entries())
    exchange = plan.jax_call()
    exchange(x).block_until_ready()
    assert len(_core.xla_entries()) == before + 2
    del exchange, plan
    jax.clear_caches()
    gc.collect()
    assert len(_core.xla_entries()) == before


@pytest.mark.filterwarnings("ignore:`torch.jit.script`")  # of torch's own, at its first jvp
@pytest.mark.parametrize("transform", ["grad", "jvp"])
def test_functions_of_torch_transform_the_exchange(transform):
    plan, x, v = made(None, periodic=True)
    exchange, x, v = plan.torch_op(), torch.from_numpy(x), torch.from_numpy(v)
    with plan:
        if transform == "jvp":
            found, expected = torch.func.jvp(exchange, (x,), (v,))[1], exchange(v)
        else:
            found = torch.func.grad(lambda z: (exchange(z) * v).sum())(x)
            tensor = x.clone().requires_grad_()
            (expected,) = torch.autograd.grad((exchange(tensor) * v).sum(), tensor)
    assert torch.equal(found, expected)


def test_a_second_derivative_of_torch_is_that_of_the_transpose():
    plan, x, v = made(None, periodic=True)
    exchange = plan.torch_op()
    tensor, along = torch.from_numpy(x).requires_grad_(), torch.from_numpy(v)
    with plan:
        (gradient,) = torch.autograd.grad((exchange(tensor) ** 3).sum(), tensor, create_graph=True)
        (found,) = torch.autograd.grad((gradient * along).sum(), tensor)
        filled, turned = exchange(tensor.detach()), exchange(along)
        weights = (6 * filled * turned).detach()
        probe = torch.zeros_like(tensor, requires_grad=True)
        (expected,) = torch.autograd.grad((exchange(probe) * weights).sum(), probe)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-13, atol=1e-13)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`")  # of torch's own, at its first jvp
def test_a_field_of_integers_goes_along_and_has_no_derivative():
    row = [dlf.zeros((5,), dims="I", halo=(1,), dtype=dtype) for dtype in ("float64", "int32")]
    plan = dlf.halo_exchange(row, None, dims="I")
    x, m = np.arange(5.0), np.arange(5, dtype="int32")
    filled, gradient = [3, 1, 2, 3, 1], [0, 2, 1, 2, 0]
    exchange, t, n = plan.torch_op(), torch.from_numpy(x), torch.from_numpy(m)
    assert torch.func.jvp(lambda z: exchange(z, n)[0], (t,), (t,))[1].tolist() == filled
    assert torch.func.grad(lambda z: exchange(z, n)[0].sum())(t).tolist() == gradient
    exchange = plan.jax_call()
    made, along = jax.jit(lambda z: jax.jvp(lambda y: exchange(y, m), (z,), (z,)))(x)
    assert [one.tolist() for one in made] == [filled, filled]
    assert (along[0].tolist(), along[1].dtype) == (filled, jax.dtypes.float0)
    assert jax.grad(lambda z: exchange(z, m)[0].sum())(x).tolist() == gradient
    batch = jax.vmap(jax.grad(lambda z: exchange(z, m)[0].sum()))(np.stack([x, x]))
    assert batch.tolist() == [gradient, gradient]
