"""A preset orders I, J and K. Where it knows none of the names it says so."""

import warnings

import dlfield as dlf
import numpy as np
import pytest

DIMS = ("level", "lat", "lon")
LABELLED = dlf.zeros((2, 3, 4), dims=DIMS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dlf.zeros((2, 3, 4), dims=DIMS, backend="gt:cpu_ifirst"),
        lambda: dlf.full((2, 3, 4), 1.0, dims=DIMS, defaults="gt:cpu_ifirst"),
        lambda: dlf.storage(LABELLED, backend="gt:cpu_ifirst"),
        lambda: dlf.empty_like(LABELLED, defaults="gt:cpu_ifirst"),
    ],
)
def test_a_preset_that_knows_no_name_warns_and_names_the_way_out(make):
    with pytest.warns(UserWarning, match="backend: expected names among I, J and K") as caught:
        assert make().layout == (0, 1, 2)
    [warning] = caught
    assert "'gt:cpu_ifirst' orders, got ('level', 'lat', 'lon')" in str(warning.message)
    assert "run.storage(x)" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    "options",
    [
        {"dims": ("K", "J", "I"), "backend": "gt:cpu_ifirst"},
        {"dims": ("Cell", "K", "0"), "backend": "gt:cpu_ifirst"},
        {"dims": DIMS, "defaults": "gt:cpu_ifirst", "layout": (2, 1, 0)},
        {"dims": DIMS, "defaults": "F"},
        {"backend": "gt:cpu_ifirst"},
    ],
    ids=str,
)
def test_a_preset_that_acts_warns_of_nothing(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dlf.storage(np.zeros((2, 3, 4)), **options)


def test_one_dimension_has_one_order():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dlf.zeros((5,), dims=("lat",), backend="gt:cpu_ifirst")
