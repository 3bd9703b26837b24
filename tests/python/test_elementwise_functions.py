"""NumPy's functions that work element by element and are no universal functions."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield._elementwise_functions import FUNCTIONS

from support.errors import refused

VALUES = np.array([[1.25, -2.5, np.nan], [0.0, 4.75, -7.0]])


@pytest.fixture
def field():
    return dlf.storage(VALUES, dims="IJ", halo=(1, 0), layout=(1, 0))


def other_arguments(function):
    return {np.clip: (-1, 2), np.isclose: (1.25,)}.get(function, ())


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_it_computes_what_numpy_computes_and_keeps_the_labels(field, function):
    more = other_arguments(function)
    found, wanted = function(field, *more), function(VALUES, *more)
    assert type(found) is dlf.CPUStorage
    np.testing.assert_array_equal(found.to_numpy(), wanted, strict=True)
    assert (found.dims, found.halo, found.layout) == (field.dims, field.halo, field.layout)
    assert not np.shares_memory(found, field)


def test_bounds_go_by_name(field):
    low = dlf.storage([0.0, 1.0], dims="I")
    np.testing.assert_array_equal(np.clip(field, low, None), np.clip(VALUES, [[0], [1]], None))
    np.testing.assert_array_equal(field.clip(max=1), VALUES.clip(max=1))
    np.testing.assert_array_equal(np.clip(field, min=0, max=1), VALUES.clip(0, 1))
    with refused(ValueError, "in the same order"):
        np.clip(field, field.transpose(), None)


def test_options_and_outputs_mean_what_they_mean_in_numpy(field):
    out = dlf.zeros((2, 3), dims="IJ")
    assert np.round(field, 1, out=out) is out
    np.testing.assert_array_equal(out, VALUES.round(1))
    assert field.clip(0, 1, out=out) is out
    np.testing.assert_array_equal(out, VALUES.clip(0, 1))
    np.testing.assert_array_equal(np.nan_to_num(field, nan=5), np.nan_to_num(VALUES, nan=5))
    assert np.isclose(field, field, equal_nan=True).all()
    np.testing.assert_array_equal(np.isclose(field, 1, 1), np.isclose(VALUES, 1, 1))
