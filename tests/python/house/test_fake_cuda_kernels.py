"""Kernels, callbacks, pools and names of the stand-in driver."""

import textwrap

from support.cuda.stand_in import run
from support.optional import library

MODULE = """
    start()
    seen = []
    @EMULATION
    def add(dimensions, arguments):
        there = ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_uint64))[0]
        amount = ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_uint32))[0]
        found = bytes_behind(there, 4)
        seen.append(found is not None and status("cuCtxSynchronize"))
        if found is not None:
            found += np.uint8(amount)
    register_kernel("add", add, [8, 4])
    module = made("cuModuleLoadData", b".version 7.8 .target sm_70 .visible .entry add(")
    function = made("cuModuleGetFunction", module, b"add")
    def launch(there, amount, grid=(1, 1, 1), block=(4, 1, 1)):
        values = ctypes.c_uint64(there), ctypes.c_uint32(amount)
        arguments = (ctypes.c_void_p * 2)(*[ctypes.addressof(a) for a in values])
        answer = status("cuLaunchKernel", function, *grid, *block, 0, 0, arguments, 0)
        values[1].value = 100
        return answer
"""


def test_a_kernel_runs_in_stream_order_with_the_arguments_of_its_launch():
    run(
        textwrap.dedent(MODULE)
        + textwrap.dedent("""
        there = device_array([1, 2, 3, 4])
        call("cuMemsetD8Async", there, 5, 2, 0)
        assert launch(there, 10) == 0
        call("cuMemsetD8Async", there, 0, 1, 0)
        assert (seen, stats().kernels) == ([], 1)
        assert on_host(there, 4) == [0, 15, 13, 14]
        assert seen == [800]  # a callback may not call the driver
        """)
    )


def test_a_kernel_that_leaves_its_memory_fails_its_device():
    said = run(
        textwrap.dedent(MODULE)
        + textwrap.dedent("""
        assert launch(device_array([1, 2, 3]), 10) == 0
        assert status("cuCtxSynchronize") == 700
        """)
    )
    assert "kernel: access: expected at most 3 bytes" in said


def test_a_launch_out_of_limits_and_an_unknown_kernel_are_refused():
    run(
        textwrap.dedent(MODULE)
        + textwrap.dedent("""
        for grid, block in [
            ((0, 1, 1), (1, 1, 1)),
            ((1, 65536, 1), (1, 1, 1)),
            ((1, 1, 65536), (1, 1, 1)),
            ((1, 1, 1), (1, 0, 1)),
            ((1, 1, 1), (1, 1, 65)),
            ((1, 1, 1), (1024, 2, 1)),
        ]:
            assert launch(0, 0, grid, block) == 1
        answer = ctypes.c_uint64()
        assert status("cuModuleGetFunction", byref(answer), module, b"ad") == 500
        assert status("cuModuleLoadData", byref(answer), b"no module") == 218
        call("cuModuleUnload", module)
        assert launch(0, 0) == 400
        """)
    )


def test_a_host_function_runs_at_its_place_in_the_stream():
    run("""
        start()
        s, pinned, seen = stream(), made("cuMemHostAlloc", 1, 0), []
        there = device_array([3])
        call("cuMemcpyDtoHAsync_v2", pinned, there, 1, s)
        note = HOST_FUNCTION(lambda data: seen.append((data, int(host_view(pinned, 1)[0]))))
        call("cuLaunchHostFunc", s, note, 42)
        call("cuMemsetD8Async", pinned, 4, 1, s)
        assert seen == []
        call("cuStreamSynchronize", s)
        assert seen == [(42, 3)]
    """)


def test_a_running_callback_does_not_stop_a_thread_that_holds_the_lock_of_python():
    run("""
        import threading, time
        start()
        s, entered = stream(), threading.Event()
        there = made("cuMemAlloc_v2", 1)
        def slow(data):
            entered.set()
            time.sleep(0.2)
        slow = HOST_FUNCTION(slow)
        call("cuLaunchHostFunc", s, slow, 0)
        thread = threading.Thread(target=status, args=("cuStreamSynchronize", s))
        thread.start()
        entered.wait()
        holding = ctypes.PyDLL(str(library_path()))
        asked = [ctypes.c_uint64(a) for a in (there, 0, 1, s)]
        assert holding.cuStreamQuery(asked[3]) == 600
        assert holding.cuMemsetD8Async(*asked) == 0
        thread.join()
        call("cuStreamSynchronize", s)
        assert on_host(there, 1) == [0]
    """)


def test_a_pool_keeps_its_settings_and_counts_its_memory():
    run("""
        start()
        pool, s = made("cuDeviceGetDefaultMemPool", 0), stream()
        assert made("cuDeviceGetMemPool", 0) == pool
        call("cuMemPoolSetAttribute", pool, 4, byref(ctypes.c_uint64(77)))
        value = ctypes.c_uint64()
        call("cuMemPoolGetAttribute", pool, 4, byref(value))
        assert value.value == 77
        there = made("cuMemAllocFromPoolAsync", 40, pool, s)
        call("cuMemPoolGetAttribute", pool, 7, byref(value))
        assert (value.value, pointer_attribute(17, there)) == (40, pool)
        assert status("cuMemPoolSetAttribute", pool + 1, 4, byref(value)) == 1
    """)


def test_a_bare_name_finds_the_newest_version_of_a_function():
    run("""
        from support.cuda import driver
        def found(name):
            function, result = ctypes.c_void_p(), ctypes.c_uint(9)
            asked = name, byref(function), 12000, 0, byref(result)
            number = status("cuGetProcAddress_v2", *asked)
            return number, function.value, result.value
        newest = ctypes.cast(driver._library.cuMemAlloc_v2, ctypes.c_void_p).value
        assert found(b"cuMemAlloc") == (0, newest, 0)
        assert found(b"cuNothing") == (500, None, 1)
        assert found(b"malloc") == (500, None, 1)
    """)


def test_every_error_has_a_name_and_a_text():
    run("""
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        for number in (0, 1, 2, 3, 100, 101, 201, 218, 400, 500, 600, 700, 709, 712, 713, 800, 801):
            call("cuGetErrorName", number, byref(name))
            call("cuGetErrorString", number, byref(text))
            assert name.value.startswith(b"CUDA_") and text.value
        assert status("cuGetErrorName", 12345, byref(name)) == 1
    """)


def test_nothing_works_before_the_start():
    run("""
        answer = ctypes.c_uint64()
        assert status("cuMemAlloc_v2", byref(answer), 1) == 3
        assert status("cuDeviceGetCount", byref(answer)) == 3
        call("cuInit", 0)
        assert status("cuMemAlloc_v2", byref(answer), 1) == 201
    """)


def test_the_bindings_of_nvidia_call_it():
    library("cuda.bindings")
    run("""
        from cuda.bindings import driver
        assert driver.cuInit(0)[0] == 0
        error, context = driver.cuDevicePrimaryCtxRetain(0)
        assert driver.cuCtxSetCurrent(context)[0] == 0
        error, there = driver.cuMemAlloc(4)
        host, back = np.arange(4, dtype=np.uint8), np.zeros(4, np.uint8)
        assert driver.cuMemcpyHtoD(there, host.ctypes.data, 4)[0] == 0
        assert driver.cuMemcpyDtoH(back.ctypes.data, there, 4)[0] == 0
        assert (host == back).all()
        kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        assert driver.cuPointerGetAttribute(kind, int(there))[1] == 2
    """)
