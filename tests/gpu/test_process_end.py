"""The end of a process that holds storages of a GPU, and forked children, which have no GPU.

Nothing crashes, hangs, or is printed. Each test has a process of its own on the stand-in.
"""

import subprocess
import textwrap

import pytest

from support.cuda.holding import START, quiet

pytestmark = pytest.mark.stand_in

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
        + textwrap.dedent("""
            from support.dlpack_structs import consume
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
        from support.dlpack_structs import consume
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


# --- forked children ---------------------------------------------------------------------------


def child(code, end="os._exit(0)"):
    """Return a snippet that forks, and goes on in the parent once the child has ended well."""
    inside = textwrap.indent(f"{textwrap.dedent(code).strip()}\n{end}", "    ")
    return f"""
{START}
before = stats()
sys.stdout.flush()
number = os.fork()
if number == 0:
{inside}
assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0
"""


IN_THE_PARENT = """
expected = {"alone": 1, "device newer": 1, "in sync": VALUES, "managed": 1, "second": 1}
for kind, values in expected.items():
    assert (dlf.storage(held[kind], device=None).to_numpy() == values).all(), kind
held.clear()
gc.collect()
for device in (1, 0):
    start(device)
    call("cuCtxSynchronize")
assert (stats().live_bytes, stats().violations) == (24, 0)  # the foreign block is its owner's
"""

USES = {
    "zeros": "dlf.zeros(3, device='gpu')",
    "another device": "dlf.zeros(3, device=('gpu', 1))",
    "storage": "dlf.storage(VALUES, device='gpu')",
    "as_storage": "dlf.as_storage(VALUES, device='gpu')",
    "backend": "dlf.zeros((3, 4, 5), backend='gt:gpu')",
    "use_stream": "dlf.use_stream(1)",
    "copy": "held['alone'].copy()",
    "copy to the host": "dlf.storage(held['alone'], device=None)",
    "assignment": "held['alone'].__setitem__(..., 1)",
    "to_numpy": "held['device newer'].to_numpy()",
    "to_numpy in sync": "held['in sync'].to_numpy()",
    "to_numpy of what the device never had": "held['host newer'].to_numpy()",
    "to_numpy of managed": "held['managed'].to_numpy()",
    "interface": "held['host newer'].__cuda_array_interface__",
    "capsule": "held['alone'].__dlpack__()",
    "synchronize": "held['device newer'].synchronize()",
    "pickle": "pickle.dumps(held['alone'])",
}


def test_every_use_of_a_gpu_in_a_forked_child_is_refused():
    uses = ", ".join(f"{name!r}: lambda: {use}" for name, use in USES.items())
    quiet(
        child(f"""
            for name, use in {{{uses}}}.items():
                for _ in range(2):
                    try:
                        use()
                    except dlf.DeviceUnavailable as error:
                        assert "forked child" in str(error) and "spawn" in str(error), error
                    else:
                        raise AssertionError(f"{{name}}: the child has a GPU")
        """)
        + IN_THE_PARENT
    )


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "held.clear(); sys.exit(0)"])
def test_a_forked_child_frees_nothing_whatever_its_end(end):
    quiet(
        child(
            """
            view = held["alone"][1:]
            held.clear()
            del view
            gc.collect()
            assert (stats().frees, stats().syncs) == (before.frees, before.syncs)
            held.update(other=dlf.zeros(3))
            """
            if end.startswith("os")
            else "",
            end,
        )
        + IN_THE_PARENT
    )


def test_host_memory_goes_on_in_a_forked_child():
    quiet(
        child("""
            field = dlf.storage(VALUES, layout=(1, 0))
            assert field.to_numpy().tolist() == VALUES.tolist()
            assert dlf.as_storage(VALUES).to_numpy() is not None
            assert "GPUStorage" in repr(held["alone"])
        """)
        + IN_THE_PARENT
    )


def test_managed_memory_is_not_shown_to_a_forked_child_which_does_not_have_it():
    """On a real device the child dies where it touches it."""
    quiet(
        child("""
            try:
                fresh.to_numpy()
            except dlf.DeviceUnavailable as error:
                assert "forked child" in str(error)
            else:
                raise AssertionError("the child has the memory")
        """).replace("before = ", "fresh = dlf.empty(3, device='gpu', managed='cuda'); before = ")
    )


def test_a_child_forked_before_the_first_use_of_cuda_may_use_it():
    quiet("""
        import os
        import dlfield as dlf
        child = os.fork()
        field = dlf.ones(3, device="gpu", managed="gt4py")
        assert field.to_numpy().tolist() == [1, 1, 1]
        if child == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """)


def test_a_pickle_of_the_parents_is_read_by_a_spawned_process():
    quiet(
        START
        + textwrap.dedent("""
            import subprocess
            load = "import pickle, sys; from support.cuda import driver; driver.start(); "
            load += "one = pickle.load(sys.stdin.buffer); print(one[2, 3], one.device)"
            for kind in ("alone", "in sync", "managed"):
                data = pickle.dumps(held[kind])
                done = subprocess.run([sys.executable, "-c", load], input=data, capture_output=True)
                assert done.returncode == 0, done.stderr
                value = 11.0 if kind == "in sync" else 1.0
                assert done.stdout.decode().split() == [str(value), "gpu"]
        """)
    )
