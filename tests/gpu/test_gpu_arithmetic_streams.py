"""Arithmetic on a GPU is in order with other work, and nothing waits for it on the host."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import Counted, pair, values
from support.cuda.devices import OnDevice, delay, new_stream
from support.cuda.driver import call
from support.cuda.handed import VALUES, Inbox, Late, address_of, handed
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER, every_kind

pytestmark = pytest.mark.usefixtures("cupy")

every_stream = pytest.mark.parametrize("own", [False, True], ids=["default", "own stream"])


@pytest.fixture
def on(cupy):
    """Return what makes a stream of CuPy current: the default one, or one without any order."""
    stream = cupy.cuda.Stream(non_blocking=True)
    yield lambda own: stream if own else cupy.cuda.Stream(null=True)
    stream.synchronize()
    call("cuCtxSynchronize")


@every_kind
@every_stream
def test_values_on_their_way_arrive_before_they_are_computed_with(managed, own, on):
    late, inbox = Late(VALUES, managed), Inbox()
    with on(own) as stream:
        result = late.storage + 1
        there = address_of(result)
        found = inbox.fetch(there, stream.ptr)
    np.testing.assert_array_equal(found, VALUES + 1)


@every_kind
@every_stream
def test_a_result_is_there_for_whatever_reads_it_next(managed, own, on):
    a = handed(VALUES, managed)
    with on(own) as stream:
        delay(stream.ptr)
        a += 1
        result = a * 2
    np.testing.assert_array_equal(values(result), 2 * (VALUES + 1))
    np.testing.assert_array_equal(values(a), VALUES + 1)


@every_stream
def test_a_result_is_there_on_the_host_of_a_pair(own, on):
    a = handed(VALUES, "gt4py")
    with on(own) as stream:
        delay(stream.ptr)
        a *= 2
    np.testing.assert_array_equal(a.to_numpy(), VALUES * 2)


@every_kind
def test_work_of_dlfield_follows_that_of_cupy(managed, on):
    a, target = handed(VALUES, managed), handed(-VALUES, None)
    with on(own=True) as stream:
        delay(stream.ptr)
        a += 1
    with dlf.use_stream(new_stream()):
        target[...] = a
    np.testing.assert_array_equal(values(target), VALUES + 1)


@every_stream
def test_what_the_host_wrote_is_copied_before_it_is_computed_with(own, on):
    a = pair(VALUES, CLEAN)
    a.to_numpy()[...] += 1
    a.set_host_modified()
    with on(own):
        result = a + handed(VALUES, None)
    np.testing.assert_array_equal(values(result), 2 * VALUES + 1)
    assert a.sync_state.state == CLEAN


@every_stream
def test_a_foreign_array_is_computed_with_once_its_producer_has_written_it(own, on):
    producer = new_stream()
    late = Late(VALUES, None)
    foreign = OnDevice(np.zeros_like(VALUES), stream=producer)
    delay(producer)
    with dlf.use_stream(producer):
        dlf.as_storage(foreign, managed=None)[...] = late.storage
    a = handed(VALUES, None)
    with on(own):
        result = a + foreign
    np.testing.assert_array_equal(values(result), 2 * VALUES)


@pytest.mark.stand_in
@every_kind
@every_stream
def test_nothing_waits_or_copies_while_results_come_and_go(managed, own, on):
    a, b = handed(VALUES, managed), handed(VALUES[0], managed)
    gc.collect()
    with on(own), Counted() as counted:
        for _ in range(3):
            a += 2 * b - a
        kept = np.sqrt(a, where=a > 3, out=a)
    assert (counted.to_host, counted.to_device) == (0, 0)
    if managed is None:  # to free pinned or managed memory the driver waits
        assert counted.waits == 0
    assert kept is a


@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER], ids=["host newer", "device newer"])
def test_an_operation_that_is_refused_brings_nothing_up_to_date(state):
    a, b = pair(VALUES, state), handed(VALUES, None)
    for refused in (lambda: a + b[1:], lambda: np.add(a, b, out=b[1:]), lambda: a @ b):
        with pytest.raises((ValueError, TypeError)):
            refused()
    assert a.sync_state.state == state
