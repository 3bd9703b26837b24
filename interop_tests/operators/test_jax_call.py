"""`jax_call` against the same function of `jax.numpy`: values, memory, derivatives, refusals."""

import functools
import threading
from typing import Any

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Field

from support.errors import refused
from support.optional import library
from support.processes import run_in_subprocess
from support.stencils.differentiable import RATE, SHAPE, bound, call
from support.stencils.integers import jumping, jumping_adjoint, jumping_tangent

jax = library("jax")
jnp = library("jax.numpy")

TOLERANCE = {"rtol": 1e-12, "atol": 1e-12}


def arrays(count=2, shape=SHAPE, seed=0):
    random = np.random.default_rng(seed)
    return [jnp.asarray(random.random(shape)) for _ in range(count)]


def native(inp, c):
    """Compute what `spread` does, with zeros in the halo."""
    east, north = jnp.roll(inp, -1, 0), jnp.roll(inp, 1, 1)
    out = RATE * c * (east - 2.0 * north) + inp
    return out.at[-1].set(0).at[:, 0].set(0)


def native_smooth(inp):
    return (inp + 0.5 * jnp.roll(inp, -1, 0)).at[-1].set(0)


@pytest.fixture(scope="module", params=["adjoint", "adjoint and tangent"])
def spread(request):
    """Return the stencil as a function of its two arrays."""
    tangent = {"tangent": "spread_tangent"} if "tangent" in request.param else {}
    made = call(**tangent)
    return lambda inp, c: made(inp, c, RATE)


def close(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **TOLERANCE), one, other)


def test_it_computes_inside_and_outside_of_jit(backend):
    made = call(backend=backend)
    inp, c = arrays()
    close(made(inp, c, RATE), native(inp, c))
    close(jax.jit(lambda a, b: made(2 * a, b, RATE) + 1)(inp, c), native(2 * inp, c) + 1)


def test_arrays_of_numpy_and_arguments_by_name_are_taken():
    inp, c = arrays()
    close(call()(np.asarray(inp), s=RATE, c=c), native(inp, c))


def test_arrays_may_have_their_axes_in_another_order():
    inp, c = arrays()
    turned = call(dims="KJI")(inp.transpose(2, 1, 0), c.transpose(2, 1, 0), RATE)
    close(turned.transpose(2, 1, 0), native(inp, c))


def test_a_wider_halo_is_zero_in_the_output():
    inp, c = arrays()
    out = call(halo={"I": (1, 2), "J": 1, "K": 0})(inp, c, RATE)
    close(out, native(inp, c).at[0].set(0).at[-2:].set(0).at[:, -1].set(0))


def test_the_stencil_gets_the_memory_of_xla():
    seen = []
    field, access, ijk = (getattr(dlf.annotations, name) for name in ("Field", "Access", "IJK"))
    fields = {"inp": field[float, ijk, access["in"]], "out": field[float, ijk, access["out"]]}

    def spy(inp, out):
        seen.append((inp.ctypes.data, out.ctypes.data, inp.flags.writeable))
        out[...] = inp

    copy = dlf.jax_call(dlf.bind(spy, fields=fields))
    (inp,) = arrays(1)
    out = jax.jit(copy)(inp)
    close(out, inp)
    (read, written, writeable) = seen.pop()
    assert (read, written) == (inp.unsafe_buffer_pointer(), out.unsafe_buffer_pointer())
    assert not writeable
    assert written % 64 == 0


def test_gradients(spread):
    inp, c = arrays()
    loss = [lambda a, b, f=f: (f(a, b) ** 2).sum() for f in (spread, native)]
    close(*(jax.grad(one, argnums=(0, 1))(inp, c) for one in loss))
    close(*(jax.jit(jax.grad(one, argnums=(0, 1)))(inp, c) for one in loss))


def test_jacobians(spread):
    inp, c = arrays(shape=(3, 3, 2))
    close(jax.jacrev(spread, argnums=(0, 1))(inp, c), jax.jacrev(native, argnums=(0, 1))(inp, c))


def test_gradients_against_finite_differences():
    from jax.test_util import check_grads

    check_grads(lambda a, b: call()(a, b, RATE), tuple(arrays()), order=1, modes=["rev"])
    wide = call(halo={"I": (2, 3), "J": (2, 1), "K": 1})
    check_grads(lambda a, b: wide(a, b, RATE), tuple(arrays(shape=(7, 5, 4))), 1, modes=["rev"])
    divide = call("divide", adjoint="divide_adjoint")
    check_grads(divide, (1 + arrays(1)[0],), order=1, modes=["rev"])
    turned = call(dims="KJI")
    check_grads(lambda a, b: turned(a, b, RATE), tuple(arrays(shape=(2, 4, 3))), 1, modes=["rev"])


def test_forward_derivatives_with_a_tangent():
    made = call(tangent="spread_tangent")
    inp, c = arrays()
    directions = tuple(arrays(seed=1))
    close(
        jax.jvp(lambda a, b: made(a, b, RATE), (inp, c), directions),
        jax.jvp(native, (inp, c), directions),
    )
    close(
        jax.jvp(lambda a: made(a, c, RATE), (inp,), directions[:1]),
        jax.jvp(lambda a: native(a, c), (inp,), directions[:1]),
    )
    value, linear = jax.linearize(lambda a: made(a, c, RATE), inp)
    close((value, linear(c)), jax.jvp(lambda a: native(a, c), (inp,), (c,)))


def test_products_with_a_hessian_of_a_linear_stencil():
    made = call("smooth", adjoint="smooth_adjoint", tangent="smooth_tangent")
    inp, direction = arrays()

    def product(f):
        return jax.jvp(jax.grad(lambda a: (f(a) ** 3).sum()), (inp,), (direction,))

    close(product(made), product(native_smooth))


def test_a_second_derivative_by_what_the_tangent_depends_on_is_refused():
    made = call(tangent="spread_tangent")
    inp, c = arrays()
    with refused(NotImplementedError, "'spread'", "derivative of a derivative"):
        jax.jvp(jax.grad(lambda a: (made(a, c, RATE) ** 2).sum()), (inp,), (c,))


def test_forward_mode_without_a_tangent_is_refused():
    made = call()
    inp, c = arrays()
    with refused(NotImplementedError, "'spread'", "needs a tangent", "tangent=dlfield.bind(...)"):
        jax.jvp(lambda a: made(a, c, RATE), (inp,), (c,))


def test_without_adjoint_and_tangent_a_derivative_says_what_is_missing():
    made = call(adjoint=None)
    inp, c = arrays()
    with refused(NotImplementedError, "'spread'", "needs an adjoint or a tangent", "to jax_call"):
        jax.grad(lambda a: made(a, c, RATE).sum())(inp)


def test_a_gradient_that_the_adjoint_does_not_write_is_nan_and_a_constant_is_zero():
    inp, c = arrays()

    def gradient(made):
        return jax.grad(lambda b: made(inp, b, RATE).sum())(c)

    assert jnp.isnan(gradient(call(adjoint="without_c"))).all()
    assert not gradient(call(adjoint="without_c", names={"c": None})).any()


def test_a_direction_that_the_tangent_does_not_take_makes_its_derivative_nan():
    made = call(adjoint=None, tangent="spread_tangent_of_inp")
    inp, c = arrays()
    along = jax.jvp(lambda a: made(a, c, RATE), (inp,), (inp,))
    close(along, jax.jvp(lambda a: native(a, c), (inp,), (inp,)))
    assert jnp.isnan(jax.jvp(lambda b: made(inp, b, RATE), (c,), (c,))[1]).all()


def test_batches(spread):
    inp, c = arrays()
    batch = jnp.stack([inp, 2 * inp, -inp])
    close(jax.vmap(spread, (0, None))(batch, c), jax.vmap(native, (0, None))(batch, c))
    close(jax.vmap(spread, (None, 0))(inp, batch), jax.vmap(native, (None, 0))(inp, batch))
    last = jnp.moveaxis(batch, 0, -1)
    close(jax.vmap(spread, (-1, 0), -1)(last, batch), jax.vmap(native, (-1, 0), -1)(last, batch))
    twice = jnp.stack([batch, batch + 1])
    both = [jax.vmap(jax.vmap(f, (0, None)), (0, None)) for f in (spread, native)]
    close(*(f(twice, c) for f in both))


def test_gradients_of_batches(spread):
    inp, c = arrays()
    batch = jnp.stack([inp, 2 * inp])
    loss = [lambda a, b, f=f: (f(a, b) ** 2).sum() for f in (spread, native)]
    close(*(jax.vmap(jax.grad(one, (0, 1)), (0, None))(batch, c) for one in loss))
    whole = [lambda a, f=f: (jax.vmap(f, (0, None))(a, c) ** 2).sum() for f in (spread, native)]
    close(*(jax.grad(one)(batch) for one in whole))


def loop(f, inp, c, steps=4):
    return jax.lax.scan(lambda a, _: (a + 0.1 * f(a, c), None), inp, None, length=steps)[0]


def test_loops_and_branches(spread):
    inp, c = arrays()
    close(loop(spread, inp, c), loop(native, inp, c))
    for f in (spread, native):
        body = functools.partial(lambda f, _, a: a + 0.1 * f(a, c), f)
        close(jax.lax.fori_loop(0, 4, body, inp), loop(native, inp, c))
    branch = jax.jit(lambda which, a: jax.lax.cond(which, lambda a: spread(a, c), jnp.sin, a))
    close((branch(1, inp), branch(0, inp)), (native(inp, c), jnp.sin(inp)))


def test_gradients_through_a_scan_and_a_checkpoint(spread):
    inp, c = arrays()
    for wrap in (lambda f: f, jax.checkpoint):
        found, expected = (
            jax.grad(lambda b, f=f: (loop(f, inp, b) ** 2).sum())(c)
            for f in map(wrap, (spread, native))
        )
        close(found, expected)


def test_a_field_in_place_several_outputs_and_a_profile():
    squeeze = call("squeeze", adjoint="squeeze_adjoint")
    t, p = arrays(1, (2, 3, 4))[0], arrays(1, (4,))[0]
    before = np.asarray(t).copy()
    close(squeeze(t, p), (t * t, t * p))
    np.testing.assert_array_equal(t, before)
    close(jax.vmap(squeeze, (0, None))(jnp.stack([t, -t]), p)[1], jnp.stack([t * p, -t * p]))
    loss = [
        lambda t, p, f=f: sum((one**2).sum() for one in f(t, p))
        for f in (squeeze, lambda t, p: (t * t, t * p))
    ]
    close(*(jax.grad(one, (0, 1))(t, p) for one in loss))


@pytest.mark.parametrize("donated", [False, True])
def test_a_donated_field_is_updated_in_its_own_memory(donated):
    squeeze = call("squeeze", adjoint=None)
    program = jax.jit(squeeze, donate_argnums=0 if donated else ())
    t, p = arrays(1, (2, 3, 4))[0] + 0, arrays(1, (4,))[0]
    address, expected = t.unsafe_buffer_pointer(), t * t
    squared, _ = program(t, p)
    close(squared, expected)
    assert (squared.unsafe_buffer_pointer() == address) is donated
    assert t.is_deleted() is donated


def test_an_input_that_is_too_small_for_its_gradient_is_refused_by_the_call():
    inp, c = arrays()
    with refused(ValueError, "'c'", "at least 6 points along I for a derivative", "got 5"):
        jax.grad(lambda a: call()(a, c[:5], RATE).sum())(inp)


def test_wrong_arguments_are_refused_while_tracing():
    made = call()
    inp, c = arrays()
    with refused(TypeError, "'inp' of spread", "expected dtype float64", "float32"):
        jax.jit(lambda a: made(a, c, RATE))(inp.astype("float32"))
    with refused(ValueError, "at least 1 points along I", "halo of (0, 1)", "got 0"):
        made(inp[:0], c[:0], RATE)
    with refused(ValueError, "3 dimensions, I, J, K"):
        made(inp[0], c, RATE)
    with refused(TypeError, "inp, c, s", "got no s"):
        made(inp, c)
    with refused(TypeError, "'s' of spread", "a Python number", "declare 's' as a field"):
        jax.jit(lambda s: made(inp, c, s))(RATE)


def test_an_error_of_the_stencil_has_its_text_and_the_next_call_is_right():
    made = call()
    inp, c = arrays()
    for _ in range(2):
        with refused(Exception, "INVALID_ARGUMENT", "ValueError", "'c'", "0 to 2"):
            jax.block_until_ready(made(inp, c[:2], RATE))
        close(made(inp, c, RATE), native(inp, c))


def test_a_view_that_is_kept_is_an_error():
    kept = []
    field, access, ijk = (getattr(dlf.annotations, name) for name in ("Field", "Access", "IJK"))
    fields = {"inp": field[float, ijk, access["in"]], "out": field[float, ijk, access["out"]]}

    def keeping(inp, out):
        out[...] = inp
        kept.append(inp[0])

    made = dlf.jax_call(dlf.bind(keeping, fields=fields))
    (inp,) = arrays(1)
    with refused(Exception, "keeps no array after the call", "copy what is to be kept"):
        jax.block_until_ready(made(inp))


def test_four_threads_compute_the_same():
    made, wrong = jax.jit(functools.partial(call(), s=RATE)), []
    inputs = [arrays(seed=seed) for seed in range(4)]

    def work(inp, c):
        expected = np.asarray(native(inp, c))
        for _ in range(100):
            if not np.allclose(made(inp, c), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work, args=one) for one in inputs]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_jax_exports_a_program_where_the_call_is_named():
    inp, c = arrays()
    made = jax.jit(functools.partial(call(), s=RATE))
    with refused(ValueError, "dlfield_call"):
        jax.export.export(made)(inp, c)
    named = jax.export.DisabledSafetyCheck.custom_call("dlfield_call")
    exported = jax.export.export(made, disabled_checks=[named])(inp, c)
    np.testing.assert_array_equal(exported.call(inp, c), made(inp, c))


def test_shards_along_an_axis_without_reach():
    printed = run_in_subprocess(
        """
        import os
        os.environ["JAX_ENABLE_X64"] = "1"
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import AxisType, PartitionSpec as P
        from support.stencils.differentiable import RATE, call

        mesh = jax.make_mesh((2,), ("k",), axis_types=(AxisType.Auto,))
        made = call()
        inp = jnp.asarray(np.random.default_rng(0).random((6, 5, 4)))
        parts = P(None, None, "k")
        each = jax.shard_map(lambda a, b: made(a, b, RATE), mesh=mesh, in_specs=(parts, parts),
                             out_specs=parts)
        print(np.array_equal(jax.jit(each)(inp, inp), made(inp, inp, RATE)))
        """,
        warnings="ignore",
    )
    assert printed == "True"


def test_without_x64_the_way_out_is_said():
    printed = run_in_subprocess(
        """
        import os
        os.environ["JAX_ENABLE_X64"] = "0"
        import jax.numpy as jnp
        from support.stencils.differentiable import SHAPE, call

        try:
            call()(jnp.ones(SHAPE), jnp.ones(SHAPE), 1.0)
        except TypeError as error:
            print("jax_enable_x64" in str(error))
        """,
        warnings="ignore",
    )
    assert printed == "True"


def test_the_interpreter_ends_while_a_program_runs():
    run_in_subprocess(
        """
        import os
        os.environ["JAX_ENABLE_X64"] = "1"
        import jax, jax.numpy as jnp, numpy as np
        from support.stencils.differentiable import RATE, call

        made = call()
        inp = jnp.asarray(np.random.default_rng(0).random((64, 64, 20)))
        out = jax.jit(lambda a: jax.lax.fori_loop(0, 50, lambda _, a: made(a, a, RATE), a))(inp)
        """,
        warnings="ignore",
    )


def test_the_name_of_an_entry_is_the_same_in_another_process():
    from dlfield.operators.xla_entries import fingerprint

    code = """
        from dlfield.operators.function import StencilFunction
        from dlfield.operators.xla_entries import fingerprint
        from support.stencils.differentiable import bound
        function = StencilFunction(bound("spread"))
        print(fingerprint(function.run, function.halos))
        """
    from dlfield.operators.function import StencilFunction

    function = StencilFunction(bound("spread"))
    own = fingerprint(function.run, function.halos)
    assert run_in_subprocess(code, warnings="ignore") == own


def test_an_output_of_integers_has_no_derivative_beside_one_that_has():
    adjoint, tangent = dlf.bind(jumping_adjoint), dlf.bind(jumping_tangent)
    made = dlf.jax_call(dlf.bind(jumping), adjoint=adjoint, tangent=tangent)
    inp = jnp.asarray(3.0 * np.random.default_rng(0).random(SHAPE))
    weighted = jax.grad(lambda values: (made(values)[0] * made(values)[1]).sum())
    close(jax.jit(weighted)(inp), jnp.floor(inp) ** 2)
    (_, out), (_, out_dot) = jax.jvp(made, (inp,), (jnp.ones_like(inp),))
    close((out, out_dot), (jnp.floor(inp) * inp, jnp.floor(inp)))
    close(jax.vmap(jax.grad(lambda values: made(values)[1].sum()))(inp[None])[0], jnp.floor(inp))


COMPLEX_IN: Any = Field[np.complex128, Access["in"]]
COMPLEX_OUT: Any = Field[np.complex128, Access["out"]]


def turned(inp: COMPLEX_IN, out: COMPLEX_OUT, *, origin, domain):
    out[...] = 1j * np.asarray(inp)


def turned_adjoint(out_bar: COMPLEX_IN, inp_bar: COMPLEX_OUT, *, origin, domain):
    inp_bar[...] = -1j * np.asarray(out_bar)


def test_a_gradient_of_complex_values_is_that_of_jax():
    run, adjoint = dlf.bind(turned), dlf.bind(turned_adjoint)
    values = jnp.asarray(np.full((2, 2, 2), 1.0 + 2.0j))
    found = jax.grad(lambda x: jnp.sum(dlf.jax_call(run, adjoint=adjoint)(x)).real)(values)
    expected = jax.grad(lambda x: jnp.sum(1j * x).real)(values)
    np.testing.assert_allclose(found, expected, **TOLERANCE)
    dlf.testing.check_adjoint(run, adjoint, {"inp": np.asarray(values)})
