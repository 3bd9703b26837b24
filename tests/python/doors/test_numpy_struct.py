"""Arrays of exactly NumPy's class, which are read from their own struct, and made without a buffer.

A memoryview of the same array comes in through its buffer: both must say the same.
"""

import sys
import warnings

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Field
from hypothesis import given
from hypothesis import strategies as st

from support.processes import run_in_subprocess

NATIVE = "?bBhHiIlLqQefdFD"
OTHERS = [">f8", ">i2", "g", "G", "S3", "U2", "O", "M8[s]", "m8[s]", "V8", "i4,f8"]


@st.composite
def arrays(draw):
    """Return an array of any type and layout, with or without elements, writable or not."""
    dtype = np.dtype(draw(st.sampled_from([*NATIVE, *OTHERS])))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    array = np.zeros(shape, dtype)
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    steps = st.sampled_from([slice(None), slice(1, None), slice(None, None, -1), slice(0, None, 2)])
    array = array[(*(draw(steps) for _ in range(array.ndim)), ...)]
    if draw(st.booleans()):
        array = array[np.newaxis]
    if draw(st.integers(0, 4)) == 0:
        array = np.broadcast_to(array, (3, *array.shape))
    if draw(st.integers(0, 4)) == 0 and not dtype.hasobject:
        room = np.zeros(array.size * dtype.itemsize + 1, np.uint8)
        array = room[1:].view(dtype).reshape(array.shape)
    if draw(st.booleans()):
        array.flags.writeable = False
    return array


def outcome(source):
    """Return what is known of a storage, with the strides that mean something, or the refusal."""
    try:
        storage = dlf.as_storage(source)
    except (BufferError, ValueError, TypeError) as error:
        return type(error)
    steps = zip(storage.shape, storage.strides, strict=True)
    strides = [stride for extent, stride in steps if extent > 1 and storage.size]
    facts = (storage.door, storage.dtype, storage.shape, storage.readonly)
    return *facts, strides, storage.size and storage.ptr


@given(arrays())
def test_the_struct_of_an_array_says_what_its_buffer_says(array):
    try:
        view = memoryview(array)
    except (BufferError, ValueError):  # a type that has no buffer
        with pytest.raises(BufferError):
            dlf.as_storage(array)
        return
    assert outcome(array) == outcome(view)


@given(arrays())
def test_an_array_over_a_storage_says_what_its_buffer_says(array):
    """The array is made by NumPy's function for C, `np.asarray` reads the buffer."""
    try:
        storage = dlf.as_storage(array)
    except (BufferError, ValueError):
        return
    made, read = storage.to_numpy(), np.asarray(memoryview(storage))
    assert (made.shape, made.dtype, str(made.flags)) == (read.shape, read.dtype, str(read.flags))
    assert made.strides == storage.strides
    assert _that_matter(np.asarray(memoryview(made))) == _that_matter(read)
    assert made.ctypes.data == read.ctypes.data
    if storage.readonly:
        with pytest.raises(ValueError, match="WRITEABLE"):
            made.flags.writeable = True


def _that_matter(array):
    """The strides of extents above one: buffers of NumPy 2.3 have others elsewhere than 2.4's."""
    return [stride for stride, n in zip(array.strides, array.shape, strict=True) if n > 1]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", NATIVE)
def test_the_values_are_those_of_the_array(name, order):
    array = np.arange(6).astype(name).reshape((2, 3), order=order)
    np.testing.assert_array_equal(dlf.as_storage(array).to_numpy(), array, strict=True)


def test_an_array_is_held_once_and_let_go():
    array = np.zeros((2, 3))
    before = sys.getrefcount(array)
    storage = dlf.as_storage(array)
    part = storage[1:]
    assert sys.getrefcount(array) == before + 1
    del storage
    assert sys.getrefcount(array) == before + 1
    del part
    assert sys.getrefcount(array) == before


def test_an_array_is_not_resized_while_a_storage_holds_it():
    array = np.zeros(4)
    storage = dlf.as_storage(array)
    with pytest.raises(ValueError, match="resize"):
        array.resize(1 << 20)
    assert storage.ptr == array.ctypes.data
    del storage
    array.resize(1 << 20)
    assert dlf.as_storage(array).shape == (1 << 20,)


def test_a_storage_keeps_the_shape_that_the_array_had():
    array = np.arange(6.0)
    storage = dlf.as_storage(array)
    array = array.reshape(2, 3, copy=False)
    array.flags.writeable = False
    assert (storage.shape, storage.readonly) == ((6,), False)
    assert (dlf.as_storage(array).shape, dlf.as_storage(array).readonly) == ((2, 3), True)


def test_an_array_that_warns_of_writes_is_read_only_and_does_not_warn():
    array = np.broadcast_arrays(np.zeros(3), np.zeros((2, 3)))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        storage = dlf.as_storage(array)
        assert (storage.readonly, storage.ptr) == (True, array.ctypes.data)
        np.testing.assert_array_equal(storage + 1, np.ones((2, 3)))
    with pytest.warns(DeprecationWarning, match="broadcast"):
        array[0, 0] = 1.0  # as before: NumPy itself still warns


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda array: array.setflags(write=False), "writable"),
        (lambda array: setattr(array, "dtype", np.int64), "int64"),
        (lambda array: setattr(array, "shape", (1, 3, 2)), "expected 2 points"),
    ],
    ids=["read-only", "another type", "another shape"],
)
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_a_change_of_an_array_between_two_calls_is_seen(change, text):
    def copy(x, y):
        y[...] = x

    fields = {"x": Field[np.float64], "y": Field[np.float64, Access["out"]]}
    run = dlf.bind(copy, fields=fields)
    x, y = np.ones((1, 2, 3)), np.zeros((1, 2, 3))
    for _ in range(3):
        run(x, y)
    change(y)
    with pytest.raises((BufferError, ValueError, TypeError), match=text):
        run(x, y)


def test_a_class_that_was_put_in_the_place_of_numpys_is_not_read_as_an_array():
    code = """
        import numpy as np

        class Impostor(bytes):
            pass

        np.ndarray = Impostor

        import dlfield as dlf
        made = dlf.as_storage(Impostor(b"A" * 64))
        print(made.shape, made.dtype, made.door)
    """
    assert run_in_subprocess(code) == "(64,) uint8 buffer"


def test_numpy_may_read_an_element_of_an_empty_array_over_a_storage():
    run_in_subprocess("""
import dlfield as dlf, numpy as np
empty = dlf.zeros((1, 0), "int32").to_numpy()
np.copyto(np.empty((1, 0)), empty, where=np.ones((1, 1), bool))  # converts one before it counts
""")
