"""Memory and streams of cuda.core in storages."""

import weakref

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, delay, device_view, read, write
from support.cuda.driver import call, made, stats
from support.cuda.handed import VALUES, Inbox, address_of, collect

core = pytest.importorskip("cuda.core", exc_type=ImportError)
StridedMemoryView = pytest.importorskip("cuda.core.utils").StridedMemoryView


@pytest.fixture
def stream():
    """A stream of cuda.core, which keeps no order with the default streams."""
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    yield stream
    stream.sync()


def buffer_with(values, stream):
    """Return a buffer of cuda.core, which names no stream: what it has to do is done."""
    buffer = core.Device(0).allocate(values.nbytes, stream=stream)
    stream.sync()
    write(int(buffer.handle), values)
    return buffer


def test_a_buffer_is_a_storage_of_bytes_at_its_address(stream):
    buffer = buffer_with(np.arange(7, dtype="i1"), stream)
    storage = dlf.as_storage(buffer, managed=None)
    assert (storage.door, storage.shape, storage.dtype) == ("dlpack", (7,), np.int8)
    assert address_of(storage) == int(buffer.handle)
    assert np.array_equal(device_view(storage), np.arange(7))


@pytest.mark.parametrize("strides", [(4, 1), (1, 3)], ids=["C", "Fortran"])
@pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device alone", "pair"])
def test_a_view_of_a_buffer_is_a_storage_of_its_shape_and_type(managed, strides, stream):
    buffer = buffer_with(VALUES, stream)
    view = StridedMemoryView.from_buffer(buffer, (3, 4), strides, dtype=VALUES.dtype)
    storage = dlf.as_storage(view, managed=managed)
    assert (storage.shape, storage.dtype) == ((3, 4), VALUES.dtype)
    assert address_of(storage) == int(buffer.handle)
    seen = np.lib.stride_tricks.as_strided(VALUES, (3, 4), [8 * stride for stride in strides])
    assert np.array_equal(dlf.storage(storage, device="cpu").to_numpy(), seen)


with_a_table = pytest.mark.skipif(
    not hasattr(StridedMemoryView, "__dlpack_c_exchange_api__"),
    reason="this cuda.core has no exchange table",
)


@with_a_table
def test_a_view_comes_by_its_exchange_table(stream):
    view = StridedMemoryView.from_buffer(buffer_with(VALUES, stream), (12,), dtype=VALUES.dtype)
    assert dlf.as_storage(view).door == "dlpack_c_exchange_api"


def test_what_a_storage_writes_is_in_the_buffer(stream):
    buffer = buffer_with(VALUES, stream)
    view = StridedMemoryView.from_buffer(buffer, (3, 4), dtype=VALUES.dtype)
    dlf.as_storage(view, managed=None)[1] = 5.0
    assert read(int(buffer.handle), (3, 4), VALUES.dtype)[1].tolist() == [5.0] * 4


def test_a_read_only_view_is_a_read_only_storage(stream):
    buffer = buffer_with(VALUES, stream)
    view = StridedMemoryView.from_buffer(buffer, (12,), dtype=VALUES.dtype, is_readonly=True)
    storage = dlf.as_storage(view, managed=None)
    assert storage.readonly
    with pytest.raises(BufferError, match="read-only"):
        storage[0] = 1.0


@pytest.mark.stand_in
def test_a_buffer_lives_as_long_as_its_storage_and_is_freed_once(stream):
    buffer = buffer_with(VALUES, stream)
    storage = dlf.as_storage(
        StridedMemoryView.from_buffer(buffer, (12,), dtype=VALUES.dtype), managed=None
    )
    before = stats().frees
    del buffer
    collect()
    assert np.array_equal(device_view(storage), VALUES.reshape(12))
    assert stats().frees == before
    del storage
    collect()
    assert stats().frees == before + 1


def test_pinned_memory_of_cuda_core_is_a_storage_of_the_host(stream):
    buffer = core.LegacyPinnedMemoryResource().allocate(24, stream=stream)
    stream.sync()
    storage = dlf.as_storage(buffer)
    assert type(storage) is dlf.CPUStorage
    assert storage.to_numpy().ctypes.data == int(buffer.handle)


class Managed:
    """Memory that CUDA keeps in step with the host, freed with this object."""

    def __init__(self, nbytes):
        self.address = made("cuMemAllocManaged", nbytes, 1)
        weakref.finalize(self, call, "cuMemFree_v2", self.address)


def test_managed_memory_of_cuda_core_is_a_managed_storage_with_one_address():
    memory = Managed(VALUES.nbytes)
    buffer = core.Buffer.from_handle(memory.address, VALUES.nbytes, owner=memory)
    storage = dlf.as_storage(StridedMemoryView.from_buffer(buffer, (3, 4), dtype=VALUES.dtype))
    assert type(storage) is dlf.CUDAManagedGPUStorage
    assert storage.to_numpy().ctypes.data == address_of(storage) == memory.address


@with_a_table
def test_the_table_of_a_view_means_the_default_stream(stream):
    target = OnDevice(np.zeros(12))
    buffer = core.Buffer.from_handle(target.address, VALUES.nbytes, owner=target)
    view = StridedMemoryView.from_buffer(buffer, (12,), dtype=VALUES.dtype)
    source, legacy = OnDevice(VALUES), 1
    delay(legacy)
    call("cuMemcpyDtoDAsync_v2", target.address, source.address, VALUES.nbytes, legacy)
    storage = dlf.as_storage(view, managed=None)
    with dlf.use_stream(stream):  # which keeps no order with the default stream
        copied = storage.copy()
    assert np.array_equal(device_view(copied), VALUES.reshape(12))


def test_dlfield_works_on_a_stream_of_cuda_core(stream):
    inbox, source = Inbox(), dlf.as_storage(OnDevice(VALUES), managed=None)
    storage = dlf.zeros(VALUES.shape, device="gpu", managed=None)
    with dlf.use_stream(stream) as used:
        storage[...] = source
    assert int(used) == int(stream.handle)
    assert np.array_equal(inbox.fetch(address_of(storage), int(stream.handle)), VALUES)


def test_the_default_streams_of_cuda_core_have_their_own_numbers(stream):
    assert int(dlf.use_stream(core.LEGACY_DEFAULT_STREAM)) == 1
    assert int(dlf.use_stream(core.PER_THREAD_DEFAULT_STREAM)) == 2
