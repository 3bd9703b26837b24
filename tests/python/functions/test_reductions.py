"""Reductions and running sums, along dimensions by name or number."""

import warnings

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import reducing_functions

from support.errors import refused

VALUES = np.arange(24.0).reshape(2, 3, 4) % 7
RUNNING = [
    np.cumsum,
    np.cumprod,
    np.nancumsum,
    np.nancumprod,
    np.cumulative_sum,
    np.cumulative_prod,
]
ONE_AXIS = [np.argmax, np.argmin, np.nanargmax, np.nanargmin]
#: Arguments that have no default value.
NEEDED = {
    np.percentile: (30,),
    np.nanpercentile: (30,),
    np.quantile: (0.3,),
    np.nanquantile: (0.3,),
}
REDUCING = sorted(
    {*reducing_functions(), np.average, np.count_nonzero} - {*RUNNING}, key=lambda one: one.__name__
)


@pytest.fixture
def field():
    return dlf.storage(
        VALUES, dims="IJK", halo=(0, 1, (1, 0)), layout=(2, 0, 1), default_origin=(0, 1, 1)
    )


def call(function, array, **options):
    return function(array, *NEEDED.get(function, ()), **options)


@pytest.mark.parametrize("function", REDUCING)
def test_a_reduction_of_all_dims_is_a_scalar_of_numpy(field, function):
    found, wanted = call(function, field), call(function, VALUES)
    if function is not np.count_nonzero:  # NumPy's is an int of Python
        assert type(found) is type(wanted)
    assert found == wanted


@pytest.mark.source(
    "GDP-3 draft",
    "Storage Attributes",
    "`np.all` and `np.any` along an axis give a storage without that dimension",
)
@pytest.mark.parametrize("function", REDUCING)
@pytest.mark.parametrize("axis", ["J", 1, -2])
def test_one_dimension_goes_by_name_or_number(field, function, axis):
    found, wanted = call(function, field, axis=axis), call(function, VALUES, axis=1)
    assert type(found) is dlf.CPUStorage
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.to_numpy(), wanted)
    assert (found.dims, found.halo) == (("I", "K"), ((0, 0), (1, 0)))
    assert (found.layout, found.default_origin) == ((1, 0), (0, 1))


@pytest.mark.parametrize("function", [one for one in REDUCING if one not in ONE_AXIS])
def test_several_dimensions_go_by_name_and_number(field, function):
    found = call(function, field, axis=("K", 0))
    np.testing.assert_allclose(found, call(function, VALUES, axis=(2, 0)), rtol=1e-15)
    assert (found.dims, found.halo, found.default_origin) == (("J",), ((1, 1),), (1,))


@pytest.mark.parametrize("function", RUNNING)
def test_a_running_sum_keeps_all_labels(field, function):
    found = function(field, axis="J")
    np.testing.assert_array_equal(found, function(VALUES, axis=1))
    assert (found.dims, found.halo) == (field.dims, field.halo)
    assert (found.layout, found.default_origin) == (field.layout, field.default_origin)
    with refused(TypeError, f"numpy.{function.__name__}: needs an axis", "use ravel()"):
        function(field)
    assert function(field[0, 0]).tolist() == function(VALUES[0, 0]).tolist()


def test_a_running_sum_with_a_point_more_is_refused(field):
    with refused(TypeError, "include_initial: expected False", "use to_numpy()"):
        np.cumulative_sum(field, axis="J", include_initial=True)
    assert np.cumulative_sum(field, axis="J", include_initial=False).dims == field.dims


METHODS = ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var")


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_the_functions(field, name):
    found = getattr(field, name)("I")
    np.testing.assert_array_equal(found, getattr(VALUES, name)(0))
    assert found.dims == ("J", "K")
    assert getattr(field, name)() == getattr(VALUES, name)()


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_keepdims_and_out(field, name):
    wanted = getattr(VALUES, name)(0, keepdims=True)
    found = getattr(field, name)("I", keepdims=True)
    np.testing.assert_array_equal(found, wanted)
    out = dlf.empty(wanted.shape, wanted.dtype, dims="IJK", layout=(0, 2, 1))
    assert getattr(field, name)("I", out=out, keepdims=True) is out
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_methods_are_the_functions(field, name):
    np.testing.assert_array_equal(getattr(field, name)("K"), getattr(VALUES, name)(2))


def test_dimensions_may_be_kept_with_extent_one(field):
    found = field.sum("K", keepdims=True)
    np.testing.assert_array_equal(found, VALUES.sum(2, keepdims=True))
    assert (found.dims, found.halo) == (field.dims, ((0, 0), (1, 1), (0, 0)))
    assert (found.layout, found.default_origin) == (field.layout, (0, 1, 0))
    assert field.sum(keepdims=True).shape == (1, 1, 1)


def test_initial_dtype_and_where_mean_what_they_mean_in_numpy(field):
    mask = dlf.storage(VALUES[0, :, 0] > 2, dims="J")
    found = np.sum(field, axis="K", initial=10, dtype="float32", where=mask)
    wanted = VALUES.sum(2, initial=10, dtype="float32", where=(VALUES[0, :, 0] > 2)[:, None])
    np.testing.assert_array_equal(found, wanted, strict=True)
    np.testing.assert_array_equal(field.max("K", initial=3), VALUES.max(2, initial=3))


@pytest.mark.parametrize("options", [{"ddof": 1}, {"correction": 1}])
def test_degrees_of_freedom_mean_what_they_mean_in_numpy(field, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(field.std("K", **options), np.std(VALUES, 2, **options))
        np.testing.assert_array_equal(np.nanvar(field, "K", ddof=1), np.var(VALUES, 2, ddof=1))


def test_a_mean_that_is_known_is_taken_by_its_names(field):
    mean = np.mean(field, axis="K", keepdims=True)
    found = np.std(field, axis="K", mean=mean)
    np.testing.assert_array_equal(found, VALUES.std(2))
    other = dlf.as_storage(mean.to_numpy(), dims=("J", "I", "K"))
    with refused(ValueError, "numpy.std: expected mean with the dims ('I', 'J', 'K')"):
        np.std(field, axis="K", mean=other)


def test_the_mean_of_a_number_is_written_into_a_storage():
    out = dlf.zeros((2, 3), dims="IJ")
    for function in (np.mean, np.sum, np.max):
        assert function(3.0, out=out) is out
        np.testing.assert_array_equal(out, np.full((2, 3), 3.0))


# --- masks ---------------------------------------------------------------------------------------


def test_a_mask_goes_by_the_rules_for_names_of_operands(field):
    mask = dlf.storage(VALUES[0, :, 0] > 2, dims="J")
    with refused(ValueError, "dims: expected operands that share a dimension", "rename"):
        np.sum(field, where=mask.rename(J="lon"))
    with refused(ValueError, "numpy.sum: expected a mask with dims among ('J', 'K'), got ('I',)"):
        np.sum(field[0], where=dlf.ones(2, bool, dims="I"))


def test_a_mask_may_have_its_dims_in_any_order(field):
    mask = VALUES[0] % 2 > 0
    turned = dlf.storage(mask.T.copy(), dims="KJ")
    expected = VALUES[0].sum(0, where=mask)
    for found in (np.sum(field[0], "J", where=turned), np.add.reduce(field[0], "J", where=turned)):
        np.testing.assert_array_equal(found, expected)
    out = dlf.zeros(field.shape, dims=field.dims)
    np.add(field, 1, out=out, where=turned)
    np.testing.assert_array_equal(out, np.where(mask, VALUES + 1, 0))


def test_a_mask_without_names_goes_by_position_if_it_has_as_many_dims(field):
    mask = VALUES > 2
    np.testing.assert_array_equal(field.sum("K", where=mask), VALUES.sum(2, where=mask))
    with refused(ValueError, "expected an array without names of shape", "got shape [4]"):
        field.sum("K", where=mask[0, 0])


def test_without_any_names_a_mask_is_broadcast(field):
    plain, mask = dlf.storage(VALUES), VALUES[0, 0] > 2
    np.testing.assert_array_equal(plain.sum(0, where=mask), VALUES.sum(0, where=mask))
    with refused(
        ValueError, "expected a mask that can be broadcast to shape [4], got shape [2, 4]"
    ):
        plain[0, 0].sum(where=np.ones((2, 4), bool))


# --- out= ----------------------------------------------------------------------------------------


def test_the_result_may_go_into_a_storage_or_an_array(field):
    out = dlf.zeros((2, 3), dims="IJ", layout=(1, 0))
    assert np.sum(field, axis="K", out=out) is out
    np.testing.assert_array_equal(out, VALUES.sum(2))
    array = np.zeros((2, 3))
    assert np.add.reduce(field, "K", out=array) is array
    np.testing.assert_array_equal(array, VALUES.sum(2))
    truths = dlf.zeros(3, bool)
    assert np.all(np.ones((2, 3)), axis=0, out=truths) is truths
    assert truths.all()


def test_a_number_goes_into_a_storage_without_dims(field):
    out = dlf.zeros((), dims=())
    assert field.sum(out=out) is out
    assert out == VALUES.sum()


WIDER = [("IKJ", (2, 5, 3)), ("KIJ", (5, 2, 3)), ("IJK", (2, 3, 5)), ("IKJ0", (2, 5, 3, 4))]


@pytest.mark.parametrize(("dims", "shape"), WIDER)
@pytest.mark.parametrize("backwards", [False, True])
def test_an_out_with_more_dims_gets_the_result_along_each_of_them(field, dims, shape, backwards):
    ranks = range(len(shape))
    out = dlf.zeros(shape, dims=dims, layout=tuple(reversed(ranks) if backwards else ranks))
    assert np.sum(field, axis="K", out=out) is out
    at = tuple(slice(None) if name in "IJ" else None for name in dims)
    np.testing.assert_array_equal(out, np.broadcast_to(VALUES.sum(2)[at], shape))


def test_an_out_with_more_dims_gets_a_number_everywhere(field):
    out = dlf.zeros((2, 3), dims="IJ")
    field.sum(out=out)
    assert out.tolist() == [[VALUES.sum()] * 3] * 2


def test_an_out_without_names_gets_the_result_along_its_first_dims():
    values, out = dlf.storage(VALUES), dlf.zeros((5, 2, 3))
    np.max(values, axis=2, out=out)
    np.testing.assert_array_equal(out, np.broadcast_to(VALUES.max(2), (5, 2, 3)))
    out = dlf.zeros((2, 4, 5))
    np.max(values, axis=(1, 2), keepdims=True, out=out)
    assert (out.to_numpy() == VALUES.max((1, 2))[:, None, None]).all()


def test_an_out_without_points_is_left_alone(field):
    out = dlf.zeros((2, 0, 3), dims="IKJ")
    assert np.sum(field, axis="K", out=out) is out


def test_an_out_that_overlaps_the_input_gets_what_numpy_gives(field):
    values = dlf.storage(VALUES, dims="IJK")
    np.sum(values, axis="K", out=values[:, :, 0])
    np.testing.assert_array_equal(values[:, :, 0], VALUES.sum(2))
    values = dlf.storage(VALUES, dims="IJK")
    np.max(values, axis="K", out=values)
    np.testing.assert_array_equal(values, np.broadcast_to(VALUES.max(2)[:, :, None], VALUES.shape))
    values = dlf.storage(VALUES, dims="IJK")
    np.cumsum(values, axis="J", out=values)
    np.testing.assert_array_equal(values, VALUES.cumsum(1))


def test_an_out_that_does_not_fit_is_refused_and_not_written(field):
    def check(error, text, out, axis="K"):
        before = out.to_numpy().copy()
        with refused(error, text):
            np.sum(field, axis=axis, out=out)
        np.testing.assert_array_equal(out, before)

    check(ValueError, "out: expected a storage with the dimension 'J'", dlf.zeros(2, dims="I"))
    check(ValueError, "expected one that broadcasts to [2, 1]", dlf.zeros((2, 1), dims="IJ"))
    check(ValueError, "expected one that broadcasts to [3, 2]", dlf.zeros((3, 2)))
    readonly = np.zeros((2, 3))
    readonly.flags.writeable = False
    check(BufferError, "expected a writable storage, got a read-only one", dlf.as_storage(readonly))


def test_an_array_as_out_has_the_shape_of_the_result(field):
    array = np.zeros((5, 2, 3))
    with refused(ValueError, "out: expected an array of the result's shape [2, 3], got shape"):
        np.sum(field, axis="K", out=array)
    assert not array.any()


# --- quantiles and averages ----------------------------------------------------------------------


@pytest.mark.parametrize("function", [np.quantile, np.nanquantile])
def test_several_quantiles_are_an_array_of_numpy(field, function):
    found = function(field, [0.1, 0.9], axis="K")
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, function(VALUES, [0.1, 0.9], axis=2))
    out = dlf.zeros((2, 2, 3))
    assert function(field, [0.1, 0.9], axis="K", out=out) is out
    np.testing.assert_array_equal(out, found)


def test_several_quantiles_get_into_an_output_by_the_names_that_are_left(field):
    found = np.quantile(VALUES, [0.1, 0.9], axis=0)
    out = dlf.zeros((4, 2, 3), dims=("K", "quantile", "J"))
    np.quantile(field, [0.1, 0.9], axis="I", out=out)
    np.testing.assert_array_equal(out, found.transpose(2, 0, 1))
    with refused(ValueError, "numpy.quantile: expected an output with the dims ('J', 'K')"):
        np.quantile(field, [0.1, 0.9], axis="I", out=dlf.zeros((2, 3, 4), dims="xJk"))


def test_a_median_leaves_the_values_where_they_are(field):
    before = field.copy()
    np.median(field, axis="K", overwrite_input=True)
    np.testing.assert_array_equal(field, before)


def test_a_quantile_has_the_type_of_its_method(field):
    numbers = field.astype("int32")
    assert np.quantile(numbers, 0.4, axis="K", method="lower").dtype == np.int32
    assert np.quantile(numbers, 0.4, axis="K").dtype == np.float64


WEIGHTS = np.array([1.0, 2, 0, 5])


@pytest.mark.parametrize("weights", [WEIGHTS, dlf.storage(WEIGHTS, dims="K")])
@pytest.mark.parametrize("keepdims", [False, True])
def test_an_average_has_weights_by_name(field, weights, keepdims):
    found, total = np.average(field, "K", weights, returned=True, keepdims=keepdims)
    wanted, sums = np.average(VALUES, 2, WEIGHTS, returned=True, keepdims=keepdims)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(total, sums)
    assert found.dims == (("I", "J", "K") if keepdims else ("I", "J"))


def test_weights_may_lack_a_dimension_that_is_reduced(field):
    weights = dlf.storage(WEIGHTS, dims="K")
    whole = np.broadcast_to(WEIGHTS, VALUES.shape)
    found = np.average(field, axis=("I", "K"), weights=weights)
    np.testing.assert_allclose(found, np.average(VALUES, (0, 2), whole), rtol=1e-15)
    assert np.average(field, weights=weights) == pytest.approx(np.average(VALUES, weights=whole))


def test_weights_that_do_not_fit_are_refused(field):
    with refused(ValueError, "weights: expected dims among ('I', 'J', 'K')", "got ('lon',)"):
        np.average(field, weights=dlf.ones(4, dims=["lon"]))
    with refused(ValueError, "weights: expected shape (2, 3, 4), or (4,)", "got (3,)"):
        np.average(field, axis="K", weights=np.ones(3))
    with refused(ValueError, "weights: expected 4 along 'K', got 1"):
        np.average(field, axis="K", weights=dlf.ones(1, dims="K"))
    with pytest.raises(ZeroDivisionError, match="weights: expected a sum other than 0"):
        np.average(field, axis="K", weights=np.zeros(4))


def test_an_average_without_weights_is_a_mean(field):
    np.testing.assert_array_equal(np.average(field, axis="K"), VALUES.mean(2))
    found, total = np.average(field, axis="K", returned=True)
    assert (found.dims, total.tolist()) == (("I", "J"), [[4.0] * 3] * 2)


@pytest.mark.parametrize("axis", [np.int64(1), np.array(1), np.array(-2)])
def test_an_axis_may_be_a_number_of_numpy(field, axis):
    np.testing.assert_array_equal(field.sum(axis), VALUES.sum(1))


# --- what is refused, and odd operands -----------------------------------------------------------


def test_a_name_that_the_storage_lacks_is_refused(field):
    with refused(ValueError, "numpy.sum: expected an axis of the storage, got 'Z'", "'K'"):
        field.sum("Z")
    with refused(ValueError, "got 'I' of one without dims"):
        dlf.zeros(3).sum("I")


def test_axes_outside_the_storage_and_repeated_ones_are_refused(field):
    with refused(np.exceptions.AxisError, "numpy.sum: expected an axis of 3 dimensions, got 3"):
        field.sum(3)
    with refused(ValueError, "numpy.max: expected each axis once"):
        field.max(("K", 2))
    with pytest.raises(TypeError):
        field.sum(1.5)


def test_an_unknown_halo_stays_unknown(field):
    field.halo = None
    assert field.sum("K").halo is None


def test_a_storage_without_dims_and_one_without_elements_reduce():
    assert dlf.ones((2, 3)).sum(0).tolist() == [2, 2, 2]
    assert dlf.zeros((0, 3), dims="IJ").sum("I").tolist() == [0, 0, 0]
    assert dlf.zeros((0, 3)).sum() == 0
    assert dlf.full((), 3.0).sum() == dlf.full((), 3.0).sum(0) == 3
    with refused(ValueError, "zero-size array"):
        dlf.zeros((0, 3), dims="IJ").max("I")


def test_a_read_only_storage_reduces(field):
    array = VALUES.copy()
    array.flags.writeable = False
    for name in METHODS:
        np.testing.assert_array_equal(
            getattr(dlf.as_storage(array), name)(1), getattr(VALUES, name)(1)
        )


def test_a_type_that_no_storage_holds_is_refused(field):
    with refused(TypeError, "numpy.sum: expected a result of numbers, got objects of Python"):
        field.sum("K", dtype=object)


def test_an_alignment_that_the_result_cannot_meet_grows():
    made = dlf.ones((3, 4), "float32", dims="IJ", alignment_size=12)
    assert (made.sum("J", dtype="float64").alignment_size, made.sum("J").alignment_size) == (24, 12)


# --- universal functions, and a model ------------------------------------------------------------


@pytest.mark.source(
    "GDP-3 draft",
    "Universal Functions",
    "the method `reduce` masks the dimensions that it reduces",
)
def test_reduce_and_accumulate_of_universal_functions_go_by_name(field):
    assert np.maximum.reduce(field, axis="J").dims == ("I", "K")
    assert np.add.reduce(field).dims == ("J", "K")
    assert np.add.reduce(field, axis=None) == VALUES.sum()
    np.testing.assert_array_equal(np.add.accumulate(field, "K"), np.add.accumulate(VALUES, 2))
    found = np.hypot.reduce(field, axis="K", keepdims=True, where=VALUES > 1, initial=0)
    wanted = np.hypot.reduce(VALUES, axis=2, keepdims=True, where=VALUES > 1, initial=0)
    np.testing.assert_array_equal(found, wanted)


def test_a_model_gets_what_arrays_of_numpy_give():
    options = {"dims": "IJK", "layout": (2, 1, 0)}
    t, tend = dlf.storage(VALUES, **options), dlf.storage(VALUES / 3, **options)
    plain, plain_tend = (np.asfortranarray(one.to_numpy()) for one in (t, tend))
    for _ in range(3):
        t += 0.1 * tend
        plain += 0.1 * plain_tend
    assert t.to_numpy().tobytes() == plain.tobytes()
    assert not np.isnan(t).any()
    assert t.max() == plain.max()
    assert np.mean(t, axis="K").to_numpy().tobytes() == plain.mean(2).tobytes()


@pytest.mark.parametrize("reduce", [np.mean, np.median, np.average], ids=lambda one: one.__name__)
def test_halves_are_averaged_without_an_overflow(reduce):
    values = np.full((4, 100), 2000, "f2")
    got = reduce(dlf.storage(values, dims="IJ"), "J")
    assert got.dtype == "f2"
    np.testing.assert_array_equal(got.to_numpy(), reduce(values, 1))


@pytest.mark.parametrize("keepdims", [1, np.True_])
def test_a_truth_of_another_type_keeps_the_axes_of_an_average(keepdims):
    assert np.average(dlf.storage(VALUES), 0, keepdims=keepdims).shape == (1, 3, 4)


def test_the_range_of_values_may_be_written_into_the_operand():
    values = np.arange(12.0).reshape(4, 3)[::-1].copy()
    expected = np.ptp(values, axis=0)
    storage = dlf.storage(values, dims="IJ")
    np.ptp(storage, axis="I", out=storage[0])
    np.testing.assert_array_equal(storage[0], expected)
