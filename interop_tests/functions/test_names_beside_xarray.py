"""The names of a DataArray count beside a storage, and within xarray its own rules do."""

import operator

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import operands as rules
from support.errors import refused
from support.optional import library

xr = library("xarray")

VALUES = np.arange(9.0).reshape(3, 3)


@pytest.fixture
def square():
    return dlf.storage(VALUES, dims="IJ")


def turned(values):
    """Return the same values by name, with the axes in the other order."""
    return xr.DataArray(values.T.copy(), dims=("J", "I"))


def around(array):
    return xr.DataArray(dlf.storage(array), dims=array.dims)


holders = pytest.mark.parametrize("held", [lambda one: one, around], ids=["array", "storage"])


# --- masks and weights ---------------------------------------------------------------------------


@holders
def test_a_mask_of_a_universal_function_goes_by_name(square, held):
    out = dlf.zeros((3, 3), dims="IJ")
    np.add(square, 0, where=held(turned(VALUES > 4)), out=out)
    np.testing.assert_array_equal(out, np.where(VALUES > 4, VALUES, 0))


REDUCED = ("sum", "prod", "mean", "std", "var", "max", "min", "all", "any")


@holders
@pytest.mark.parametrize("name", REDUCED)
def test_a_mask_of_a_reduction_goes_by_name(square, held, name):
    mask = VALUES % 4 != 1
    options = {"initial": 3.0} if name in ("max", "min") else {}
    wanted = getattr(VALUES, name)(0, where=mask, **options)
    options_by_name = {**options, "where": held(turned(mask))}
    for function in (getattr(square, name), lambda *a, **b: getattr(np, name)(square, *a, **b)):
        found = function("I", **options_by_name)
        assert found.dims == ("J",)
        np.testing.assert_array_equal(found, wanted)


@holders
def test_weights_of_an_average_go_by_name(square, held):
    weights = VALUES + 1
    for one in (held(turned(weights)), dlf.storage(turned(weights))):
        found = np.average(square, axis="I", weights=one)
        np.testing.assert_allclose(found, np.average(VALUES, 0, weights))
    with refused(ValueError, "weights: expected dims among ('I', 'J'), got ('lon',)", "rename"):
        np.average(square, weights=xr.DataArray(np.ones(3), dims="lon"))


def test_weights_of_a_quantile_are_refused_in_another_order(square):
    options = {"axis": "I", "method": "inverted_cdf"}
    with refused(ValueError, "expected weights with the dims ('I', 'J'), got ('J', 'I')"):
        np.quantile(square, 0.5, weights=turned(VALUES + 1), **options)
    found = np.quantile(square, 0.5, weights=turned(VALUES + 1).T, **options)
    options["axis"] = 0
    np.testing.assert_array_equal(found, np.quantile(VALUES, 0.5, weights=VALUES + 1, **options))


# --- methods and functions -----------------------------------------------------------------------


def test_a_method_computes_with_a_dataarray_by_name(square):
    profile = xr.DataArray([1.0, 2.0, 3.0], dims="J")
    found = square.clip(None, profile)
    assert isinstance(found, dlf.Storage)
    np.testing.assert_array_equal(found, np.minimum(VALUES, profile.to_numpy()))


FUNCTIONS = {
    "where": lambda a, w: np.where(a > 2, a, w),
    "clip": lambda a, w: np.clip(a, None, w),
    "isclose": lambda a, w: np.isclose(a, w),
    "outer": lambda a, w: np.add.outer(a[:, 0], w),
}


@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_that_xarray_does_not_see_computes_by_name(square, call):
    profile = xr.DataArray([1.0, 2.0, 3.0], dims="J")
    found = call(square, profile)
    assert found.dims == ("I", "J")
    np.testing.assert_array_equal(found, call(VALUES, profile.to_numpy()))


def test_names_in_another_order_are_refused_as_beside_a_storage(square):
    with refused(ValueError, "in the same order in all operands", "transpose"):
        np.where(square > 2, square, turned(VALUES))


WRITTEN = {
    "mean": lambda a, out: a.mean("I", out=out),
    "argmax": lambda a, out: a.argmax("I", out=out.astype(int)),
    "cumsum": lambda a, out: a.cumsum("I", out=out),
    "round": lambda a, out: a.round(1, out=out),
    "clip": lambda a, out: a.clip(1, out=out),
    "reduce": lambda a, out: np.add.reduce(a, "I", out=out),
}


@pytest.mark.parametrize("call", WRITTEN.values(), ids=WRITTEN)
def test_a_dataarray_is_no_output(square, call):
    with refused(TypeError, "as out, got a DataArray", "pass dlfield.as_storage(array)"):
        call(square, xr.DataArray(np.zeros(3), dims="J"))


# --- universal functions into a storage ----------------------------------------------------------

CALLS = {
    "positive": lambda d, out: np.positive(d, out=out),
    "add a number": lambda d, out: np.add(1, d, out=out),
    "add itself": lambda d, out: np.add(d, d, out=out),
    "add an array": lambda d, out: np.add(VALUES, d, out=out),
}


@holders
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_xarray_does_not_write_into_a_storage_with_names(held, call):
    out = dlf.zeros((3, 3), dims="IJ")
    with refused(TypeError, "expected no out= with dims beside a DataArray", "storage[...] = "):
        call(held(turned(VALUES)), out)
    assert not out.any()
    call(held(turned(VALUES)), plain := np.zeros((3, 3)))
    assert plain.any()


@pytest.mark.parametrize("dims", ["IJ", "JI", "xy"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_xarray_does_not_write_into_a_storage_with_the_names_of_the_one_inside(dims, call):
    inside, out = dlf.storage(VALUES, dims="IJ"), dlf.zeros((3, 3), dims="IJ")
    with refused(TypeError, "expected no out= with dims beside a DataArray", "storage[...] = "):
        call(xr.DataArray(inside, dims=tuple(dims)), out)
    assert not out.any()


@pytest.mark.parametrize("dims", ["IJ", "JI", "I", "J"])
def test_xarray_computes_in_place_of_a_dataarray(square, dims):
    array = xr.DataArray(square, dims=("I", "J"))
    other = xr.DataArray(VALUES[: 3 ** (len(dims) - 1)].reshape([3] * len(dims)), dims=[*dims])
    wanted = array.as_numpy() + other
    for one in (other, around(other)):
        array = xr.DataArray(dlf.storage(VALUES, dims="IJ"), dims=("I", "J"))
        storage = array.data
        array += one
        assert array.data is storage
        xr.testing.assert_equal(array.as_numpy(), wanted)


def test_a_storage_in_front_writes_a_dataarray_by_name(square):
    out = dlf.zeros((3, 3), dims="IJ")
    profile = xr.DataArray([1.0, 2.0, 3.0], dims="I")
    assert np.add(square, profile, out=out) is out
    np.testing.assert_array_equal(out, VALUES + profile.to_numpy()[:, None])


# --- within xarray -------------------------------------------------------------------------------


@pytest.fixture
def box():
    values = dlf.storage(np.arange(24.0).reshape(3, 4, 2), dims="IJK", halo=(1, 1, 0))
    return xr.DataArray(values, dims=("I", "J", "K"))


METHODS = {
    "where": lambda f, k: f.where(k > 0),
    "where other": lambda f, k: f.where(f > 4, k),
    "fillna": lambda f, k: f.fillna(k),
    "clip": lambda f, k: f.clip(min=k),
    "maximum": lambda f, k: np.maximum(f, k),
    "maximum first": lambda f, k: np.maximum(k, f),
    "operator": lambda f, k: f * k,
    "apply_ufunc": lambda f, k: xr.apply_ufunc(np.maximum, f, k),
    "xr.where": lambda f, k: xr.where(k > 0, f, 1),
}


@holders
@pytest.mark.parametrize("dims", ["K", "J", "I", "JK", "IK", "KI"])
@pytest.mark.parametrize("call", METHODS.values(), ids=METHODS)
def test_a_part_of_the_dims_meets_a_field_as_beside_numpy(box, call, dims, held):
    extents = [box.sizes[dim] for dim in dims]
    other = xr.DataArray(np.arange(np.prod(extents)).reshape(extents) * 1.0, dims=list(dims))
    found, wanted = call(box, held(other)), call(box.as_numpy(), other)
    assert isinstance(found.data, dlf.Storage)
    xr.testing.assert_equal(found.as_numpy(), wanted)
    swapped = call(box.as_numpy(), held(other))
    xr.testing.assert_equal(swapped.as_numpy(), wanted)


@pytest.mark.parametrize("call", METHODS.values(), ids=METHODS)
def test_the_dims_of_the_dataarray_count_and_not_those_of_the_storage_inside(square, call):
    field = xr.DataArray(square, dims=("I", "J"))
    other = xr.DataArray(dlf.storage([1.0, 5.0, 9.0], dims="I"), dims="J")
    xr.testing.assert_equal(call(field, other).as_numpy(), call(field.as_numpy(), other.as_numpy()))


def test_a_square_field_is_added_to_its_transpose(square):
    array = xr.DataArray(square, dims=square.dims)
    for found in (array + array.rename(I="J", J="I"), array.rename(I="J", J="I") + array):
        assert isinstance(found.data, dlf.Storage)
        np.testing.assert_array_equal(found.as_numpy(), VALUES + VALUES.T)


def test_a_transposed_storage_is_not_assigned_where_names_and_positions_differ(square):
    array = xr.DataArray(square.copy(), dims=square.dims)
    with refused(ValueError, "expected a value whose dims are in the order ('I', 'J')"):
        array[...] = array.rename(I="J", J="I")
    array[...] = xr.DataArray(square * 2, dims=square.dims)
    np.testing.assert_array_equal(array.data, VALUES * 2)


def test_a_function_of_the_user_matches_by_name(square):
    """xarray calls it; what it computes with storages itself goes by their names."""
    field = xr.DataArray(square, dims=("I", "J"))
    found = xr.apply_ufunc(lambda one: one + dlf.storage([1.0, 5.0, 9.0], dims="I"), field)
    np.testing.assert_array_equal(found.data, VALUES + np.array([[1.0], [5.0], [9.0]]))


def test_a_storage_without_names_goes_by_position_in_universal_functions(square):
    plain, array = dlf.as_storage(np.ones(3)), xr.DataArray(np.ones(3), dims="I")
    for found in (np.add(plain, array), np.add(array, plain), plain + array, array + plain):
        assert found.dims == ("I",)
        assert found.values.tolist() == [2, 2, 2]


def test_a_data_dimension_is_shifted_without_a_halo():
    field = xr.DataArray(dlf.ones((3, 2), dims="I0"), dims=("I", "0"))
    for call in (lambda f: f.shift({"0": 1}), lambda f: f.rolling({"0": 2}).mean()):
        xr.testing.assert_equal(call(field).as_numpy(), call(field.as_numpy()))


COMBINED = {
    "operator": operator.add,
    "universal function": np.maximum,
    "where": lambda a, b: a.where(b > 2, -1),
    "xr.where": lambda a, b: xr.where(a > 2, b, a),
    "fillna": lambda a, b: a.fillna(b),
    "clip": lambda a, b: a.clip(min=b),
    "dot": lambda a, b: a.dot(b),
    "weighted": lambda a, b: a.weighted(b + 1).mean(),
}


@st.composite
def renamed(draw):
    """A DataArray around a storage whose dims are others than those inside."""
    storage = draw(rules.storages(dict.fromkeys("IJK", 3)))
    names = draw(st.permutations("IJK"))[: storage.ndim]
    return xr.DataArray(np.abs(storage).astype("float64"), dims=names)


@pytest.mark.parametrize("call", COMBINED.values(), ids=COMBINED)
@settings(max_examples=60, deadline=None)
@given(a=renamed(), b=renamed())
def test_dims_of_any_order_give_what_they_give_around_numpy(call, a, b):
    found = call(a, b)
    xr.testing.assert_allclose(found.as_numpy(), call(a.as_numpy(), b.as_numpy()))
