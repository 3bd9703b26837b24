"""A Series of polars is an operand of a storage."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

pl = library("polars")
VALUES = np.array([1.5, 2.0, 3.0])


@pytest.mark.parametrize("series", [VALUES, [1, 2, 3], [True, False, True]], ids=str)
@pytest.mark.parametrize("compute", [np.add, np.maximum, lambda a, b: a * b, lambda a, b: a > b])
def test_a_series_beside_a_storage_is_what_numpy_makes_of_it(series, compute):
    storage, series = dlf.storage(VALUES, dims="K"), pl.Series(series)
    made = compute(storage, series)
    assert made.dims == ("K",)
    np.testing.assert_array_equal(made.to_numpy(), compute(VALUES, series.to_numpy()), strict=True)


def test_a_storage_is_computed_in_place_and_chosen_from_a_series():
    storage, series = dlf.storage(VALUES), pl.Series([1.0, 1.0, 2.0])
    storage += series
    np.testing.assert_array_equal(storage, VALUES + series.to_numpy())
    np.testing.assert_array_equal(np.where(storage > 3, series, 0), [0, 0, 2])


def test_a_null_is_nan_and_a_frame_has_two_dimensions_as_in_numpy():
    made = dlf.storage(VALUES) + pl.Series([1, None, 3])
    np.testing.assert_array_equal(made, [2.5, np.nan, 6])
    made = dlf.storage(VALUES) + pl.DataFrame({"a": VALUES})
    np.testing.assert_array_equal(made, VALUES + VALUES[:, None])


def test_a_series_is_placed_as_an_array_without_names():
    with refused(ValueError, "array without names of shape [2, 3]", "got shape [3]"):
        dlf.ones((2, 3), dims="IJ") + pl.Series(VALUES)


def test_polars_takes_no_storage_where_it_comes_first():
    with pytest.raises(TypeError):
        pl.Series(VALUES) + dlf.storage(VALUES)
