"""Python's own arrays and blocks of memory into storages, and storages into memoryviews."""

import array
import ctypes
import mmap

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.owners import assert_freed_once, frees
from support.parameters import NUMPY_DTYPES


def address_in(block):
    """Where a writable block of bytes lies, according to ctypes."""
    return ctypes.addressof(ctypes.c_char.from_buffer(block))


def test_a_bytearray_is_shared_as_its_bytes():
    block = bytearray(b"abc")
    storage = dlf.as_storage(block)
    assert storage.dtype == np.uint8
    assert address_of(storage) == address_in(block)
    storage.to_numpy()[1] = ord("x")
    assert block == b"axc"


def test_a_bytearray_cannot_be_resized_until_its_storage_is_gone():
    block = bytearray(16)
    storage = dlf.as_storage(block)
    with pytest.raises(BufferError):
        block.append(0)
    del storage
    block.append(0)


def test_bytes_are_read_only():
    assert dlf.as_storage(b"abc").readonly


def test_a_memoryview_of_three_dimensions_keeps_shape_and_address():
    block = bytearray(2 * 3 * 4 * 8)
    storage = dlf.as_storage(memoryview(block).cast("d", shape=(2, 3, 4)))
    assert (storage.shape, storage.dtype) == ((2, 3, 4), np.float64)
    assert address_of(storage) == address_in(block)


def test_a_memoryview_backwards_starts_at_its_own_first_element():
    view = memoryview(bytearray(range(6)))[::-2]
    storage = dlf.as_storage(view)
    assert storage.strides == (-2,)
    assert storage.to_numpy().tolist() == [5, 3, 1]


def test_a_read_only_memoryview_of_writable_memory_stays_read_only():
    assert dlf.as_storage(memoryview(bytearray(8)).toreadonly()).readonly


def test_a_memoryview_lives_as_long_as_its_storage_and_no_longer():
    assert_freed_once(np.from_dlpack, memoryview, dlf.as_storage)


def test_a_memoryview_cannot_be_released_while_a_storage_uses_it():
    view = memoryview(bytearray(8))
    storage = dlf.as_storage(view)
    with pytest.raises(BufferError):
        view.release()
    del storage
    view.release()


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_an_array_of_every_type_is_shared(code):
    block = array.array(code, [1, 2])
    storage = dlf.as_storage(block)
    assert address_of(storage) == block.buffer_info()[0]
    assert storage.dtype == np.dtype(code)
    storage.to_numpy()[1] = 7
    assert block[1] == 7


def test_an_array_cannot_be_resized_until_its_storage_is_gone():
    block = array.array("d", [1.0])
    storage = dlf.as_storage(block)
    with pytest.raises(BufferError):
        block.append(2.0)
    del storage
    block.append(2.0)


def test_an_array_of_text_is_refused():
    with pytest.raises(BufferError, match="expected bool, int8"):
        dlf.as_storage(array.array("w" if "w" in array.typecodes else "u", "ab"))


NUMBERS = (ctypes.c_bool, ctypes.c_int8, ctypes.c_uint16, ctypes.c_int, ctypes.c_size_t)
NUMBERS += (ctypes.c_float, ctypes.c_double)


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_ctypes_array_of_two_dimensions_is_shared(kind):
    block = (kind * 3 * 2)()
    storage = dlf.as_storage(block)
    assert (storage.shape, storage.dtype) == ((2, 3), np.dtype(kind))
    assert address_of(storage) == ctypes.addressof(block)
    storage.to_numpy()[1, 2] = 1
    assert block[1][2] == 1


def test_a_ctypes_array_lives_as_long_as_its_storage_and_no_longer():
    class Block(ctypes.c_double * 4):
        pass

    block = Block()
    told = frees(block)
    storage = dlf.as_storage(block)
    del block
    assert told == []
    del storage
    assert told == ["freed"]


class Record(ctypes.Structure):
    _fields_ = (("a", ctypes.c_double),)


@pytest.mark.parametrize(
    "kind",
    [Record, ctypes.c_char, ctypes.c_wchar, ctypes.c_void_p, ctypes.c_double.__ctype_be__],
)
def test_a_ctypes_array_of_anything_but_native_numbers_is_refused(kind):
    with pytest.raises(BufferError):
        dlf.as_storage((kind * 2)())


def test_a_memory_map_is_shared():
    block = mmap.mmap(-1, mmap.PAGESIZE)
    storage = dlf.as_storage(block)
    assert address_of(storage) == address_in(block)
    storage.to_numpy()[3] = 7
    assert block[3] == 7


def test_a_memory_map_cannot_be_closed_until_its_storage_is_gone():
    block = mmap.mmap(-1, mmap.PAGESIZE)
    storage = dlf.as_storage(block)
    with pytest.raises(BufferError):
        block.close()
    del storage
    block.close()


def test_a_memory_map_that_may_only_be_read_stays_read_only():
    storage = dlf.as_storage(mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ))
    assert storage.readonly
    with pytest.raises(ValueError, match="read-only"):
        storage.to_numpy()[0] = 1


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_a_memoryview_sees_the_memory_of_a_storage(dtype):
    storage = dlf.ones((4, 3), dtype=dtype)
    view = memoryview(storage)
    assert (view.shape, view.strides, view.readonly) == ((4, 3), storage.strides, False)
    assert np.asarray(view).ctypes.data == address_of(storage)
    assert np.asarray(view).dtype == dtype


def test_a_write_through_a_memoryview_is_seen_in_the_storage():
    storage = dlf.zeros((4, 3))
    memoryview(storage)[2, 1] = 7.0
    assert storage.to_numpy()[2, 1] == 7.0


def test_a_memoryview_of_a_read_only_storage_refuses_a_write():
    view = memoryview(dlf.as_storage(b"abc"))
    with pytest.raises(TypeError, match="read-only"):
        view[0] = 1


def test_a_memoryview_keeps_the_memory_of_a_storage_and_frees_it_once():
    assert_freed_once(dlf.as_storage, memoryview)


@pytest.mark.parametrize("value", [[1.0], (1.0,), 1.0, "abc", None, {}, np.ndarray, object()])
def test_an_object_that_is_not_an_array_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"array: expected one that|expected an array as"):
        dlf.as_storage(value)
