"""Where operators of gt4py.next compute: wherever their outputs are, or on the domain given."""

import dlfield as dlf
import numpy as np
import pytest
from gt4py.next.experimental import concat_where

from support.errors import refused
from support.optional import gt4py
from support.stencils import next_programs as programs
from support.stencils.next_programs import (
    BACKENDS,
    IJK,
    QUIET,
    I,
    J,
    K,
    connectivities,
    float64,
    gtx,
    int32,
    on,
)

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

SHAPE = (5, 4, 3)
Levels = gtx.Field[gtx.Dims[K], float64]


@gtx.field_operator
def same(inp: IJK) -> IJK:
    return inp


@gtx.field_operator
def level_number(inp: IJK) -> IJK:
    """Tell levels from 2 on, by their number, from those below."""
    return concat_where(K < 2, 0.0 * inp, inp)


@gtx.field_operator
def with_boundary(boundary: IJK, interior: IJK) -> IJK:
    return concat_where(K == 0, boundary, interior)


@gtx.field_operator
def with_boundary_by_unequal(boundary: IJK, interior: IJK) -> IJK:
    return concat_where(K != 0, interior, boundary)


@gtx.field_operator
def moved_behind_first_row(left: IJK, right: IJK) -> IJK:
    both = left + right
    return concat_where(J > 0, both(I - 2), both)


@gtx.field_operator
def joined(low: IJK, high: IJK, level: int32) -> IJK:
    return concat_where(K < level, low, high)  # noqa: SIM300 (an axis, no constant)


@gtx.field_operator
def joined_above(low: IJK, high: IJK, level: int32) -> IJK:
    return joined(low, high, level + 2)


@gtx.field_operator
def twice(value: gtx.Field[gtx.Dims[()], float64]) -> gtx.Field[gtx.Dims[()], float64]:
    return 2.0 * value


@pytest.fixture(params=BACKENDS)
def bound(request):
    return lambda stencil, **options: dlf.bind(
        stencil.with_backend(BACKENDS[request.param]), **options
    )


def values(*shape):
    return np.random.default_rng(1).random(shape or SHAPE)


def untouched(*shape):
    return np.full(shape or SHAPE, -1.0)


def field(array, *starts):
    """Return a field of gt4py.next that begins at `starts`."""
    ends = zip(starts, array.shape, strict=True)
    ranges = dict(zip((I, J, K), [(at, at + n) for at, n in ends], strict=True))
    return gtx.as_field(gtx.domain(ranges), array)


def test_an_operator_computes_wherever_its_output_is(bound):
    boundary, interior, out = np.full((5, 4, 1), 100.0), values(), untouched()
    bound(with_boundary)(boundary, interior, out=out)
    assert (out[..., 0] == 100.0).all()
    assert np.array_equal(out[..., 1:], interior[..., 1:])


def test_an_operator_in_place_is_refused_with_the_way_out(bound):
    inp = values()
    with refused(BufferError, "arguments 'inp' and 'out'", "arrays that overlap; pass a copy"):
        bound(same)(inp, out=inp)
    assert np.array_equal(inp, values())


def test_an_input_that_does_not_reach_as_far_as_the_output_is_refused(bound):
    out = untouched(6, 4, 3)
    with refused(ValueError, "argument 'inp': expected points 0 to 6 along I", "got 0 to 5"):
        bound(same)(values(), out=out)
    assert (out == -1.0).all()


def test_a_value_where_an_axis_is_not_unequal_is_needed_everywhere_as_gt4py_takes_it_there(bound):
    gt4py(before=(1, 2))
    boundary, interior, out = values(5, 4, 1), values(), untouched()
    with refused(ValueError, "argument 'boundary': expected points 0 to 3 along K", "got 0 to 1"):
        bound(with_boundary_by_unequal)(boundary, interior, out=out)
    assert (out == -1.0).all()


@pytest.mark.parametrize("backend", ["roundtrip", "gtfn_cpu"])
def test_a_value_where_an_axis_is_not_unequal_is_needed_there_alone(backend):
    gt4py(since=(1, 2))
    boundary, interior, out = values(5, 4, 1), values(), untouched()
    stencil = with_boundary_by_unequal.with_backend(BACKENDS[backend])
    dlf.bind(stencil)(boundary, interior, out=out)
    np.testing.assert_array_equal(out[..., :1], boundary)
    np.testing.assert_array_equal(out[..., 1:], interior[..., 1:])


def test_a_region_without_points_counts_for_a_value_that_gt4py_stores_for_others(bound):
    left, out = values(5, 1, 3), untouched(5, 1, 3)
    with refused(ValueError, "argument 'left': expected points -2 to 5 along I", "got 0 to 5"):
        bound(moved_behind_first_row)(left, left.copy(), out=out)
    assert (out == -1.0).all()


def test_a_scalar_that_an_inner_operator_gets_under_the_same_name_is_its_own(bound):
    low, high, out = values(5, 4, 2), values(5, 4, 4), untouched(5, 4, 4)
    run = bound(joined_above)
    with refused(ValueError, "argument 'low': expected points 0 to 3 along K", "got 0 to 2"):
        run(low, high, 1, out=out)
    run(low, high, 0, out=out)
    assert np.array_equal(out, np.concatenate((low, high[..., 2:]), axis=-1))
    with refused(ValueError, "argument 'low': expected points 0 to 3 along K", "got 0 to 2"):
        run(low, high, 1, out=out)


def test_fields_that_do_not_begin_at_zero_keep_their_numbers(bound):
    inp, out = field(values(), 5, -2, 1), field(untouched(), 5, -2, 1)
    bound(level_number)(inp, out=out)
    assert (out.ndarray[..., 0] == 0.0).all(), "level 1"
    assert np.array_equal(out.ndarray[..., 1:], inp.ndarray[..., 1:])


def test_an_input_that_begins_behind_the_output_is_refused(bound):
    out = field(untouched(), 0, 0, 0)
    with refused(ValueError, "argument 'inp': expected points 0 to 5 along I", "got 1 to 6"):
        bound(same)(field(values(), 1, 0, 0), out=out)
    assert (out.ndarray == -1.0).all()


@pytest.mark.parametrize(
    "domain",
    [
        {I: (1, 4), J: (0, 4), K: (2, 3)},
        {"I": range(1, 4), "J": 4, "K": (2, 3)},
        gtx.domain({I: (1, 4), J: (0, 4), K: (2, 3)}),
    ],
    ids=["dimensions", "names", "Domain"],
)
def test_a_domain_of_ranges_is_computed_and_nothing_else(bound, domain):
    inp, out = values(), untouched()
    bound(level_number)(inp, out=out, domain=domain)
    assert np.array_equal(out[1:4, :, 2:], inp[1:4, :, 2:])
    assert (out == -1.0).sum() == out.size - 3 * 4


def test_a_domain_that_leaves_the_output_is_refused(bound):
    out = untouched()
    with refused(ValueError, "argument 'out': expected points 1 to 6 along I"):
        bound(same)(values(7, 4, 3), out=out, domain={I: (1, 6), J: (0, 4), K: (0, 3)})
    assert (out == -1.0).all()


def test_a_domain_without_an_axis_of_the_output_is_refused():
    with refused(ValueError, "domain: expected a number for 'K'"):
        dlf.bind(same)(values(), out=untouched(), domain={I: (1, 4), J: (0, 4)})


@pytest.mark.parametrize("given", [(1, 4), [1, 4], np.array([1, 4]), slice(1, 4)])
def test_a_range_is_any_two_numbers(given):
    inp, out = values(), untouched()
    dlf.bind(same)(inp, out=out, domain={I: given, J: 4, K: 3})
    assert np.array_equal(out[1:4], inp[1:4])
    assert (out == -1.0).sum() == out.size - 3 * 4 * 3


@pytest.mark.parametrize(
    "given", [range(0, 5, 2), slice(0, 5, 2), slice(0, 5, 2.0), range(5, 0, -1)]
)
def test_a_range_that_leaves_points_out_is_refused(given):
    out = untouched()
    with refused(ValueError, "domain: expected a range with step 1", f"got {given!r}"):
        dlf.bind(same)(values(), out=out, domain={I: given, J: 4, K: 3})
    assert (out == -1.0).all()


@pytest.mark.parametrize("given", [(4, 1), slice(4, 1), -3])
def test_a_range_that_ends_before_it_begins_is_refused(given):
    out = untouched()
    text = "domain: expected an end of at least", "along I, its first point, got"
    with refused(ValueError, *text, "the point after the last"):
        dlf.bind(same)(values(), out=out, domain={I: given, J: 4, K: 3})
    assert (out == -1.0).all()


def test_anything_but_two_numbers_is_no_range():
    with refused(TypeError, "domain: expected a first point and the end, got (1, 4, 2)"):
        dlf.bind(same)(values(), out=untouched(), domain={I: (1, 4, 2), J: 4, K: 3})


def test_numbers_of_points_are_those_of_the_dimensions_of_the_output():
    run = dlf.bind(programs.sum_over_cells, offset_provider=programs.connectivities())
    cells, edges = np.ones((3, 2)), np.full((4, 2), -1.0)
    run(cells, out=edges, domain=(3, 2))
    assert edges.tolist() == [[2.0, 2.0]] * 3 + [[-1.0, -1.0]]
    with refused(ValueError, "domain: expected 2 numbers for Edge, K, got [3]"):
        run(cells, out=edges, domain=(3,))


def test_ranges_are_refused_for_a_program_which_decides_itself():
    with refused(TypeError, "domain: expected none for 'lift'"):
        dlf.bind(programs.lift)(values(), untouched(), domain={I: (0, 4)})


def test_outputs_with_different_domains_are_refused_with_the_way_out():
    up, down = untouched(), untouched(4, 4, 3)
    with refused(ValueError, "argument 'out[1]': expected points 0 to 5 along I, as in 'out[0]'"):
        dlf.bind(programs.both_ways)(values(), out=(up, down))
    everywhere = {"I": 4, "J": 4, "K": 3}
    dlf.bind(programs.both_ways)(values(), out=(up, down), domain=everywhere)
    assert np.array_equal(down, values()[:4] - 1.0)
    assert (up[4] == -1.0).all()


def test_a_domain_for_each_output_is_refused_with_the_way_out():
    up, down = untouched(), untouched()
    domains = ({I: (0, 5), J: (0, 4), K: (0, 3)}, {I: (0, 4), J: (0, 4), K: (0, 3)})
    with refused(ValueError, "domain: expected one for all outputs, got 2", "in a program"):
        dlf.bind(programs.both_ways)(values(), out=(up, down), domain=domains)


def test_an_explanation_says_where_an_operator_and_a_program_compute():
    moved, out = field(values(), 5, -2, 1), field(untouched(), 5, -2, 1)
    said = repr(dlf.explain(dlf.bind(same), moved, out=out))
    assert ": domain I=5:10, J=-2:2, K=1:4, bounds checked\n" in said
    said = repr(dlf.explain(dlf.bind(programs.lift), values(), untouched()))
    assert ": domain as the program decides, bounds checked\n" in said


def test_an_output_without_dimensions_is_computed(bound):
    out = np.zeros(())
    bound(twice)(np.array(3.0), out=out)
    assert out == 6.0


def test_an_output_without_points_is_left_alone(bound):
    bound(same)(values(), out=untouched(0, 4, 3))


def test_functional_computes_where_its_inputs_are(bound):
    inp = field(values(), 5, -2, 1)
    made = bound(level_number).functional(inp, like="numpy")
    assert (made[..., 0] == 0.0).all(), "level 1"
    assert np.array_equal(made[..., 1:], inp.ndarray[..., 1:])


@pytest.mark.parametrize("backend", BACKENDS)
def test_connectivities_are_given_to_bind_or_with_the_call(backend):
    cells, edges = values(3, 2), untouched(4, 2)
    expected = cells[programs.TABLE].sum(axis=1)
    given = {"bind": connectivities(), "call": None}
    for where, provider in given.items():
        edges[:] = -1.0
        run = dlf.bind(on(backend, "sum_over_cells"), offset_provider=provider)
        own = {} if where == "bind" else {"offset_provider": connectivities()}
        run(cells, out=edges, **own)
        np.testing.assert_allclose(edges, expected)


def test_the_connectivities_of_each_call_are_checked():
    run = dlf.bind(on("embedded", "sum_over_cells"), offset_provider=connectivities())
    run(values(3, 2), out=untouched(4, 2))
    table = np.array([[0, 1], [1, 2], [2, 3], [0, 2]], dtype=np.int32)
    domain = {programs.Edge: 4, programs.E2CDim: 2}
    wider = gtx.as_connectivity(domain, codomain=programs.Cell, data=table)
    out = untouched(4, 2)
    with refused(ValueError, "argument 'cells': expected points 0 to 4 along Cell", "got 0 to 3"):
        run(values(3, 2), out=out, offset_provider={"E2C": wider})
    assert (out == -1.0).all()


def test_a_call_without_connectivities_says_where_to_give_them():
    with refused(ValueError, "offset_provider: expected 'E2C', got none; give it to bind, or"):
        dlf.bind(on("embedded", "sum_over_cells"))(values(3, 2), out=untouched(4, 2))
