"""The end of the interpreter, and a second process: nothing crashes, at worst memory leaks."""

import textwrap

import pytest
from support import run_in_subprocess

HELD = {
    "storage": "dlf.as_storage(p)",
    "capsule": "dlf.as_storage(p).__dlpack__(max_version=(1, 0))",
    "legacy capsule": "dlf.as_storage(p).__dlpack__()",
    "memoryview": "memoryview(dlf.as_storage(p))",
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
from lying_producers import *
from lying_buffers import Forged
import dlfield as dlf
from dlpack_structs import consume

def deleter(at, write=os.write):
    write(1, b"freed\\n")

p = with_deleter(Producer(), deleter)
{textwrap.dedent(code)}
"""
    )


@pytest.mark.parametrize("holder", ["held", "builtins.held", "sys.held", "dlf.held"])
@EVERYTHING
def test_what_is_held_until_the_end_is_freed_at_most_once(held, holder):
    assert run(f"{holder} = {held}") in ("", "freed")


@EVERYTHING
def test_what_is_dropped_when_python_exits_is_freed_before_it_is_gone(held):
    printed = run(f"""
        held = [{held}]
        atexit.register(held.clear)
    """)
    assert printed == ("freed" if "(p)" in held else "")


@EVERYTHING
def test_what_is_in_a_cycle_at_the_end_does_no_harm(held):
    assert run(f"cycle = [{held}]; cycle.append(cycle)") in ("", "freed")


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_a_tensor_over_foreign_memory_may_be_released_after_the_interpreter_ended(legacy):
    run(f"""
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        p = Producer(legacy={legacy})
        p.managed.deleter = ctypes.cast(libc.free, DELETER)
        p.address = libc.malloc(ctypes.sizeof(p.managed))
        ctypes.memmove(p.address, ctypes.addressof(p.managed), ctypes.sizeof(p.managed))
        managed = consume(dlf.as_storage(p).__dlpack__(max_version=(1, 0)))
        deleter = ctypes.cast(managed.deleter, ctypes.c_void_p)
        assert libc.__cxa_atexit(deleter, ctypes.c_void_p(ctypes.addressof(managed)), None) == 0
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


def test_another_interpreter_of_the_process_is_served_or_refused_without_a_crash():
    printed = run("""
        import importlib.util
        names = ("_interpreters", "_xxsubinterpreters")
        found = [name for name in names if importlib.util.find_spec(name)]
        if found:
            interpreters = importlib.import_module(found[0])
            other = interpreters.create()
            code = "try:\\n import dlfield\\n dlfield.zeros((3,))\\nexcept ImportError:\\n pass"
            interpreters.run_string(other, code)
            interpreters.destroy(other)
        print(dlf.zeros((3,)).shape)
    """)
    assert printed == "(3,)"
