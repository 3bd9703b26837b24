"""`dlf.adjoint` and `dlf.tangent` in corners: names, zeros, halos, planes."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    BACKWARD,
    FORWARD,
    IJ,
    PARALLEL,
    Field,
    computation,
    interval,
    stencil,
)

# ruff: noqa: F841

F, P = Field[np.float64], Field[IJ, np.float64]


def compiled(definition, backend="numpy"):
    return stencil(backend=backend, definition=definition)


def product(a: F, a_bar: F, o: F):
    with computation(PARALLEL), interval(...):
        o = a * a_bar


def scaled(a: F, a_bar: F, o_bar: F, *, o_dot: np.float64):
    with computation(PARALLEL), interval(...):
        o_bar = a * a_bar * o_dot


def updated(a: F, a_grad: F):
    with computation(PARALLEL), interval(...):
        a = a * a_grad


def by_a_number(o: F, a: F, *, a_dot: np.float64):
    with computation(PARALLEL), interval(...):
        o = a * a_dot


def of_a_cotangent(o_bar: F, o: F):
    with computation(PARALLEL), interval(...):
        o = o_bar * o_bar


@pytest.mark.parametrize(
    ("derive", "definition", "texts"),
    [
        (dlf.adjoint, product, ["'product': expected another name than 'a_bar', which the adjoint",
                                "for 'a'; rename it, or leave 'a' out by wrt="]),
        (dlf.adjoint_source, product, ["expected another name than 'a_bar'"]),
        (dlf.adjoint, updated, ["expected another name than 'a_grad', which the adjoint"]),
        (dlf.tangent, by_a_number, ["expected another name than 'a_dot', which the tangent"]),
        (dlf.adjoint, of_a_cotangent, ["'o_bar', which the adjoint has for 'o'; rename it"]),
    ],
)  # fmt: skip
def test_a_name_that_the_derived_stencil_gives_is_refused(derive, definition, texts):
    with refused(ValueError, *texts):
        derive(compiled(definition))


def test_a_tangent_of_a_tangent_is_derived_by_the_directions_alone():
    tangent = dlf.tangent(compiled(of_a_cotangent))
    with refused(ValueError, "'o_bar_dot', which the tangent has for 'o_bar'", "wrt="):
        dlf.tangent(tangent)
    assert "o_dot_dot" in dlf.tangent(tangent, wrt=["o_bar_dot"]).field_info


def test_names_that_are_in_nobodys_way_are_taken():
    assert "a_bar_bar" in dlf.adjoint(compiled(scaled), wrt=["a_bar"]).field_info


def power(a: F, b: F, n: Field[np.int32], o: F, *, two: np.float64):
    with computation(PARALLEL), interval(...):
        o = a**b + a**n + a**two + a**2.0 + b**-3 + a**0.0


@pytest.mark.parametrize("backend", ["numpy", "debug"])
def test_a_power_at_zero_has_the_derivatives_of_torch(backend):
    torch = library("torch")
    run = dlf.bind(compiled(power, backend))
    op = dlf.torch_op(run, f"corners::power_{backend}", adjoint="derive")
    given = [[0.0, 0.0, 2.0, 0.0], [2.0, 0.5, 1.5, 1.0], [0, 1, 0, 2]]
    types = [torch.float64, torch.float64, torch.int32]
    a, b, n = (
        torch.tensor(one, dtype=kind).reshape(4, 1, 1)
        for one, kind in zip(given, types, strict=True)
    )
    inputs = [a.requires_grad_(), b.requires_grad_()]
    with np.errstate(all="ignore"):  # 0 ** -0.5 is infinite
        made = torch.autograd.grad(op(a, b, n, two=2.0).sum(), inputs)
    right = torch.autograd.grad((a**b + a**n + a**2.0 + a**2.0 + b**-3 + a**0.0).sum(), inputs)
    for one, other in zip(made, right, strict=True):
        torch.testing.assert_close(one, other)


def with_literals(a: F, o: F):
    with computation(PARALLEL), interval(...):
        o = a**3 * a**-1.5 * a**2


def test_a_power_with_a_literal_exponent_has_no_choice_in_its_derivative():
    assert " if " not in dlf.adjoint_source(compiled(with_literals))


def divided(a: F, b: F, c: F, o: F):
    with computation(PARALLEL), interval(...):
        root = sqrt(c)  # noqa: F821 - of GTScript
        o = a[1, 0, 0] + a[-1, 0, 0] + a / b + root * a + a**b


@pytest.mark.parametrize("backend", ["numpy", "debug"])
def test_halo_values_that_a_stencil_does_not_read_have_no_part_in_its_gradients(backend):
    torch = library("torch")
    run = dlf.bind(compiled(divided, backend))
    op = dlf.torch_op(run, f"corners::divided_{backend}", adjoint="derive")
    a = torch.full((4, 1, 1), 3.0, dtype=torch.float64, requires_grad=True)
    b, c = torch.zeros_like(a), torch.full_like(a, -1.0)
    b[1:-1], c[1:-1] = 2.0, 4.0
    inputs = [a, b.requires_grad_(), c.requires_grad_()]
    with np.errstate(all="ignore"):  # a root is computed in the halo, too
        made = torch.autograd.grad(op(a, b, c).sum(), inputs)
    found = [one.flatten().tolist() for one in made]
    assert found[0] == [1.0, 9.5, 9.5, 1.0]
    assert found[1] == pytest.approx([0.0, by_b := 9.0 * np.log(3.0) - 0.75, by_b, 0.0])
    assert found[2] == [0.0, 0.75, 0.75, 0.0]


def pointwise(a: F, b: F, o: F):
    with computation(PARALLEL), interval(...):
        o = a / b


def smooth(a: F, b: F, o: F):
    with computation(PARALLEL), interval(...):
        o = a[1, 0, 0] * b**3 / 2.0 + sin(a * b)  # noqa: F821 - of GTScript


def test_gradients_are_guarded_only_where_the_halo_counts():
    assert " if " not in dlf.adjoint_source(compiled(pointwise))
    assert " if " not in dlf.adjoint_source(compiled(smooth))


def plane(a: P, b: P, o: P):
    with computation(FORWARD), interval(0, 1):
        o = a[1, 0] * b + a * a


def plane_at_all_levels(a: P, o: P, p: P):
    with computation(FORWARD), interval(...):
        kept = a * a
        o = kept[1, 0, 0] * a
    with computation(BACKWARD), interval(...):
        p = kept + o


def plane_from_above(a: P, b: P):
    with computation(FORWARD), interval(-1, None):
        b = b * a


@pytest.mark.parametrize(
    "definition", [plane, plane_at_all_levels, plane_from_above], ids=lambda one: one.__name__
)
def test_derivatives_of_planes_alone_are_computed(definition):
    run = dlf.bind(compiled(definition))
    adjoint, tangent = (dlf.bind(derive(run)) for derive in (dlf.adjoint, dlf.tangent))
    inputs = [one.name for one in run.declaration.fields if one.access != "write"]
    random = np.random.default_rng(0)
    values = {name: random.uniform(0.5, 1.5, (5, 4)) for name in inputs}
    dlf.testing.check_tangent(run, tangent, values)
    dlf.testing.check_adjoint(run, adjoint, values, tangent=tangent, rtol=1e-12)


def without_inputs(o: F):
    with computation(PARALLEL), interval(...):
        o = 1.0


def test_the_error_for_a_stencil_without_inputs_says_what_is_missing():
    with refused(dlf.NotDifferentiable, "no output depends on an input of a floating type"):
        dlf.adjoint(compiled(without_inputs))


def converted(a: F, o: F):
    with computation(PARALLEL), interval(...):
        o = int32(a * 2.0) * a  # noqa: F821 - of GTScript


def test_a_conversion_to_integers_in_an_expression_is_constant():
    assert "a_bar = o_bar * float64(int32(a * 2.0))" in dlf.adjoint_source(compiled(converted))


def by_a_whole_number(inp: F, ii: Field[np.int64], out: F):
    with computation(PARALLEL), interval(...):
        if inp > 0.0:  # noqa: SIM108 - only a statement leaves a variable without a value
            n = ii + 1
        else:
            n = ii
        out = inp * (n - ii)


def test_a_whole_number_that_is_first_written_under_a_condition_stays_one():
    run = dlf.bind(compiled(by_a_whole_number))
    values = {"inp": np.ones((3, 3, 2)), "ii": np.full((3, 3, 2), 2**53)}
    adjoint, tangent = (dlf.bind(one(run, ["inp"])) for one in (dlf.adjoint, dlf.tangent))
    dlf.testing.check_adjoint(run, adjoint, values, tangent=tangent)
    made = tangent.functional(inp=values["inp"], ii=values["ii"], inp_dot=np.ones((3, 3, 2)))
    np.testing.assert_array_equal(made[-1] if isinstance(made, tuple) else made, 1.0)


def test_names_of_inputs_are_a_list():
    with refused(TypeError, "wrt: expected names in a list, got 'a'; write ['a']"):
        dlf.adjoint(compiled(product), wrt="a")
