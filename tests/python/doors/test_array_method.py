"""`__array__`, as NumPy calls it and by hand: each arm of dtype and copy."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library


@pytest.fixture
def storage():
    return dlf.full((2, 3), 1.5)


def is_shared(array, storage):
    return array.ctypes.data == address_of(storage)


@pytest.mark.source("GDP-3", "Methods", "`__array__` is a view of the host buffer as a NumPy array")
@pytest.mark.parametrize("dtype", [None, float, "float64", np.dtype("float64")], ids=repr)
@pytest.mark.parametrize("copy", [None, False])
def test_the_memory_itself_where_nothing_is_to_be_converted(storage, dtype, copy):
    assert is_shared(storage.__array__(dtype, copy=copy), storage)


@pytest.mark.parametrize("dtype", [None, float, "float32"])
def test_copy_true_gives_memory_of_its_own(storage, dtype):
    copied = storage.__array__(dtype, copy=True)
    copied[...] = 7
    assert storage.to_numpy().tolist() == [[1.5] * 3] * 2


def test_another_dtype_is_converted_as_numpy_converts(storage):
    converted = storage.__array__("int32")
    np.testing.assert_array_equal(converted, np.ones((2, 3), "int32"), strict=True)


@pytest.mark.parametrize("dtype", [object, ">f8", "S3"])
def test_a_dtype_that_no_storage_holds_is_converted_to_as_well(storage, dtype):
    expected = np.full((2, 3), 1.5).astype(dtype)
    np.testing.assert_array_equal(storage.__array__(dtype), expected, strict=True)


def test_copy_false_with_another_dtype_is_refused(storage):
    with pytest.raises(ValueError, match="float64 with copy=False, got float32"):
        storage.__array__("float32", copy=False)


@pytest.mark.source(
    "GDP-3",
    "Backward Compatibility",
    "code that used universal functions uses other libraries for them",
)
@pytest.mark.parametrize("copy", [None, False])
def test_asarray_shares_the_memory(storage, copy):
    assert is_shared(np.asarray(storage, copy=copy), storage)


def test_array_copies(storage):
    assert not is_shared(np.array(storage), storage)


def test_asarray_keeps_padding_and_order():
    storage = dlf.zeros((3, 4, 5), layout=(2, 0, 1), alignment_size=64)
    assert np.asarray(storage).strides == storage.strides


def test_numpy_functions_other_than_ufuncs_read_a_storage(storage):
    assert np.shares_memory(storage, storage.to_numpy())
    assert np.concatenate([storage, storage]).to_numpy().sum() == 18


def test_read_only_memory_gives_a_read_only_array():
    source = np.arange(3.0)
    source.flags.writeable = False
    array = dlf.as_storage(source).__array__()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_an_array_copied_from_read_only_memory_is_writable():
    copied = dlf.as_storage(b"\1\2\3").__array__(copy=True)
    copied[0] = 9
    assert copied.tolist() == [9, 2, 3]


def test_asarray_of_a_type_without_a_buffer_goes_through_array():
    bfloat16 = np.dtype(library("ml_dtypes").bfloat16)
    storage = dlf.full((2, 3), 1.5, bfloat16)
    array = np.asarray(storage)
    array[0, 0] = 3
    assert array.dtype == bfloat16
    assert storage.to_numpy().astype(float).sum() == 10.5
