"""NumPy's functions that move elements of a storage: their results are storages."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.owners import tracked

VALUES = np.arange(24.0).reshape(2, 3, 4)
HALO = ((0, 1), (1, 1), (0, 2))


@pytest.fixture
def field():
    return dlf.storage(VALUES, dims="IJK", halo=HALO, layout=(0, 1, 2))


# --- other shapes --------------------------------------------------------------------------------

SHAPES = [-1, 24, (6, 4), (2, -1), (2, 3, 2, 2), (1, 2, 3, 4), [4, 6], ()]


@pytest.mark.parametrize("shape", SHAPES[:-1], ids=str)
@pytest.mark.parametrize("call", [np.reshape, lambda a, shape: a.reshape(shape)])
def test_another_shape_is_a_view(field, shape, call):
    seen = call(field, shape)
    assert isinstance(seen, dlf.CPUStorage)
    assert np.array_equal(seen.to_numpy(), VALUES.reshape(shape))
    assert (seen.ptr, seen.dims, seen.halo) == (field.ptr, None, None)
    seen[(0,) * seen.ndim] = 42
    assert field[0, 0, 0] == 42


def test_a_shape_may_be_given_as_numbers(field):
    assert field.reshape(6, 4).shape == (6, 4)
    assert dlf.zeros((1, 1)).reshape(()).shape == ()


def test_another_shape_of_a_field_without_a_halo_has_none():
    assert dlf.zeros((2, 3), dims="IJ").reshape(6).halo == ((0, 0),)


def test_the_own_shape_keeps_names_and_halo(field):
    same = np.reshape(field, field.shape)
    assert (same.dims, same.halo, same.ptr) == (field.dims, field.halo, field.ptr)


def test_the_order_is_that_of_numpy(field):
    columns = np.reshape(dlf.storage(VALUES, layout=(2, 1, 0)), (6, 4), "F")
    assert np.array_equal(columns.to_numpy(), VALUES.reshape((6, 4), order="F"))


def test_a_shape_that_needs_a_copy_is_refused_with_the_way_out():
    columns = dlf.storage(VALUES, dims="IJK", layout=(2, 1, 0))
    with refused(ValueError, "(24,)", "strides of (8, 16, 48) bytes", "use flatten()"):
        columns.reshape(-1)
    assert np.array_equal(columns.flatten(), VALUES.ravel())


def test_a_shape_of_a_copy_is_apart(field):
    made = field.reshape(24, copy=True)
    made[0] = 42
    assert field[0, 0, 0] == 0


def test_a_shape_of_other_size_is_refused_as_by_numpy(field):
    with pytest.raises(ValueError, match="cannot reshape"):
        field.reshape(5)


def test_another_shape_keeps_the_memory_and_frees_it_once():
    source, watch = tracked(np.zeros((2, 4)))
    seen = dlf.as_storage(source).reshape(8)
    del source
    assert not watch.freed
    del seen
    assert watch.freed


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_ravel_is_a_view_where_that_of_numpy_is_one(layout, order):
    field = dlf.storage(VALUES, layout=layout)
    plain = field.to_numpy()
    for made in (field.ravel(order), np.ravel(field, order)):
        assert isinstance(made, dlf.CPUStorage)
        assert np.array_equal(made.to_numpy(), plain.ravel(order))
        shared = np.shares_memory(plain.ravel(order), plain)
        assert np.shares_memory(made, field) == shared
    assert not np.shares_memory(field.flatten(order), field)


# --- turned --------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
def test_flip_is_a_view_whose_halo_turns(field, axis):
    turned = np.flip(field, axis)
    assert np.array_equal(turned.to_numpy(), np.flip(VALUES, axis))
    assert np.shares_memory(turned, field)
    axes = range(3) if axis is None else np.atleast_1d(axis) % 3
    assert turned.halo == tuple(
        width[::-1] if at in axes else width for at, width in enumerate(HALO)
    )
    assert turned.dims == field.dims


@pytest.mark.parametrize("k", range(-1, 5))
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (-1, 1)])
def test_rot90_is_a_view_with_names(field, k, axes):
    turned = np.rot90(field, k, axes)
    assert np.array_equal(turned.to_numpy(), np.rot90(VALUES, k, axes))
    assert np.shares_memory(turned, field)
    swapped = list("IJK")
    if k % 2:
        one, other = axes
        swapped[one], swapped[other] = swapped[other], swapped[one]
    assert turned.dims == tuple(swapped)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 3), (0, 1, 2)])
def test_a_plane_that_numpy_refuses_is_refused(field, axes):
    with pytest.raises(ValueError):  # noqa: PT011 - NumPy's texts differ by version
        np.rot90(VALUES, 1, axes)
    with pytest.raises(ValueError):  # noqa: PT011
        np.rot90(field, 1, axes)


# --- moved ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "axis"), [(1, 0), (-2, 2), ((1, 2), (0, 1)), (5, None)])
def test_roll_makes_a_storage_with_names_and_halo(field, shift, axis):
    made = np.roll(field, shift, axis)
    assert np.array_equal(made.to_numpy(), np.roll(VALUES, shift, axis))
    assert (made.dims, made.halo, made.layout) == (field.dims, field.halo, field.layout)
    assert not np.shares_memory(made, field)


PADS = {
    "a number": (1, ((1, 2), (2, 2), (1, 3))),
    "a pair": ((1, 2), ((1, 3), (2, 3), (1, 4))),
    "pairs": (((0, 0), (1, 0), (0, 3)), ((0, 1), (2, 1), (0, 5))),
}


@pytest.mark.parametrize(("width", "halo"), PADS.values(), ids=PADS)
@pytest.mark.parametrize("mode", ["constant", "edge", "wrap"])
def test_points_around_a_field_are_halo(field, width, halo, mode):
    made = np.pad(field, width, mode)
    assert np.array_equal(made.to_numpy(), np.pad(VALUES, width, mode))
    assert (made.dims, made.halo, made.layout) == (field.dims, halo, field.layout)
    inside = (field.domain_view.to_numpy(), made.domain_view.to_numpy())
    assert np.array_equal(*inside)


def test_pad_takes_the_options_of_numpy(field):
    made = np.pad(field, 1, constant_values=-1.0)
    assert np.array_equal(made.to_numpy(), np.pad(VALUES, 1, constant_values=-1.0))


def test_around_an_unknown_halo_the_halo_is_unknown(field):
    assert np.pad(field[:, ::2], 1).halo is None


# --- repeated ------------------------------------------------------------------------------------


def test_arrays_are_repeated_to_one_shape_read_only(field):
    profile = dlf.storage(np.arange(4.0), dims="K")
    whole, spread, plain = np.broadcast_arrays(field, profile, np.zeros((3, 1)))
    assert (whole.dims, whole.halo, whole.ptr) == (field.dims, field.halo, field.ptr)
    assert (whole.readonly, spread.readonly) == (True, True)
    assert np.array_equal(spread.to_numpy(), np.broadcast_to(np.arange(4.0), (2, 3, 4)))
    assert type(plain) is np.ndarray
    assert plain.shape == (2, 3, 4)


# --- like= ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [np.asarray, np.asanyarray])
def test_an_array_like_a_storage_is_a_storage(field, call):
    array = np.arange(3.0)
    made = call(array, like=field)
    assert isinstance(made, dlf.CPUStorage)
    assert made.ptr == array.ctypes.data
    assert call(field, like=field) is field or call(field, like=field).ptr == field.ptr
    assert call([1, 2], like=field).tolist() == [1, 2]
    assert call([1, 2], np.float32, like=field).dtype == np.float32
    assert call(array, np.int8, like=field).dtype == np.int8


def test_a_copy_that_is_forbidden_is_not_made_for_like():
    field, array = dlf.zeros(3), np.arange(3.0)
    assert np.asarray(array, copy=False, like=field).ptr == array.ctypes.data
    for given, dtype in (([1.0, 2.0], None), (array, np.float32)):
        with pytest.raises(ValueError, match=r"asarray: expected an array .*; pass copy=None"):
            np.asarray(given, dtype, copy=False, like=field)


def test_a_copy_that_is_asked_for_may_have_any_shape():
    turned = dlf.storage(VALUES, dims="IJK", layout=(0, 1, 2))
    found = np.reshape(turned, -1, copy=True)
    np.testing.assert_array_equal(found.to_numpy(), VALUES.ravel())
    assert not np.shares_memory(found.to_numpy(), turned.to_numpy())
