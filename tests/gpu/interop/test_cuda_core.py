"""Storages of every kind, used by cuda.core."""

import ctypes

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, delay, device_view, read
from support.cuda.driver import call, made, stats
from support.cuda.handed import VALUES, Inbox, Late, address_of, collect, handed
from support.cuda.kinds import every_kind

core = pytest.importorskip("cuda.core", exc_type=ImportError)
StridedMemoryView = pytest.importorskip("cuda.core.utils").StridedMemoryView

WAYS = {
    "DLPack": StridedMemoryView.from_dlpack,
    "CUDA array interface": StridedMemoryView.from_cuda_array_interface,
}
every_way = pytest.mark.parametrize("view_of", WAYS.values(), ids=WAYS)
UNORDERED = -1


@pytest.fixture
def stream():
    """A stream of cuda.core, which keeps no order with the default streams."""
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    yield stream
    stream.sync()


def handle(stream):
    return int(stream.handle)


def memory_of(view):
    """Return the memory of a contiguous view as cuda.core works on it."""
    return core.Buffer.from_handle(view.ptr, view.size * view.dtype.itemsize, owner=view)


def device_count():
    return made("cuDeviceGetCount", kind=ctypes.c_int)


@every_way
@every_kind
def test_a_view_names_the_memory_of_the_storage(managed, view_of, stream):
    storage = handed(VALUES, managed)
    view = view_of(storage, stream_ptr=handle(stream))
    assert view.ptr == address_of(storage)
    assert (view.shape, view.dtype) == (VALUES.shape, VALUES.dtype)
    assert (view.device_id, view.is_device_accessible, view.readonly) == (0, True, False)
    assert np.array_equal(read(view.ptr, view.shape, view.dtype), VALUES)


@every_way
@every_kind
def test_a_view_of_another_order_has_its_strides(managed, view_of, stream):
    storage = handed(VALUES, managed, layout=(1, 0))
    assert view_of(storage, stream_ptr=handle(stream)).strides == (1, 3)


@every_way
@every_kind
def test_a_part_has_its_own_address_and_the_strides_of_the_whole(managed, view_of, stream):
    part = handed(VALUES, managed)[1:, ::2]
    view = view_of(part, stream_ptr=handle(stream))
    assert (view.ptr, view.strides, view.shape) == (address_of(part), (4, 2), (2, 2))


@every_way
@every_kind
def test_a_storage_without_elements_has_no_address(managed, view_of, stream):
    storage = dlf.zeros((0, 3), device="gpu", managed=managed)
    view = view_of(storage, stream_ptr=handle(stream))
    assert (view.ptr, view.shape) == (0, (0, 3))


@every_kind
def test_reversed_axes_leave_by_the_interface_and_not_by_dlpack(managed, stream):
    reverse = handed(VALUES, managed)[::-1]
    view = StridedMemoryView.from_cuda_array_interface(reverse, stream_ptr=handle(stream))
    assert (view.ptr, view.strides) == (address_of(reverse), (-4, 1))
    with pytest.raises(BufferError, match="strides of at least 0"):
        StridedMemoryView.from_dlpack(reverse, stream_ptr=handle(stream))


@every_way
def test_a_view_of_read_only_memory_is_read_only(view_of, stream):
    storage = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=None)
    assert view_of(storage, stream_ptr=handle(stream)).readonly


@every_way
@every_kind
def test_a_view_says_which_device_has_the_memory(managed, view_of):
    if device_count() < 2:
        pytest.skip("one device")
    storage = dlf.zeros(3, device=("gpu", 1), managed=managed)
    assert view_of(storage, stream_ptr=UNORDERED).device_id == 1


def test_a_pair_that_was_written_on_the_host_is_shown_there_by_dlpack_and_on_the_device_otherwise():
    storage = handed(VALUES, "gt4py")
    with storage.host() as array:
        array[...] = 2 * VALUES
        there = array.ctypes.data
    assert StridedMemoryView.from_dlpack(storage, stream_ptr=UNORDERED).ptr == there
    view = StridedMemoryView.from_cuda_array_interface(storage, stream_ptr=UNORDERED)
    assert view.ptr == address_of(storage)
    assert np.array_equal(read(view.ptr, view.shape, view.dtype), 2 * VALUES)


@every_way
@every_kind
def test_what_cuda_core_writes_is_in_the_storage(managed, view_of, stream):
    storage = handed(VALUES, managed)
    with storage.device() as side:
        # The end of the block waits for cuda.core, whichever stream it has used.
        memory_of(view_of(side, stream_ptr=handle(stream))).fill(0, stream=stream)
    assert np.array_equal(device_view(storage), np.zeros_like(VALUES))
    assert np.array_equal(dlf.storage(storage, device="cpu").to_numpy(), np.zeros_like(VALUES))


@every_way
@every_kind
def test_what_the_storage_writes_is_in_the_view(managed, view_of, stream):
    storage = handed(VALUES, managed)
    view = view_of(storage, stream_ptr=handle(stream))
    storage[...] = OnDevice(3 * VALUES)
    assert np.array_equal(read(view.ptr, view.shape, view.dtype), 3 * VALUES)


@every_way
@every_kind
def test_the_stream_of_a_view_waits_for_what_is_in_flight(managed, view_of, stream):
    inbox, late = Inbox(), Late(VALUES, managed)
    memory = memory_of(view_of(late.storage, stream_ptr=handle(stream)))
    memory.copy_to(core.Buffer.from_handle(inbox.address, inbox.nbytes), stream=stream)
    stream.sync()
    assert np.array_equal(inbox.values(), VALUES)


@pytest.mark.stand_in
@every_way
@every_kind
def test_the_host_does_not_wait_for_a_view(managed, view_of, stream):
    late, before = Late(VALUES, managed), stats().syncs
    view = view_of(late.storage, stream_ptr=handle(stream))
    assert stats().syncs == before
    del view


@pytest.mark.stand_in
@every_way
def test_a_view_that_asks_for_no_order_gets_none(view_of, stream):
    inbox, late = Inbox(), Late(VALUES, None)
    view = view_of(late.storage, stream_ptr=UNORDERED)
    assert not np.array_equal(inbox.fetch(view.ptr, handle(stream)), VALUES)


@pytest.mark.stand_in
@every_way
@every_kind
def test_a_view_keeps_the_memory_which_is_freed_once(managed, view_of, stream):
    storage = handed(VALUES, managed)
    view, before = view_of(storage, stream_ptr=handle(stream)), stats().frees
    buffers = len(storage.__gt_data_interface__) if managed == "gt4py" else 1
    del storage
    collect()
    assert np.array_equal(read(view.ptr, view.shape, view.dtype), VALUES)
    assert stats().frees == before
    del view
    collect()
    assert stats().frees == before + buffers


@every_way
def test_memory_is_not_freed_under_work_of_cuda_core(view_of, stream):
    inbox, storage = Inbox(), handed(VALUES, None)
    there = view_of(storage, stream_ptr=handle(stream)).ptr
    delay(handle(stream))
    call("cuMemcpyDtoHAsync_v2", inbox.address, there, inbox.nbytes, handle(stream))
    del storage  # the view is gone as well, while the copy is on its way
    stream.sync()
    assert np.array_equal(inbox.values(), VALUES)


def test_an_argument_of_a_decorated_function_is_a_storage(stream):
    @core.utils.args_viewable_as_strided_memory((0,))
    def shape_and_address(proxy):
        view = proxy.view(handle(stream))
        return view.shape, view.ptr

    storage = handed(VALUES, None)
    assert shape_and_address(storage) == ((3, 4), address_of(storage))


@every_way
@every_kind
def test_a_storage_comes_back_from_cuda_core_as_it_was(managed, view_of, stream):
    storage = handed(VALUES, managed, layout=(1, 0))
    back = dlf.as_storage(view_of(storage, stream_ptr=handle(stream)))
    assert address_of(back) == address_of(storage)
    assert (back.strides, back.dtype) == (storage.strides, storage.dtype)


class DlpackAlone:
    """Forwards DLPack's methods and has no other protocol, like arrays of many libraries."""

    def __init__(self, inner):
        self.inner = inner

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.inner.__dlpack__(**keywords)


@every_way
def test_a_view_waits_for_work_in_flight_on_what_came_by_dlpack(view_of, stream):
    inbox, late = Inbox(), Late(VALUES, None)
    storage = dlf.as_storage(DlpackAlone(late.storage), managed=None)
    view = view_of(storage, stream_ptr=handle(stream))
    assert np.array_equal(inbox.fetch(view.ptr, handle(stream)), VALUES)
