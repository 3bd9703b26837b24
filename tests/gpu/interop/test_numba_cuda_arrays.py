"""Arrays and streams of numba.cuda in storages."""

import ctypes

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, delay, device_view, read
from support.cuda.driver import call, made, start, stats
from support.cuda.handed import VALUES, address_of, collect

cuda = pytest.importorskip("numba.cuda", exc_type=ImportError)

every_device_kind = pytest.mark.parametrize(
    "managed", [None, "gt4py"], ids=["device alone", "pair"]
)


@pytest.fixture(autouse=True)
def numba_keeps_nothing():
    """Let numba free at once what it would free at some time."""
    yield
    free_now()


def free_now():
    collect()
    cuda.current_context().memory_manager.deallocations.clear()
    collect()


def address(array):
    return array.device_ctypes_pointer.value


def pinned(values):
    """Return a copy of values in pinned memory, which numba copies when the stream reaches it."""
    array = cuda.pinned_array(values.shape, values.dtype)
    array[...] = values
    return array


@every_device_kind
def test_a_storage_names_the_memory_of_the_array(managed):
    array = cuda.to_device(VALUES)
    storage = dlf.as_storage(array, managed=managed)
    assert storage.door == "cuda_array_interface"
    assert address_of(storage) == address(array)
    assert (storage.shape, storage.dtype) == (array.shape, array.dtype)
    assert np.array_equal(dlf.storage(storage, device="cpu").to_numpy(), VALUES)


VIEWS = {
    "Fortran order": lambda: cuda.to_device(np.asfortranarray(VALUES)),
    "a part": lambda: cuda.to_device(VALUES)[1:, 1:3],
    "reversed": lambda: cuda.to_device(np.arange(6.0))[::-1],
    "another shape": lambda: cuda.to_device(VALUES).reshape(2, 6),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_a_storage_has_the_layout_of_the_array(make):
    array = make()
    storage = dlf.as_storage(array, managed=None)
    assert (storage.shape, storage.strides) == (array.shape, array.strides)
    assert address_of(storage) == address(array)


def test_what_a_storage_writes_is_in_the_array():
    array = cuda.to_device(VALUES)
    dlf.as_storage(array, managed=None)[1] = 5.0
    # There is no wait: the default stream, which numba uses, is ordered after dlfield's stream.
    assert array.copy_to_host()[1].tolist() == [5.0] * 4


def test_what_the_array_gets_is_in_the_storage():
    array = cuda.to_device(VALUES)
    storage = dlf.as_storage(array, managed=None)
    array.copy_to_device(2 * VALUES)
    assert np.array_equal(device_view(storage), 2 * VALUES)


@pytest.mark.source(
    "CUDA array interface",
    "Design Motivations",
    "exchange is free of data races by default, without action of the user",
)
def test_the_copy_of_an_array_waits_for_its_stream():
    stream, source = cuda.stream(), pinned(VALUES)
    array = cuda.device_array(VALUES.shape, stream=stream)
    delay(int(stream))
    array.copy_to_device(source)
    copied = dlf.storage(array, device="cpu")
    assert np.array_equal(copied.to_numpy(), VALUES)


def test_the_stream_of_an_array_waits_for_what_a_storage_over_it_does():
    stream, target = cuda.stream(), cuda.pinned_array(VALUES.shape)
    array = cuda.to_device(VALUES, stream=stream)
    source = dlf.as_storage(OnDevice(2 * VALUES), managed=None)
    storage, own = dlf.as_storage(array, managed=None), cuda.stream()
    call("cuCtxSynchronize")
    delay(int(own))
    with dlf.use_stream(own):
        storage[...] = source
    array.copy_to_host(target, stream=stream)
    stream.synchronize()
    assert np.array_equal(target, 2 * VALUES)


@pytest.mark.stand_in
def test_the_host_waits_neither_for_the_array_nor_for_the_storage_over_it():
    array = cuda.to_device(VALUES, stream=cuda.stream())
    source = dlf.as_storage(OnDevice(2 * VALUES), managed=None)
    before = stats().syncs
    storage = dlf.as_storage(array, managed=None)
    storage[...] = source
    assert stats().syncs == before


def test_a_stream_is_read_off_each_array():
    stream, source, array = cuda.stream(), pinned(VALUES), cuda.to_device(np.zeros_like(VALUES))
    bound = array.bind(stream)
    delay(int(stream))
    bound.copy_to_device(source)
    assert np.array_equal(dlf.storage(bound, device="cpu").to_numpy(), VALUES)


@pytest.mark.parametrize(
    ("make", "number"), [("legacy_default_stream", 1), ("per_thread_default_stream", 2)]
)
def test_arrays_on_the_default_streams_are_taken(make, number):
    array = cuda.to_device(VALUES).bind(getattr(cuda, make)())
    assert array.__cuda_array_interface__["stream"] == number
    assert np.array_equal(dlf.storage(array, device="cpu").to_numpy(), VALUES)


@pytest.mark.source(
    "CUDA array interface", "Python Interface Specification", "`stream` 0 is not allowed"
)
@pytest.mark.filterwarnings("ignore:__int__ returned non-int")  # of numba, in making its dict
def test_the_nameless_default_stream_is_refused_with_its_number():
    array = cuda.to_device(VALUES).bind(cuda.default_stream())
    with pytest.raises(ValueError, match=r"stream: expected None, 1 .* got 0"):
        dlf.as_storage(array)


def test_dlfield_works_on_a_stream_of_numba():
    stream, target = cuda.stream(), cuda.pinned_array(VALUES.shape)
    source = dlf.as_storage(OnDevice(VALUES), managed=None)
    storage = dlf.zeros(VALUES.shape, device="gpu", managed=None)
    with dlf.use_stream(stream) as used:
        storage[...] = source
    assert int(used) == int(stream)
    cuda.as_cuda_array(storage, sync=False).copy_to_host(target, stream=stream)
    stream.synchronize()
    assert np.array_equal(target, VALUES)


@pytest.mark.stand_in
@every_device_kind
def test_an_array_lives_as_long_as_its_storage_and_is_freed_once(managed):
    array = cuda.to_device(VALUES)
    storage, before = dlf.as_storage(array, managed=managed), stats().frees
    there = address(array)
    del array
    free_now()
    assert np.array_equal(read(there, VALUES.shape, VALUES.dtype), VALUES)
    assert stats().frees == before
    del storage
    free_now()
    assert stats().frees == before + (2 if managed else 1)  # a pair has a buffer of its own


def test_an_array_of_another_device_is_a_storage_there():
    if made("cuDeviceGetCount", kind=ctypes.c_int) < 2:
        pytest.skip("one device")
    with cuda.gpus[1]:
        array = cuda.to_device(VALUES)
        storage = dlf.as_storage(array, managed=None)
        assert storage.device_id == 1
        assert np.array_equal(device_view(storage), VALUES)
        del array, storage
        free_now()
    start()  # numba leaves the thread without a context


def test_managed_memory_of_numba_is_a_storage_with_one_address():
    array = cuda.managed_array(VALUES.shape)
    array[...] = VALUES
    storage = dlf.as_storage(device_data=array, managed=None)
    assert address_of(storage) == array.ctypes.data
    assert np.array_equal(device_view(storage), VALUES)


@pytest.mark.parametrize("make", ["pinned_array", "mapped_array"])
def test_host_memory_of_numba_is_a_storage_of_the_host(make):
    array = getattr(cuda, make)(VALUES.shape)
    storage = dlf.as_storage(array)
    assert type(storage) is dlf.CPUStorage
    assert storage.to_numpy().ctypes.data == array.ctypes.data
