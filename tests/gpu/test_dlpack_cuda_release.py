"""DLPack in, from producers with memory of CUDA: when they get their memory back, and how often."""

import gc
import threading

import dlfield as dlf
import pytest

from support.cuda.devices import delay, new_stream, read
from support.cuda.driver import call, stats
from support.cuda.producers import VALUES, workshop
from support.dlpack_structs import DELETER


@pytest.fixture
def producer():
    """Makes producers, whose memory goes at the end of the test."""
    with workshop() as make:
        yield make


def taken(one):
    return dlf.as_storage(one, managed=None)


def values_of(storage):
    return dlf.storage(storage, device="cpu").to_numpy().tolist()


REFUSED = {
    # options of as_storage, error
    "layout": ({"layout": (1,), "dims": ("I",)}, ValueError),
    "dims": ({"dims": ("I", "J")}, ValueError),
    "halo": ({"halo": ((9, 9),)}, ValueError),
    "alignment": ({"alignment_size": 2**40}, ValueError),
    "the host": ({"device": "cpu"}, dlf.DeviceUnavailable),
    "managed by CUDA": ({"managed": "cuda"}, dlf.DeviceUnavailable),
    "no such device": ({"device": ("gpu", 99)}, dlf.DeviceUnavailable),
}


@pytest.mark.parametrize(("options", "error"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_memory_is_given_back_once_where_a_wish_is_not_met(producer, options, error, legacy):
    one = producer(legacy=legacy)
    with pytest.raises(error):
        dlf.as_storage(one, **options)
    gc.collect()
    assert one.freed == 1


LIES = {
    "address": lambda t: setattr(t, "data", 8),
    "no address": lambda t: setattr(t, "data", None),
    "offset": lambda t: setattr(t, "byte_offset", 2**63),
    "dimensions": lambda t: setattr(t, "ndim", -1),
    "lanes": lambda t: setattr(t.dtype, "lanes", 2),
    "device type": lambda t: setattr(t.device, "device_type", 77),
    "device number": lambda t: setattr(t.device, "device_id", -1),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_a_tensor_that_lies_is_refused_and_given_back_once(producer, lie, legacy):
    one = producer(legacy=legacy)
    lie(one.managed.dl_tensor)
    with pytest.raises(BufferError, match="expected"):
        dlf.as_storage(one)
    gc.collect()
    assert one.freed == 1


@pytest.mark.parametrize("managed", [None, "gt4py"])
def test_memory_is_given_back_once_with_the_last_view_export_and_host_array(producer, managed):
    one = producer()
    storage = dlf.as_storage(one, managed=managed)
    held = [storage[1:], storage.__dlpack__(), storage.T, storage]
    del storage
    while held:
        assert one.freed == 0
        held.pop(0)
        gc.collect()
    assert one.freed == 1


@pytest.mark.parametrize("use", ["read", "written"])
@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_memory_is_given_back_when_the_work_on_it_is_done(producer, use, legacy):
    stream = new_stream()
    one = producer(legacy=legacy, reuses=new_stream())
    storage, other = taken(one), dlf.full((4,), 7.0, device="gpu", managed=None)
    call("cuCtxSynchronize")
    delay(stream)
    with dlf.use_stream(stream):
        if use == "read":
            other[...] = storage
        else:
            storage[...] = other
    del storage
    assert one.freed == 1
    assert values_of(other) == (VALUES.tolist() if use == "read" else [7.0] * 4)
    assert read(one.memory.address, (4,), "f8").tolist() == [-1.0] * 4


@pytest.mark.stand_in
def test_an_idle_tensor_is_released_without_a_wait(producer):
    one = producer()
    storage = taken(one)
    before = stats().syncs
    del storage
    assert (one.freed, stats().syncs) == (1, before)


def test_a_copy_to_the_host_gives_the_memory_back_at_once(producer):
    one = producer(late=new_stream())
    copy = dlf.storage(one, device="cpu")
    assert (type(copy), copy.to_numpy().tolist()) == (dlf.CPUStorage, (VALUES + 10).tolist())
    assert one.freed == 1


def test_memory_is_given_back_once_by_whichever_thread_is_last(producer):
    one = producer()
    held = [taken(one)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert one.freed == 1


def test_memory_in_a_cycle_is_given_back_once(producer):
    one = producer()
    cycle = [taken(one)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert one.freed == 1


def test_a_deleter_may_import_again_and_drop_other_storages(producer):
    first, second, third = producer(), producer(), producer()
    held = [taken(second)]

    def drop(_managed):
        first.freed += 1
        held.append(taken(third))
        held.clear()

    first.managed.deleter = callback = DELETER(drop)
    storage = taken(first)
    del storage
    assert (first.freed, second.freed, third.freed) == (1, 1, 1)
    assert callback
