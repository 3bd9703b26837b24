"""What a storage with a buffer on a GPU says of its memory, under the names of NumPy and CuPy."""

import sys

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused

MANAGED = {"gpu": None, "pair": "gt4py", "unified": "cuda"}
every_kind = pytest.mark.parametrize("managed", MANAGED.values(), ids=MANAGED)


def pointer(storage):
    return storage.__cuda_array_interface__["data"][0]


def test_ptr_is_the_address_on_the_gpu_without_a_buffer_on_the_host():
    storage = dlf.zeros((3, 4), device="gpu", managed=None)
    assert storage.ptr == pointer(storage)
    assert storage[1:].ptr == pointer(storage) + 4 * 8


def test_ptr_of_a_pair_is_that_of_the_buffer_of_the_host_up_to_date():
    storage = dlf.zeros(3, device="gpu", managed="gt4py")
    storage.host_to_device()
    with storage.device() as array:
        array[...] = 7.0
    assert storage.ptr == storage.to_numpy().ctypes.data
    assert storage.sync_state.state == dlf.SyncState.SYNC_CLEAN


@every_kind
def test_flags_describe_the_memory_of_a_gpu(managed):
    storage = dlf.zeros((3, 4), device="gpu", managed=managed, layout=(1, 0))
    flags = storage.flags
    assert (flags.c_contiguous, flags["F_CONTIGUOUS"], flags["WRITEABLE"]) == (False, True, True)
    assert flags.owndata


@pytest.mark.parametrize(("managed", "buffers"), [(None, 1), ("gt4py", 2), ("cuda", 1)])
def test_the_size_of_a_storage_counts_each_buffer(managed, buffers):
    sizes = [sys.getsizeof(dlf.zeros(n, device="gpu", managed=managed)) for n in (0, 100)]
    assert sizes[1] - sizes[0] == buffers * 800


@every_kind
def test_a_renamed_storage_keeps_its_buffers_and_state(managed):
    storage = dlf.zeros((3, 4), device="gpu", managed=managed, dims="IJ")
    named = storage.rename(I="lon")
    assert (type(named), named.dims) == (type(storage), ("lon", "J"))
    assert pointer(named) == pointer(storage)
    named[...] = 7.0
    assert dlf.storage(storage, device="cpu", managed=None).to_numpy().all()


@every_kind
def test_flip_and_rot90_turn_all_buffers(managed):
    values = np.arange(6.0).reshape(2, 3)
    storage = dlf.storage(values, device="gpu", managed=managed)
    for call in (np.flip, np.rot90):
        turned = call(storage)
        assert type(turned) is type(storage)
        copied = dlf.storage(turned, device="cpu", managed=None)
        assert np.array_equal(copied.to_numpy(), call(values))


@pytest.mark.parametrize("managed", [None, "gt4py"])
@pytest.mark.parametrize("call", [lambda a: a.reshape(-1), np.ravel], ids=["reshape", "ravel"])
def test_another_shape_is_for_host_memory_alone(call, managed):
    with refused(TypeError, "expected a storage in host memory alone", "to_cupy()"):
        call(dlf.zeros((2, 3), device="gpu", managed=managed))


@every_kind
def test_an_array_like_a_storage_on_a_gpu_is_on_that_gpu(managed):
    model = dlf.zeros(3, device="gpu", managed=managed)
    made = np.asarray(np.arange(4.0), like=model)
    assert (type(made), made.device_id) == (type(model), model.device_id)
    assert np.asarray(model, like=model).device_id == model.device_id
