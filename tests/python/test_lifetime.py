"""Who frees what, on which thread, and what happens at the end of the process."""

import ctypes
import threading

import dlfield as dlf
import numpy as np
import pytest
from dlpack_structs import Handover, Producer, call_on_a_bare_thread, consume
from support import run_in_subprocess, tracked


@pytest.mark.parametrize("asked", [{}, {"max_version": (1, 0)}], ids=["legacy", "versioned"])
def test_a_deleter_may_run_on_a_thread_that_python_does_not_know(asked):
    source, watch = tracked(np.zeros(3))
    managed = consume(dlf.as_storage(source).__dlpack__(**asked))
    del source
    assert not watch.freed
    call_on_a_bare_thread(managed.deleter, ctypes.addressof(managed))
    assert watch.freed


def test_own_memory_is_freed_on_a_thread_that_python_does_not_know():
    grown = run_in_subprocess("""
        import ctypes
        import dlfield as dlf
        from dlpack_structs import call_on_a_bare_thread, consume
        from lying_producers import resident

        before = resident()
        for _ in range(20):
            managed = consume(dlf.ones((4 << 20,)).__dlpack__(max_version=(1, 0)))
            call_on_a_bare_thread(managed.deleter, ctypes.addressof(managed))
        print(resident() - before)
    """)
    assert int(grown) < 64 << 10  # KiB, of 640 MiB


def test_of_two_threads_that_take_one_capsule_one_wins():
    def take(handover, start, seen):
        start.wait()
        try:
            seen.append(dlf.as_storage(handover).shape)
        except ValueError as error:
            seen.append(str(error))

    for _ in range(50):
        producer, start, seen = Producer(), threading.Barrier(2), []
        arguments = (Handover(producer.capsule()), start, seen)
        threads = [threading.Thread(target=take, args=arguments) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert sorted(type(one) for one in seen if one == (3, 4)) == [tuple]
        assert (len(seen), producer.freed) == (2, 1)


def test_a_copy_of_a_large_array_lets_other_threads_run():
    source, beats, done = np.zeros((64, 512, 512)), [], threading.Event()

    def beat():
        while not done.wait(0.001):
            beats.append(1)

    thread = threading.Thread(target=beat)
    thread.start()
    count = len(beats)
    dlf.storage(source, layout=(2, 1, 0))
    seen = len(beats) - count
    done.set()
    thread.join()
    assert seen > 5


@pytest.mark.parametrize(
    "held",
    [
        "dlf.zeros((3,))",
        "dlf.as_storage(np.zeros(3))",
        "dlf.as_storage(np.zeros(3)).to_numpy()",
        "dlf.as_storage(np.zeros(3)).__dlpack__()",
        "dlf.as_storage(bytearray(3)).__dlpack__(max_version=(1, 0))",
        "np.from_dlpack(dlf.as_storage(np.zeros(3)))",
        "memoryview(dlf.as_storage(np.zeros(3)))",
        "dlf.as_storage(dlf.zeros((3,)).to_numpy())",
    ],
)
def test_what_is_alive_at_the_end_of_the_process_does_no_harm(held):
    run_in_subprocess(f"""
        import builtins, sys
        import numpy as np
        import dlfield as dlf
        builtins.held = {held}
        sys.held_too = [{held}]
        sys.held_too.append(sys.held_too)
    """)


def test_a_tensor_released_after_the_interpreter_ended_does_no_harm():
    run_in_subprocess("""
        import ctypes
        import numpy as np
        import dlfield as dlf
        from dlpack_structs import consume

        source = dlf.as_storage(np.zeros(3))
        managed = consume(source.__dlpack__(max_version=(1, 0)))
        own = consume(dlf.zeros((3,)).__dlpack__(max_version=(1, 0)))
        at_exit = ctypes.CDLL(None).__cxa_atexit
        for one in (managed, own):
            deleter = ctypes.cast(one.deleter, ctypes.c_void_p)
            assert at_exit(deleter, ctypes.c_void_p(ctypes.addressof(one)), None) == 0
    """)


def test_imports_and_exports_leave_nothing_behind():
    grown = run_in_subprocess("""
        import numpy as np
        import dlfield as dlf
        from lying_producers import resident

        source = np.zeros((3, 4))

        def rounds(times):
            for _ in range(times):
                storage = dlf.as_storage(source, dims="IJ", halo=(1, 1))
                storage.__dlpack__()
                np.from_dlpack(storage)
                memoryview(storage)
                storage.domain_view.to_numpy()
                dlf.storage(storage, layout=(1, 0), alignment_size=64)

        rounds(2_000)
        before = resident()
        rounds(20_000)
        print(resident() - before)
    """)
    assert int(grown) < 2_000  # KiB
