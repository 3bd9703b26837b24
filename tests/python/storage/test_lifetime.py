"""Memory is freed on any thread, and a large copy does not block Python."""

import ctypes
import threading

import dlfield as dlf
import numpy as np
import pytest

from support.dlpack_structs import call_on_a_bare_thread, consume
from support.owners import tracked
from support.processes import run_in_subprocess


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
        from support.dlpack_structs import call_on_a_bare_thread, consume
        from support.lying_producers import resident

        before = resident()
        for _ in range(20):
            managed = consume(dlf.ones((4 << 20,)).__dlpack__(max_version=(1, 0)))
            call_on_a_bare_thread(managed.deleter, ctypes.addressof(managed))
        print(resident() - before)
    """)
    assert int(grown) < 64 << 10  # KiB, of 640 MiB


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


CHAINS = {
    "numpy": "dlf.as_storage(np.asarray(s))",
    "dlpack": "dlf.as_storage(np.from_dlpack(s))",
    "memoryview": "dlf.as_storage(memoryview(s))",
    "views": "s[...]",
}


@pytest.mark.parametrize("link", CHAINS.values(), ids=CHAINS)
def test_a_field_that_went_out_and_in_60_000_times_is_dropped(link):
    run_in_subprocess(f"""
        import numpy as np
        import dlfield as dlf

        s = dlf.zeros((4, 4))
        for _ in range(60_000):
            s = {link}
        del s
    """)
