"""TVM FFI's tensors, which many kernel libraries take, into storages and back."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.owners import assert_freed_once

tvm_ffi = library("tvm_ffi")

DTYPES = ("bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_there_and_back_at_the_same_address(dtype):
    storage = dlf.ones((4, 3), dtype=dtype)
    tensor = tvm_ffi.from_dlpack(storage)
    assert str(tensor.dtype) == dtype
    assert tensor.data_ptr() == address_of(storage)
    back = dlf.as_storage(tensor)
    assert back.dtype == dtype
    assert address_of(back) == tensor.data_ptr()


def test_the_order_of_the_axes_goes_there_and_back():
    storage = dlf.zeros((4, 3, 2), layout=(2, 1, 0))
    tensor = tvm_ffi.from_dlpack(storage)
    assert tuple(tensor.shape) == (4, 3, 2)
    assert tuple(tensor.strides) == (1, 4, 12)
    assert dlf.as_storage(tensor).strides == storage.strides


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_scalars_and_empty_fields_go_there_and_back(shape):
    tensor = tvm_ffi.from_dlpack(dlf.zeros(shape))
    assert tuple(tensor.shape) == shape
    assert dlf.as_storage(tensor).shape == shape


def test_a_write_behind_the_tensor_is_seen_on_the_other_side():
    storage = dlf.zeros((4, 3))
    behind = dlf.as_storage(tvm_ffi.from_dlpack(storage))
    storage.to_numpy()[2, 1] = 7.0
    assert behind.to_numpy()[2, 1] == 7.0
    behind.to_numpy()[0, 0] = 8.0
    assert storage.to_numpy()[0, 0] == 8.0


def test_a_tvm_tensor_lives_exactly_as_long_as_its_storage():
    assert_freed_once(tvm_ffi.from_dlpack, dlf.as_storage)


def test_a_tensor_keeps_the_memory_of_a_storage_and_frees_it_once():
    assert_freed_once(dlf.as_storage, tvm_ffi.from_dlpack)


def test_a_tensor_over_a_read_only_storage_has_forgotten_that_it_is():
    storage = dlf.as_storage(np.frombuffer(bytes(16)))
    tensor = tvm_ffi.from_dlpack(storage)
    assert tensor.data_ptr() == address_of(storage)
    assert (storage.readonly, dlf.as_storage(tensor).readonly) == (True, False)


def test_tvm_ffi_gets_no_negative_strides():
    with pytest.raises(BufferError, match="expected strides of at least 0"):
        tvm_ffi.from_dlpack(dlf.as_storage(np.zeros(3)[::-1]))
