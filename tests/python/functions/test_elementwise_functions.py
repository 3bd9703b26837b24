"""NumPy's functions that work element by element and are no universal functions."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.functions.table import STORAGES

from support.errors import refused

VALUES = np.array([[1.25, -2.5, np.nan], [0.0, 4.75, -7.0]])


@pytest.fixture
def field():
    return dlf.storage(VALUES, dims="IJ", halo=(1, 0), layout=(1, 0))


FUNCTIONS = ["where", "select", "choose", "clip", "round", "around"]
FUNCTIONS += [
    name
    for row in STORAGES
    if row.result == "..." and row.rule != "own" and "k" not in row.signature
    for name in row.names.split()
]
#: Calls with a table or options, by the function.
CALLS = {
    "where": lambda a: np.where(a > 0, a, -1),
    "select": lambda a: np.select([a > 1, a < 0], [a, -a], 7),
    "choose": lambda a: np.choose((np.abs(np.nan_to_num(a)) % 2).astype(int), [a, -1]),
    "clip": lambda a: np.clip(a, -1, 2),
    "isclose": lambda a: np.isclose(a, 1.25),
    "searchsorted": lambda a: np.searchsorted([-3, 0, 2], a, side="right"),
    "digitize": lambda a: np.digitize(a, [-3, 0, 2]),
    "interp": lambda a: np.interp(a, [-3, 0, 2], [1, 2, 3], left=-1),
    "isin": lambda a: np.isin(a, [0, 4.75], invert=True),
    "nan_to_num": lambda a: np.nan_to_num(a, nan=5),
}


# NumPy says so in its own function, which computes.
@pytest.mark.filterwarnings("ignore:`?numpy.fix:DeprecationWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_computes_what_numpy_computes_and_keeps_the_labels(field, name):
    call = CALLS.get(name, getattr(np, name))
    found, wanted = call(field), call(VALUES)
    assert type(found) is dlf.CPUStorage
    np.testing.assert_array_equal(found.to_numpy(), wanted, strict=True)
    assert (found.dims, found.halo, found.layout) == (field.dims, field.halo, field.layout)
    assert not np.shares_memory(found, field)


def test_bounds_go_by_name(field):
    low = dlf.storage([0.0, 1.0], dims="I")
    np.testing.assert_array_equal(np.clip(field, low, None), np.clip(VALUES, [[0], [1]], None))
    np.testing.assert_array_equal(field.clip(max=1), VALUES.clip(max=1))
    with refused(ValueError, "numpy.clip: expected two bounds", "got some of both"):
        np.clip(field, 0, min=1)
    np.testing.assert_array_equal(np.clip(field, min=0, max=1), VALUES.clip(0, 1))
    with refused(ValueError, "in the same order"):
        np.clip(field, field.transpose(), None)


def test_options_and_outputs_mean_what_they_mean_in_numpy(field):
    out = dlf.zeros((2, 3), dims="IJ")
    assert np.round(field, 1, out=out) is out
    np.testing.assert_array_equal(out, VALUES.round(1))
    assert field.clip(0, 1, out=out) is out
    np.testing.assert_array_equal(out, VALUES.clip(0, 1))
    truths = dlf.ones((2, 3), bool, dims="IJ")
    assert np.isposinf(field, out=truths) is truths
    np.testing.assert_array_equal(truths, np.isposinf(VALUES))
    assert np.isclose(field, field, equal_nan=True).all()
    np.testing.assert_array_equal(np.isclose(field, 1, 1), np.isclose(VALUES, 1, 1))
    np.testing.assert_array_equal(np.sinc(x=field), np.sinc(VALUES))


# --- choices -------------------------------------------------------------------------------------


def test_choices_go_by_name(field):
    column, row = dlf.storage([10.0, 20.0], dims="I"), dlf.storage([1.0, 2.0, 3.0], dims="J")
    by_name = np.where(VALUES > 0, [[10], [20]], [1, 2, 3])
    for chosen in (
        np.where(field > 0, column, row),
        np.select([field > 0], [column], row),
        np.choose((field > 0).astype(int), [row, column]),
    ):
        np.testing.assert_array_equal(chosen, by_name)
        assert chosen.dims == ("I", "J")
    assert np.where(row > 1, row, column).dims == ("I", "J")
    with refused(ValueError, "in the same order"):
        np.where(field > 0, field, field.transpose())
    with refused(ValueError, "dims"):
        np.where(field > 0, 1, column.rename(I="lon"))


def test_where_has_the_type_that_numpy_gives_it(field):
    assert np.where(field > 0, np.float32(1), 2).dtype == np.float32
    small = dlf.ones((2, 3), "int8", dims="IJ")
    assert np.where(field > 0, small, small + 1).dtype == np.int8


def test_a_choice_of_no_elements_touches_no_memory():
    column, empty = dlf.ones(1, bool, dims="I"), dlf.zeros((1, 0), "int32", dims="IJ")
    assert np.where(column, empty, 0.5).shape == (1, 0)
    assert np.select([column], [empty], 0.5).shape == (1, 0)
    target = dlf.zeros((1, 0))
    np.copyto(target, dlf.zeros((1, 0), "int32"), where=np.ones((1, 1), bool))


def test_where_without_choices_gives_indices_and_with_one_is_refused(field):
    for found, wanted in zip(np.where(field > 0), np.where(VALUES > 0), strict=True):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, wanted)
    with refused(TypeError, "where: expected both x and y, got one"):
        np.where(field, field)


def test_the_conditions_of_a_choice_may_be_an_array(field):
    conditions = np.array([VALUES > 1, VALUES < 0])
    found = np.select(conditions, [field, -field], 7)
    np.testing.assert_array_equal(found, np.select(conditions, [VALUES, -VALUES], 7))


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_choices_by_number_are_right_in_every_order_of_memory(mode):
    numbers, values = np.arange(6).reshape(2, 3) % 2, np.arange(6.0).reshape(2, 3)
    turned = [dlf.storage(one, layout=(1, 0)) for one in (numbers, values)]
    expected = np.choose(numbers, [values, -values], mode=mode)
    found = np.choose(turned[0], [turned[1], -turned[1]], mode=mode)
    np.testing.assert_array_equal(found, expected)
    out = np.empty((2, 3), order="F")
    np.choose(turned[0], [turned[1], -turned[1]], mode=mode, out=out)
    np.testing.assert_array_equal(out, expected)


def test_a_number_is_rounded_into_a_storage():
    out = dlf.zeros(())
    assert np.round(2.567, 1, out=out) is out
    assert out.item() == 2.6


def test_parts_of_complex_values_keep_the_origin():
    values = dlf.zeros((6, 5), complex, dims="IJ", halo=(1, 1), default_origin=(2, 2))
    for part in (values.real, values.imag):
        assert (part.default_origin, part.halo) == ((2, 2), ((1, 1), (1, 1)))


def test_a_choice_for_each_condition_is_needed(field):
    with refused(ValueError, "numpy.select: expected a choice for each condition, got 2 for 1"):
        np.select([field > 0], [field, field])


# --- tables --------------------------------------------------------------------------------------


def test_a_table_may_be_a_storage_with_any_name(field):
    table = dlf.storage([-3.0, 0.0, 2.0], dims="K")
    points = np.interp(field, table, dlf.storage([1.0, 2.0, 3.0], dims="K"))
    np.testing.assert_array_equal(points, np.interp(VALUES, [-3, 0, 2], [1, 2, 3]))
    assert points.dims == np.digitize(field, table).dims == np.isin(field, table).dims == ("I", "J")
    assert np.searchsorted(table, field).dims == ("I", "J")


def test_points_of_numpy_in_a_table_that_is_a_storage_stay_arrays():
    table = dlf.storage([-3.0, 0.0, 2.0])
    assert type(np.interp(VALUES, table, table)) is np.ndarray
    assert np.searchsorted(table, 1.0) == 2
