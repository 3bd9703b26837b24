"""Reductions and running sums, along dimensions by name or number."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield._reductions import FUNCTIONS

from support.errors import refused

VALUES = np.arange(24.0).reshape(2, 3, 4) % 7
RUNNING = [np.cumsum, np.cumprod, np.nancumsum, np.nancumprod]
ONE_AXIS = [np.argmax, np.argmin, np.nanargmax, np.nanargmin]
REDUCING = sorted(FUNCTIONS - {*RUNNING}, key=lambda one: one.__name__)


@pytest.fixture
def field():
    return dlf.storage(
        VALUES, dims="IJK", halo=(0, 1, (1, 0)), layout=(2, 0, 1), default_origin=(0, 1, 1)
    )


@pytest.mark.parametrize("function", REDUCING)
def test_a_reduction_of_all_dims_is_a_scalar_of_numpy(field, function):
    found, wanted = function(field), function(VALUES)
    assert type(found) is type(wanted)
    assert found == wanted


@pytest.mark.source(
    "GDP-3 draft",
    "Universal Functions",
    "the method `reduce` masks the dimensions that it reduces",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Attributes",
    "`np.all` and `np.any` along an axis give a storage without that dimension",
)
@pytest.mark.parametrize("function", REDUCING)
@pytest.mark.parametrize("axis", ["J", 1, -2])
def test_one_dimension_goes_by_name_or_number(field, function, axis):
    found, wanted = function(field, axis=axis), function(VALUES, axis=1)
    assert type(found) is dlf.CPUStorage
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.to_numpy(), wanted)
    assert (found.dims, found.halo) == (("I", "K"), ((0, 0), (1, 0)))
    assert (found.layout, found.default_origin) == ((1, 0), (0, 1))


@pytest.mark.parametrize("function", [one for one in REDUCING if one not in ONE_AXIS])
def test_several_dimensions_go_by_name_and_number(field, function):
    found = function(field, axis=("K", 0))
    np.testing.assert_allclose(found, function(VALUES, axis=(2, 0)), rtol=1e-15)
    assert (found.dims, found.halo, found.default_origin) == (("J",), ((1, 1),), (1,))


@pytest.mark.parametrize("function", RUNNING)
def test_a_running_sum_keeps_all_labels(field, function):
    found = function(field, axis="J")
    np.testing.assert_array_equal(found, function(VALUES, axis=1))
    assert (found.dims, found.halo) == (field.dims, field.halo)
    assert (found.layout, found.default_origin) == (field.layout, field.default_origin)
    with refused(TypeError, f"numpy.{function.__name__}: expected an axis", "use ravel()"):
        function(field)
    assert function(field[0, 0]).tolist() == function(VALUES[0, 0]).tolist()


METHODS = ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var")


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_the_functions(field, name):
    found = getattr(field, name)("I")
    np.testing.assert_array_equal(found, getattr(VALUES, name)(0))
    assert found.dims == ("J", "K")
    assert getattr(field, name)() == getattr(VALUES, name)()


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
    with refused(ValueError, "a mask with dims among ('I', 'J', 'K'), got ('lon',)"):
        np.sum(field, where=mask.rename(J="lon"))


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


def test_an_out_that_does_not_fit_is_refused_and_not_written(field):
    with refused(ValueError, "expected out with the dims ('I', 'J'), got ('J', 'I')"):
        np.sum(field, axis="K", out=dlf.zeros((3, 2), dims="JI"))
    readonly = np.zeros((2, 3))
    readonly.flags.writeable = False
    with refused(BufferError, "expected a writable out, got a read-only storage"):
        np.sum(field, axis="K", out=dlf.as_storage(readonly))
    assert not readonly.any()


def test_a_name_that_the_storage_lacks_is_refused(field):
    with refused(ValueError, "numpy.sum: expected an axis of the storage, got 'Z'", "'K'"):
        field.sum("Z")
    with refused(ValueError, "got 'I' of one without dims"):
        dlf.zeros(3).sum("I")


def test_an_unknown_halo_stays_unknown(field):
    field.halo = None
    assert field.sum("K").halo is None


def test_a_storage_without_dims_and_one_without_elements_reduce():
    assert dlf.ones((2, 3)).sum(0).tolist() == [2, 2, 2]
    assert dlf.zeros((0, 3), dims="IJ").sum("I").tolist() == [0, 0, 0]
    assert dlf.zeros((0, 3)).sum() == 0


def test_reduce_and_accumulate_of_universal_functions_go_by_name(field):
    assert np.maximum.reduce(field, axis="J").dims == ("I", "K")
    assert np.add.reduce(field).dims == ("J", "K")
    assert np.add.reduce(field, axis=None) == VALUES.sum()
    np.testing.assert_array_equal(np.add.accumulate(field, "K"), np.add.accumulate(VALUES, 2))


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
