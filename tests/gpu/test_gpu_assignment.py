"""Numbers and lists that are assigned to storages on a GPU by NumPy's rules; what is refused."""

import decimal
import warnings

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import buffers, pair, values
from support.cuda.devices import OnDevice
from support.cuda.kinds import (
    CLASSES,
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    every_kind,
    every_state,
    host_backed,
)
from support.parameters import NUMPY_DTYPES

VALUES = np.arange(24).reshape(2, 3, 4)


def after(target, key, value):
    """Return the class of what an assignment raises, and the values after it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of values that a type cannot hold
        try:
            target[key] = value
        except Exception as error:
            return type(error), target if isinstance(target, np.ndarray) else values(target)
    return None, target if isinstance(target, np.ndarray) else values(target)


def assert_as_numpy(managed, key, value, dtypes=NUMPY_DTYPES):
    for dtype in dtypes:
        options = {"layout": (1, 2, 0), "alignment_size": 64, "device": "gpu", "managed": managed}
        error, found = after(dlf.storage(VALUES, dtype=dtype, **options), key, value)
        wanted, expected = after(VALUES.astype(dtype), key, value)
        assert error is wanted, dtype
        np.testing.assert_array_equal(found, expected, strict=True)


class Index:
    def __index__(self):
        return 7


NUMBERS = [
    *(0, True, 7.75, -1, 300, 2**63, 2**70, 10**400, 1j, float("nan"), float("-inf"), None),
    *("7.5", "x", b"abc", Index(), decimal.Decimal("7.5"), {}, object()),
    *(np.array(7.5), np.array(7j), np.array(300), np.array(2**63, "uint64"), np.array(np.nan)),
    *(np.array(7.5, "longdouble"), np.array("7.5"), np.array(None, object)),
    *(np.True_, np.int8(-1), np.float16(7.5), np.complex64(7 + 1j), np.longdouble(7.5)),
    np.str_("7.5"),
]


@every_kind
@pytest.mark.parametrize("number", NUMBERS, ids=lambda one: f"{type(one).__name__} {one}"[:24])
def test_a_number_is_converted_or_refused_on_a_gpu_as_by_numpy(number, managed):
    for key in (..., (0, 1, 2), (slice(None), 1), [1, 0]):
        assert_as_numpy(managed, key, number)


@every_kind
@pytest.mark.parametrize("number", [np.int64(300), np.uint64(2**63), np.float64("nan")], ids=repr)
def test_a_number_of_numpys_that_does_not_fit_is_refused_as_by_numpy(number, managed):
    assert_as_numpy(managed, ..., number, ["int8", "int64"])


LISTS = [
    [1, 2, 3, 4],
    (1.5, 2, True, 4),
    [[1], [2], [3]],
    range(4),
    [np.float32(1), dlf.full((), 2), 3, np.array(4)],
    [np.arange(4), dlf.storage([4, 5, 6, 7]), bytearray(4)],
    ["1", "2", "3", "4"],
    [None, 1, 2, 3],
    [1, 2],
    [],
    [1, [2]],
    [[1, 2, 3, 4]] * 2,
]


@every_kind
@pytest.mark.parametrize("numbers", LISTS, ids=lambda one: repr(one)[:40])
def test_a_list_is_taken_or_refused_on_a_gpu_as_by_numpy(numbers, managed):
    for key in (..., (0, slice(None, None, -1)), slice(0, 0), (..., [0, 2], slice(None))):
        assert_as_numpy(managed, key, numbers, ["float64", "int16", "complex64", "bool"])


@every_kind
@pytest.mark.parametrize("numbers", [[1], [[1]]], ids=repr)
def test_a_list_for_one_element_is_refused_as_by_numpy(numbers, managed):
    assert_as_numpy(managed, (0, 1, 2), numbers, ["float64"])


@every_kind
def test_a_list_of_more_dimensions_than_the_target_is_refused_as_by_numpy(managed):
    assert_as_numpy(managed, (0, 1), [[1, 2, 3, 4]], ["float64"])


REFUSED = {
    "an index outside": (IndexError, 99, 1),
    "too many indices": (IndexError, (0, 0, 0), 1),
    "a step of 0": (ValueError, np.s_[::0], 1),
    "a text as key": (IndexError, "x", 1),
    "no key at all": (IndexError, {}, 1),
    "a list outside": (IndexError, [0, 99], 1),
    "a mask of another shape": (IndexError, np.ones(3, bool), 1),
    "a shape": (ValueError, ..., [1.0, 2.0]),
    "a shape of an array": (ValueError, ..., np.zeros((3, 2))),
    "a shape on a device": (ValueError, ..., lambda: OnDevice([1.0, 2.0])),
    "a text": (ValueError, ..., "x"),
    "an object": (TypeError, 0, object()),
}


@pytest.mark.source(
    "GDP-3", "Functionality", "basic indexing of device memory follows CuPy's rules"
)
@every_kind
@pytest.mark.parametrize(("error", "key", "value"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_writes_nothing(error, key, value, managed):
    array = np.arange(6.0).reshape(2, 3)
    storage = dlf.storage(array, device="gpu", managed=managed)
    with pytest.raises(error):
        storage[key] = value() if callable(value) else value
    np.testing.assert_array_equal(values(storage), array)


@every_state
@pytest.mark.parametrize(("error", "key", "value"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_leaves_a_pair_with_its_newer_values_on_both_sides(
    error, key, value, state
):
    array = np.arange(6.0).reshape(2, 3)
    storage = pair(array, state)
    with pytest.raises(error):
        storage[key] = value() if callable(value) else value
    storage.synchronize()
    np.testing.assert_array_equal(buffers(storage), [array, array])


@pytest.mark.parametrize("key", [..., [0, 1, 2]], ids=["basic", "advanced"])
def test_what_numpy_has_written_before_it_raised_counts(key):
    storage = pair([5, 6, 7], CLEAN)
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        storage[key] = np.array([1.0, np.nan, 2.0])
    written = storage.to_numpy().copy()
    storage.synchronize()
    np.testing.assert_array_equal(buffers(storage)[1], written)


@every_kind
def test_a_value_with_names_that_the_target_lacks_is_refused(managed):
    storage = dlf.zeros((2, 3), dims="IJ", device="gpu", managed=managed)
    for there in CLASSES:
        value = dlf.ones(3, dims="K", device="gpu", managed=there)
        with pytest.raises(ValueError, match="K"):
            storage[...] = value
        turned = dlf.ones((3, 2), dims="JI", device="gpu", managed=there)
        with pytest.raises(ValueError, match="expected a value with the dims"):
            storage[[0, 1]] = turned
        storage[...] = turned
    assert values(storage).tolist() == [[1.0] * 3] * 2


@every_kind
@pytest.mark.parametrize("key", [0, ..., np.s_[1:], [0, 1], "I"], ids=repr)
def test_elements_cannot_be_deleted(key, managed):
    storage = dlf.ones((2, 3), device="gpu", managed=managed)
    with pytest.raises(ValueError, match=r"^cannot delete array elements$"):
        del storage[key]


@host_backed
@pytest.mark.parametrize(
    "key", [[1, 0], VALUES > 5, (0, [2, 0], [1, 3]), True, ([[0], [1]], 1)], ids=repr
)
def test_what_an_advanced_key_selects_is_an_array_of_its_own(key, managed):
    storage = dlf.storage(VALUES, device="gpu", managed=managed)
    found = storage[key]
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, VALUES[key], strict=True)
    found[...] = -1
    np.testing.assert_array_equal(values(storage), VALUES)


@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER])
def test_an_advanced_key_selects_newer_values(state):
    assert pair([1.0, 2.0, 3.0], state)[[2, 0]].tolist() == [3, 1]
    storage = pair([1.0, 2.0, 3.0], state)
    storage[[2, 0]] = [7, 8]
    storage.synchronize()
    assert buffers(storage)[1].tolist() == [8, 2, 7]
