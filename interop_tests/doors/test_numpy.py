"""NumPy arrays into storages, and storages into NumPy."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.owners import assert_freed_once
from support.parameters import NUMPY_DTYPES


def struct_member():
    return np.zeros((4, 3), dtype=[("a", "f8"), ("b", "f8")])["b"]


LAYOUTS = {
    "C order": lambda: np.zeros((4, 3, 2)),
    "Fortran order": lambda: np.zeros((4, 3, 2), order="F"),
    "transposed": lambda: np.zeros((4, 3, 2)).transpose(1, 2, 0),
    "padded": lambda: np.zeros((6, 5, 4))[:4, :3, :2],
    "every second": lambda: np.zeros((8, 6))[::2, 1::2],
    "backwards": lambda: np.zeros((4, 3))[::-1, ::-1],
    "member of a struct": struct_member,
    "0-d": lambda: np.zeros(()),
}


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_of_numpy_arrives_at_its_address_with_its_strides(make):
    array = make()
    storage = dlf.as_storage(array)
    assert storage.to_numpy().ctypes.data == array.ctypes.data
    assert storage.shape == array.shape
    assert storage.strides == array.strides


def test_an_empty_array_keeps_its_shape_and_dtype_both_ways():
    storage = dlf.as_storage(np.zeros((0, 3), dtype=np.int16))
    for array in (storage.to_numpy(), np.asarray(storage), np.from_dlpack(storage)):
        assert array.shape == (0, 3)
        assert array.dtype == np.int16


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_every_dtype_of_numpy_arrives_and_leaves_with_its_values(dtype):
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    storage = dlf.as_storage(array)
    assert storage.dtype == array.dtype
    assert address_of(storage) == array.ctypes.data
    assert np.from_dlpack(storage).dtype == array.dtype
    assert np.array_equal(np.from_dlpack(storage), array)


def test_a_bfloat16_array_arrives_and_leaves_as_one():
    array = np.array([1.5, -2.0], dtype=library("ml_dtypes").bfloat16)
    storage = dlf.as_storage(array)
    assert storage.dtype == array.dtype
    assert storage.to_numpy().ctypes.data == array.ctypes.data
    assert np.array_equal(storage.to_numpy(), array)


def test_a_write_to_the_array_is_seen_in_the_storage():
    array = np.zeros((4, 3))
    storage = dlf.as_storage(array)
    array[2, 1] = 7.0
    assert storage.to_numpy()[2, 1] == 7.0


def test_a_write_to_the_storage_is_seen_in_the_array():
    array = np.zeros((4, 3))
    dlf.as_storage(array).to_numpy()[2, 1] = 7.0
    assert array[2, 1] == 7.0


def test_a_read_only_array_stays_read_only():
    array = np.zeros((4, 3))
    array.flags.writeable = False
    storage = dlf.as_storage(array)
    assert storage.readonly
    with pytest.raises(ValueError, match="read-only"):
        storage.to_numpy()[0, 0] = 1.0


def test_an_array_over_bytes_is_read_only():
    assert dlf.as_storage(np.frombuffer(bytes(16))).readonly


def test_a_memory_mapped_file_is_shared(tmp_path):
    file = np.memmap(tmp_path / "field", dtype="f8", mode="w+", shape=(4, 3))
    dlf.as_storage(file).to_numpy()[2, 1] = 7.0
    file.flush()
    assert np.fromfile(tmp_path / "field")[7] == 7.0


@pytest.mark.parametrize(
    "dtype",
    ["object", "U3", "S3", "f8,f8", ">f8", "longdouble", "datetime64[s]"],
)
def test_a_dtype_that_no_field_has_is_refused(dtype):
    with pytest.raises(BufferError):
        dlf.as_storage(np.zeros(2, dtype=dtype))


def test_a_stride_must_be_a_multiple_of_the_item_size():
    array = np.zeros(4, dtype=[("a", "f8"), ("b", "i4")])["a"]
    with pytest.raises(BufferError, match="expected a multiple of the item size 8, got 12 bytes"):
        dlf.as_storage(array)


def test_a_masked_array_is_refused_since_its_mask_would_be_lost():
    array = np.ma.masked_array(np.zeros(3), mask=[False, True, False])
    with pytest.raises((TypeError, BufferError), match="mask"):
        dlf.as_storage(array)


def test_a_numpy_array_lives_exactly_as_long_as_its_storage():
    assert_freed_once(np.from_dlpack, dlf.as_storage)


CONSUMERS = {
    "to_numpy": dlf.CPUStorage.to_numpy,
    "asarray": np.asarray,
    "asarray without copy": lambda storage: np.asarray(storage, copy=False),
    "from_dlpack": np.from_dlpack,
    "memoryview": lambda storage: np.asarray(memoryview(storage)),
}


@pytest.mark.source(
    "GDP-3",
    "Backward Compatibility",
    "code that used universal functions uses other libraries for them",
)
@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)
def test_numpy_sees_the_memory_of_a_storage(consume):
    storage = dlf.zeros((4, 3), halo=(1, 0))
    array = consume(storage)
    assert array.ctypes.data == address_of(storage)
    array[2, 1] = 7.0
    assert storage.to_numpy()[2, 1] == 7.0


@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)
def test_an_exported_array_keeps_the_memory_and_frees_it_once(consume):
    assert_freed_once(dlf.as_storage, consume)


@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)
def test_numpy_may_not_write_a_read_only_storage(consume):
    storage = dlf.as_storage(np.frombuffer(bytes(16)))
    assert not consume(storage).flags.writeable


@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)
def test_a_view_inside_the_halo_starts_at_its_own_first_element(consume):
    storage = dlf.zeros((6, 5), halo=(2, 1))
    inside = consume(storage.domain_view)
    assert inside.shape == (2, 3)
    assert inside.ctypes.data == storage.to_numpy()[2:, 1:].ctypes.data


def test_asarray_with_another_dtype_converts_a_copy():
    storage = dlf.ones((4, 3))
    array = np.asarray(storage, dtype=np.float32)
    assert array.dtype == np.float32
    array[0, 0] = 7.0
    assert storage.to_numpy()[0, 0] == 1.0


def test_np_array_copies():
    storage = dlf.ones((4, 3))
    assert not np.shares_memory(np.array(storage), storage.to_numpy())


def test_negative_strides_leave_through_the_buffer_but_not_through_dlpack():
    storage = dlf.as_storage(np.arange(3.0)[::-1])
    assert np.asarray(storage).strides == (-8,)
    with pytest.raises(BufferError, match="use the buffer protocol"):
        np.from_dlpack(storage)
