"""The stand-in driver runs work as late and in as little order as `cuda.h` allows."""

import pytest

from support.cuda.stand_in import run


def test_an_asynchronous_copy_runs_only_at_a_synchronisation():
    run("""
        start()
        s, pinned = stream(), made("cuMemHostAlloc", 1, 0)
        there = device_array([7])
        call("cuMemcpyDtoHAsync_v2", pinned, there, 1, s)
        assert status("cuStreamQuery", s) == 600
        assert host_view(pinned, 1)[0] == NEW
        call("cuStreamSynchronize", s)
        assert status("cuStreamQuery", s) == 0
        assert host_view(pinned, 1)[0] == 7
    """)


def test_a_pageable_source_is_taken_at_the_call():
    run("""
        start()
        s, there, source = stream(), made("cuMemAlloc_v2", 1), np.array([1], np.uint8)
        call("cuMemcpyHtoDAsync_v2", there, address(source), 1, s)
        source[0] = 2
        call("cuStreamSynchronize", s)
        assert on_host(there, 1) == [1]
    """)


@pytest.mark.parametrize("kind", ["pinned", "managed", "registered"])
def test_a_source_that_is_not_pageable_is_taken_late(kind):
    run(f"""
        start()
        s, there, array = stream(), made("cuMemAlloc_v2", 1), np.array([0], np.uint8)
        if "{kind}" == "registered":
            source = address(array)
            call("cuMemHostRegister_v2", source, 1, 0)
        elif "{kind}" == "managed":
            source = made("cuMemAllocManaged", 1, 1)
        else:
            source = made("cuMemHostAlloc", 1, 0)
        host_view(source, 1)[0] = 1
        call("cuMemcpyAsync", there, source, 1, s)
        host_view(source, 1)[0] = 2
        call("cuStreamSynchronize", s)
        assert on_host(there, 1) == [2]
    """)


def test_a_copy_to_pageable_memory_is_there_on_return():
    run("""
        start()
        s, there, target = stream(), made("cuMemAlloc_v2", 3), np.zeros(3, np.uint8)
        call("cuMemsetD8Async", there, 5, 3, s)
        call("cuMemcpyDtoHAsync_v2", address(target), there, 3, s)
        assert target.tolist() == [5, 5, 5]
        assert stats().syncs == 1
    """)


#: A value goes through `there` on one stream, and is fetched on another.
TWO_STREAMS = """
    start()
    writer, reader, e, pinned = stream(), stream(), event(), made("cuMemHostAlloc", 1, 0)
    there = device_array([1])
    call("cuMemsetD8Async", there, 9, 1, writer)
    call("cuEventRecord", e, writer)
    {wait}
    call("cuMemcpyDtoHAsync_v2", pinned, there, 1, reader)
    call("cuStreamSynchronize", reader)
    assert host_view(pinned, 1)[0] == {seen}
"""


def test_an_event_orders_two_streams():
    run(TWO_STREAMS.format(wait='call("cuStreamWaitEvent", reader, e, 0)', seen=9))


def test_a_missing_wait_shows_stale_data():
    run(TWO_STREAMS.format(wait="", seen=1))


def test_an_event_recorded_again_leaves_earlier_waits_as_they_are():
    run("""
        start()
        writer, reader, e = stream(), stream(), event()
        there = device_array([1])
        call("cuMemsetD8Async", there, 2, 1, writer)
        call("cuEventRecord", e, writer)
        call("cuMemsetD8Async", there, 3, 1, writer)
        call("cuStreamWaitEvent", reader, e, 0)
        call("cuEventRecord", e, writer)
        call("cuEventDestroy_v2", e)
        pinned = made("cuMemHostAlloc", 1, 0)
        call("cuMemcpyDtoHAsync_v2", pinned, there, 1, reader)
        call("cuStreamSynchronize", reader)
        assert host_view(pinned, 1)[0] == 2
    """)


def test_an_event_says_whether_its_record_ran():
    run("""
        start()
        s, first, last = stream(), event(), event()
        time = ctypes.c_float(-1)
        assert status("cuEventQuery", first) == 0
        assert status("cuEventElapsedTime", byref(time), first, last) == 400
        call("cuEventRecord", first, s)
        call("cuEventRecord", last, s)
        assert status("cuEventQuery", first) == 600
        assert status("cuEventElapsedTime", byref(time), first, last) == 600
        call("cuEventSynchronize", first)
        assert (status("cuEventQuery", first), status("cuEventQuery", last)) == (0, 600)
        call("cuEventSynchronize", last)
        call("cuEventElapsedTime", byref(time), first, last)
        assert time.value >= 0
    """)


@pytest.mark.parametrize(("flags", "seen"), [(0, 9), (1, 1)])
@pytest.mark.parametrize("default", [0, 1])
def test_the_legacy_stream_is_ordered_against_blocking_streams_only(flags, seen, default):
    run(f"""
        start()
        writer, there, pinned = stream({flags}), device_array([1]), made("cuMemHostAlloc", 1, 0)
        call("cuMemsetD8Async", there, 9, 1, writer)
        call("cuMemcpyDtoHAsync_v2", pinned, there, 1, {default})
        call("cuStreamSynchronize", {default})
        assert host_view(pinned, 1)[0] == {seen}
    """)


def test_blocking_streams_wait_for_the_legacy_stream_and_not_for_each_other():
    run("""
        start()
        one, two = stream(0), stream(0)
        there, other = device_array([1]), device_array([1])
        call("cuMemsetD8Async", there, 2, 1, 0)
        call("cuMemsetD8Async", other, 2, 1, two)
        call("cuMemsetD8Async", there, 3, 1, one)
        call("cuStreamSynchronize", one)
        assert status("cuStreamQuery", two) == 600
        assert on_host(there, 1) == [3]
    """)


def test_the_default_stream_of_a_thread_is_not_the_legacy_one():
    run("""
        start()
        there = device_array([1])
        call("cuMemsetD8Async", there, 2, 1, 2)
        assert status("cuStreamQuery", 2) == 600
        call("cuStreamSynchronize", 2)
        assert status("cuStreamQuery", 2) == 0
        assert status("cuStreamDestroy_v2", 2) == 400
    """)


def test_a_destroyed_stream_finishes_its_work():
    run("""
        start()
        s, there = stream(), device_array([1])
        call("cuMemsetD8Async", there, 2, 1, s)
        call("cuStreamDestroy_v2", s)
        assert status("cuStreamSynchronize", s) == 400
        call("cuCtxSynchronize")
        assert on_host(there, 1) == [2]
    """)


#: What goes wrong, and how it is called on stderr.
