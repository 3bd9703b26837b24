"""`storage[key] = value`: broadcasting, advanced keys, views of views, and overlapping memory."""

import dlfield as dlf
import numpy as np
import pytest

VALUES = np.arange(24).reshape(2, 3, 4)
OTHERS = -np.arange(24).reshape(2, 3, 4) - 1.0


class Dlpack:
    """Has only DLPack."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def made():
    """24 numbers, in neither C nor Fortran order, and padded."""
    return dlf.storage(VALUES, dtype="float64", layout=(1, 2, 0), alignment_size=64)


def assert_as_numpy(key, value, plain=None):
    """Compare with NumPy, which is shown `plain` where it does not know `value`."""
    storage, expected = made(), VALUES.astype("float64")
    storage[key], expected[key] = value, value if plain is None else plain
    np.testing.assert_array_equal(storage.to_numpy(), expected)


FITTING = [
    ((2, 3, 4), [(), (1,), (4,), (3, 1), (2, 1, 1), (1, 3, 4), (1, 2, 3, 4), (1, 1, 1, 1, 4)]),
    ((0, 3), [(), (3,), (1, 1), (0, 3), (0, 1), (1, 0, 3), (1, 1, 3)]),
    ((), [(), (1,), (1, 1)]),
    ((1,), [(), (1,), (1, 1, 1)]),
]


@pytest.mark.parametrize(
    ("shape", "fitting"), [(shape, one) for shape, all_ in FITTING for one in all_], ids=repr
)
@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_values_are_broadcast_as_by_numpy(shape, fitting, dtype):
    values = np.arange(np.prod(fitting, dtype=int)).reshape(fitting).astype(dtype) + 1
    storage, expected = dlf.zeros(shape), np.zeros(shape)
    storage[...], expected[...] = dlf.as_storage(values), values
    np.testing.assert_array_equal(storage.to_numpy(), expected)


REFUSED = [(3,), (2,), (0,), (2, 3), (3, 4, 1), (2, 1, 3, 4), (2, 3, 5), (4, 2, 3, 4), (1, 2)]


@pytest.mark.parametrize("shape", REFUSED, ids=repr)
@pytest.mark.parametrize("take", [np.asarray, dlf.storage, Dlpack])
@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_another_shape_is_refused_by_name_and_nothing_is_written(shape, take, dtype):
    storage = made()
    with pytest.raises(ValueError, match="shape") as refused:
        storage[...] = take(np.ones(shape, dtype))
    text = str(refused.value).replace(" ", "")
    assert "2,3,4" in text
    assert ",".join(map(str, shape)) in text
    np.testing.assert_array_equal(storage.to_numpy(), VALUES)


def test_an_array_does_not_fit_into_one_element():
    storage = made()
    for value in ([1, 2], np.ones(2), dlf.ones((2,)), np.ones(2, ">f8"), []):
        with pytest.raises(ValueError):  # noqa: PT011 - NumPy's text, or one that names the shapes
            storage[0, 1, 2] = value
    np.testing.assert_array_equal(storage.to_numpy(), VALUES)


ADVANCED = {
    "a list": [1, 0],
    "the same twice": [1, 1, 1],
    "an empty list": [],
    "two lists": ([0, 1], slice(None), [3, 0]),
    "a list and an integer": (slice(None), [2, 0], 1),
    "a mask": VALUES % 5 == 0,
    "a mask of one dimension": (slice(None), np.array([True, False, True])),
    "True": True,
    "False": False,
    "an array": np.array([[0], [1]], "uint8"),
}


@pytest.mark.source("GDP-3", "Functionality", "items are read and assigned by NumPy's rules")
@pytest.mark.source("GDP-3", "Methods", "values are assigned by index, slice, or advanced index")
@pytest.mark.parametrize("key", ADVANCED.values(), ids=ADVANCED)
def test_advanced_keys_write_where_numpy_writes(key):
    picked = OTHERS[key]
    for value in (-1, picked, picked.astype("float32"), picked[..., :1], picked.tolist() or 0):
        assert_as_numpy(key, value)
    for value in (dlf.storage(picked), Dlpack(picked)):
        assert_as_numpy(key, value, plain=picked)


@pytest.mark.parametrize("key", ADVANCED.values(), ids=ADVANCED)
def test_a_shape_that_does_not_fit_an_advanced_key_is_refused(key):
    storage = made()
    for value in (np.ones(7), dlf.ones((7,)), [1] * 7):
        with pytest.raises(ValueError):  # noqa: PT011 - NumPy has several texts
            storage[key] = value
    np.testing.assert_array_equal(storage.to_numpy(), VALUES)


def test_storages_and_foreign_arrays_are_keys():
    assert_as_numpy((slice(None), dlf.storage([2, 0]), 1), -1)
    assert_as_numpy(bytearray(b"\1"), OTHERS[1])
    for value in (-1, OTHERS[VALUES > 7]):
        storage, expected = made(), VALUES.astype(float)
        storage[dlf.storage(VALUES > 7)] = value
        expected[VALUES > 7] = value
        np.testing.assert_array_equal(storage.to_numpy(), expected)


@pytest.mark.source("GDP-3", "Functionality", "items are read and assigned by NumPy's rules")
@pytest.mark.source("GDP-3", "Methods", "values are assigned by index, slice, or advanced index")
def test_what_is_written_into_a_view_of_a_view_is_in_the_storage():
    storage, expected = made(), VALUES.astype(float)
    for target in (storage, expected):
        target[1:].T[::-2][1, 1:][0][...] = -5
        target.transpose(2, 0, 1)[1:3, ::-1][:, 0, 0] = [-6, -7]
        target[None][..., -1][0, :, [1, 2]] = -8
    np.testing.assert_array_equal(storage.to_numpy(), expected)
    assert (expected < 0).sum() == 7


def test_nothing_is_written_beside_the_view():
    whole = np.full((6, 8), 9.0)
    storage = dlf.as_storage(whole[1:-1:2, 6:1:-2])
    storage[...] = 0
    storage[:, 1:] = np.arange(2.0)
    expected = np.full((6, 8), 9.0)
    expected[1:-1:2, 6:1:-2] = [0, 0, 1]
    np.testing.assert_array_equal(whole, expected)


WHOLE = np.arange(36.0).reshape(6, 6)
ALL, BACK = slice(None), slice(None, None, -1)
PAIRS = [
    (slice(1, None), slice(None, -1)),
    (slice(None, -1), slice(1, None)),
    (..., BACK),
    ((..., BACK), ...),
    (slice(0, 3), slice(1, 6, 2)),
    (slice(5, 2, -1), slice(0, 6, 2)),
    ((slice(1, None), slice(1, None)), (slice(None, -1), slice(None, -1))),
    ((slice(1, 5), slice(0, 5)), (slice(4, 0, -1), slice(1, 6))),
    (..., 2),
    (..., (ALL, slice(3, 4))),
    (..., (3, None)),
    (slice(2, 4), (slice(2, 3), BACK)),
    (3, (ALL, 3)),
    ((ALL, 2), 2),
    ([1, 2, 3], slice(0, 3)),
    (([1, 2, 3], slice(1, None)), (slice(0, 3), slice(None, -1))),
    (np.array([0, 1, 1, 0, 1, 0], bool), slice(2, 5)),
    ((..., None), (ALL, BACK, None)),
]
SEEN = {
    "a view": lambda storage: storage,
    "another storage": lambda storage: dlf.as_storage(memoryview(storage)),
    "an array": lambda storage: storage.to_numpy(),
    "a big-endian array": lambda storage: storage.to_numpy().view(">f8"),
    "other bytes": lambda storage: storage.to_numpy().view("int64"),
}


@pytest.mark.parametrize("layout", [(0, 1), (1, 0)], ids=repr)
@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
@pytest.mark.parametrize(("to", "source"), PAIRS, ids=repr)
def test_memory_that_overlaps_is_read_before_it_is_written(layout, seen, to, source):
    storage = dlf.storage(WHOLE, layout=layout)
    expected, value = storage.to_numpy().copy(), seen(storage)[source]
    expected[to] = np.array(value)
    storage[to] = value
    np.testing.assert_array_equal(storage.to_numpy(), expected)


@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
@pytest.mark.parametrize("layout", [(0, 1), (1, 0)], ids=repr)
def test_a_storage_can_be_transposed_in_place(seen, layout):
    storage = dlf.storage(WHOLE, layout=layout)
    value = seen(storage).T
    expected = np.array(value)
    storage[...] = value
    np.testing.assert_array_equal(storage.to_numpy(), expected)


def test_values_that_lie_over_the_target_are_read_before_they_are_written():
    whole = np.arange(16, dtype="uint8")
    dlf.as_storage(whole[1:].reshape(3, 5))[...] = dlf.as_storage(whole[:5])
    assert whole.tolist() == [0, *[0, 1, 2, 3, 4] * 3]
    dlf.as_storage(whole[1:])[...] = memoryview(whole)[:-1]
    assert whole.tolist() == [0, 0, *[0, 1, 2, 3, 4] * 3][:-1]


@pytest.mark.parametrize("name", ["int32", ">f4"])
def test_values_of_another_type_over_the_target_are_read_before_they_are_written(name):
    for to, source in ((slice(1, None), slice(-1)), (slice(-1), slice(1, None)), (..., BACK)):
        whole = np.arange(8, dtype="float32")
        value = whole.view(name)[source]
        expected = np.array(value).astype("float32")
        dlf.as_storage(whole)[to] = value
        np.testing.assert_array_equal(whole[to], expected)


@pytest.mark.parametrize("names", [("float32", "uint8"), ("uint8", "float32")], ids=repr)
def test_values_of_another_size_over_the_target_are_read_before_they_are_written(names):
    whole = np.arange(8, dtype="float32")
    target, value = (whole.view(name) for name in names)
    target, value = target[-20:][:8], value[-20:][:8]
    expected = np.array(value).astype(target.dtype)
    dlf.as_storage(target)[...] = dlf.as_storage(value)
    np.testing.assert_array_equal(target, expected)


def test_a_key_may_be_the_memory_that_is_written():
    order = dlf.storage([2, 0, 1])
    order[order] = [10, 20, 30]
    assert order.to_numpy().tolist() == [20, 30, 10]
    mask = dlf.storage([True, False, True])
    mask[mask] = [False, True]
    assert mask.to_numpy().tolist() == [False, False, True]


def test_a_storage_may_be_assigned_to_itself():
    storage = made()
    storage[...] = storage
    storage[::-1, ::-1] = storage[::-1, ::-1]
    np.testing.assert_array_equal(storage.to_numpy(), VALUES)
