"""The stand-in driver's memory: where the host faults, what a copy or a fill takes."""

import pytest

from support.cuda.stand_in import end_of, run


def test_the_host_cannot_touch_device_memory():
    done = end_of("start(); there = device_array([1, 2]); ctypes.string_at(there, 1)")
    assert "Segmentation fault" in done.stderr


def test_the_host_reads_device_memory_if_that_is_asked_for():
    code = "start(); there = device_array([1, 2]); assert ctypes.string_at(there, 2) == b'\\1\\2'"
    run(code, DLFIELD_FAKE_CUDA_READABLE="1")


def test_the_host_cannot_touch_freed_pinned_memory():
    code = """
        start()
        there = made("cuMemHostAlloc", 8, 0)
        ctypes.string_at(there, 8)
        call("cuMemFreeHost", there)
        ctypes.string_at(there, 8)
    """
    assert "Segmentation fault" in end_of(code).stderr


def test_new_memory_is_aligned_and_holds_no_zeros():
    run("""
        start()
        there = [made("cuMemAlloc_v2", 5) for _ in range(3)]
        assert all(a % 512 == 0 for a in there)
        assert there[1] - there[0] >= 4096
        assert on_host(there[1], 5) == [NEW] * 5
    """)


def test_an_address_is_never_used_again():
    run("""
        start()
        first = made("cuMemAlloc_v2", 64)
        call("cuMemFree_v2", first)
        assert made("cuMemAlloc_v2", 64) != first
    """)


def test_more_memory_than_there_is_gives_out_of_memory():
    run("""
        start()
        answer = ctypes.c_uint64()
        assert status("cuMemAlloc_v2", byref(answer), 5 << 30) == 2
        assert status("cuMemAlloc_v2", byref(answer), 0) == 1
        assert made("cuMemAlloc_v2", 64)
    """)


def test_an_address_outside_allocations_is_refused_at_the_call():
    said = run("""
        start()
        there = device_array([1])
        call("cuMemFree_v2", there)
        assert status("cuMemFree_v2", there) == 1
        assert status("cuMemFree_v2", 4096) == 1
        assert stats().violations == 2
        call("cuMemFree_v2", 0)
        host = np.zeros(1, np.uint8)
        assert status("cuMemsetD8Async", address(host), 0, 1, 0) == 1
        assert status("cuMemcpyHtoD_v2", address(host), address(host), 1) == 1
        call("cuCtxSynchronize")
    """)
    assert "expected an allocation" in said
    assert "expected a device pointer" in said


def test_memory_lives_until_the_stream_comes_to_its_free():
    run("""
        start()
        s, pinned = stream(), made("cuMemHostAlloc", 1, 0)
        there = made("cuMemAllocAsync", 1, s)
        call("cuMemsetD8Async", there, 4, 1, s)
        call("cuMemcpyDtoHAsync_v2", pinned, there, 1, s)
        call("cuMemFreeAsync", there, s)
        assert stats().live_bytes == 2
        call("cuStreamSynchronize", s)
        assert (host_view(pinned, 1)[0], stats().live_bytes) == (4, 1)
    """)


def test_a_pitched_copy_takes_a_rectangle():
    run("""
        start()
        there = device_array(range(24))  # 4 rows of 6
        host = np.zeros((2, 5), np.uint8)
        source = Side2D(x=1, y=1, memory_type=2, device=there, pitch=6)
        target = Side2D(memory_type=1, host=address(host), pitch=5)
        call("cuMemcpy2D_v2", byref(Copy2D(source, target, 3, 2)))
        assert host.tolist() == [[7, 8, 9, 0, 0], [13, 14, 15, 0, 0]]
    """)


def test_a_pitched_copy_of_three_dimensions_takes_a_box():
    run("""
        start()
        box = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
        there = made("cuMemAlloc_v2", 2 * 5 * 8)
        call("cuMemsetD8_v2", there, 0, 80)
        source = Side3D(memory_type=1, host=address(box), pitch=4, height=3)
        target = Side3D(x=2, y=1, memory_type=2, device=there, pitch=8, height=5)
        call("cuMemcpy3DAsync_v2", byref(Copy3D(source, target, 4, 3, 2)), stream(0))
        box[:] = 99
        out = np.array(on_host(there, 80)).reshape(2, 5, 8)
        assert (out[:, 1:4, 2:6] == np.arange(24).reshape(2, 3, 4)).all()
        assert out.sum() == np.arange(24).sum()
    """)


@pytest.mark.parametrize(("pitch", "height"), [(3, 3), (2**31, 3), (4, 2), (0, 3)])
def test_a_pitch_or_height_out_of_range_is_refused(pitch, height):
    run(f"""
        start()
        there, host = device_array(range(24)), np.zeros((2, 3, 4), np.uint8)
        source = Side3D(memory_type=2, device=there, pitch={pitch}, height={height})
        target = Side3D(memory_type=1, host=address(host), pitch=4, height=3)
        assert status("cuMemcpy3D_v2", byref(Copy3D(source, target, 4, 3, 2))) == 1
        array = Side3D(memory_type=3, array=1, pitch=4, height=3)
        assert status("cuMemcpy3D_v2", byref(Copy3D(array, target, 4, 3, 2))) == 801
    """)


def test_a_fill_writes_items_of_its_size_and_only_them():
    run("""
        start()
        there = device_array([0] * 24)
        call("cuMemsetD16Async", there + 2, 0x0201, 2, 0)
        call("cuMemsetD2D32Async", there + 8, 8, 0x06050403, 1, 2, 0)
        expected = [0, 0, 1, 2, 1, 2, 0, 0, 3, 4, 5, 6, 0, 0, 0, 0, 3, 4, 5, 6, 0, 0, 0, 0]
        assert on_host(there, 24) == expected
        assert status("cuMemsetD32Async", there + 2, 0, 1, 0) == 1
    """)


#: A module with one kernel that adds its second argument to the bytes at the first.
