"""The end of the interpreter, and a second process: nothing crashes, at worst memory leaks."""

import sys
import textwrap

import pytest

from support.processes import run_in_subprocess

HELD = {
    "own memory": "dlf.zeros(3)",
    "storage": "dlf.as_storage(p)",
    "array": "dlf.as_storage(p).to_numpy()",
    "capsule": "dlf.as_storage(p).__dlpack__(max_version=(1, 0))",
    "legacy capsule": "dlf.as_storage(p).__dlpack__()",
    "consumed capsule": "np.from_dlpack(dlf.as_storage(p))",
    "memoryview": "memoryview(dlf.as_storage(p))",
    "Arrow capsules": "dlf.as_storage(p).__arrow_c_array__()",
    "halo plan": "plan(p)",
    "buffer": "dlf.as_storage(bytearray(8))",
    "interface": "dlf.as_storage(Interface())",
    "forged buffer": "dlf.as_storage(Forged())",
}
EVERYTHING = pytest.mark.parametrize("held", HELD.values(), ids=HELD)


def run(code):
    """Run code that has a producer `p` whose deleter writes `freed` past Python's own streams."""
    return run_in_subprocess(
        f"""
import atexit, builtins, ctypes, gc, os, sys
from support.lying_producers import *
from support.lying_buffers import Forged
import numpy as np
import dlfield as dlf
from support.dlpack_structs import consume

def deleter(at, write=os.write):
    write(1, b"freed\\n")

def plan(p):
    made = dlf.halo_exchange([dlf.as_storage(p, dims="IJ", halo=(1, 1))], None)
    made.exchange()
    return made

p = with_deleter(Producer(), deleter)
{textwrap.dedent(code)}
"""
    )


@EVERYTHING
def test_an_object_that_lives_until_the_end_is_freed_at_most_once(held):
    printed = run(f"""
        holders = [sys.modules["__main__"], builtins, sys, dlf]
        producers = [with_deleter(Producer(), deleter) for _ in holders]
        for holder, p in zip(holders, producers):
            holder.held = {held}
        del holder, holders, p, producers
    """)
    assert len(printed.split()) <= 4


@EVERYTHING
def test_an_object_dropped_by_an_exit_handler_is_freed_before_python_ends(held):
    printed = run(f"""
        held = [{held}]
        atexit.register(held.clear)
    """)
    assert printed == ("freed" if "(p)" in held else "")


@EVERYTHING
def test_an_object_in_a_cycle_at_the_end_is_freed_at_most_once(held):
    assert run(f"cycle = [{held}]; cycle.append(cycle)") in ("", "freed")


def test_a_tensor_may_be_released_after_the_interpreter_ended():
    run("""
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p

        def on_the_heap(p):
            p.managed.deleter = ctypes.cast(libc.free, DELETER)
            p.address = libc.malloc(ctypes.sizeof(p.managed))
            ctypes.memmove(p.address, ctypes.addressof(p.managed), ctypes.sizeof(p.managed))
            return p

        sources = [on_the_heap(Producer(legacy=legacy)) for legacy in (False, True)]
        sources += [bytearray(8), dlf.zeros((3,))]
        tensors = [consume(dlf.as_storage(one).__dlpack__(max_version=(1, 0))) for one in sources]
        for one in tensors:
            deleter = ctypes.cast(one.deleter, ctypes.c_void_p)
            assert libc.__cxa_atexit(deleter, ctypes.c_void_p(ctypes.addressof(one)), None) == 0
        del sources
    """)


@pytest.mark.parametrize("holder", ["late", "builtins.late", "sys.late"])
@pytest.mark.parametrize(
    "made",
    [
        "imports(Producer())",
        "imports(Interface())",
        "imports(bytearray(8))",
        "imports(bytearray(8)).__dlpack__()",
        "zeros((3,))",
    ],
)
def test_an_import_inside_del_at_the_end_does_no_harm(made, holder):
    run(f"""
        class Late:
            def __del__(self, imports=dlf.as_storage, zeros=dlf.zeros, Producer=Producer,
                        Interface=Interface):
                self.storage = {made}

        {holder} = Late()
    """)


@pytest.mark.parametrize(
    "end", ["os._exit(0)", "sys.exit(0)", "del held; gc.collect(); os._exit(0)"]
)
@EVERYTHING
def test_what_is_alive_across_a_fork_is_given_back_in_the_parent_too(held, end):
    printed = run(f"""
        held = {held}
        child = os.fork()
        if child == 0:
            os.close(1)
            os.open(os.devnull, os.O_WRONLY)
            {end}
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        print("parent", flush=True)
        del held
        gc.collect()
    """)
    assert printed.split() == (["parent", "freed"] if "(p)" in held else ["parent"])


AT_WORK = {
    "bound call": "run(field, other)",
    "functional call": "run.functional(x=field)",
    "number assigned": "field[...] = 2.0",
    "list assigned": "field[...] = [1.0] * 8",
    "repr": "repr(field)",
    "view": "field[Index():]",
    "import of a foreign object": "dlf.as_storage(Foreign())",
    "import of a masked array": "dlf.as_storage(masked)",
    "import of an array of a dishonest class": "dlf.as_storage(Dishonest())",
    "acquire": "dlf.as_storage(Acquired())",
    "release": "dlf.as_storage(Released())",
    "refusal of times": "dlf.as_storage(times)",
    "conversion": "dlf.storage(swapped)",
    "array like a tensor": "dlf.empty_like(Tensor())",
    "preset": "dlf.register_preset('mine', ranks)",
    "doors": "doors_of(Unknown())",
    "stream": "field.__dlpack__(stream=Index())",
    "stream of CUDA": "dlf.use_stream(Unknown())",
    "missing library": "dlf.as_cupy(field)",
    "layout function": "dlf.zeros((2, 3), layout=ranks)",
    "extent": "dlf.zeros(Index())",
    "fill value": "dlf.full((2,), Number())",
    "class called": "dlf.CPUStorage(Foreign.array)",
    "dtype of an array": "field.__array__(Type())",
    "dtype": "dlf.zeros((2,), Type())",
    "refusal of a dtype": "dlf.zeros((2,), many)",
    "names": "dlf.get_dims(Named())",
    "halo": "setattr(field, 'halo', (Index(), Index()))",
    "side": "field.host()",
}


@pytest.mark.parametrize("work", AT_WORK.values(), ids=AT_WORK)
def test_daemon_threads_that_work_do_not_abort_the_end(work):
    run_in_subprocess(f"""
        import threading, time
        from contextlib import suppress
        import numpy as np
        import dlfield as dlf
        from dlfield._core import doors_of
        from dlfield.annotations import Access, Field

        def slow():
            for _ in range(3000):
                pass

        def step(x: Field[np.float64], y: Field[np.float64, Access["out"]]):
            slow()

        class Index:
            def __index__(self):
                slow()
                return 0

        def ranks(dims):
            slow()
            return (1, 0)

        class Number:
            def __float__(self):
                slow()
                return 1.0

        class Type:
            @property
            def dtype(self):
                slow()
                return np.dtype("float32")

        class Named:
            def __gt_dims__(self):
                slow()
                return "IJ"

        class Foreign:
            array = np.zeros(3)

            @property
            def __array_interface__(self):
                slow()
                return self.array.__array_interface__

        class Dishonest:
            array = np.zeros(3)
            __array_interface__ = array.__array_interface__

            @property
            def __class__(self):
                slow()
                return list

        class Acquired:
            array, hook = np.zeros(3), "acquire"

            @property
            def __gt_data_interface__(self):
                return {{None: {{**self.array.__array_interface__, self.hook: slow}}}}

        class Released(Acquired):
            hook = "release"

        class Swapped(np.ndarray):
            @property
            def __gt_dims__(self):
                slow()
                return "I"

        class Unknown:
            def __getattr__(self, name):
                slow()
                raise AttributeError(name)

        class Tensor:
            shape = (8, 8)

            def detach(self):
                slow()
                return self

            def stride(self):
                return (8, 1)

            def new_empty_strided(self, shape, strides):
                return np.zeros(shape)

        def slow_any(mask):
            slow()
            return False

        np.any, masked = slow_any, np.ma.masked_array(np.zeros(3))
        times, swapped = np.zeros(3, "M8[s]"), np.zeros(3, ">f8").view(Swapped)
        many = np.dtype([(str(number), "f4") for number in range(100)])
        run = dlf.bind(step)
        field, other = dlf.zeros((8, 8)), dlf.zeros((8, 8))

        def forever():
            while True:
                with suppress(Exception):
                    {work}

        for _ in range(2):
            threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.1)
    """)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes of Python have no buffers")
def test_the_end_waits_for_a_buffer_that_a_daemon_thread_releases():
    printed = run_in_subprocess("""
        import os, threading, time
        import dlfield as dlf

        class Slow:
            def __buffer__(self, flags):
                return memoryview(bytearray(8))

            def __release_buffer__(self, view):
                began.set()
                time.sleep(0.3)
                os.write(1, b"released")

        def drop_a_capsule():
            dlf.as_storage(Slow()).__dlpack__()

        began = threading.Event()
        threading.Thread(target=drop_a_capsule, daemon=True).start()
        began.wait()
    """)
    assert printed == "released"


def test_a_daemon_thread_that_never_returns_delays_the_end_by_seconds_at_most():
    run_in_subprocess("""
        import threading, time
        import dlfield as dlf

        class Stuck:
            def __index__(self):
                began.set()
                time.sleep(1000)

        field, began = dlf.zeros((8, 8)), threading.Event()
        threading.Thread(target=lambda: field[Stuck():], daemon=True).start()
        began.wait()
    """)


def test_a_child_that_was_forked_during_a_call_ends_at_once():
    run_in_subprocess(
        """
        import os, threading, time
        import dlfield as dlf

        class Stuck:
            def __index__(self):
                began.set()
                ended.wait()
                return 0

        field, began, ended = dlf.zeros((8, 8)), threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: field[Stuck():])
        thread.start()
        began.wait()
        child = os.fork()
        if child == 0:
            raise SystemExit
        since = time.monotonic()
        assert os.waitpid(child, 0)[1] == 0
        assert time.monotonic() - since < 1.5
        ended.set()
        thread.join()
    """,
        warnings="ignore",
    )  # Python 3.12 warns of forks with threads
