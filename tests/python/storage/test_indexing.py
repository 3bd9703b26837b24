"""`storage[key]` for every key that NumPy takes: a view, a number, or an array of its own."""

import array as arrays
import itertools
from typing import Any, NamedTuple

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.gt_objects import Described
from support.optional import library
from support.owners import tracked
from support.parameters import readable

VALUES = np.arange(60.0).reshape(3, 4, 5)
FAR = 2**70


class Pair(NamedTuple):
    first: Any
    second: Any


class Index:
    """An integer of another library."""

    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


class Interface:
    """Has only the array interface."""

    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


class Dlpack:
    """Has only DLPack."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


@pytest.fixture
def storage():
    """60 numbers with the first dimension contiguous, and rows padded to 64 bytes."""
    return dlf.storage(VALUES, layout=(2, 0, 1), alignment_size=64)


def strides_that_count(array):
    return [stride for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1]


def assert_is_view(view, array):
    """Compare with what NumPy makes of the same memory."""
    assert type(view) is dlf.CPUStorage
    np.testing.assert_array_equal(view.to_numpy(), array, strict=True)
    if array.size:
        assert address_of(view) == address_of(array)
        assert strides_that_count(view) == strides_that_count(array)


BASIC = [
    0,
    -1,
    slice(None),
    (1, 2),
    (slice(1, 3), slice(None, None, -1), slice(4, 0, -3)),
    (),
    ...,
    (..., -1),
    (0, ...),
    (1, ..., 2),
    (1, 2, ..., 3),
    (1, 2, 3, ...),
    (slice(None), slice(None), slice(None), ...),
    None,
    (None, None, 1),
    (1, None, slice(2), None),
    (..., None),
    (None, ..., None, 2),
    (1, 2, 3, None),
    (slice(2, 1), 0),
    (slice(5, 9), ..., slice(-9, -5)),
    Pair(1, slice(1, 3)),
    (None,) * 61,
]


@pytest.mark.source("GDP-3", "Functionality", "items are read and assigned by NumPy's rules")
@pytest.mark.source(
    "GDP-3",
    "Methods",
    "a basic index gives a storage over the same memory",
    "keys are NumPy's",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "storages look like NumPy arrays as far as possible",
)
@pytest.mark.parametrize("key", BASIC, ids=lambda key: repr(key)[:60])
def test_a_basic_key_gives_the_view_that_numpy_gives(storage, key):
    assert_is_view(storage[key], storage.to_numpy()[key])


@pytest.mark.parametrize("step", [None, 1, -1, 2, -3, FAR, -FAR])
def test_a_slice_is_cut_where_numpy_cuts_it(storage, step):
    bounds = (None, 0, 1, 2, 9, -1, -3, -9, FAR, -FAR, Index(1), np.int8(-2))
    for start, stop in itertools.product(bounds, bounds):
        key = (0, slice(start, stop, step))
        assert_is_view(storage[key], storage.to_numpy()[key])


INTEGERS = [
    1,
    -1,
    Index(2),
    Index(-3),
    np.int8(-2),
    np.uint64(2),
    dlf.full((), 2, "uint8"),
]


@pytest.mark.source("GDP-3", "Methods", "a single index removes its dimension from the view")
@pytest.mark.source("GDP-3 draft", "Methods", "an index masks its dimension, a slice keeps it")
@pytest.mark.parametrize("integer", INTEGERS, ids=lambda one: f"{type(one).__name__} {int(one)}")
def test_an_integer_of_any_kind_drops_its_dimension(storage, integer):
    expected = storage.to_numpy()[int(integer)]
    assert_is_view(storage[integer], expected)
    assert_is_view(storage[..., integer, :], storage.to_numpy()[:, int(integer)])


@pytest.mark.parametrize("integer", [np.array(1), np.array(-1, "int16")], ids=repr)
def test_an_array_without_dimensions_as_an_integer_gives_a_copy_as_in_numpy(storage, integer):
    values = storage.to_numpy().copy()
    for key in (integer, (slice(None), integer), (..., integer, slice(1, 2)), (0, integer)):
        part = storage[key]
        np.testing.assert_array_equal(part, values[key], strict=True)
        part += 100
    assert type(storage[integer, 0, integer]) is np.float64
    np.testing.assert_array_equal(storage, values)
    storage[integer] = 5
    assert (storage[int(integer)] == 5).all()


@pytest.mark.source("GDP-3", "Methods", "an index gives the value there")
@pytest.mark.parametrize("integer", INTEGERS, ids=lambda one: f"{type(one).__name__} {int(one)}")
def test_integers_for_every_dimension_give_the_scalar_that_numpy_gives(storage, integer):
    number = storage[integer, 0, integer]
    assert type(number) is np.float64
    assert number == VALUES[int(integer), 0, int(integer)]


@pytest.mark.parametrize("name", ["bool", "uint8", "float16", "complex128", "bfloat16"])
def test_an_element_has_the_type_of_the_storage(name):
    if name == "bfloat16":
        library("ml_dtypes")
    storage = dlf.ones((2, 2), name)
    assert type(storage[1, 1]) is storage.dtype.type
    assert type(dlf.ones((), name)[()]) is storage.dtype.type


def test_an_ellipsis_beside_all_integers_gives_a_view_without_dimensions(storage):
    view = storage[1, 2, 3, ...]
    view[...] = -1
    assert (view.shape, storage[1, 2, 3]) == ((), -1)


MASK = VALUES[:, :, 0] % 10 == 5
ADVANCED = {
    "True": True,
    "False": False,
    "a NumPy bool": np.True_,
    "an array of one bool": np.array(0, bool),
    "a bool and an integer": (True, 1),
    "a list": [0, 2, 0],
    "a negative list": [-1, -2],
    "an empty list": [],
    "a list of bools": [True, False, True],
    "a list of lists": [[0, 1], [2, 0]],
    "a list behind a slice": (slice(None), [3, 1]),
    "two lists": ([0, 1], slice(None), [4, 2]),
    "lists that broadcast": ([[0], [1]], [2, 3]),
    "a tuple in a tuple": (0, (1, 2)),
    "a range": range(2),
    "an array": np.array([2, 1]),
    "an array of one": np.array([1]),
    "unsigned integers": np.array([[2], [1]], "uint8"),
    "an empty array": np.array([], int),
    "a mask of everything": VALUES > 30,
    "a mask of nothing": VALUES < 0,
    "a mask of two dimensions": MASK,
    "a mask behind a slice": (slice(0, 2), np.array([True, False, True, True])),
    "a mask and an integer": (np.array([True, False, True]), 2),
    "a list, None and an ellipsis": (None, [0, 1], ..., 1),
    "a list and a reversed slice": ([1, 0], slice(None, None, -2)),
}


def assert_is_own(result, expected, storage):
    """Look for a writable array with memory of its own."""
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, expected, strict=True)
    assert not np.may_share_memory(result, storage.to_numpy())
    assert result.flags.writeable


@pytest.mark.source("GDP-3", "Methods", "advanced indexing gives an ndarray of values")
@pytest.mark.parametrize("key", ADVANCED.values(), ids=ADVANCED)
def test_an_advanced_key_gives_an_array_of_its_own(storage, key):
    assert_is_own(storage[key], VALUES[key], storage)


@pytest.mark.parametrize("key", [[0, 1], True, MASK], ids=["list", "True", "mask"])
def test_what_an_advanced_key_of_a_read_only_storage_gives_is_writable(key):
    values = VALUES.copy()
    values.flags.writeable = False
    storage = dlf.as_storage(values)
    assert_is_own(storage[key], VALUES[key], storage)


FOREIGN = {
    "bytearray": bytearray(b"\2\0"),
    "memoryview": memoryview(b"\2\0"),
    "array": arrays.array("h", [2, 0]),
    "array interface": Interface(np.array([2, 0])),
    "strided": np.array([2, 9, 0])[::2],
    "a storage": dlf.storage([2, 0]),
    "a storage of bytes": dlf.storage([2, 0], dtype="uint8"),
    "a view of a storage": dlf.storage([0, 9, 2])[::-2],
    "a list of storages": [dlf.full((), 2, "int64"), dlf.full((), 0, "int64")],
    "big-endian": np.array([2, 0], ">i4"),
    "DLPack": Dlpack(np.array([2, 0])),
}


@pytest.mark.source(
    "GDP-3", "Methods", "an object with an array interface can be used as an index array"
)
@pytest.mark.parametrize("key", FOREIGN.values(), ids=FOREIGN)
def test_indices_of_any_library_are_an_advanced_key(storage, key):
    assert_is_own(storage[key], VALUES[[2, 0]], storage)
    assert_is_own(storage[:, key, 1:], VALUES[:, [2, 0], 1:], storage)


@pytest.mark.source(
    "GDP-3", "Methods", "an object with an array interface can be used as an index array"
)
@pytest.mark.parametrize("mask", [MASK, VALUES > 7, np.array([True, False, True])], ids=np.shape)
def test_a_storage_of_bools_is_a_mask(storage, mask):
    assert_is_own(storage[dlf.storage(mask, layout=range(mask.ndim)[::-1])], VALUES[mask], storage)


def test_a_storage_of_one_index_is_an_array_and_not_an_integer(storage):
    assert_is_own(storage[dlf.full((1,), 2, "int64")], VALUES[[2]], storage)


@pytest.mark.parametrize("flag", [True, False])
def test_a_storage_of_one_bool_is_a_mask_and_not_an_index(storage, flag):
    assert_is_own(storage[dlf.full((), flag, "bool")], VALUES[np.array(flag)], storage)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_types_of_ml_dtypes_can_be_indexed(name):
    library("ml_dtypes")
    storage = dlf.storage(np.arange(6).reshape(2, 3), dtype=name)
    expected = np.arange(6).reshape(2, 3).astype(storage.dtype)
    np.testing.assert_array_equal(storage[:, ::-2].to_numpy(), expected[:, ::-2], strict=True)
    assert_is_own(storage[:, [2, 0]], expected[:, [2, 0]], storage)


REFUSED = [
    (IndexError, 3),
    (IndexError, -4),
    (IndexError, (0, 0, 5)),
    (IndexError, (..., -6)),
    (IndexError, FAR),
    (IndexError, -FAR),
    (IndexError, Index(2**63)),
    (IndexError, (0, 0, 0, 0)),
    (IndexError, (slice(None),) * 4),
    (IndexError, (0, ..., 0, 0, 0)),
    (IndexError, (..., ...)),
    (IndexError, (0, ..., 0, ...)),
    (IndexError, 1.0),
    (IndexError, np.float64(0)),
    (IndexError, 1j),
    (IndexError, "I"),
    (IndexError, b"\0"),
    (IndexError, {}),
    (IndexError, object()),
    (IndexError, [0.5]),
    (IndexError, ["a"]),
    (IndexError, [3]),
    (IndexError, np.array([0.0])),
    (IndexError, dlf.storage([0.0])),
    (IndexError, dlf.storage([3])),
    (IndexError, dlf.full((), 3, "int64")),
    (IndexError, np.zeros((2, 2), bool)),
    (IndexError, ([0, 1], [0, 1, 2])),
    (IndexError, ([0], 0, 0, 0)),
    (ValueError, slice(None, None, 0)),
    (ValueError, (0, slice(1, 2, np.int8(0)))),
    (TypeError, slice(1.5, None)),
    (TypeError, slice(None, "2")),
    (TypeError, slice(None, None, 1j)),
    (IndexError, (None,) * 62),
    (IndexError, np.array([0], object)),
]


@pytest.mark.source("GDP-3", "Functionality", "items are read and assigned by NumPy's rules")
@pytest.mark.source("GDP-3", "Methods", "keys are NumPy's")
@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "storages look like NumPy arrays as far as possible",
)
@pytest.mark.parametrize(("error", "key"), REFUSED, ids=readable)
def test_a_key_that_numpy_refuses_is_refused_with_the_same_error(storage, error, key):
    with pytest.raises(error):
        VALUES[key]
    with pytest.raises(error):
        storage[key]


@pytest.mark.parametrize(("error", "key"), REFUSED, ids=readable)
def test_nothing_is_written_where_the_key_is_refused(storage, error, key):
    with pytest.raises(error):
        storage[key] = -1
    np.testing.assert_array_equal(storage.to_numpy(), VALUES)


def test_an_error_of_an_index_passes_unchanged(storage):
    class Raising:
        def __index__(self):
            raise KeyError("of the index")

    for key in (Raising(), slice(Raising(), None), (0, Raising())):
        with pytest.raises(KeyError, match="of the index"):
            storage[key]


def test_neither_keys_nor_refusals_keep_memory():
    source, watch = tracked(VALUES)
    storage = dlf.as_storage(source)
    for key in (*BASIC, *ADVANCED.values(), 3, (..., ...), 1.0, "I", slice(None, None, 0)):
        try:
            storage[key]
        except (IndexError, ValueError):
            continue
    del source, storage
    assert watch.freed


@pytest.mark.source(
    "GDP-3", "Methods", "an object with only `__gt_data_interface__` can be used as an index array"
)
def test_an_object_with_gt4pys_data_interface_alone_is_an_array_to_a_key(storage):
    key = Described(np.array([2, 0]))
    assert_is_own(storage[key], VALUES[[2, 0]], storage)
    storage[key] = 1.0
    np.testing.assert_array_equal(storage.to_numpy()[[2, 0]], np.ones((2, *VALUES.shape[1:])))
