"""The end of a process that holds storages of a GPU: nothing crashes, hangs, or is said.

Each test has a process of its own on the stand-in.
"""

import subprocess
import textwrap
from pathlib import Path

import pytest
from holding import START, quiet

pytestmark = pytest.mark.stand_in
PYTHON = str(Path(__file__).parents[1] / "python")

HOLDERS = {
    "a module": "",
    "builtins": "builtins.held = held",
    "the package": "dlf.held = held",
    "sys": "sys.held = held",
    "a cycle": "cycle = [held]; cycle.append(cycle); del held",
    "an exit handler": "atexit.register(held.clear)",
    "an exit handler that copies": "atexit.register(held['host newer'].host_to_device)",
    "a thread's": "local = threading.local(); local.held = held",
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_process_ends_well_with_storages_that_are_held_and_work_in_flight(holder):
    quiet(f"{START}\nheld['alone'][...] = held['device newer']\n{HOLDERS[holder]}")


def test_a_process_ends_well_inside_a_stream_of_the_users_and_a_context_manager():
    quiet(
        START
        + textwrap.dedent("""
            dlf.use_stream(stream()).__enter__()
            side = held["device newer"].host()
            side.__enter__()
            held["alone"][...] = 2.0
        """)
    )


def test_storages_made_while_python_ends_do_no_harm():
    quiet(
        START
        + textwrap.dedent("""
            class Late:
                def __del__(self, zeros=dlf.zeros):
                    for managed in (None, "gt4py", "cuda"):
                        self.held = zeros((3, 4), device="gpu", managed=managed)

            late = Late()
        """)
    )


def test_daemon_threads_that_hold_storages_until_the_end_do_no_harm():
    quiet(
        START
        + textwrap.dedent("""
            def hold(managed):
                start()
                field = dlf.storage(VALUES, device="gpu", managed=managed)
                field[1:] = other = dlf.full((2, 4), 2.0, device="gpu", managed=None)
                with dlf.use_stream(stream()):
                    copied = field.copy()
                    ready.wait(60)
                    never.wait()

            ready, never = threading.Barrier(4), threading.Event()
            for managed in (None, "gt4py", "cuda"):
                threading.Thread(target=hold, args=(managed,), daemon=True).start()
            ready.wait(60)
        """)
    )


def test_a_capsule_may_be_released_after_python_has_ended():
    quiet(
        START
        + textwrap.dedent(f"""
            sys.path.insert(0, {PYTHON!r})
            from dlpack_structs import consume
            libc = ctypes.CDLL(None)
            tensors = [
                consume(held[kind].__dlpack__(max_version=(1, 0)))
                for kind in ("alone", "device newer", "in sync", "managed", "second")
            ]
            tensors.append(consume(held["in sync"].__dlpack__(dl_device=(1, 0))))
            for tensor in tensors:
                deleter = ctypes.cast(tensor.deleter, ctypes.c_void_p)
                at = ctypes.c_void_p(ctypes.addressof(tensor))
                assert libc.__cxa_atexit(deleter, at, None) == 0
            held.clear()
        """)
    )


LATE = """
#include <dlfcn.h>
static void (*deleter)(void *);
static void *tensor;
extern "C" void keep(void (*function)(void *), void *address) {
    deleter = function;
    tensor = address;
}
extern "C" void late() {
    deleter(tensor);
    reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "cuCtxSynchronize"))();
}
"""  # which a process calls between the end of Python and its own


def test_memory_is_freed_after_the_work_on_it_where_python_has_ended_already(tmp_path):
    (tmp_path / "late.cpp").write_text(LATE)
    command = ["g++", "-shared", "-fPIC", "-o", "late.so", "late.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)
    quiet(f"""
        import sys
        start()
        import dlfield as dlf
        sys.path.insert(0, {PYTHON!r})
        from dlpack_structs import consume
        late = ctypes.CDLL({str(tmp_path / "late.so")!r})
        target = dlf.empty((3, 4), device="gpu", managed=None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(target))  # its memory stays
        pair = dlf.storage(np.ones((3, 4)), device="gpu")
        tensor = consume(pair.__dlpack__(dl_device=(1, 0)))
        target[...] = pair  # later, from the host
        del pair
        late.keep(ctypes.cast(tensor.deleter, ctypes.c_void_p), ctypes.byref(tensor))
        ctypes.pythonapi.Py_AtExit(ctypes.cast(late.late, ctypes.c_void_p))
    """)
