"""`run.functional` of callables: outputs are made and given back, arguments stay as they are."""

import functools
import gc
import warnings

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations
from dlfield.annotations import IJ, Access, Axes, Boundary, DefaultParameters, Field, K

from support.addresses import address_of
from support.errors import refused
from support.owners import tracked

SHAPE = (5, 4, 3)
VALUES = np.arange(60.0).reshape(SHAPE)
READ = Field[np.float64, Access["in"]]
WRITTEN = Field[np.float64, Access["out"]]
AROUND = Field[np.float64, Access["in"], Boundary[((1, 1), (0, 0), (0, 0))]]
ON_PLANE = Field[IJ, np.float64, Access["in"]]
ON_CELLS = Field[Axes["Cell", "K"], np.float64, Access["in"]]
PLANE = Field[IJ, np.float64, Access["out"]]
COLUMN = Field[K, np.float64, Access["out"]]
PAIR = Field[(np.float64, (2,)), Access["out"]]
COUNTS = Field[np.int16, Access["out"]]


def copy_of(inp: READ, out: WRITTEN):
    out[...] = inp


def advance(inp: READ, state: Field[np.float64]):
    state += inp


def several(
    state: Field[np.float64],
    inp: READ,
    plane: PLANE,
    column: COLUMN,
    pair: PAIR,
    *,
    scale: float = 2.0,
):
    """Write outputs of every number of dimensions, whatever the order of the arguments."""
    plane[...], column[...] = inp.sum(axis=2), inp.sum(axis=(0, 1))
    pair[..., 0], pair[..., 1] = inp, -inp
    state *= scale


def difference(
    inp: AROUND,
    out: WRITTEN,
    *,
    origin,
    domain,
):
    at, into = (
        tuple(slice(start, start + n) for start, n in zip(origin[name], domain, strict=True))
        for name in ("inp", "out")
    )
    below, above = (slice(at[0].start + by, at[0].stop + by) for by in (-1, 1))
    out[into] = inp[(above, *at[1:])] - inp[(below, *at[1:])]


def fail(inp: READ, state: Field[np.float64]):
    state[...] = -1.0
    raise ArithmeticError("it does not converge")


def named(array, dims, **options):
    return dlf.as_storage(array, dims=dims, **options)


# --- what comes back ---------------------------------------------------------------------------


def test_an_output_that_is_not_given_is_made_and_given_back():
    assert (dlf.bind(copy_of).functional(VALUES) == VALUES).all()


def test_a_single_output_comes_by_itself_and_several_as_a_tuple():
    assert isinstance(dlf.bind(copy_of).functional(VALUES), np.ndarray)
    assert isinstance(dlf.bind(several).functional(VALUES, VALUES), tuple)


def test_several_outputs_come_in_the_order_of_the_definition():
    state, plane, column, pair = dlf.bind(several).functional(inp=VALUES, state=VALUES)
    assert (state == 2.0 * VALUES).all()
    assert (plane == VALUES.sum(axis=2)).all()
    assert (column == VALUES.sum(axis=(0, 1))).all()
    assert (pair == np.stack([VALUES, -VALUES], axis=-1)).all()


def test_without_outputs_an_empty_tuple_comes_back():
    def look(inp: READ):
        assert inp.shape == SHAPE

    assert dlf.bind(look).functional(VALUES) == ()


def test_a_scalar_goes_to_the_stencil_and_its_default_counts():
    run = dlf.bind(several).functional
    assert (run(VALUES, VALUES, scale=3.0)[0] == 3.0 * VALUES).all()
    assert (run(VALUES, VALUES)[0] == 2.0 * VALUES).all()


def weighted(inp: READ, out: WRITTEN, weight: float, bias: float = 0.0):
    out[...] = inp * weight + bias


def test_arguments_without_a_name_are_the_inputs():
    run = dlf.bind(weighted)
    assert (run.functional(VALUES, 2.0) == 2.0 * VALUES).all()
    assert (run.functional(VALUES, 2.0, 1.0) == 2.0 * VALUES + 1.0).all()
    assert (run.functional(VALUES, bias=1.0, weight=2.0) == 2.0 * VALUES + 1.0).all()


def test_all_arguments_without_a_name_are_those_of_a_call():
    given = np.zeros(SHAPE)
    assert (dlf.bind(weighted).functional(VALUES, given, 2.0, 1.0) == 2.0 * VALUES + 1.0).all()
    assert not given.any()


def test_an_explained_call_has_the_inputs_without_a_name():
    explained = dlf.explain(dlf.bind(weighted), VALUES, 2.0, functional=True)
    assert explained.refusal is None
    assert explained.plan.fields["out"].given is None


def test_neither_the_inputs_nor_all_arguments_without_a_name_are_refused():
    run = dlf.bind(several)
    expected = "expected the inputs (state, inp), or all 5 arguments without a name, got 3"
    with refused(TypeError, expected, "outputs by name"):
        run.functional(VALUES, VALUES, np.zeros((5, 4)))
    with refused(TypeError, "expected one value for 'weight', got two"):
        dlf.bind(weighted).functional(VALUES, 2.0, weight=1.0)


def test_times_are_kept_where_they_are_asked_for():
    times = {}
    dlf.bind(copy_of).functional(VALUES, exec_info=times)
    assert times["call_run_start_time"] <= times["call_run_end_time"]


# --- memory ------------------------------------------------------------------------------------


def test_the_result_is_memory_of_its_own_that_may_be_written():
    given = VALUES.copy()
    result = dlf.bind(copy_of).functional(given)
    assert not np.shares_memory(result, given)
    result[...] = -1.0
    assert (given == VALUES).all()


def test_two_calls_give_two_results():
    run = dlf.bind(copy_of)
    assert not np.shares_memory(run.functional(VALUES), run.functional(VALUES))


def test_the_result_outlives_the_arguments_and_nothing_outlives_the_result():
    before = live_allocations()
    array, watch = tracked(VALUES)
    result = dlf.bind(advance).functional(array, array.copy())
    del array
    assert watch.freed
    assert live_allocations() == before + 1
    del result
    gc.collect()
    assert live_allocations() == before


def test_a_call_that_fails_leaves_no_memory_behind():
    before = live_allocations()
    with pytest.raises(ArithmeticError):
        dlf.bind(fail).functional(VALUES, VALUES.copy())
    gc.collect()
    assert live_allocations() == before


# --- what was given ----------------------------------------------------------------------------


def test_a_field_that_is_read_and_written_is_copied_and_stays_as_it_is():
    given = VALUES.copy()
    assert (dlf.bind(advance).functional(VALUES, given) == 2.0 * VALUES).all()
    assert (given == VALUES).all()


def test_an_output_that_is_given_is_copied_and_keeps_its_values_where_none_is_written():
    given = np.full((9, 4, 3), -1.0)
    run = dlf.bind(difference)
    result = run.functional(
        VALUES, given, origin={"inp": (1, 0, 0), "out": (2, 0, 0)}, domain=(3, 4, 3)
    )
    assert (result[2:5] == 24.0).all()
    assert (result[:2] == -1.0).all()
    assert (result[5:] == -1.0).all()
    assert (given == -1.0).all()


def test_a_stencil_that_fails_writes_nothing_into_an_argument():
    given = VALUES.copy()
    with pytest.raises(ArithmeticError, match="it does not converge"):
        dlf.bind(fail).functional(VALUES, given)
    assert (given == VALUES).all()


def test_an_input_is_not_copied_for_the_stencil():
    seen = []

    def look(inp: READ, out: WRITTEN):
        seen.append(inp.ctypes.data)

    dlf.bind(look).functional(VALUES)
    assert seen == [VALUES.ctypes.data]


def test_a_field_that_is_read_and_written_may_be_read_only():
    given = VALUES.copy()
    given.flags.writeable = False
    assert (dlf.bind(advance).functional(VALUES, given) == 2.0 * VALUES).all()


def test_a_field_that_is_read_and_written_may_be_an_input_too():
    assert (dlf.bind(advance).functional(VALUES[::-1], VALUES) == VALUES + VALUES[::-1]).all()


# --- where and how the outputs are -------------------------------------------------------------


def test_an_output_has_the_widest_halo_of_the_fields_filled_with_zeros():
    wide = named(np.ones((5, 4, 3)), "IJK", halo=(1, 1, 0))
    result = dlf.bind(difference).functional(wide)
    assert (result.halo, result.shape) == (((1, 1), (1, 1), (0, 0)), (5, 4, 3))
    outside = result.to_numpy().copy()
    outside[1:-1, 1:-1] = 0.0
    assert not outside.any()


def test_the_widest_halo_counts_on_each_side_of_each_axis_by_itself():
    def add(one: READ, other: READ, out: WRITTEN, *, origin, domain):
        assert origin["out"] == (1, 2, 0)
        assert domain == (2, 3, 3)

    one = named(np.ones((4, 5, 3)), "IJK", halo=((1, 1), (2, 0), (0, 0)))
    other = named(np.ones((5, 4, 3)), "IJK", halo=((0, 3), (0, 1), (0, 0)))
    result = dlf.bind(add).functional(one, other)
    assert result.halo == ((1, 3), (2, 1), (0, 0))
    assert result.shape == (6, 6, 3)


def test_an_output_with_a_halo_goes_into_the_next_call_as_it_is():
    run = dlf.bind(difference)
    first = run.functional(named(np.arange(60.0).reshape(SHAPE), "IJK", halo=(1, 0, 0)))
    assert run.functional(first).shape == SHAPE


def test_a_domain_alone_decides_the_points_of_an_output():
    result = dlf.bind(difference).functional(VALUES, origin=(1, 0, 0), domain=(3, 4, 2))
    assert result.shape == (3, 4, 2)
    assert (result == 24.0).all()


def test_an_origin_by_name_is_that_of_the_input():
    result = dlf.bind(difference).functional(VALUES**2, origin={"inp": (2, 0, 0)}, domain=(1, 1, 1))
    assert result.item() == VALUES[3, 0, 0] ** 2 - VALUES[1, 0, 0] ** 2


def test_an_output_is_in_the_order_of_the_first_field():
    first = named(np.ascontiguousarray(VALUES.T), "KJI")
    result = dlf.bind(copy_of).functional(first, like="numpy")
    assert result.shape == VALUES.T.shape
    assert (result == VALUES.T).all()


def test_an_output_of_other_dimensions_than_the_first_field_is_in_the_declared_order():
    first = named(np.ascontiguousarray(VALUES.T), "KJI")
    _, plane, _, _ = dlf.bind(several).functional(first, first, like="numpy")
    assert (plane == VALUES.sum(axis=2)).all()


def test_an_output_has_the_layout_that_suits_the_backend():
    ordered = {
        backend: dlf.bind(copy_of, backend=backend).functional(VALUES).strides
        for backend in ("numpy", "F", "gt:cpu_ifirst")
    }
    assert ordered == {"numpy": (96, 24, 8), "F": (8, 40, 160), "gt:cpu_ifirst": (8, 40, 160)}


def test_an_output_has_the_layout_that_its_declaration_demands():
    fortran = Field[np.float64, Access["out"], DefaultParameters["F"]]
    run = dlf.bind(lambda inp, out: None, fields={"inp": READ, "out": fortran})
    assert run.functional(VALUES).flags.f_contiguous


def test_an_output_has_the_dtype_of_its_declaration():
    def count(inp: READ, out: COUNTS):
        out[...] = inp > 10.0

    assert dlf.bind(count).functional(VALUES).dtype == np.int16


def test_dimensions_may_be_others_than_those_of_a_grid_of_points():
    def mean(cells: ON_CELLS, out: COLUMN):
        out[...] = cells.mean(axis=0)

    result = dlf.bind(mean).functional(np.arange(6.0).reshape(3, 2))
    assert result.tolist() == [2.0, 3.0]


# --- like --------------------------------------------------------------------------------------


def test_a_storage_as_first_field_gives_storages_and_an_array_arrays():
    run = dlf.bind(copy_of)
    assert isinstance(run.functional(named(VALUES, "IJK")), dlf.Storage)
    assert isinstance(run.functional(VALUES), np.ndarray)


def test_what_is_asked_for_counts_more_than_the_first_field():
    run = dlf.bind(copy_of)
    assert isinstance(run.functional(VALUES, like="storage"), dlf.Storage)
    assert isinstance(run.functional(VALUES, like=dlf.zeros(1)), dlf.Storage)
    assert isinstance(run.functional(dlf.zeros(SHAPE), like=np.zeros(1)), np.ndarray)


def test_nothing_asked_for_is_what_none_means():
    assert isinstance(dlf.bind(copy_of).functional(dlf.zeros(SHAPE), like=None), dlf.Storage)


class Foreign:
    """Of a library that nobody knows: an array interface is all it has."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


def test_an_array_of_an_unknown_library_gives_one_of_numpy():
    result = dlf.bind(copy_of).functional(Foreign(VALUES))
    assert type(result) is np.ndarray
    assert address_of(result) != address_of(VALUES)


@pytest.mark.parametrize(
    ("like", "got"), [("num", "got 'num'"), (1, "got int"), (Foreign(VALUES), "got Foreign")]
)
def test_an_unknown_framework_is_refused_with_those_there_are(like, got):
    known = "like: expected one of cupy, jax, numpy, storage, torch, xarray or an array"
    with pytest.raises(ValueError, match=f"{known}.*{got}"):
        dlf.bind(copy_of).functional(VALUES, like=like)


def test_cupy_is_refused_for_a_result_in_host_memory():
    with pytest.raises(dlf.GTNoSuchBufferError, match=r"one in host memory; make it on the GPU"):
        dlf.bind(copy_of).functional(VALUES, like="cupy")


# --- what is refused ---------------------------------------------------------------------------


def test_only_an_output_that_is_not_read_may_be_left_out():
    with pytest.raises(TypeError, match="advance: expected an argument 'state', got none"):
        dlf.bind(advance).functional(VALUES)


def test_an_option_that_nobody_knows_is_refused():
    with pytest.raises(TypeError, match="got 'lik'"):
        dlf.bind(copy_of).functional(VALUES, lik="numpy")


def test_a_domain_that_no_field_tells_is_refused_and_not_guessed():
    def spread(plane: ON_PLANE, out: WRITTEN, *, domain):
        out[...] = plane[..., None]

    run = dlf.bind(spread)
    said = r"domain: needs a field that has K, as the output 'out' has; pass domain="
    with pytest.raises(ValueError, match=said):
        run.functional(VALUES[..., 0])
    assert run.functional(VALUES[..., 0], domain=SHAPE).shape == SHAPE


def test_a_domain_for_a_stencil_that_is_not_told_is_refused():
    with pytest.raises(TypeError, match="domain: expected none for 'copy_of'"):
        dlf.bind(copy_of).functional(VALUES, domain=SHAPE)


def test_a_callable_that_is_not_told_the_domain_gets_an_output_of_the_shape_of_its_inputs():
    def shifted(inp: AROUND, out: WRITTEN):
        out[1:-1] = inp[2:]

    result = dlf.bind(shifted).functional(VALUES)
    assert (type(result), result.shape) == (np.ndarray, SHAPE)
    assert np.array_equal(result[1:-1], VALUES[2:])
    assert not result[[0, -1]].any()


def test_a_warning_names_the_line_that_asked_for_the_outputs():
    run = dlf.bind(copy_of, backend="gt:cpu_ifirst")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.functional(np.zeros((32, 32, 32)))
    assert [one.filename for one in caught] == [__file__]


# --- a halo that the arrays do not have --------------------------------------------------------


def test_a_halo_goes_by_the_names_that_bind_maps():
    run = dlf.bind(difference, dims={"lon": "I", "lat": "J"})
    turned = dlf.as_storage(VALUES.transpose(1, 0, 2), dims=("lat", "lon", "K"))
    made = run.functional(turned, halo={"I": 1})
    assert made.halo == ((0, 0), (1, 1), (0, 0))
    expected = dlf.bind(difference).functional(VALUES, halo={"I": 1})
    np.testing.assert_array_equal(made.to_numpy(), expected.transpose(1, 0, 2))


def test_a_name_that_is_not_mapped_is_refused_beside_a_halo():
    run = dlf.bind(difference, dims={"lon": "I"})
    with refused(ValueError, "halo", "got 'lat' in 'inp'", "map it with the dims of bind"):
        run.functional(dlf.as_storage(VALUES, dims=("lon", "lat", "K")), halo={"I": 1})


def test_a_halo_stands_beside_no_domain_of_a_partial():
    run = dlf.bind(functools.partial(difference, domain=(3, 4, 3)))
    with refused(TypeError, "halo: expected it alone"):
        run.functional(VALUES, halo={"I": 1})


def test_a_partial_says_how_large_an_output_is():
    def filled(out: WRITTEN, value: float, *, origin, domain):
        out[...] = value

    run = dlf.bind(functools.partial(filled, domain=(1, 2, 3)))
    assert run.functional(2.0).shape == (1, 2, 3)
