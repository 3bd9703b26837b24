"""Arrow tensors, arrays and buffers into storages, always read-only, and storages into Arrow."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.owners import assert_freed_once

pa = library("pyarrow")

NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS += ("float16", "float32", "float64")


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_tensor_of_every_dtype_arrives_with_its_values(dtype):
    values = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    storage = dlf.as_storage(pa.Tensor.from_numpy(values))
    assert storage.dtype == dtype
    assert address_of(storage) == values.ctypes.data
    assert np.array_equal(storage.to_numpy(), values)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_an_array_of_every_dtype_arrives_with_its_values(dtype):
    array = pa.array(np.array([0, 1, 1], dtype=dtype))
    storage = dlf.as_storage(array)
    assert storage.dtype == dtype
    assert address_of(storage) == array.buffers()[1].address
    assert storage.to_numpy().tolist() == [0, 1, 1]


def test_a_permuted_tensor_arrives_with_its_strides():
    tensor = pa.Tensor.from_numpy(np.zeros((4, 3, 2)).transpose(2, 0, 1))
    storage = dlf.as_storage(tensor)
    assert storage.shape == (2, 4, 3)
    assert storage.strides == tensor.strides == (8, 48, 16)


def test_a_slice_of_an_array_starts_at_its_own_first_element():
    array = pa.array([1.0, 2.0, 3.0])
    storage = dlf.as_storage(array[1:])
    assert address_of(storage) == array.buffers()[1].address + 8
    assert storage.to_numpy().tolist() == [2.0, 3.0]


def test_a_buffer_arrives_as_its_bytes():
    buffer = pa.py_buffer(b"abc")
    storage = dlf.as_storage(buffer)
    assert address_of(storage) == buffer.address
    assert bytes(storage) == b"abc"


def test_a_tensor_of_the_memory_shows_later_writes():
    values = np.zeros((4, 3))
    storage = dlf.as_storage(pa.Tensor.from_numpy(values))
    values[2, 1] = 7.0
    assert storage.to_numpy()[2, 1] == 7.0


IMMUTABLE = {
    "tensor": lambda: pa.Tensor.from_numpy(np.zeros((4, 3))),
    "array": lambda: pa.array([1.0, 2.0]),
    "buffer": lambda: pa.py_buffer(b"abc"),
    "buffer that calls itself mutable": lambda: pa.allocate_buffer(64),
}


@pytest.mark.parametrize("make", IMMUTABLE.values(), ids=IMMUTABLE)
def test_everything_of_arrow_is_read_only(make):
    storage = dlf.as_storage(make())
    assert storage.readonly
    with pytest.raises(ValueError, match="read-only"):
        storage.to_numpy()[0] = 1


def test_a_pyarrow_tensor_lives_exactly_as_long_as_its_storage():
    assert_freed_once(np.from_dlpack, pa.Tensor.from_numpy, dlf.as_storage)


def test_a_pyarrow_array_lives_exactly_as_long_as_its_storage():
    def array(memory):
        return pa.Array.from_buffers(pa.float64(), 12, [None, pa.py_buffer(memory)])

    assert_freed_once(np.from_dlpack, array, dlf.as_storage)


REFUSED = {
    "nulls": (lambda: pa.array([1.0, None]), "got 1 nulls"),
    "bits": (lambda: pa.array([True, False]), "a bit each"),
    "texts": (lambda: pa.array(["a"]), "text or bytes"),
    "lists": (lambda: pa.array([[1.0], [2.0, 3.0]]), "lists of any length"),
    "chunks": (lambda: pa.chunked_array([[1.0], [2.0]]), "combine_chunks"),
    "columns": (lambda: pa.table({"a": [1.0], "b": [2.0]}), "select one"),
}


@pytest.mark.parametrize(("make", "says"), REFUSED.values(), ids=REFUSED)
def test_arrow_data_without_one_plain_block_is_refused(make, says):
    with pytest.raises(BufferError, match=says):
        dlf.as_storage(make())


ONE_BLOCK = {
    "one chunk": lambda: pa.chunked_array([[1.0, 2.0]]),
    "one column": lambda: pa.table({"a": [1.0, 2.0]}),
}


@pytest.mark.parametrize("make", ONE_BLOCK.values(), ids=ONE_BLOCK)
def test_arrow_data_of_one_plain_block_arrives_with_its_values(make):
    assert dlf.as_storage(make()).to_numpy().tolist() == [1.0, 2.0]


def bytes_of(buffer):
    return np.frombuffer(buffer, dtype=np.float64)


CONSUMERS = {
    "tensor from dlpack": (pa.Tensor.from_dlpack, lambda tensor: tensor.to_numpy().ravel()),
    "tensor from numpy": (
        lambda storage: pa.Tensor.from_numpy(storage.to_numpy()),
        lambda tensor: tensor.to_numpy().ravel(),
    ),
    "buffer": (pa.py_buffer, bytes_of),
}


@pytest.mark.parametrize(("consume", "values"), CONSUMERS.values(), ids=CONSUMERS)
def test_arrow_sees_the_memory_of_a_storage_and_later_writes(consume, values):
    storage = dlf.zeros((4, 3))
    taken = consume(storage)
    storage.to_numpy()[2, 1] = 7.0
    assert values(taken).ctypes.data == address_of(storage)
    assert values(taken)[7] == 7.0


@pytest.mark.parametrize("consume", [c for c, _ in CONSUMERS.values()], ids=CONSUMERS)
def test_arrow_keeps_the_memory_of_a_storage_and_frees_it_once(consume):
    assert_freed_once(dlf.as_storage, consume)


def test_an_arrow_array_shares_a_storage_of_one_dimension():
    storage = dlf.ones(4)
    array = pa.Array.from_dlpack(storage)
    assert array.buffers()[1].address == address_of(storage)
    assert array.to_pylist() == [1.0] * 4


@pytest.mark.parametrize("consume", [pa.Tensor.from_dlpack, pa.py_buffer])
def test_arrow_calls_a_read_only_storage_immutable(consume):
    assert not consume(dlf.as_storage(np.frombuffer(bytes(16)))).is_mutable


@pytest.mark.parametrize("axes", [(1, 0), (2, 0, 1), (1, 2, 0), (2, 1, 0), (0, 2, 1)])
def test_a_field_without_names_comes_back_in_its_own_order(axes):
    array = np.arange(24.0).reshape((2, 12) if len(axes) == 2 else (2, 3, 4)).transpose(axes)
    back = dlf.as_storage(dlf.as_storage(array).to_arrow())
    assert np.array_equal(back.to_numpy(), array)
    assert back.dims is None


def test_a_field_with_names_comes_back_in_the_order_of_memory_with_the_names_inside():
    array = np.arange(6.0).reshape(2, 3).T
    back = dlf.as_storage(dlf.as_storage(array, dims="IJ").to_arrow())
    assert (back.shape, back.dims) == ((2, 3), ("dim_0", "I"))
