"""`storage[key] = value`: numbers, lists and arrays of any library, converted as by NumPy."""

import array as arrays
import decimal
import fractions

import dlfield as dlf
import numpy as np
import pytest

from support.gt_objects import Described, Synchronised
from support.optional import library
from support.parameters import ML_DTYPES, NUMPY_DTYPES, readable

VALUES = np.arange(24).reshape(2, 3, 4)
OTHERS = -np.arange(24).reshape(2, 3, 4) - 1.0


class Index:
    def __index__(self):
        return 7


class Interface:
    """Has only the array interface."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "strides": array.strides}


class Dlpack:
    """Has only DLPack."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def made(dtype="float64"):
    """24 numbers, in neither C nor Fortran order where that matters, and padded."""
    return dlf.storage(VALUES, dtype=dtype, layout=(1, 2, 0), alignment_size=64)


def after(target, key, value):
    """Return the class of what an assignment raises, and the values after it."""
    try:
        target[key] = value
    except Exception as error:
        return type(error), np.asarray(target)
    return None, np.asarray(target)


def assert_as_numpy(key, value, plain=None, dtype="float64"):
    """Compare with NumPy, which is shown `plain` where it does not know `value`."""
    error, values = after(made(dtype), key, value)
    wanted, expected = after(VALUES.astype(dtype), key, value if plain is None else plain)
    assert error is wanted
    if expected.dtype.name not in NUMPY_DTYPES:  # of these NumPy does not know which are numbers
        assert values.dtype is expected.dtype
        values, expected = values.astype("float32"), expected.astype("float32")
    np.testing.assert_array_equal(values, expected, strict=True)


NUMBERS = [
    0,
    True,
    7.75,
    -1,
    300,
    2**63,
    2**70,
    10**400,
    1j,
    float("nan"),
    float("-inf"),
    None,
    "7.5",
    "x",
    Index(),
    fractions.Fraction(15, 2),
    decimal.Decimal("7.5"),
    {},
    object(),
    np.array(7.5),
    np.array(7j),
    np.array(300),
    np.array(2**63, "uint64"),
    np.array(np.nan),
    np.array(7.5, "longdouble"),
    np.array("7.5"),
    np.array(None, object),
]


@pytest.mark.source("GDP-3", "Methods", "assigned values may be numbers or arrays")
@pytest.mark.parametrize("number", NUMBERS, ids=lambda one: f"{type(one).__name__} {one}"[:24])
def test_a_number_is_converted_or_refused_as_by_numpy(number):
    for dtype in NUMPY_DTYPES:
        for key in (..., (0, 1, 2), (slice(None), 1)):
            assert_as_numpy(key, number, dtype=dtype)


SCALARS = [
    np.True_,
    np.int8(-1),
    np.uint64(2**63),
    np.int64(300),
    np.float16(7.5),
    np.float64("nan"),
    np.complex64(7 + 1j),
    np.longdouble(7.5),
    np.str_("7.5"),
]


@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_a_scalar_of_numpy_is_converted_or_refused_as_by_numpy(scalar):
    for dtype in NUMPY_DTYPES:
        for key in (..., (0, 1, 2), [1, 0]):
            assert_as_numpy(key, scalar, dtype=dtype)


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
    iter([1, 2, 3, 4]),
]


@pytest.mark.parametrize("values", LISTS, ids=readable)
def test_a_list_is_taken_or_refused_as_by_numpy(values):
    for key in (..., (slice(None), 1), (0, slice(None, None, -1)), slice(0, 0)):
        assert_as_numpy(key, values)


@pytest.mark.parametrize("own", NUMPY_DTYPES)
@pytest.mark.parametrize("other", [*NUMPY_DTYPES, "longdouble", ">i4", ">f8", "object", "S3"])
def test_an_array_of_another_type_is_converted_as_by_numpy(own, other):
    # Casting a negative float to an unsigned type depends on the processor.
    unsigned = "u" in (np.dtype(own).kind, np.dtype(other).kind)
    others = (abs(OTHERS) if unsigned else OTHERS).astype(other)
    for values in (others, others[:1, ::-1, :1]):
        assert_as_numpy(..., values, dtype=own)


DOORS = {
    "memoryview": memoryview,
    "array interface": Interface,
    "DLPack": Dlpack,
    "__gt_data_interface__": Described,
    "a function in __gt_interface__": lambda array: Described(
        array, name="__gt_interface__", key="cpu", lazily=True
    ),
    "a storage": dlf.as_storage,
    "a copied storage": lambda array: dlf.storage(
        array, layout=lambda ndim: range(ndim)[::-1], alignment_size=32
    ),
}
KEYS = [..., slice(1, None), (0, 1), (0, 1, 2), (..., None, 0), (slice(None, None, -1), 1), [1, 0]]


@pytest.mark.source("GDP-3", "Methods", "assigned values may be numbers or arrays")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("dtype", ["float64", "int16"])
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_what_a_door_takes_can_be_assigned(door, dtype, key):
    values = np.array(OTHERS[key], dtype)
    assert_as_numpy(key, door(values), plain=values)


@pytest.mark.parametrize("door", list(DOORS.values())[1:], ids=list(DOORS)[1:])
def test_the_elements_of_a_value_may_lie_anywhere(door):
    whole = np.arange(120.0).reshape(2, 4, 15)
    for values in (whole[:, 1:, ::4], whole[..., :3].swapaxes(1, 2), whole[:, :1, 2:6]):
        assert_as_numpy(..., door(values), plain=values)


def test_bytes_and_arrays_of_the_standard_library_can_be_assigned():
    assert_as_numpy(..., bytearray(b"\1\2\3\4"), dtype="uint8")
    assert_as_numpy(..., arrays.array("f", [1.5, 2.5, 3.5, 4.5]))
    assert_as_numpy(1, memoryview(b"\1\2\3\4"), plain=[1, 2, 3, 4], dtype="int32")


def test_a_column_of_a_record_can_be_assigned():
    records = np.array([(1, 2.5), (3, 4.5), (5, 6.5), (7, 8.5)], "i1,f8")
    assert_as_numpy(..., records["f1"])
    assert_as_numpy(..., records)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_types_of_ml_dtypes_are_converted_in_both_directions(name):
    library("ml_dtypes")
    values = np.array([[1], [0.5], [2]]).astype(dlf.empty((), name).dtype)
    for value in (values, dlf.storage(values), dlf.storage(values.T).T):
        assert_as_numpy(..., value, plain=values, dtype=values.dtype)
        assert_as_numpy(slice(0, 1), value, plain=values)
    for value in (0.5, OTHERS != -3, [[1], [0.5], [2]]):
        assert_as_numpy(..., value, dtype=values.dtype)


def test_an_element_of_ml_dtypes_can_be_assigned_to_another():
    library("ml_dtypes")
    storage = dlf.storage([1, 2], dtype="bfloat16")
    storage[0] = storage[1]
    assert storage.to_numpy().tolist() == [2, 2]


@pytest.mark.parametrize("key", [..., 1, (slice(None), [2, 0]), VALUES[:, 0, 0] > 5], ids=repr)
def test_byte_swapped_arrays_are_converted(key):
    values = OTHERS.astype(">f8")[key]
    for dtype in ("float64", "float32", "int16"):
        assert_as_numpy(key, values, dtype=dtype)


@pytest.mark.parametrize("key", [..., 0, (0, 0), slice(0, 0), [0], True, 99, "I"], ids=repr)
@pytest.mark.parametrize("value", [1, [1], np.ones((2, 2)), dlf.ones((2, 2))], ids=type)
def test_a_read_only_storage_is_not_written_whatever_the_key(key, value):
    source = np.zeros((2, 2))
    source.flags.writeable = False
    for storage in (dlf.as_storage(source), dlf.as_storage(source)[::-1].T):
        with pytest.raises(BufferError, match=r"read-only.*copy\(\)"):
            storage[key] = value
    assert not source.any()


class Late:
    """Has its values only while it is acquired, and notes what the target holds then."""

    def __init__(self, target):
        self.array, self.target, self.notes = np.zeros(target.shape), target, []

    def acquire(self):
        self.array[...] = 5
        self.notes.append(("acquire", self.target.item(0)))

    def release(self):
        self.array[...] = 0
        self.notes.append(("release", self.target.item(0)))

    @property
    def __gt_data_interface__(self):
        hooks = {"acquire": self.acquire, "release": self.release}
        return {None: {**self.array.__array_interface__, **hooks}}


@pytest.mark.parametrize("key", [..., [0, 1]], ids=repr)
@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_a_value_is_acquired_before_it_is_read_and_released_when_it_was(key, dtype):
    target = dlf.zeros((2, 3), dtype)
    value = Late(target)
    target[key] = value
    assert value.notes == [("acquire", 0), ("release", 5)]
    assert (target.to_numpy() == 5).all()


def test_what_acquire_raises_is_raised_and_nothing_is_written():
    target, field = dlf.ones((2, 3)), Synchronised((2, 3), refuses=("acquire",))
    with pytest.raises(RuntimeError, match="acquire refused"):
        target[...] = field
    assert field.told == ["acquire"]
    assert target.to_numpy().all()


@pytest.mark.parametrize(
    ("error", "key", "shape"),
    [(IndexError, 5, (2, 3)), (ValueError, slice(0, 1, 0), (2, 3)), (ValueError, ..., (5,))],
    ids=repr,
)
def test_what_is_acquired_is_released_also_where_it_is_refused(error, key, shape):
    target, field = dlf.ones((2, 3)), Synchronised(shape)
    with pytest.raises(error):
        target[key] = field
    assert field.told in ([], ["acquire", "release"])
    assert target.to_numpy().all()


def test_an_error_of_a_value_passes_unchanged():
    class Raising:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            raise KeyError("of the value")

    with pytest.raises(KeyError, match="of the value"):
        made()[...] = Raising()


@pytest.mark.parametrize("key", [0, ..., np.s_[1:], [0, 1], "I"], ids=repr)
def test_elements_cannot_be_deleted_as_in_numpy(key):
    storage, array = dlf.ones((2, 3)), np.ones((2, 3))
    for one in (storage, array):
        with pytest.raises(ValueError, match=r"^cannot delete array elements$"):
            del one[key]
    assert storage.shape == (2, 3)
