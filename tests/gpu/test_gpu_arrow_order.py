"""Arrow's C device interface in, from producers that are still working: what waits for what, and
when the memory is given back.
"""

import ctypes
import gc
import threading

import dlfield as dlf
import numpy as np
import pytest

from support.arrow_structs import OnDevice as Shown
from support.arrow_structs import Taken
from support.cuda.apart import run
from support.cuda.arrow import OfArrow
from support.cuda.buffers import Counted, values
from support.cuda.devices import (
    LEGACY,
    PER_THREAD,
    Memory,
    delay,
    new_stream,
    read,
    stream_on,
    write,
    write_late,
)
from support.cuda.driver import call, event, stats
from support.cuda.kinds import two_devices
from support.cuda.order import device_address, idle, own_stream, seen_from
from support.cuda.producers import MANAGED, PINNED, VALUES, workshop
from support.dlpack_structs import contents

LATE = (VALUES + 10).tolist()


@pytest.fixture
def producer():
    """Makes producers, whose memory goes at the end of the test."""
    with workshop() as make:
        yield lambda **options: make(OfArrow, **options)


def taken(one):
    return dlf.as_storage(Shown(one), managed=None)


@pytest.mark.stand_in
def test_nothing_is_copied_allocated_or_waited_for_by_an_import(producer):
    one = producer(late=new_stream())
    with Counted() as counted:
        storage = taken(one)
    assert (counted.made, counted.allocated, counted.waits) == (0, 0, 0)
    assert values(storage).tolist() == LATE


@pytest.mark.parametrize("name", ["new", "blocking", LEGACY, PER_THREAD])
def test_late_values_of_an_arrow_array_come_to_the_host(producer, name):
    stream = {"new": new_stream, "blocking": lambda: new_stream(0)}.get(name, lambda: name)()
    one = producer(late=stream)
    assert dlf.as_storage(Shown(one)).to_numpy().tolist() == LATE


@pytest.mark.parametrize("stream", [None, LEGACY, PER_THREAD, "new"])
def test_a_copy_on_the_device_comes_after_the_event(producer, stream):
    target = idle()
    stream = new_stream() if stream == "new" else stream or own_stream()
    with dlf.use_stream(stream):
        target[...] = Shown(producer(late=new_stream()))
    assert seen_from(stream, target.__cuda_array_interface__["data"][0]).tolist() == LATE
    call("cuCtxSynchronize")


@pytest.mark.stand_in
def test_the_host_does_not_wait_for_the_event(producer):
    target, one = idle(), producer(late=new_stream())
    storage, before = taken(one), stats().syncs
    target[...] = storage
    assert stats().syncs == before
    assert values(target).tolist() == LATE


@pytest.mark.stand_in
def test_without_an_event_there_is_no_wait(producer):
    """NULL means that nothing is pending; if work is pending, the producer lies."""
    one = producer(late=new_stream())
    one.device.sync_event = None
    copy = dlf.storage(taken(one), device="gpu", managed=None)
    assert seen_from(own_stream(), device_address(copy)).tolist() == VALUES.tolist()
    call("cuCtxSynchronize")


@pytest.mark.stand_in
def test_what_comes_on_the_stream_after_the_event_is_not_waited_for(producer):
    stream = new_stream()
    one = producer(late=stream)
    storage = taken(one)
    again = write_late(one.memory.address, VALUES + 20, stream)
    assert values(storage).tolist() == LATE
    call("cuStreamSynchronize", stream)
    assert again.start


def test_an_arrow_array_imported_in_use_stream_is_in_order_outside(producer):
    with dlf.use_stream(new_stream()):
        storage = taken(producer(late=new_stream()))
    assert values(storage).tolist() == LATE


def test_an_arrow_array_imported_outside_is_in_order_in_use_stream(producer):
    target, storage, stream = idle(), taken(producer(late=new_stream())), new_stream()
    there = device_address(target)
    with dlf.use_stream(stream):
        target[...] = storage
    assert seen_from(stream, there).tolist() == LATE


@two_devices
@pytest.mark.parametrize(("device", "on"), [(0, 1), (1, 0)])
def test_the_event_may_be_one_of_another_device_than_the_memory(producer, device, on):
    storage = taken(producer(device=device, late=stream_on(on), on=on))
    assert storage.device_id == device
    assert values(storage).tolist() == LATE


@two_devices
def test_a_copy_to_another_device_comes_after_the_event(producer):
    target = idle(device=1)
    target[...] = taken(producer(late=new_stream()))
    assert values(target).tolist() == LATE


def by_dlpack(storage, stream):
    return contents(storage.__dlpack__(stream=stream, max_version=(1, 3))).dl_tensor.data


def by_interface(storage, stream):
    interface = storage.__cuda_array_interface__
    mark = event()
    call("cuEventRecord", mark, interface["stream"])
    call("cuStreamWaitEvent", stream, mark, 0)
    return interface["data"][0]


def by_arrow(storage, stream):
    device_array = Taken(storage.__arrow_c_device_array__())
    mark = ctypes.c_uint64.from_address(device_array.device.sync_event).value
    call("cuStreamWaitEvent", stream, mark, 0)
    there = device_array.buffer()
    device_array.release()
    return there


@pytest.mark.parametrize("door", [by_dlpack, by_interface, by_arrow])
def test_an_export_of_an_arrow_array_waits_for_work_in_flight(producer, door):
    storage, stream = taken(producer(late=new_stream())), new_stream()
    assert seen_from(stream, door(storage, stream)).tolist() == LATE
    call("cuCtxSynchronize")


def test_the_host_waits_for_work_on_an_arrow_array_of_managed_memory(producer):
    one = producer(kind=MANAGED, late=new_stream())
    assert dlf.as_storage(Shown(one)).to_numpy().tolist() == LATE


def test_what_is_in_flight_in_page_locked_memory_is_waited_for_by_the_host(producer):
    one, source, stream = producer(kind=PINNED), Memory(32), new_stream()
    write(source.address, VALUES + 10)
    delay(stream)
    call("cuMemcpyDtoHAsync_v2", one.memory.address, source.address, 32, stream)
    one.record(stream)
    assert dlf.as_storage(Shown(one)).to_numpy().tolist() == LATE


@pytest.mark.parametrize("kind", [MANAGED, PINNED])
def test_the_host_waits_for_an_event_with_the_interpreter_free_for_others(kind):
    run(
        f"""
        from support.arrow_structs import OnDevice, Producer

        name = "cuMemAllocManaged" if {kind} == 13 else "cuMemHostAlloc"
        one, stream, mark = Producer(), new_stream(), event()
        one.buffers[1] = made(name, 32, 1)
        one.device.device_type, one.device.device_id = {kind}, 0
        gate = Gate(stream)
        call("cuEventRecord", mark, stream)
        handle = ctypes.c_uint64(mark)
        one.device.sync_event = ctypes.addressof(handle)
        gate.open_later()
        dlf.as_storage(OnDevice(one))
        """
    )


BITS = {"all there": (b"\x0f", True), "one missing": (b"\x0b", False)}


@pytest.mark.parametrize(("bits", "complete"), BITS.values(), ids=BITS)
@pytest.mark.parametrize("kind", [MANAGED, PINNED])
def test_nulls_that_are_still_being_written_are_counted_once_they_are_there(
    producer, kind, bits, complete
):
    one, bitmap, stream = producer(kind=kind), producer(kind=kind), new_stream()
    ctypes.memset(bitmap.memory.address, 0 if complete else 0xFF, 32)
    one.source = Memory(32)
    write(one.source.address, np.frombuffer(bits * 32, np.uint8))
    copy = "cuMemcpyDtoDAsync_v2" if kind == MANAGED else "cuMemcpyDtoHAsync_v2"
    delay(stream)
    call(copy, bitmap.memory.address, one.source.address, 32, stream)
    one.record(stream)
    one.buffers[0], one.array.null_count = bitmap.memory.address, -1
    if complete:
        assert dlf.as_storage(Shown(one)).to_numpy().tolist() == VALUES.tolist()
    else:
        with pytest.raises(BufferError, match="got 1 nulls"):
            dlf.as_storage(Shown(one))


# --- when the memory is given back ------------------------------------------------------------


@pytest.mark.parametrize("managed", [None, "gt4py"])
def test_memory_is_released_once_with_the_last_view_export_and_host_array(producer, managed):
    one = producer(late=new_stream())
    storage = dlf.as_storage(Shown(one), managed=managed)
    shown = Taken(storage.__arrow_c_device_array__())
    held = [storage[1:], storage.__dlpack__(max_version=(1, 3)), storage.T, storage]
    del storage
    while held:
        assert one.array_freed == 0
        held.pop(0)
        gc.collect()
    assert one.freed == [1, 0]
    shown.release()
    assert one.freed == [1, 1]


def test_the_schema_is_released_with_its_capsule(producer):
    one = producer()
    storage = taken(one)
    assert one.freed == [1, 0]
    del storage


def test_memory_is_released_when_the_work_on_it_is_done(producer):
    stream = new_stream()
    one, target = producer(reuses=new_stream()), idle()
    storage = taken(one)
    delay(stream)
    with dlf.use_stream(stream):
        target[...] = storage
    del storage
    assert one.array_freed == 1
    assert values(target).tolist() == VALUES.tolist()
    assert read(one.memory.address, (4,), "f8").tolist() == [-1.0] * 4


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_what_is_only_copied_from_is_released_when_the_copy_is_made(producer, managed):
    one = producer(late=new_stream(), reuses=new_stream())
    copy = dlf.storage(Shown(one), device="gpu", managed=managed)
    assert one.freed == [1, 1]
    assert values(copy).tolist() == LATE


def test_what_is_assigned_is_released_when_the_copy_is_made(producer):
    one, target, stream = producer(late=new_stream(), reuses=new_stream()), idle(), new_stream()
    with dlf.use_stream(stream):
        target[...] = Shown(one)
    assert one.freed == [1, 1]
    assert values(target).tolist() == LATE


def test_memory_that_was_shown_to_others_is_released_when_their_work_is_done(producer):
    one, target, stream = producer(reuses=new_stream()), idle(), new_stream()
    there = device_address(target)
    storage = taken(one)
    shown = Taken(storage.__arrow_c_device_array__())
    delay(stream)
    call("cuMemcpyDtoDAsync_v2", there, shown.buffer(), 32, stream)
    shown.release()
    del storage
    assert one.array_freed == 1
    assert values(target).tolist() == VALUES.tolist()


@pytest.mark.stand_in
@pytest.mark.parametrize("late", [False, True], ids=["ready", "late"])
def test_an_idle_arrow_array_is_released_without_a_wait(producer, late):
    one = producer(late=new_stream() if late else None)
    storage = taken(one)
    before = stats().syncs
    del storage
    assert (one.array_freed, stats().syncs) == (1, before)


REFUSED = {
    # options of as_storage, error
    "layout": ({"layout": (1,), "dims": ("I",)}, ValueError),
    "dims": ({"dims": ("I", "J")}, ValueError),
    "halo": ({"halo": ((9, 9),)}, ValueError),
    "alignment": ({"alignment_size": 2**40}, ValueError),
    "managed by CUDA": ({"managed": "cuda"}, dlf.DeviceUnavailable),
    "no such device": ({"device": ("gpu", 99)}, dlf.DeviceUnavailable),
    "another device": ({"device": ("gpu", 1)}, dlf.DeviceUnavailable),
}


@pytest.mark.parametrize(("options", "error"), REFUSED.values(), ids=REFUSED)
def test_memory_is_released_once_where_a_wish_is_not_met(producer, options, error):
    one = producer(late=new_stream())
    with pytest.raises(error):
        dlf.as_storage(Shown(one), **options)
    gc.collect()
    assert one.freed == [1, 1]


def test_memory_is_released_once_by_whichever_thread_is_last(producer):
    one = producer()
    held = [taken(one)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert one.freed == [1, 1]


def test_memory_in_a_cycle_is_released_once(producer):
    one = producer()
    cycle = [taken(one)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert one.freed == [1, 1]


def test_an_exception_on_its_way_survives_the_release(producer):
    def fail():
        raise error

    one, error = producer(), RuntimeError("on its way")
    with pytest.raises(RuntimeError) as caught:
        (taken(one), fail())
    assert caught.value is error
    assert one.freed == [1, 1]


def test_the_end_of_an_array_waits_with_the_interpreter_free_for_others():
    run(
        """
        from support.arrow_structs import OnDevice as Shown, Producer

        one, data = Producer(), OnDevice(np.ones(4))
        one.buffers[1] = data.address
        one.device.device_type, one.device.device_id = 2, 0
        storage = dlf.as_storage(Shown(one), managed=None)
        target = dlf.zeros(4, device="gpu", managed=None)
        gate = Gate(own_stream())
        target[...] = storage
        gate.open_later()
        del storage
        assert one.freed == [1, 1]
        """
    )
