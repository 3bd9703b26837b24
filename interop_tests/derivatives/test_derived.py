"""`dlf.adjoint` and `dlf.tangent`: right for what they take, and refused for what they do not."""

import functools
import pickle

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.processes import one_at_a_time

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    BACKWARD,
    FORWARD,
    IJ,
    IK,
    PARALLEL,
    Field,
    GlobalTable,
    I,
    J,
    K,
    computation,
    function,
    horizontal,
    interval,
    region,
    stencil,
)

from support.derived import checked  # noqa: E402
from support.stencils.seven import SEVEN, diffusion, in_place, tridiagonal, upwind  # noqa: E402

# ruff: noqa: F841, SIM108

F, F32 = Field[np.float64], Field[np.float32]
Pair, Matrix = Field[(np.float64, (2,))], Field[(np.float64, (2, 2))]


@functools.cache
def compiled(definition, backend="numpy", **options):
    with one_at_a_time(f"{definition.__name__}-{backend}".replace(":", "-")):
        return stencil(backend=backend, definition=definition, **options)


@pytest.mark.parametrize("definition", SEVEN, ids=lambda one: one.__name__)
def test_derivatives_equal_those_of_dual_numbers(definition):
    checked(compiled(definition))


def unlike_zeros(shape, dtype=float, **options):
    """Return what nobody may read: `np.empty` often gives zeros."""
    made = np.zeros(shape, dtype, **options)
    made.fill(np.nan if made.dtype.kind == "f" else 1)
    return made


@pytest.mark.parametrize(
    "name",
    [
        "beside_another_level",
        "beside_the_level_before",
        "either_way",
        "partly_written",
        "where_it_was_large",
    ],
)
def test_derivatives_use_no_value_that_was_not_computed(name, monkeypatch):
    subject = compiled(globals()[name])
    monkeypatch.setattr(np, "empty", unlike_zeros)
    checked(subject)


def test_derivatives_of_a_compiled_stencil_equal_those_of_dual_numbers():
    checked(compiled(diffusion, "gt:cpu_kfirst"))


def profiles(inp: F, line: Field[K, np.float64], plane: Field[IJ, np.float64], out: F):
    with computation(PARALLEL), interval(1, None):
        out = inp * line[-1] * plane[1, 0] + line * plane[0, -1]


def profile_beside_the_halo(
    inp: F, line: Field[K, np.float64], slab: Field[IK, np.float64], out: F
):
    with computation(PARALLEL), interval(...):
        far = line * slab * inp[1, -1, 0]
    with computation(PARALLEL), interval(1, None):
        out = inp * far[-2, 3, -1]


def profile_on_both_sides(inp: F, line: Field[K, np.float64], out: F):
    with computation(PARALLEL), interval(...):
        near = line * line
        out = inp[1, 0, 0] * near[-1, 0, 0] + near


def column(inp: F, weight: F, total: Field[IJ, np.float64], out: F):
    with computation(FORWARD):
        with interval(0, 1):
            total = inp * inp
        with interval(1, None):
            total = total * 0.9 + inp * weight
    with computation(PARALLEL), interval(...):
        out = inp / (1.0 + total * total)


def highest(inp: F, level: Field[IJ, np.float64], out: F):
    with computation(BACKWARD), interval(...):
        if inp > 1.0:
            level = inp * inp
        out = inp + level[0, 0]


def components(vector: Pair, matrix: Matrix, out: Pair):
    with computation(PARALLEL), interval(...):
        out[0, 0, 0][0] = matrix[0, 0, 0][0, 0] * vector[1, 0, 0][0] + vector[0, 0, 0][1]
        out[0, 0, 0][1] = matrix[0, 0, 0][1, 0] * vector[0, 0, 0][0] * out[0, 0, 0][0]


def table(inp: F, coefficients: GlobalTable[(np.float64, (3,))], out: F):
    with computation(PARALLEL), interval(...):
        out = coefficients.A[0] + coefficients.A[1] * inp + coefficients.A[2] * inp * inp


def at_edges(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        twice = inp * inp
        with horizontal(region[I[0], :], region[:, J[-1] - 1 :]):
            twice = inp[1, 0, 0] * inp
        out = twice[1, 0, 0] + twice[0, -1, 0]


def far_at_an_edge(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = inp * inp
        with horizontal(region[I[-1], :]):
            out = inp[-3, 0, 0] * inp


def within_levels(inp: F, out: F):
    with computation(FORWARD):
        with interval(0, 1):
            held = inp
        with interval(1, None):
            near = inp * inp
            held = near[1, 0, 0] * near[-1, 0, 0] + 0.5 * held[0, 0, -1] * near
    with computation(PARALLEL), interval(...):
        out = held * held


def beside_another_level(inp: F, out: F):
    with computation(PARALLEL), interval(0, 1):
        product = inp[1, 0, 1] * inp
        out = product * product
    with computation(PARALLEL), interval(1, None):
        out = inp


def beside_the_level_before(inp: F, out: F):
    with computation(FORWARD):
        with interval(0, 1):
            here = inp[1, 0, 0] * inp[1, 0, 0]
            out = inp
        with interval(1, None):
            out = here[0, 0, -1] * inp
            here = inp[1, 0, 0] * inp[1, 0, 0]


def where_it_was_large(inp: F, out: F):
    with computation(PARALLEL), interval(0, 1):
        flag = inp > 1.0
        out = inp[1, 0, 1] * inp[1, 0, 1] if flag else inp


def partly_written(inp: F, out: F):
    with computation(PARALLEL), interval(1, None):
        out = inp * inp
    with computation(PARALLEL), interval(...):
        if inp > 1.0:
            out = 2.0 * inp


def either_way(inp: F, out: F):
    with computation(PARALLEL), interval(0, 1):
        held = inp * inp * inp
    with computation(PARALLEL), interval(...):
        if inp > 1.0:
            held = inp * inp
        else:
            held = 2.0 * inp
        out = held * held


def branches(inp: F, c: F, out: F, *, limit: np.float64):
    with computation(PARALLEL), interval(...):
        if inp > limit:
            value = inp * c
            if c > 1.0:
                value = value * value
        elif c > 0.9:
            value = sqrt(inp)  # noqa: F821 - of GTScript
        else:
            value = c
        out = value[1, 0, 0] - value


def guarded(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = log(inp - 1.0) if inp > 1.0 else 0.0  # noqa: F821 - of GTScript


def written_twice(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        value = inp * inp
        value = value * value[0, 0, 0] + inp[-1, 0, 0]
        out = value[1, 0, 0] * inp
    with computation(PARALLEL), interval(0, 1):
        out = value * 3.0


def upwards(speed: F, force: F):
    with computation(FORWARD), interval(1, None):
        speed = speed + 0.5 * speed[0, 0, -1] * force


def by_neighbours(inp: F, out: F):
    with computation(FORWARD):
        with interval(0, 1):
            near = inp
        with interval(1, None):
            near = inp[0, 1, -1] * near[0, 0, -1]
    with computation(BACKWARD):
        with interval(-1, None):
            held = near
        with interval(0, -1):
            held = near[1, 0, 1] * near + 0.5 * held[0, 0, 1] * near[0, -1, 0]
    with computation(PARALLEL), interval(1, None):
        out = held[0, 0, -1] * held


FUNCTIONS = [
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "asinh", "sqrt", "exp", "log", "log10"),
    *("cbrt", "erf", "erfc", "floor", "ceil", "trunc", "abs"),
]


@function
def squared(value):
    return value * value


def with_function(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = squared(inp[1, 0, 0]) ** 1.5 + inp**3 - 2.0**inp + 1.0 / inp**2


OTHERS = [
    *(
        profiles,
        profile_beside_the_halo,
        profile_on_both_sides,
        column,
        highest,
        components,
        table,
        at_edges,
        far_at_an_edge,
        within_levels,
        branches,
        guarded,
        written_twice,
    ),
    *(upwards, by_neighbours, with_function),
]


@pytest.mark.parametrize("definition", OTHERS, ids=lambda one: one.__name__)
def test_derivatives_of_each_construct_equal_those_of_dual_numbers(definition):
    checked(compiled(definition))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_a_function_of_gtscript_equal_those_of_dual_numbers(name, tmp_path):
    checked(of_expression(tmp_path, f"{name}(inp) * inp[1, 0, 0]", f"of_{name}"))


@pytest.mark.parametrize("name", ["asin", "acos", "atanh"])
def test_derivatives_of_a_function_near_zero_equal_those_of_dual_numbers(name, tmp_path):
    checked(of_expression(tmp_path, f"{name}(0.6 * inp)", f"of_{name}"))


@pytest.mark.parametrize(
    "text",
    [
        "min(inp, inp[1, 0, 0])",
        "abs(inp[1, 0, 0] - inp) * inp",
        "max(inp, 1.0) * min(inp, 1.1)",
        "mod(inp, 0.4) * inp",
        "mod(7.3, inp) * inp",
        "inp[1, 0, 0] % (0.3 * inp)",
    ],
)
def test_a_kink_has_the_derivative_of_the_branch_that_was_taken(text, tmp_path):
    checked(of_expression(tmp_path, text, "kink"))


def of_expression(folder, text, name, kind="np.float64", **options):
    """Compile ``out = <text>``."""
    from support.reach.files import imported

    path = folder / f"{name}.py"
    path.write_text(
        "import numpy as np\nfrom gt4py.cartesian.gtscript import *\n\n\n"
        f"def {name}(inp: Field[{kind}], other: Field[np.int64], out: Field[{kind}]):\n"
        f"    with computation(PARALLEL), interval(...):\n        out = {text} + 0.0 * other\n"
    )
    return stencil(backend="numpy", definition=imported(path, name), **options)


@pytest.mark.parametrize("bits", [32, 64])
def test_a_derived_stencil_of_short_literals_writes_no_type_of_whole_numbers(tmp_path, bits):
    text = "(inp * inp if other > 2 else inp)"
    made = of_expression(tmp_path, text, f"whole_{bits}", literal_float_precision=bits)
    source = dlf.adjoint_source(made)
    assert "int64(" not in source
    assert "int32(" not in source


def single(inp: F32, c: F32, out: F32):
    with computation(PARALLEL), interval(...):
        value = inp * c if inp > c else sqrt(inp)  # noqa: F821 - of GTScript
        out = value[1, 0, 0] / c


def test_a_derived_stencil_of_float32_has_nothing_else():
    run = dlf.bind(compiled(single))
    adjoint = dlf.bind(dlf.adjoint(run))
    assert {str(one.dtype) for one in adjoint.declaration.fields} == {"float32"}
    assert "float64" not in dlf.adjoint_source(run).replace("np.float64", "")
    values = {name: np.linspace(0.5, 1.5, 60, dtype="f").reshape(5, 4, 3) for name in ("inp", "c")}
    dlf.testing.check_adjoint(run, adjoint, values, tangent=dlf.bind(dlf.tangent(run)), rtol=1e-5)


def test_only_gradients_that_are_asked_for_are_computed():
    source = dlf.adjoint_source(compiled(diffusion), wrt=["coeff"])
    assert "coeff_bar" in source
    assert "inp_bar" not in source
    assert "lap_bar" not in source


def test_what_no_gradient_needs_is_not_computed():
    source = dlf.adjoint_source(compiled(upwind), wrt=["inp"])
    assert "inp:" not in source  # it is linear in that
    assert "flux =" not in source.replace("# flux =", "")


def test_the_terms_of_a_sum_that_one_condition_guards_are_in_one_choice():
    assert dlf.adjoint_source(compiled(in_place)).count(" if speed_bar != 0.0 else 0.0") == 1


def test_a_sweep_that_reads_neighbours_of_another_stays_apart():
    """GT4Py would compute the value once more for each neighbour."""
    *_, last = dlf.adjoint_source(compiled(in_place)).split("with computation")
    assert "force_bar = gradient_bar[-1, 0, 0]" in last
    assert "gradient_bar =" not in last


def test_the_text_names_the_statements_of_the_original(tmp_path):
    source = dlf.adjoint_source(compiled(tridiagonal))
    assert "# pivot = diagonal - low * factor[0, 0, -1]" in source
    assert '"""The adjoint of \'tridiagonal\'."""' in source


def test_the_text_stands_in_a_file(tmp_path):
    from support.reach.files import imported

    path = tmp_path / "kept.py"
    path.write_text(dlf.adjoint_source(compiled(tridiagonal)))
    kept = stencil(backend="numpy", definition=imported(path, "tridiagonal_adjoint"))
    run = dlf.bind(compiled(tridiagonal))
    values = {one: np.random.default_rng(0).random((4, 3, 6)) for one in ("low", "high", "right")}
    values["diagonal"] = np.full((4, 3, 6), 3.0)
    dlf.testing.check_adjoint(run, dlf.bind(kept), values)


def test_a_derived_stencil_has_the_backend_and_the_name_of_the_original():
    derived = dlf.adjoint(compiled(upwind, "gt:cpu_kfirst"))
    assert derived.backend == "gt:cpu_kfirst"
    assert derived.options["name"] == "upwind_adjoint"


def test_a_bound_derived_stencil_travels():
    run = dlf.bind(dlf.adjoint(compiled(upwind)))
    again = pickle.loads(pickle.dumps(run))
    assert again.declaration.name == "upwind_adjoint"


def whiles(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = inp
        while out > 1.0:
            out = out * 0.5


def run_time_level(inp: F, shift: Field[np.int64], out: F):
    with computation(PARALLEL), interval(...):
        out = inp[0, 0, shift]


def beyond(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = inp[0, 0, 1]


def to_integers(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        number = int64(inp * 3.0)  # noqa: F821 - of GTScript
        out = inp * number


def other_level(inp: F, out: F):
    with computation(FORWARD), interval(0, -1):
        out[0, 0, 1] = inp


def special(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = inp
        out = gamma(inp)  # noqa: F821 - of GTScript


def constant(inp: F, out: F):
    with computation(PARALLEL), interval(...):
        out = 1.0 if inp > 1.0 else 2.0


def profile_far_apart(inp: F, line: Field[K, np.float64], out: F):
    with computation(PARALLEL), interval(...):
        near = line * line
        out = inp[1, 0, 0] * near[-2, 0, 0] + near


REFUSED = {
    whiles: "'whiles': line 4: 'while' repeats as often as values say",
    run_time_level: "line 3: 'inp' is read at a level known at run time",
    beyond: "'inp' is read beyond the lowest or the highest level",
    to_integers: "line 3: a value with a derivative is converted to int64",
    other_level: "line 3: 'out' is written elsewhere than at its own point",
    special: "line 4: 'gamma' has no derivative that is known",
    constant: "no output depends on inp",
}


@pytest.mark.parametrize(
    ("definition", "text"), REFUSED.items(), ids=[one.__name__ for one in REFUSED]
)
def test_what_has_no_derivative_is_refused_with_its_line(definition, text):
    made = compiled(definition)
    with refused(dlf.NotDifferentiable, text):
        dlf.adjoint(made)
    if definition is not beyond:  # of which there is a tangent
        with refused(dlf.NotDifferentiable, text):
            dlf.tangent(made)


def test_a_profile_that_counts_at_more_points_than_the_adjoint_computes_has_no_gradient():
    made = compiled(profile_far_apart)
    text = "'line', which lacks I, counts at points from -2 to 0 beside the domain along I"
    with refused(dlf.NotDifferentiable, text):
        dlf.adjoint(made)
    dlf.adjoint(made, wrt=["inp"])
    dlf.tangent(made)


def level_of_data(inp: F, shift: Field[np.int64], weight: F, out: F):
    with computation(PARALLEL), interval(...):
        out = inp * weight[0, 0, shift]


def test_a_level_known_at_run_time_is_taken_where_it_is_of_a_constant():
    source = dlf.adjoint_source(compiled(level_of_data), wrt=["inp"])
    assert "inp_bar = out_bar * weight[0, 0, shift]" in source
    with refused(dlf.NotDifferentiable, "'weight' is read at a level known at run time"):
        dlf.adjoint(compiled(level_of_data))


def test_an_input_that_is_unknown_is_refused():
    with refused(ValueError, "wrt: expected inputs of a floating type (inp, coeff), got 'out'"):
        dlf.adjoint(compiled(diffusion), wrt=["out"])


def test_what_is_no_stencil_of_cartesian_is_refused():
    with refused(TypeError, "stencil: expected a stencil of gt4py.cartesian", "got function"):
        dlf.adjoint(diffusion)
