"""Operators in the halo: fields in place keep their values, and so do their gradients."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.operators.function import StencilFunction

from support.errors import refused
from support.optional import library
from support.stencils.differentiable import bound, call, operator, spread_reference

torch = library("torch")
jax = library("jax")
jnp = library("jax.numpy")

SHAPE = (6, 3, 2)


def test_the_gradient_of_a_field_in_place_covers_the_halo_that_it_keeps():
    move = operator("move", adjoint="move_adjoint", halo={"I": (1, 2)})
    t, p = (torch.rand(SHAPE, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(move, (t, p))


def test_tangent_and_adjoint_of_a_field_in_place_agree_in_jax():
    from jax.test_util import check_grads

    made = call("move", adjoint="move_adjoint", tangent="move_tangent")
    random = np.random.default_rng(0)
    t, p = (jnp.asarray(random.random(SHAPE)) for _ in range(2))
    check_grads(made, (t, p), order=1, modes=["fwd", "rev"])


def test_a_check_of_an_adjoint_sees_the_halo_of_a_field_in_place():
    random = np.random.default_rng(0)
    values = {name: random.random(SHAPE) for name in ("t", "p")}
    dlf.testing.check_adjoint(bound("move"), bound("move_adjoint"), values, halo={"I": (1, 2)})


def test_a_saved_output_continues_by_its_edge():
    root = operator("root", adjoint="root_adjoint")
    inp = (0.5 + torch.rand(SHAPE, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(root, inp)


def test_out_of_a_field_in_place_begins_with_its_values():
    squeeze = operator("squeeze", adjoint=None)
    t, p = torch.full((2, 2, 3), 3.0).double(), torch.full((3,), 2.0).double()
    other, total = torch.zeros_like(t), torch.zeros_like(t)
    squeeze(t, p, out=(other, total))
    assert (other == 9).all()
    assert (total == 6).all()
    assert (t == 3).all()


def test_out_that_is_part_of_a_graph_is_refused():
    op = operator()
    x = torch.rand(6, 5, 3, dtype=torch.float64)
    y = torch.rand_like(x).requires_grad_() * 2
    with refused(RuntimeError, "out="):
        op(x, x, 1.5, out=y)


def test_a_gradient_by_a_number_is_refused_also_by_torch_func():
    op = operator()
    x = torch.rand(6, 5, 3, dtype=torch.float64)
    with refused(TypeError, "'s'", "declare 's' as a field"):
        torch.func.grad(lambda s: op(x, x, s).sum())(torch.tensor(1.5))


def test_a_callable_that_is_not_told_where_to_compute_has_no_halo_of_ones_own():
    field, access, ijk = (getattr(dlf.annotations, name) for name in ("Field", "Access", "IJK"))
    fields = {"inp": field[float, ijk, access["in"]], "out": field[float, ijk, access["out"]]}

    def square(inp, out):
        out[...] = inp**2

    run = dlf.bind(square, fields=fields)
    with refused(ValueError, "halo", "'square'", "not told where to compute"):
        dlf.torch_op(run, "dlfield_tests::square", halo={"I": 1})


def test_names_of_arguments_count_in_what_xla_calls():
    swapped = call(names={"inp": "c_bar", "c": "inp_bar"})
    right = call()
    random = np.random.default_rng(0)
    inp, c = (jnp.asarray(random.random((6, 5, 3))) for _ in range(2))
    first, second = (jax.grad(lambda a, f=f: f(a, c, 1.5).sum())(inp) for f in (swapped, right))
    assert not np.allclose(first, second)


@pytest.mark.parametrize("pair", [(0.0, -0.0), (1, True)])
def test_numbers_that_python_takes_for_equal_are_told_apart_or_made_one(pair):
    made = call("scale", adjoint=None)
    inp = jnp.ones((2, 2, 2))
    with np.errstate(divide="ignore"):
        for number in pair:
            assert (made(inp, number) == np.float64(1) / np.float64(number)).all()


def test_backends_are_told_apart():
    from dlfield.operators.function import StencilFunction
    from dlfield.operators.xla_entries import fingerprint

    functions = [
        StencilFunction(bound("spread", one)) for one in ("gt:cpu_kfirst", "gt:cpu_ifirst")
    ]
    one, other = (fingerprint(function.run, function.halos) for function in functions)
    assert one != other


def test_an_adjoint_that_is_nan_does_not_pass():
    values = {"inp": np.zeros(SHAPE)}
    with refused(AssertionError, "gradient of 'inp'"), np.errstate(all="ignore"):
        dlf.testing.check_adjoint(bound("divide"), bound("divide_adjoint"), values)


def test_a_gradient_where_the_derivative_is_zero_is_found():
    values = {"inp": np.random.default_rng(0).random(SHAPE)}
    with refused(AssertionError, "gradient of 'inp'"):
        dlf.testing.check_adjoint(bound("lowest_free"), bound("lowest_free_wrong"), values)


HALOS = [None, 2, {"I": (1, 2), "J": 1, "K": (0, 1)}, {"I": (0, 1), "J": (2, 0)}]


@pytest.mark.parametrize("halo", HALOS, ids=str)
@pytest.mark.parametrize("dims", ["IJK", "KJI"])
def test_of_a_large_output_that_a_call_covers_the_halo_alone_is_cleared(halo, dims):
    made = StencilFunction(bound("spread"), halo, dims)
    shape = tuple({"I": 40, "J": 32, "K": 30}[dim] for dim in dims)
    output = np.ones(shape)
    made.clear(0, output)
    widths = [made.halos.widths[dim] for dim in dims]
    inside = tuple(slice(low, n - high) for (low, high), n in zip(widths, shape, strict=True))
    expected = np.zeros(shape)
    expected[inside] = 1
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("name", ["chosen_beside", "lowest", "written_above"])
def test_a_large_output_that_a_call_may_leave_as_it_was_is_cleared_whole(compiled, name):
    output = np.ones((40, 32, 30))
    StencilFunction(dlf.bind(compiled(name, "numpy"))).clear(0, output)
    assert not output.any()


def test_a_large_plane_is_cleared_whole_since_a_domain_may_have_no_levels(compiled):
    output = np.ones((400, 300))
    StencilFunction(dlf.bind(compiled("highest_plane", "numpy"))).clear(0, output)
    assert not output.any()


def test_outputs_in_memory_of_xla_that_was_used_before_are_zero_in_the_halo():
    made, shape = call(), (300, 20, 8)
    used = jax.jit(lambda: jnp.ones(shape))
    for _ in range(5):
        del_me = [used().block_until_ready() for _ in range(4)]
        del del_me
        out = np.asarray(made(jnp.ones(shape), jnp.ones(shape), 1.5))
        assert not out[-1].any()
        assert not out[:, 0].any()
        assert (out[:-1, 1:] == -0.5).all()


def test_calls_by_xla_of_other_extents_and_numbers_are_computed_where_they_are():
    made, run = call(), bound("spread")
    shapes = [(6, 5, 3), (7, 5, 3), (6, 5, 3), (6, 6, 3), (6, 5, 4)]
    for shape in [one for one in shapes for _ in range(4)]:
        random = np.random.default_rng(sum(shape))
        inp, c = random.random(shape), random.random(shape)
        for s in (1.5, 0.25):
            expected = spread_reference(inp, c, s)
            np.testing.assert_allclose(made(inp, c, s), expected, rtol=1e-12)
        # The bound stencil by itself, elsewhere.
        run(inp, c, np.zeros(shape), s=s, origin=(1, 1, 0), domain=(2, 2, 1))
