"""Devices, contexts and threads of the stand-in driver."""

import pytest

from support.cuda.stand_in import end_of, run


def test_two_devices_have_memory_streams_and_faults_of_their_own():
    code = """
        contexts = [start(0), start(1)]
        assert contexts[0] != contexts[1]
        there = device_array([1])
        assert pointer_attribute(9, there, ctypes.c_int) == 1
        call("cuCtxSetCurrent", contexts[0])
        other = device_array([2])
        assert pointer_attribute(9, other, ctypes.c_int) == 0
        call("cuMemcpyPeerAsync", other, contexts[0], there, contexts[1], 1, 0)
        assert on_host(other, 1) == [1]
        s, e = stream(), event()
        call("cuCtxSetCurrent", contexts[1])
        assert status("cuEventRecord", e, 0) == 400
        call("cuMemsetD8_v2", there, 0, 2)
        assert status("cuCtxSynchronize") == 700
        call("cuCtxSetCurrent", contexts[0])
        assert status("cuCtxSynchronize") == 0
    """
    run(code, DLFIELD_FAKE_CUDA_DEVICES="2")


@pytest.mark.parametrize(("devices", "started"), [("0", 100), ("1", 0)])
def test_a_device_that_is_not_there_is_refused(devices, started):
    code = f"""
        assert status("cuInit", 0) == {started}
        answer = ctypes.c_uint64()
        expected = 101 if {started} == 0 else 3
        assert status("cuDevicePrimaryCtxRetain", byref(answer), {devices}) == expected
        assert status("cuDevicePrimaryCtxRetain", byref(answer), -1) == expected
    """
    run(code, DLFIELD_FAKE_CUDA_DEVICES=devices)


@pytest.mark.parametrize(
    ("allocate", "memory_type", "managed", "on_host"),
    [
        ('made("cuMemAlloc_v2", 64)', 2, 0, 0),
        ('made("cuMemAllocManaged", 64, 1)', 2, 1, 1),
        ('made("cuMemHostAlloc", 64, 0)', 1, 0, 1),
    ],
)
def test_the_attributes_of_a_pointer_say_what_it_is(allocate, memory_type, managed, on_host):
    run(f"""
        context = start()
        base = {allocate}
        there = base + 8
        assert pointer_attribute(1, there) == context
        assert pointer_attribute(2, there, ctypes.c_uint) == {memory_type}
        assert pointer_attribute(3, there) == there
        answer = ctypes.c_uint64()
        assert status("cuPointerGetAttribute", byref(answer), 4, there) == 1 - {on_host}
        assert answer.value == there * {on_host}
        assert pointer_attribute(8, there, ctypes.c_uint) == {managed}
        assert pointer_attribute(9, there, ctypes.c_int) == 0
        assert (pointer_attribute(11, there), pointer_attribute(12, there)) == (base, 64)
        assert status("cuPointerGetAttribute", byref(answer), 2, base + 64) == 1
    """)


def test_the_attributes_of_an_unknown_pointer_are_an_error_or_nothing():
    run("""
        start()
        host, answer = np.zeros(1, np.uint8), ctypes.c_uint64(7)
        assert status("cuPointerGetAttribute", byref(answer), 2, address(host)) == 1
        kind, pointer, ordinal = ctypes.c_uint(7), ctypes.c_uint64(7), ctypes.c_int(7)
        to = (ctypes.c_void_p * 3)(*[ctypes.addressof(a) for a in (kind, pointer, ordinal)])
        call("cuPointerGetAttributes", 3, (ctypes.c_uint * 3)(2, 3, 9), to, address(host))
        assert (kind.value, pointer.value, ordinal.value) == (0, 0, -2)
    """)


def test_host_memory_is_registered_once():
    run("""
        start()
        host = np.zeros(100, np.uint8)
        call("cuMemHostRegister_v2", address(host), 100, 0)
        assert status("cuMemHostRegister_v2", address(host) + 99, 100, 0) == 712
        assert pointer_attribute(2, address(host) + 99, ctypes.c_uint) == 1
        assert made("cuMemHostGetDevicePointer_v2", address(host), 0) == address(host)
        call("cuMemHostUnregister", address(host))
        assert status("cuMemHostUnregister", address(host)) == 713
    """)


def test_a_primary_context_is_shared_and_ends_with_its_last_release():
    run("""
        context = start()
        assert start() == context
        there, flags, active = device_array([1]), ctypes.c_uint(), ctypes.c_int()
        call("cuDevicePrimaryCtxRelease_v2", 0)
        assert on_host(there, 1) == [1]
        call("cuDevicePrimaryCtxRelease_v2", 0)
        call("cuDevicePrimaryCtxGetState", 0, byref(flags), byref(active))
        assert (active.value, stats().live_bytes) == (0, 0)
        assert status("cuCtxSynchronize") == 709
        assert status("cuDevicePrimaryCtxRelease_v2", 0) == 201
    """)


def test_a_thread_has_a_context_of_its_own():
    run("""
        import threading
        context, answers = start(), []
        def other():
            answers.append(made("cuCtxGetCurrent"))
            answers.append(status("cuCtxSynchronize"))
            call("cuCtxPushCurrent_v2", context)
            answers.append(status("cuCtxSynchronize"))
            answers.append(made("cuCtxPopCurrent_v2"))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert answers == [0, 201, 0, context]
    """)


def test_a_forked_child_has_no_driver():
    run("""
        import os
        start()
        child = os.fork()
        if child == 0:
            os._exit(status("cuCtxSynchronize"))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    """)


@pytest.mark.parametrize(
    ("lacks", "attribute", "call"),
    [
        ("NO_MANAGED", 83, '"cuMemAllocManaged", byref(answer), 8, 1'),
        ("NO_POOLS", 115, '"cuMemAllocAsync", byref(answer), 8, 0'),
    ],
)
def test_a_device_may_lack_managed_memory_and_pools(lacks, attribute, call):
    code = f"""
        start()
        answer, can = ctypes.c_uint64(), ctypes.c_int()
        call("cuDeviceGetAttribute", byref(can), {attribute}, 0)
        print(can.value, status({call}))
        assert device_array([1, 2]) and made("cuMemHostAlloc", 8, 0)
    """
    assert end_of(code).stdout.split() == ["1", "0"]
    assert end_of(code, **{f"DLFIELD_FAKE_CUDA_{lacks}": "1"}).stdout.split() == ["0", "801"]


def test_a_block_of_gibibytes_is_new_at_both_ends():
    run("""
        start()
        size = (1 << 31) + 5
        there = made("cuMemAlloc_v2", size)
        assert on_host(there, 3) == on_host(there + size - 3, 3) == [NEW] * 3
    """)
