"""Views by the names of dimensions: `isel` and `broadcast_like`."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import operands as rules
from support.errors import refused

VALUES = np.arange(24.0).reshape(2, 3, 4)


@pytest.fixture
def field():
    return dlf.storage(VALUES, dims="IJK", halo=(0, (1, 0), 2), layout=(2, 0, 1))


# --- isel ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.data())
def test_isel_is_the_view_by_position(data):
    extents = {name: data.draw(st.integers(1, 4)) for name in rules.NAMES}
    storage = data.draw(rules.storages(extents).filter(lambda one: one.dims))
    key = {}
    for name in data.draw(st.sets(st.sampled_from(storage.dims))):
        index = st.integers(-extents[name], extents[name] - 1) | st.slices(extents[name])
        key[name] = data.draw(index)
    by_position = (*(key.get(name, slice(None)) for name in storage.dims), ...)
    found, expected = storage.isel(key), storage[by_position]
    np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy(), strict=True)
    assert (found.dims, found.halo, found.ptr) == (expected.dims, expected.halo, expected.ptr)
    assert found.dims == tuple(name for name in storage.dims if not isinstance(key.get(name), int))


def test_isel_takes_names_as_keywords_or_in_a_dict(field):
    lowest = field.isel(K=0)
    lowest[...] = -1
    assert (lowest.dims, lowest.halo) == (("I", "J"), ((0, 0), (1, 0)))
    np.testing.assert_array_equal(field.to_numpy()[..., 0], -1)
    assert field.isel({"K": np.int64(1), "I": slice(1, 2), "J": -1}).shape == (1,)
    assert field.isel().dims == field.dims
    assert field.isel(I=0, J=0, K=1).item() == 1


@pytest.mark.parametrize("method", ["isel", "rename"])
def test_a_mapping_beside_keywords_is_refused_as_in_xarray(field, method):
    with refused(ValueError, f"{method}: expected a mapping or keywords", "{'K': 0} and {'J': 1}"):
        getattr(field, method)({"K": 0}, J=1)


def test_isel_lists_the_names_that_there_are(field):
    with refused(ValueError, "isel: expected one of ('I', 'J', 'K'), got 'lon'"):
        field.isel(lon=0)
    with refused(ValueError, "isel: expected a storage with dims", "as_storage(storage, dims=...)"):
        dlf.zeros(3).isel(I=0)


@pytest.mark.parametrize("index", [[0], np.array([0]), VALUES > 1, True, "0", None], ids=type)
def test_isel_refuses_what_is_no_view(field, index):
    with refused(TypeError, "isel: expected an integer or a slice for 'I'", "axis='I'"):
        field.isel(I=index)


def test_isel_out_of_range_is_the_index_error_of_the_axis(field):
    with refused(IndexError, "index 9 is out of bounds for axis 2 with extent 4"):
        field.isel(K=9)


# --- broadcast_like ------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.data())
def test_broadcast_like_has_the_dims_of_the_model_then_its_own(data):
    extents = {name: data.draw(st.integers(0, 3)) for name in ("I", "J", "K", "lon")}
    named = rules.storages(extents).filter(lambda one: one.dims)
    storage, model = data.draw(named), data.draw(named)
    spread = storage.broadcast_like(model)
    dims = (*model.dims, *(name for name in storage.dims if name not in model.dims))
    assert spread.dims == dims
    assert spread.shape == tuple(extents[name] for name in dims)
    ordered = storage.transpose([name for name in dims if name in storage.dims])
    expected = np.broadcast_to(rules.aligned(ordered, dims), spread.shape)
    np.testing.assert_array_equal(spread.to_numpy(), expected, strict=True)
    assert spread.readonly
    if storage.halo is not None:
        own = dict(zip(storage.dims, storage.halo, strict=True))
        assert spread.halo == tuple(own.get(name, (0, 0)) for name in dims)
    else:
        assert spread.halo is None


def test_broadcast_like_copies_nothing(field):
    profile = dlf.storage(np.arange(4.0), dims="K")
    spread = profile.broadcast_like(field)
    assert (spread.ptr, spread.strides) == (profile.ptr, (0, 0, 8))
    profile[2] = 42
    assert spread[1, 2, 2] == 42


def test_broadcast_like_refuses_what_does_not_fit(field):
    profile = dlf.zeros(3, dims="K")
    with refused(ValueError, "broadcast_like: expected extent 4 along 'K' as the model has, got 3"):
        profile.broadcast_like(field)
    with refused(ValueError, "expected a model with dims, got a ndarray without"):
        profile.broadcast_like(VALUES)
    with refused(ValueError, "broadcast_like: expected a storage with dims"):
        dlf.zeros(3).broadcast_like(field)
