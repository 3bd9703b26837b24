"""Arrow's C device interface of storages on a GPU: its event, and the release."""

import ctypes
import gc
from functools import partial

import dlfield as dlf
import numpy as np
import pytest

from support.arrow_structs import DEVICE_ARRAY, ArrowDeviceArray, Taken
from support.cuda import order
from support.cuda.apart import run
from support.cuda.buffers import Counted, pair
from support.cuda.devices import (
    LEGACY,
    OnDevice,
    current,
    delay,
    is_done,
    new_stream,
    read,
    write_late,
)
from support.cuda.driver import call, stats, status
from support.cuda.kinds import HOST_NEWER, every_device, every_kind, two_devices
from support.cuda.order import idle, own_stream, seen_from
from support.dlpack_structs import call_on_a_bare_thread
from support.owners import Watch

VALUES, SEVENS = np.arange(4.0), np.full(4, 7.0)
in_flight = partial(order.in_flight, VALUES, SEVENS)
_function = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
in_capsule = _function(("PyCapsule_GetPointer", ctypes.pythonapi))


def taken_from(storage):
    return Taken(storage.__arrow_c_device_array__())


def handle_of(device_array):
    """Return the event that the struct points to."""
    return ctypes.c_uint64.from_address(device_array.sync_event).value


def is_there(event):
    """Whether the driver knows an event. A real one may crash where it does not."""
    return status("cuEventQuery", event) != 400


def live_bytes():
    """Return how much memory the driver has, once everything is done."""
    gc.collect()
    call("cuCtxSynchronize")
    return stats().live_bytes


def seen(there, device=0):
    """Return what a stream finds that keeps no order with any other."""
    with current(device):
        return seen_from(new_stream(), there, device=device).tolist()


@every_device
@every_kind
@pytest.mark.parametrize("writer", [None, new_stream], ids=["own", "new"])
def test_the_values_are_there_once_the_event_has_been_waited_for(managed, writer, device):
    storage = in_flight(managed, writer, device)
    taken = taken_from(storage)
    call("cuEventSynchronize", handle_of(taken.device))
    assert seen(taken.buffer(), device) == SEVENS.tolist()
    taken.release()


@pytest.mark.stand_in
@every_kind
@pytest.mark.parametrize("writer", [None, new_stream], ids=["own", "new"])
def test_before_the_event_has_been_waited_for_the_values_need_not_be_there(managed, writer):
    taken = taken_from(in_flight(managed, writer))
    assert status("cuEventQuery", handle_of(taken.device)) == 600  # not ready
    assert seen(taken.buffer()) == VALUES.tolist()
    taken.release()


def test_a_consumers_stream_that_waits_for_the_event_comes_after_the_work():
    taken, stream = taken_from(in_flight(on=new_stream)), new_stream()
    call("cuStreamWaitEvent", stream, handle_of(taken.device), 0)
    assert seen_from(stream, taken.buffer()).tolist() == SEVENS.tolist()
    taken.release()


@every_kind
def test_the_event_stands_for_a_fill(managed):
    storage = idle(managed=managed)
    delay(own_stream())
    with storage.device() as side:
        side[...] = 7.0
        taken = taken_from(side)
        call("cuEventSynchronize", handle_of(taken.device))
        assert seen(taken.buffer()) == SEVENS.tolist()
    taken.release()


def test_the_event_stands_for_a_copy_from_the_host_that_is_under_way():
    storage = pair(VALUES, HOST_NEWER)
    delay(own_stream())
    storage.__dlpack__(stream=-1, dl_device=(2, 0), max_version=(1, 3))
    taken = taken_from(storage)
    call("cuEventSynchronize", handle_of(taken.device))
    assert seen(taken.buffer()) == VALUES.tolist()
    taken.release()


def test_the_event_stands_for_work_on_several_streams():
    storage, source = idle(), idle(SEVENS)
    streams = [new_stream(), new_stream()]
    for stream, part in zip(streams, (np.s_[:2], np.s_[2:]), strict=True):
        delay(stream)
        with dlf.use_stream(stream):
            storage[part] = source[part]
    taken = taken_from(storage)
    call("cuEventSynchronize", handle_of(taken.device))
    assert seen(taken.buffer()) == SEVENS.tolist()
    taken.release()


@pytest.mark.parametrize("on", [LEGACY, "new"])
def test_in_use_stream_the_event_stands_for_what_is_in_flight_elsewhere(on):
    storage = in_flight(on=new_stream)
    with dlf.use_stream(new_stream() if on == "new" else on):
        taken = taken_from(storage)
    call("cuEventSynchronize", handle_of(taken.device))
    assert seen(taken.buffer()) == SEVENS.tolist()
    taken.release()


def test_the_event_stands_for_the_work_of_a_producer_whose_stream_is_known():
    stream, data = new_stream(), OnDevice(VALUES)
    late = write_late(data.address, SEVENS, stream)
    data.interface["stream"] = stream
    taken = taken_from(dlf.as_storage(data, managed=None))
    call("cuEventSynchronize", handle_of(taken.device))
    assert seen(taken.buffer()) == SEVENS.tolist()
    assert late.start
    taken.release()


@two_devices
@pytest.mark.parametrize("before", [0, 1])
def test_whichever_device_is_current_the_event_is_of_the_one_with_the_memory(before):
    storage = in_flight(on=new_stream, device=1)
    with current(before):
        taken = taken_from(storage)
        call("cuEventSynchronize", handle_of(taken.device))
    assert seen(taken.buffer(), 1) == SEVENS.tolist()
    taken.release()


@pytest.mark.stand_in
@every_kind
@pytest.mark.parametrize("writer", [None, new_stream], ids=["own", "new"])
def test_nothing_is_copied_allocated_or_waited_for_by_the_host(managed, writer):
    storage = in_flight(managed, writer)
    with Counted() as counted:
        capsules = storage.__arrow_c_device_array__()
    assert (counted.made, counted.allocated, counted.waits) == (0, 0, 0)
    assert len(capsules) == 2
    call("cuCtxSynchronize")


@every_kind
def test_the_memory_lives_until_the_array_is_released(managed):
    storage = idle(managed=managed)
    taken, watch = taken_from(storage), Watch(storage)
    del storage
    assert watch.freed
    assert read(taken.buffer(), (4,), "f8").tolist() == VALUES.tolist()
    taken.release()
    assert taken.array.release is None


@pytest.mark.stand_in
@every_kind
def test_memory_and_event_go_when_the_array_is_released(managed):
    taken = taken_from(idle(managed=managed))
    event, before = handle_of(taken.device), live_bytes()
    assert is_there(event)
    taken.release()
    assert (before - live_bytes(), is_there(event)) == (32, False)


@pytest.mark.stand_in
def test_values_that_were_moved_out_of_a_list_keep_memory_and_event():
    taken = taken_from(idle(np.ones((4, 3))))
    event, before = handle_of(taken.device), live_bytes()
    _, inner = taken.child()
    moved = type(inner).from_buffer_copy(inner)
    inner.release = None
    taken.release()
    assert (live_bytes(), is_there(event)) == (before, True)
    taken.array = moved
    taken.release()
    assert (before - live_bytes(), is_there(event)) == (96, False)


NOTHING = {
    "of dlfield": lambda: dlf.zeros(0, device="gpu", managed=None),
    "of a pair": lambda: dlf.zeros(0, device="gpu"),
    "of a part": lambda: idle()[2:2],
    "imported": lambda: dlf.as_storage(OnDevice(np.zeros(0)), managed=None),
}


@pytest.mark.stand_in
@pytest.mark.parametrize("make", NOTHING.values(), ids=NOTHING)
def test_an_array_of_no_elements_has_no_event_or_one_that_lives_as_long_as_it(make):
    taken = taken_from(make())
    assert (taken.device.device_type, taken.array.length) == (2, 0)
    if taken.device.sync_event is not None:
        assert is_there(handle_of(taken.device))
    taken.release()


@pytest.mark.stand_in
@every_kind
def test_an_arrow_capsule_that_is_never_consumed_frees_memory_and_event(managed):
    capsules = idle(managed=managed).__arrow_c_device_array__()
    event = handle_of(ArrowDeviceArray.from_address(in_capsule(capsules[1], DEVICE_ARRAY)))
    before = live_bytes()
    assert is_there(event)
    del capsules
    assert (before - live_bytes(), is_there(event)) == (32, False)


@pytest.mark.stand_in
def test_every_array_has_memory_and_event_for_itself():
    storage = idle()
    one, other = taken_from(storage), taken_from(storage)
    assert handle_of(one.device) != handle_of(other.device)
    del storage
    one.release()
    assert is_there(handle_of(other.device))
    assert read(other.buffer(), (4,), "f8").tolist() == VALUES.tolist()
    other.release()


@every_kind
def test_released_memory_outlives_the_work_of_its_consumer(managed):
    storage, stream, target = idle(managed=managed), new_stream(), OnDevice(SEVENS)
    taken = taken_from(storage)
    delay(stream)
    call("cuMemcpyDtoDAsync_v2", target.address, taken.buffer(), 32, stream)
    del storage
    taken.release()
    assert is_done(stream)
    assert target.values().tolist() == VALUES.tolist()


@every_kind
@every_device
def test_an_array_may_be_released_on_a_thread_that_neither_python_nor_cuda_knows(managed, device):
    taken = taken_from(in_flight(managed, new_stream, device))
    call_on_a_bare_thread(taken.array.release, taken.address())
    assert taken.array.release is None
    taken.release()


@pytest.mark.parametrize("shape", [4, (4, 3)])
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_an_array_may_be_released_after_python_has_ended(managed, shape):
    run(
        f"""
        from support.arrow_structs import Taken
        from support.dlpack_structs import never_freed

        libc = ctypes.CDLL(None)
        storage = dlf.zeros({shape}, device="gpu", managed={managed!r})
        taken = Taken(storage.__arrow_c_device_array__())
        never_freed.append(taken)
        del storage
        for one in taken:
            there = ctypes.c_void_p(ctypes.addressof(one))
            assert libc.__cxa_atexit(ctypes.c_void_p(one.release), there, None) == 0
        """
    )


@pytest.mark.stand_in
def test_a_forked_child_shows_nothing_and_what_it_drops_is_still_the_parents():
    run(
        """
        storage = dlf.ones(4, device="gpu", managed=None)
        capsules = storage.__arrow_c_device_array__()
        there = device_address(storage)
        del storage
        other = dlf.ones(4, device="gpu", managed=None)
        child = os.fork()
        if child == 0:
            del capsules
            try:
                other.__arrow_c_device_array__()
            except dlf.DeviceUnavailable:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert read(there, (4,), "f8").tolist() == [1.0] * 4
        """
    )
