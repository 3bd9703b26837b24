"""Functions that go by position refuse arrays whose names stand elsewhere."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused

VALUES = np.arange(4.0).reshape(2, 2)
PLANE = dlf.storage(VALUES, dims="IJ")
TURNED = PLANE.transpose("J", "I").copy()
ALONG_I, ALONG_J = (dlf.storage(np.array([1.0, 2.0]), dims=dim) for dim in "IJ")
COUNTS = {dim: dlf.storage(np.array([1, 2]), dims=dim) for dim in "IJ"}

REFUSED = {
    "vstack": lambda: np.vstack([PLANE, ALONG_I]),
    "vstack of profiles": lambda: np.vstack([ALONG_I, ALONG_J]),
    "dstack": lambda: np.dstack([PLANE, TURNED]),
    "broadcast_arrays": lambda: np.broadcast_arrays(PLANE, ALONG_I),
    "cov": lambda: np.cov(PLANE, TURNED),
    "corrcoef": lambda: np.corrcoef(ALONG_I, ALONG_J),
    "histogramdd": lambda: np.histogramdd(PLANE, weights=ALONG_J),
    "gradient": lambda: np.gradient(PLANE, ALONG_J, ALONG_I),
    "gradient along an axis": lambda: np.gradient(PLANE, ALONG_I, axis="J"),
    "compress": lambda: np.compress(ALONG_I > 1.0, PLANE, axis="J"),
    "repeat": lambda: np.repeat(PLANE, COUNTS["I"], axis="J"),
}
TAKEN = {
    "vstack": (lambda: np.vstack([PLANE, ALONG_J]), np.vstack([VALUES, [1.0, 2.0]])),
    "dstack": (lambda: np.dstack([PLANE, PLANE]), np.dstack([VALUES, VALUES])),
    "broadcast_arrays": (
        lambda: np.broadcast_arrays(PLANE, ALONG_J)[1],
        np.array([[1.0, 2.0], [1.0, 2.0]]),
    ),
    "cov": (lambda: np.cov(PLANE, PLANE), np.cov(VALUES, VALUES)),
    "histogramdd": (
        lambda: np.histogramdd(PLANE, 2, weights=ALONG_I)[0],
        np.histogramdd(VALUES, 2, weights=[1.0, 2.0])[0],
    ),
    "gradient": (
        lambda: np.gradient(PLANE, ALONG_I, ALONG_J)[1],
        np.gradient(VALUES, [1.0, 2.0], [1.0, 2.0])[1],
    ),
    "compress": (
        lambda: np.compress(ALONG_J > 1.0, PLANE, axis="J"),
        np.compress([False, True], VALUES, axis=1),
    ),
    "repeat": (
        lambda: np.repeat(PLANE, COUNTS["J"], axis="J"),
        np.repeat(VALUES, [1, 2], axis=1),
    ),
    "quantile": (
        lambda: np.quantile(PLANE, 0.5, axis="J", weights=ALONG_J, method="inverted_cdf"),
        np.quantile(VALUES, 0.5, axis=1, weights=[1.0, 2.0], method="inverted_cdf"),
    ),
    "unique": (lambda: np.unique(PLANE, axis="J"), np.unique(VALUES, axis=1)),
    "unique, named": (lambda: np.unique(ar=PLANE, axis="J"), np.unique(VALUES, axis=1)),
    "trace": (lambda: np.trace(PLANE, axis1="I", axis2="J"), np.trace(VALUES)),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_names_that_stand_elsewhere_are_refused(call):
    with refused(ValueError, "dims agree", "transpose or rename one of them"):
        call()


@pytest.mark.parametrize(("call", "expected"), TAKEN.values(), ids=TAKEN)
def test_names_that_stand_where_they_are_used_are_taken(call, expected):
    np.testing.assert_array_equal(np.asarray(call()), expected)


def test_weights_along_another_axis_are_refused():
    with refused(ValueError, "expected weights with the dims ('I', 'J'), got ('I',)"):
        np.quantile(PLANE, 0.5, axis="J", weights=ALONG_I, method="inverted_cdf")


@pytest.mark.parametrize("function", [np.expand_dims, lambda a, axis: np.stack([a, a], axis)])
def test_a_new_axis_has_a_number(function):
    with refused(TypeError, "expected a number for a new axis, which has no name, got 'J'"):
        function(PLANE, "J")


# --- into given storages -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source", [TURNED + 10.0, ALONG_I, 7.0], ids=["turned", "profile", "number"]
)
@pytest.mark.parametrize("mask", [PLANE > 1.0, TURNED > 1.0], ids=["mask", "turned mask"])
def test_copyto_goes_by_name_under_a_mask_too(source, mask):
    target, expected = PLANE.copy(), PLANE.copy()
    np.copyto(target, source, where=mask)
    expected[...] = source
    kept = np.where(VALUES > 1.0, expected.to_numpy(), VALUES)
    np.testing.assert_array_equal(target.to_numpy(), kept)


def test_a_rounded_field_goes_into_another_order_of_names():
    out = dlf.zeros((2, 2), dims="JI")
    np.round(PLANE + 0.26, 1, out=out)
    np.testing.assert_array_equal(out.to_numpy(), np.round(VALUES + 0.26, 1).T)


def test_an_order_changes_nothing_beside_an_output():
    out = PLANE.copy()
    assert np.sqrt(PLANE, out=out, order="C") is out
    np.testing.assert_array_equal(out.to_numpy(), np.sqrt(VALUES))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool])
@pytest.mark.parametrize("method", ["nearest", "linear"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantiles_of_no_elements_are_no_numbers(dtype, method):
    empty = dlf.zeros((2, 0), dtype, dims="IJ")
    assert np.isnan(np.nanquantile(empty, 0.5, axis="J", method=method).to_numpy()).all()


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_quantiles_along_an_axis_beside_one_without_elements_are_those_of_numpy(name, dtype):
    empty, function = dlf.zeros((0, 3), dtype, dims="IJ"), getattr(np, name)
    found, expected = function(empty, 0.5, axis="J"), function(empty.to_numpy(), 0.5, axis=1)
    assert (found.shape, found.dims) == (expected.shape, ("I",))


def test_a_mask_of_numbers_is_refused_as_by_numpy():
    with pytest.raises(TypeError, match="Cannot cast"):
        np.copyto(PLANE.copy(), 1.0, where=np.array([[1, 0], [2, 1]]))


@pytest.mark.parametrize("rowvar", [True, False])
def test_weights_of_a_covariance_are_along_the_observations(rowvar):
    right, wrong = (COUNTS["J"], COUNTS["I"]) if rowvar else (COUNTS["I"], COUNTS["J"])
    expected = np.cov(VALUES, rowvar=rowvar, fweights=[1, 2])
    np.testing.assert_array_equal(np.cov(PLANE, rowvar=rowvar, fweights=right), expected)
    with refused(ValueError, "dims agree"):
        np.cov(PLANE, rowvar=rowvar, fweights=wrong)


@pytest.mark.parametrize("function", [np.cov, np.corrcoef])
def test_a_second_variable_of_one_dimension_is_along_the_observations(function):
    with refused(ValueError, "dims agree"):
        function(PLANE, ALONG_I)
    with refused(ValueError, "dims agree"):
        function(PLANE, ALONG_J, rowvar=False)
    expected = function(VALUES, [1.0, 2.0], rowvar=False)
    np.testing.assert_array_equal(function(PLANE, ALONG_I, rowvar=False), expected)
