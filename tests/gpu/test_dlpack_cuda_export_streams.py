"""The `stream` of `__dlpack__` of storages on a GPU: what waits for work in flight."""

from functools import partial

import dlfield as dlf
import numpy as np
import pytest

from support.cuda import order
from support.cuda.devices import LEGACY, PER_THREAD, new_stream, read
from support.cuda.driver import call, stats
from support.cuda.kinds import every_kind, two_devices
from support.cuda.order import put_from, seen_from
from support.dlpack_structs import consume, contents, release

NEW = {"max_version": (1, 3)}
OLD, SEVENS = np.arange(6.0).reshape(2, 3), np.full((2, 3), 7.0)
in_flight = partial(order.in_flight, OLD, SEVENS)


def consumer_called(name):
    """Return the handle of a consumer's stream."""
    return {"new": new_stream, "blocking": lambda: new_stream(0)}.get(name, lambda: name)()


def address_in(capsule):
    return contents(capsule).dl_tensor.data


@every_kind
@pytest.mark.parametrize("writer", [None, new_stream], ids=["own", "new"])
@pytest.mark.parametrize("name", [None, LEGACY, PER_THREAD, "new", "blocking"])
def test_the_consumers_stream_comes_after_what_is_in_flight(managed, writer, name):
    storage, stream = in_flight(managed, writer), consumer_called(name)
    there = address_in(storage.__dlpack__(stream=stream, **NEW))
    seen = seen_from(LEGACY if stream is None else stream, there, (2, 3))
    np.testing.assert_array_equal(seen, SEVENS)
    call("cuCtxSynchronize")


@two_devices
@pytest.mark.parametrize("stream", [None, LEGACY])
def test_the_default_stream_is_that_of_the_device_that_has_the_memory(stream):
    storage = in_flight(None, new_stream, device=1)
    there = address_in(storage.__dlpack__(stream=stream, **NEW))
    np.testing.assert_array_equal(seen_from(LEGACY, there, (2, 3), device=1), SEVENS)


@pytest.mark.stand_in
@every_kind
def test_a_consumer_that_wants_no_synchronisation_gets_none(managed):
    storage, stream = in_flight(managed), new_stream()
    there = address_in(storage.__dlpack__(stream=-1, **NEW))
    assert not (seen_from(stream, there, (2, 3)) == SEVENS).any()
    call("cuCtxSynchronize")
    np.testing.assert_array_equal(seen_from(stream, there, (2, 3)), SEVENS)


@pytest.mark.stand_in
@every_kind
@pytest.mark.parametrize("name", [None, -1, LEGACY, PER_THREAD, "new"])
def test_handing_memory_of_a_device_over_never_makes_the_host_wait(managed, name):
    storage, stream = in_flight(managed), consumer_called(name)
    before = stats().syncs
    storage.__dlpack__(stream=stream, **NEW)
    assert stats().syncs == before


@pytest.mark.parametrize("name", [None, "new"])
def test_a_copy_is_made_before_what_the_consumer_puts_on_its_stream(name):
    storage, stream = in_flight(None), consumer_called(name)
    taken = consume(storage.__dlpack__(stream=stream, copy=True, **NEW))
    put_from(LEGACY if stream is None else stream, taken.dl_tensor.data, OLD)
    np.testing.assert_array_equal(read(taken.dl_tensor.data, (2, 3), "f8"), OLD)
    release(taken)


def test_the_streams_of_several_consumers_each_wait():
    storage = in_flight(None, new_stream)
    streams = [new_stream() for _ in range(3)]
    capsules = [storage.__dlpack__(stream=stream, **NEW) for stream in streams]
    for stream, capsule in zip(reversed(streams), reversed(capsules), strict=True):
        np.testing.assert_array_equal(seen_from(stream, address_in(capsule), (2, 3)), SEVENS)


@pytest.mark.stand_in
def test_a_pair_is_brought_up_to_date_in_order_with_the_consumers_stream():
    storage = dlf.storage(OLD, device="gpu")
    before, stream = stats(), new_stream()
    storage.set_host_modified()
    capsule = storage.__dlpack__(stream=stream, dl_device=(2, 0), **NEW)
    after = stats()
    assert (after.h2d - before.h2d, after.syncs) == (1, before.syncs)
    np.testing.assert_array_equal(seen_from(stream, address_in(capsule), (2, 3)), OLD)
