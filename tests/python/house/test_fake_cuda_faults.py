"""The stand-in driver reports and counts errors of its callers."""

import textwrap

import pytest

from support.cuda.stand_in import run

FAULTS = {
    "a fill past the end": ('call("cuMemsetD8Async", there, 0, 9, s)', "at most 8 bytes"),
    "a fill before the start": ('call("cuMemsetD8Async", there - 1, 0, 1, s)', "an allocation"),
    "a copy past the end": (
        'call("cuMemcpyDtoDAsync_v2", there + 4, there, 8, s)',
        "copy, target: access: expected at most 4 bytes",
    ),
    "use after free": (
        'call("cuMemFree_v2", there); call("cuMemsetD8Async", there, 0, 1, s)',
        "use after free",
    ),
    "use after a free in another stream": (
        """
        call("cuMemFreeAsync", there, t); call("cuStreamSynchronize", t)
        call("cuMemsetD8Async", there, 0, 1, s)
        """,
        "use after free",
    ),
    "freed twice in stream order": (
        'call("cuMemFreeAsync", there, s); call("cuMemFreeAsync", there, s)',
        "freed twice",
    ),
    "use before the stream came to the allocation": (
        'new = made("cuMemAllocAsync", 8, t); call("cuMemsetD8Async", new, 0, 8, s)',
        "use before allocation",
    ),
    "pinned memory freed under a copy": (
        """
        pinned = made("cuMemHostAlloc", 8, 0)
        call("cuMemcpyHtoDAsync_v2", there, pinned, 8, s); call("cuMemFreeHost", pinned)
        """,
        "copy, source: use after free",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_when_it_runs_and_stays(fault):
    code, message = FAULTS[fault]
    said = run(f"""
start()
s, t, there = stream(), stream(), device_array(range(8))
{textwrap.dedent(code)}
assert stats().violations == 0
assert status("cuStreamSynchronize", s) == 700
assert stats().violations == 1
answer = ctypes.c_uint64()
assert status("cuCtxSynchronize") == 700
assert status("cuMemAlloc_v2", byref(answer), 8) == 700
assert status("cuMemsetD8Async", there, 0, 1, t) == 700
assert stats().violations == 1
""")
    assert "fake cuda: violation on device 0" in said
    assert message in said


def test_work_behind_a_fault_is_dropped():
    run("""
        start()
        s, seen = stream(), []
        note = HOST_FUNCTION(seen.append)
        call("cuMemsetD8Async", device_array([1]), 0, 2, s)
        call("cuLaunchHostFunc", s, note, 0)
        assert status("cuStreamSynchronize", s) == 700
        assert seen == []
    """)


def test_a_reset_of_the_context_ends_a_fault():
    run("""
        start()
        there = device_array([1])
        call("cuMemsetD8_v2", there, 0, 2)
        assert status("cuCtxSynchronize") == 700
        call("cuDevicePrimaryCtxReset_v2", 0)
        assert status("cuCtxSynchronize") == 709
        start()
        assert on_host(device_array([1]), 1) == [1]
    """)


def test_the_counters_count_and_can_be_reset():
    run("""
        start()
        there, other = device_array([1, 2]), made("cuMemAlloc_v2", 2)
        call("cuMemcpyDtoD_v2", other, there, 2)
        assert on_host(other, 2) == [1, 2]
        call("cuMemFree_v2", there)
        now = {name: getattr(stats(), name) for name, _ in Stats._fields_}
        assert now == dict(allocs=2, frees=1, live_bytes=2, copies=3, h2d=1, d2h=1, d2d=1,
                           kernels=0, syncs=3, violations=0), now
        call("fake_cuda_reset")
        assert (stats().allocs, stats().syncs, stats().live_bytes) == (0, 0, 2)
    """)


def test_a_copy_between_device_memory_does_not_wait():
    run("""
        start()
        there, other = device_array([1]), device_array([2])
        before = stats().syncs
        call("cuMemcpyDtoD_v2", other, there, 1)
        assert (stats().syncs, status("cuStreamQuery", 0)) == (before, 600)
    """)
