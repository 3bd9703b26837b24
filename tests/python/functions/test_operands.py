"""What storages compute with: arrays without names, objects that NumPy reads, other arrays."""

import collections
import decimal
import operator

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.operands import VALUES, field, same

# --- arrays without names -------------------------------------------------------------------------


@pytest.mark.source(
    "GDP-3 draft",
    "Mixing Types",
    "an array without names must have the storage's shape, or three dimensions that are repeated "
    "if of extent 1",
)
def test_an_array_without_names_goes_by_position_or_has_three_extents():
    storage = dlf.zeros((4, 2), dims="KI")
    array = np.arange(8).reshape(4, 2)
    np.testing.assert_array_equal(storage + array, array)
    np.testing.assert_array_equal(storage + array[:1], np.broadcast_to(array[:1], (4, 2)))
    np.testing.assert_array_equal(storage + array.T.reshape(2, 1, 4), array)
    np.testing.assert_array_equal(array.T.reshape(2, 1, 4) + storage, array)
    for wrong in (array[0], array.T, array.reshape(4, 2, 1)):
        with refused(ValueError, "array without names of shape [4, 2]", "as_storage(array, dims="):
            storage + wrong


@pytest.mark.source(
    "GDP-3 draft",
    "Mixing Types",
    "an array without names must have the storage's shape, or three dimensions that are repeated "
    "if of extent 1",
)
@pytest.mark.parametrize("dims", ["KJI", "JIK", "IJK"])
@pytest.mark.parametrize("extent", [2, 3, 4])
def test_three_axes_beside_three_dims_go_by_position_whatever_the_extents(dims, extent):
    shape = (4, 3, extent)
    storage, array = dlf.zeros(shape, dims=dims), np.arange(12.0 * extent).reshape(shape)
    np.testing.assert_array_equal(storage + array, array)
    storage[...] = array
    np.testing.assert_array_equal(storage, array)
    as_grid = array.transpose([dims.index(name) for name in "IJK"])
    if as_grid.shape != shape:
        with refused(
            ValueError, f"shape [4, 3, {extent}], in the order", "as_storage(array, dims="
        ):
            storage + as_grid
        with pytest.raises(ValueError, match="shape: expected one that broadcasts"):
            storage[...] = as_grid


# --- what NumPy reads -----------------------------------------------------------------------------


class Described:
    """An object that has `__array__` alone."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


READ = {
    "a range": range(3),
    "a deque": collections.deque([1.5, 2.5, 3.5]),
    "an array by its method": Described(VALUES * 1.5),
    "a row by its method": Described(VALUES[:1]),
    "a number by its method": Described(2.5),
    "bytes that can be written": bytearray(b"abc"),
    "a view of bytes": memoryview(b"abc"),
}


@pytest.mark.source(
    "GDP-3 draft",
    "Mixing Devices",
    "host storages take what NumPy takes, and GPU storages what CuPy takes",
)
@pytest.mark.parametrize("value", READ.values(), ids=READ)
@pytest.mark.parametrize("compute", [operator.add, operator.gt, np.maximum, np.hypot])
def test_an_object_is_what_numpy_makes_of_it(value, compute):
    plain = np.asarray(value)
    storage = field(VALUES[:, : plain.shape[-1]], dims=None) if plain.ndim else field()
    same(compute(storage, value), compute(storage.to_numpy(), plain))
    if compute is not operator.gt:
        same(compute(value, storage), compute(plain, storage.to_numpy()))


def test_functions_of_numpy_read_objects_too():
    storage, limits = field(), Described(VALUES[::-1])
    same(np.where(storage > 2, limits, 0), np.where(VALUES > 2, VALUES[::-1], 0))
    same(np.clip(storage, limits, 5), np.clip(VALUES, VALUES[::-1], 5))


def test_an_object_without_names_is_placed_as_an_array():
    with refused(ValueError, "array without names of shape [2, 3]", "got shape [3]"):
        field() + range(3)


@pytest.mark.parametrize("other", [b"abc", np.bytes_(b"abc"), "abc"], ids=type)
def test_texts_and_bytes_are_no_numbers_as_in_numpy(other):
    storage = field(VALUES[0], dims=None)
    for compute in (operator.add, np.maximum):
        with pytest.raises(TypeError, match="did not contain a loop"):
            compute(storage, other)
    with pytest.raises(ValueError, match="abc"):
        storage[...] = other
    np.testing.assert_array_equal(storage, VALUES[0])


def test_an_object_that_numpy_does_not_read_is_refused():
    with refused(TypeError, "expected a result of numbers, got object"):
        field() + decimal.Decimal(1)


# --- other arrays ---------------------------------------------------------------------------------


class Named(np.ndarray):
    """An array that names its dimensions."""

    __gt_dims__ = ("J", "I")


@pytest.mark.source(
    "GDP-3 draft", "Mixing Types", "beside an array of another library the storage decides"
)
def test_an_array_of_another_class_comes_in_with_its_names():
    with refused(ValueError, "in the same order"):
        field() + VALUES.T.view(Named)
    made = dlf.storage(VALUES.T, dims="JI") + VALUES.T.view(Named)
    same(made, VALUES.T * 2)


def test_masked_arrays_are_refused():
    with pytest.raises(BufferError, match="mask"):
        field() + np.ma.masked_array(VALUES, VALUES > 2)


class Deciding:
    """An array with universal functions of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return "decided", ufunc.__name__


class Refusing:
    """An object that takes no part in universal functions of NumPy."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "reflected"


def test_arrays_with_functions_of_their_own_have_the_last_word():
    assert np.add(field(), Deciding()) == ("decided", "add")
    assert field() + Refusing() == "reflected"
    storage = field()
    with refused(
        TypeError, "expected an operand whose class does not decide the result", "storage[...] = "
    ):
        storage += Refusing()
