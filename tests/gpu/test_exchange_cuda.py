"""DLPack's exchange table of storages on a GPU: tensors, memory for others, and the work stream."""

import ctypes
import gc
import threading

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.cuda.devices import LEGACY, PER_THREAD, OnDevice, current, delay, new_stream, read
from support.cuda.driver import call, stats
from support.cuda.kinds import every_device, every_kind, two_devices
from support.cuda.order import CUDA, device_address, own_stream, put_from, seen_from
from support.cuda.producers import VALUES, workshop
from support.dlpack_structs import READ_ONLY, release
from support.exchange_structs import ALLOCATOR, ALLOCATOR_WITHOUT_GIL, Exchange, prototype

OURS = Exchange(dlf.Storage)
SEVENS = [7.0] * 4


@pytest.fixture
def producer():
    """Makes producers, whose memory goes at the end of the test."""
    with workshop() as make:
        yield make


def made(managed=None, values=VALUES, device=0):
    """Return a storage on a GPU with these values, both sides up to date and nothing in flight."""
    storage = dlf.storage(values, device=("gpu", device), managed=managed)
    storage.synchronize()
    with current(device):
        call("cuCtxSynchronize")
    return storage


@every_device
def test_the_work_stream_of_a_device_is_one_of_dlfields_own(device):
    stream = own_stream(device)
    assert stream > PER_THREAD
    assert own_stream(device) == stream
    if device == 1:
        assert own_stream(0) != stream


@pytest.mark.parametrize("stream", [LEGACY, PER_THREAD, "new"])
def test_in_use_stream_the_work_stream_is_that_of_the_user(stream):
    own, stream = own_stream(), new_stream() if stream == "new" else stream
    with dlf.use_stream(stream):
        assert own_stream() == stream
    assert own_stream() == own


@two_devices
def test_in_use_stream_the_work_stream_of_another_device_stays_what_it_is():
    own = own_stream(1)
    with dlf.use_stream(new_stream()):
        assert own_stream(1) == own


def test_the_work_stream_of_a_device_that_is_not_there_is_refused():
    with pytest.raises(dlf.DeviceUnavailable, match="got 99"):
        OURS.stream(CUDA, 99)


@pytest.mark.parametrize("device", [(1, 0), (3, 0)])
def test_memory_of_the_host_has_no_work_stream(device):
    assert OURS.stream(*device) == (0, None)


@every_device
@every_kind
@pytest.mark.parametrize("view", [lambda s: s, lambda s: s[1:], lambda s: s[::2]])
def test_a_tensor_describes_the_memory_on_the_device(managed, device, view):
    storage = view(made(managed, device=device))
    managed_tensor = OURS.tensor_of(storage)
    for tensor in (managed_tensor.dl_tensor, OURS.view_of(storage)):
        assert (tensor.device.device_type, tensor.device.device_id) == (CUDA, device)
        assert (tensor.data, tensor.byte_offset) == (device_address(storage), 0)
        assert (tensor.shape[0], 8 * tensor.strides[0]) == (*storage.shape, *storage.strides)
    release(managed_tensor)


def test_a_pair_whose_host_is_newer_shows_the_host():
    storage = made("gt4py")
    storage.set_host_modified()
    tensor = OURS.view_of(storage)
    assert (tensor.device.device_type, tensor.data) == (1, address_of(storage))


def test_the_buffer_of_the_host_is_shown_when_the_copies_from_it_are_done():
    storage = made("gt4py")
    storage.set_host_modified()
    delay(own_stream())
    there = device_address(storage)  # by a copy that is under way
    storage.set_host_modified()
    ctypes.memset(OURS.view_of(storage).data, 0, 32)
    assert read(there, (4,), "f8").tolist() == VALUES.tolist()


def test_a_device_tensor_of_the_table_is_marked_read_only_or_refused():
    storage = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=None)
    managed = OURS.tensor_of(storage)
    assert managed.flags & READ_ONLY
    release(managed)
    with pytest.raises(BufferError, match="read-only"):
        OURS.view_of(storage)


@every_kind
@pytest.mark.parametrize("writer", ["own", "new"])
@pytest.mark.parametrize("reader", ["own", "new", LEGACY])
def test_work_on_the_work_stream_comes_after_what_is_in_flight(managed, writer, reader):
    storage, source = made(managed), made(values=np.array(SEVENS))
    writer = new_stream() if writer == "new" else own_stream()
    reader = {"own": own_stream, "new": new_stream}.get(reader, lambda: LEGACY)()
    delay(writer)
    with dlf.use_stream(writer):
        storage[...] = source
    with dlf.use_stream(reader):
        there = OURS.view_of(storage).data
        assert seen_from(own_stream(), there).tolist() == SEVENS
    call("cuCtxSynchronize")


@pytest.mark.stand_in
@every_kind
def test_nothing_is_copied_or_waited_for(managed):
    storage = made(managed)
    storage[...] = made(values=np.array(SEVENS))
    before = stats()
    release(OURS.tensor_of(storage))
    after = stats()
    assert (after.copies, after.syncs) == (before.copies, before.syncs)


@every_kind
def test_a_tensor_keeps_the_memory_until_it_is_released(managed):
    storage = made(managed)
    managed_tensor = OURS.tensor_of(storage)
    del storage
    gc.collect()
    assert read(managed_tensor.dl_tensor.data, (4,), "f8").tolist() == VALUES.tolist()
    release(managed_tensor)


@every_device
@pytest.mark.parametrize("kind", [ALLOCATOR, ALLOCATOR_WITHOUT_GIL], ids=["GIL", "no GIL"])
def test_the_allocator_gives_memory_of_the_device_in_order_with_its_work_stream(kind, device):
    code, managed, said = OURS.allocate(prototype((4,), device=(CUDA, device)), kind=kind)
    assert (code, said) == (0, [])
    tensor = managed.dl_tensor
    assert (tensor.device.device_type, tensor.device.device_id) == (CUDA, device)
    put_from(own_stream(device), tensor.data, VALUES, device)
    assert read(tensor.data, (4,), "f8", device).tolist() == VALUES.tolist()
    release(managed)


def test_the_allocators_memory_is_there_for_work_on_the_stream_of_the_user():
    stream = new_stream()
    with dlf.use_stream(stream):
        managed = OURS.allocate(prototype((4,), device=(CUDA, 0)))[1]
    put_from(stream, managed.dl_tensor.data, VALUES)
    assert read(managed.dl_tensor.data, (4,), "f8").tolist() == VALUES.tolist()
    release(managed)


def test_memory_of_the_allocator_outlives_the_work_on_it():
    """Its address was exposed, so its consumer may have queued work on any stream."""
    managed, stream = OURS.allocate(prototype((4,), device=(CUDA, 0)))[1], new_stream()
    target, there = OnDevice(np.zeros(4)), managed.dl_tensor.data
    put_from(own_stream(), there, VALUES)
    delay(stream)
    call("cuMemcpyDtoDAsync_v2", target.address, there, 32, stream)
    release(managed)
    assert target.values().tolist() == VALUES.tolist()


@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        (prototype(device=(CUDA, 99)), "RuntimeError", "got 99"),
        (prototype((2**38,), device=(CUDA, 0)), "MemoryError", "bytes"),
        (prototype((-1,), device=(CUDA, 0)), "ValueError", "got -1"),
        (prototype(device=(13, 0)), "RuntimeError", "cuda_managed"),
    ],
)
def test_a_failed_device_allocation_calls_set_error(asked, error, text):
    code, managed, said = OURS.allocate(asked)
    assert (code, managed, len(said)) == (-1, None, 1)
    _context, name, message = said[0]
    assert name.decode() == error
    assert text in message.decode()


@every_device
def test_an_object_over_a_tensor_shares_its_memory_and_gives_it_back_once(producer, device):
    one = producer(device=device)
    storage = OURS.object_over(one.address)
    assert (storage.device_id, device_address(storage)) == (device, one.memory.address)
    assert dlf.storage(storage, device="cpu").to_numpy().tolist() == VALUES.tolist()
    del storage
    gc.collect()
    assert one.freed == 1


def test_an_object_is_in_order_with_what_its_maker_has_put_on_the_work_stream(producer):
    stream = new_stream()
    one, reader = producer(late=stream), new_stream()
    with dlf.use_stream(stream):
        storage = OURS.object_over(one.address)
    with dlf.use_stream(reader):
        there = OURS.view_of(storage).data
    assert seen_from(reader, there).tolist() == (VALUES + 10).tolist()


def test_a_tensor_that_is_refused_stays_its_makers(producer):
    one = producer()
    one.managed.dl_tensor.data = VALUES.ctypes.data
    with pytest.raises(BufferError, match="expected an address on a GPU"):
        OURS.object_over(one.address)
    assert one.freed == 0


def test_the_table_serves_other_threads():
    storage, seen = made(), []

    def work():
        managed = OURS.tensor_of(storage)
        seen.append((managed.dl_tensor.data, OURS.stream(CUDA)[1]))
        release(managed)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(device_address(storage), own_stream())]


def test_what_the_host_writes_into_a_tensor_of_the_table_does_not_reach_a_copy_under_way():
    pair = dlf.storage(VALUES, device="gpu")
    tensor = OURS.tensor_of(pair)
    delay(own_stream())
    there = pair.__cuda_array_interface__["data"][0]
    ctypes.memset(tensor.dl_tensor.data, 0xFF, VALUES.nbytes)
    call("cuCtxSynchronize")
    assert read(there, (4,), np.float64).tolist() == VALUES.tolist()
    release(tensor)
