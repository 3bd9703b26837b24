"""Copies that the host makes of memory on which a GPU may still be working."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, OnDevice, delay, is_done, new_stream
from support.cuda.driver import call
from support.cuda.order import idle

VALUES = np.arange(12.0).reshape(3, 4)


def test_values_that_a_gpu_is_still_writing_to_managed_memory_are_copied_when_they_are_there():
    managed = dlf.zeros(VALUES.shape, device="gpu", managed="cuda")
    managed.synchronize()
    target = dlf.zeros(VALUES.shape)
    values = OnDevice(VALUES)
    delay(LEGACY)  # dlfield's stream keeps order with this one
    managed[...] = values
    target[...] = managed
    assert target.to_numpy().tolist() == VALUES.tolist()


def test_page_locked_memory_outlives_a_foreign_copy_of_it():
    storage = dlf.storage(VALUES, device="gpu")
    array, target, stream = storage.to_numpy(), OnDevice(np.zeros(VALUES.shape)), new_stream()
    delay(stream)
    call("cuMemcpyHtoDAsync_v2", target.address, array.ctypes.data, VALUES.nbytes, stream)
    del storage, array
    assert is_done(stream)
    assert target.values().tolist() == VALUES.tolist()


#: What NumPy does with values that the host can read.
BY_NUMPY = {
    "conversion": lambda target, value: target.__setitem__(..., value),
    "advanced key": lambda target, value: target.__setitem__([0, 1, 2, 3], value),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("assign", BY_NUMPY.values(), ids=BY_NUMPY)
def test_numpy_reads_managed_memory_once_the_device_has_written_it(assign, dtype):
    source = dlf.full(4, 7.0, device="gpu", managed=None)
    managed = dlf.zeros(4, device="gpu", managed="cuda")
    call("cuCtxSynchronize")
    delay(LEGACY)
    managed[...] = source
    target = dlf.zeros(4, dtype=dtype)
    assign(target, managed)
    assert target.to_numpy().tolist() == [7.0] * 4


def test_numpy_writes_managed_memory_once_the_device_has_written_it():
    managed, source, stream = idle(managed="cuda"), idle([7.0] * 4), new_stream()
    value = idle([20, 21, 22, 23], dtype="int32")
    delay(stream)
    with dlf.use_stream(stream):
        managed[...] = source
    managed[...] = value  # which NumPy converts
    call("cuCtxSynchronize")
    assert managed.to_numpy().tolist() == [20, 21, 22, 23]
