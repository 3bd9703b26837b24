"""DLPack in, from producers that are still working: dlfield's work comes after theirs.

A producer lets the stream that it is asked with wait for its work. From then on this is what is in
flight on the memory, on every stream of dlfield and for every later consumer.
"""

import dlfield as dlf
import pytest

from support.cuda.devices import LEGACY, PER_THREAD, current, new_stream
from support.cuda.driver import call, stats
from support.cuda.kinds import every_device, two_devices
from support.cuda.order import device_address, idle, own_stream, seen_from
from support.cuda.producers import (
    CUDA,
    MANAGED,
    VALUES,
    OfNoKeywords,
    OfStreamAlone,
    OnGpu,
    WithoutCopy,
    workshop,
)
from support.dlpack_structs import LEGACY as LEGACY_NAME
from support.dlpack_structs import capsule_name, contents
from support.exchange_structs import Exchange

LATE = (VALUES + 10).tolist()


@pytest.fixture
def producer():
    """Makes producers, whose memory goes at the end of the test."""
    with workshop() as make:
        yield make


def taken(one):
    return dlf.as_storage(one, managed=None)


def values_of(storage):
    return dlf.storage(storage, device="cpu").to_numpy().tolist()


@pytest.mark.parametrize("cls", [OnGpu, WithoutCopy, OfStreamAlone, OfNoKeywords])
@every_device
def test_late_values_of_a_capsule_come_to_the_host(producer, cls, device):
    with current(device):
        stream = new_stream()
    legacy = cls in (OfStreamAlone, OfNoKeywords)
    assert values_of(taken(producer(cls, device=device, late=stream, legacy=legacy))) == LATE


@pytest.mark.parametrize("kind", [CUDA, MANAGED])
@every_device
def test_late_values_of_a_capsule_without_its_producer_come_to_the_host(producer, kind, device):
    with current(device):
        one = producer(OfNoKeywords, kind=kind, device=device, late=new_stream(), legacy=True)
        capsule = one.__dlpack__()  # which makes the legacy default stream wait
    storage = dlf.as_storage(capsule, managed="cuda") if kind == MANAGED else taken(capsule)
    assert values_of(storage) == LATE


def test_a_capsule_that_is_out_of_reach_is_refused_and_can_be_taken_elsewhere(producer):
    one = producer(OfNoKeywords, legacy=True)
    capsule = one.__dlpack__()
    with pytest.raises(dlf.DeviceUnavailable, match="expected memory that the host can reach"):
        dlf.as_numpy(capsule)
    assert (capsule_name(capsule), one.freed) == (LEGACY_NAME, 0)
    storage = taken(capsule)
    assert (values_of(storage), one.freed) == (VALUES.tolist(), 0)
    del storage, capsule
    assert one.freed == 1


def test_values_that_are_still_written_come_to_the_sibling_on_the_host(producer):
    assert dlf.as_storage(producer(late=new_stream())).to_numpy().tolist() == LATE


@pytest.mark.parametrize("stream", [None, LEGACY, PER_THREAD, "new"])
def test_a_device_copy_of_a_capsule_comes_after_the_producers_work(producer, stream):
    target = idle()
    stream = new_stream() if stream == "new" else stream or own_stream()
    with dlf.use_stream(stream):
        target[...] = taken(producer(late=new_stream()))
    assert seen_from(stream, target.__cuda_array_interface__["data"][0]).tolist() == LATE


@pytest.mark.stand_in
def test_the_host_does_not_wait_for_the_producer(producer):
    target, one = idle(), producer(late=new_stream())
    storage, before = taken(one), stats().syncs
    target[...] = storage
    assert stats().syncs == before
    assert values_of(target) == LATE


@two_devices
def test_a_copy_of_a_capsule_to_another_device_comes_after_the_producers_work(producer):
    target = idle(device=1)
    target[...] = taken(producer(late=new_stream()))
    assert values_of(target) == LATE


def test_a_capsule_imported_in_use_stream_is_in_order_outside(producer):
    with dlf.use_stream(new_stream()):
        storage = taken(producer(late=new_stream()))
    assert values_of(storage) == LATE


def test_a_capsule_imported_outside_is_in_order_in_use_stream(producer):
    target, storage, stream = idle(), taken(producer(late=new_stream())), new_stream()
    there = device_address(target)
    with dlf.use_stream(stream):
        target[...] = storage
    assert seen_from(stream, there).tolist() == LATE


def test_what_an_old_producer_has_in_flight_is_waited_for_in_use_stream(producer):
    target = idle()
    with dlf.use_stream(new_stream()):
        target[...] = taken(producer(OfNoKeywords, late=new_stream()))
    assert values_of(target) == LATE


def test_an_export_by_the_cuda_array_interface_waits_for_work_in_flight(
    producer,
):
    storage = taken(producer(late=new_stream()))
    found = storage.__cuda_array_interface__
    assert found["stream"] is not None
    assert seen_from(found["stream"], found["data"][0]).tolist() == LATE


@pytest.mark.parametrize("stream", [PER_THREAD, "new"])
def test_an_export_by_dlpack_waits_for_work_in_flight(producer, stream):
    storage = taken(producer(late=new_stream()))
    stream = new_stream() if stream == "new" else stream
    there = contents(storage.__dlpack__(stream=stream, max_version=(1, 3))).dl_tensor.data
    assert seen_from(stream, there).tolist() == LATE


def test_an_export_by_the_table_waits_for_work_in_flight(producer):
    storage, stream, ours = taken(producer(late=new_stream())), new_stream(), Exchange(dlf.Storage)
    with dlf.use_stream(stream):
        there = ours.view_of(storage).data
        assert ours.stream(2)[1] == stream
    assert seen_from(stream, there).tolist() == LATE
    call("cuCtxSynchronize")


def test_the_host_waits_for_work_on_a_capsule_of_managed_memory(producer):
    assert dlf.as_storage(producer(kind=MANAGED, late=new_stream())).to_numpy().tolist() == LATE


@pytest.mark.parametrize("managed", [None, "cuda"])
def test_what_is_in_flight_in_managed_memory_is_waited_for_on_the_device(producer, managed):
    target = idle()
    target[...] = dlf.as_storage(producer(kind=MANAGED, late=new_stream()), managed=managed)
    there = device_address(target)
    assert seen_from(own_stream(), there).tolist() == LATE
    call("cuCtxSynchronize")


def test_a_producer_that_is_asked_for_the_host_has_waited_itself(producer):
    class Moving(OnGpu):
        def __dlpack__(self, **keywords):
            self.calls.append(keywords)
            call("cuStreamSynchronize", self.late)
            return self.capsule()

    one = producer(Moving, kind=MANAGED, late=new_stream())
    storage = dlf.as_storage(one, device="cpu")
    assert one.calls == [{"max_version": (1, 3), "dl_device": (1, 0), "copy": False}]
    assert storage.to_numpy().tolist() == LATE
