"""Deleters that misbehave, and the places where they run. Each in a process of its own.

Expected every time: called exactly once, no crash, and nothing of it reaches the code that happens
to drop the last view.
"""

import json
import textwrap

import pytest

from support.processes import run_in_fork

LEGACY = pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])

VIEWS = {
    "storage": "dlf.as_storage(p)",
    "domain_view": "dlf.as_storage(p).domain_view",
    "memoryview": "memoryview(dlf.as_storage(p))",
    "versioned capsule": "dlf.as_storage(p).__dlpack__(max_version=(1, 0))",
    "legacy capsule": "dlf.as_storage(p).__dlpack__()",
    "storage of a capsule": "dlf.as_storage(Handover(dlf.as_storage(p).__dlpack__()))",
}
EVERY_VIEW = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def run(code, *, legacy=False):
    """Run code that has a producer `p`, its struct `m` and its tensor `t`; give what it printed."""
    return run_in_fork(
        f"""
from support.lying_producers import *
import dlfield as dlf
import ctypes, gc, os, sys, threading
from support.dlpack_structs import call_on_a_bare_thread, consume, never_freed

p = Producer((3, 4), legacy={legacy})
m, t = p.managed, p.managed.dl_tensor
unraisable = []
sys.unraisablehook = lambda one: unraisable.append(one.exc_type.__name__)

{textwrap.dedent(code)}
"""
    )


@LEGACY
def test_a_deleter_that_frees_shape_and_strides_and_struct_is_the_last_to_touch_them(legacy):
    printed = run(
        """
        with_deleter(p, lambda at: (take_away(), p._count(at)))
        take_away = on_pages(p)
        report(p, p)
        """,
        legacy=legacy,
    )
    assert (json.loads(printed)["error"], json.loads(printed)["freed"]) == (None, 1)


@EVERY_VIEW
def test_a_view_reads_nothing_of_the_producer_again_but_the_deleter(view):
    printed = run(
        f"""
        first = dlf.as_storage(p)
        t.shape = t.strides = t.data = None
        t.ndim, t.dtype, t.device = 99, DLDataType(99, 9, 9), DLDevice(99, 9)
        view = {view.replace("dlf.as_storage(p)", "first")}
        del first
        print(getattr(view, "shape", (3, 4)), p.freed)
        del view
        print(p.freed)
        """
    )
    assert printed.split("\n") == ["(3, 4) 0", "1"]


@LEGACY
@EVERY_VIEW
def test_a_deleter_that_raises_is_reported_and_called_once(view, legacy):
    printed = run(
        f"""
        def raising(at):
            p.freed += 1
            raise RuntimeError("of the deleter")

        with_deleter(p, raising)
        view = {view}
        del view
        print(p.freed, unraisable)
        """,
        legacy=legacy,
    )
    assert printed == "1 ['RuntimeError']"


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit(3)", "RecursionError"])
def test_an_exception_of_a_deleter_does_not_reach_the_code_that_drops_the_storage(error):
    printed = run(
        f"""
        def raising(at):
            p.freed += 1
            raise {error}

        with_deleter(p, raising)
        dlf.as_storage(p)
        print(p.freed, len(unraisable))
        """
    )
    assert printed == "1 1"


def test_a_deleter_that_raises_leaves_the_exception_on_its_way_alone():
    printed = run(
        """
        with_deleter(p, lambda at: (p._count(at), 1 / 0))
        try:
            [].index(dlf.as_storage(p))
        except ValueError as error:
            print(p.freed, unraisable, error.__context__)
        """
    )
    assert printed == "1 ['ZeroDivisionError'] None"


@pytest.mark.parametrize("lie", ["t.ndim = 65", "t.shape = None", "t.data = None"])
def test_a_deleter_of_a_refused_tensor_may_raise_too(lie):
    printed = run(
        f"""
        with_deleter(p, lambda at: (p._count(at), 1 / 0))
        {lie}
        report(p, p)
        """
    )
    assert (json.loads(printed)["error"], json.loads(printed)["freed"]) == ("BufferError", 1)


@LEGACY
def test_a_deleter_may_import_from_its_own_producer_again(legacy):
    printed = run(
        """
        def again(at):
            p.freed += 1
            if p.freed < 5:
                dlf.as_storage(p)

        with_deleter(p, again)
        dlf.as_storage(p)
        print(p.freed, unraisable)
        """,
        legacy=legacy,
    )
    assert printed == "5 []"


def test_a_deleter_may_drop_a_storage_whose_deleter_drops_one():
    printed = run(
        """
        chain = [Producer() for _ in range(30)]
        held = []
        for one in chain:
            with_deleter(one, lambda at, one=one: (one._count(at), held and held.pop()))
            held.append(dlf.as_storage(one))
        held.pop()
        print(len(held), {one.freed for one in chain}, unraisable)
        """
    )
    assert printed == "0 {1} []"


def test_a_deleter_may_replace_itself_and_is_not_called_again():
    printed = run(
        """
        other = DELETER(lambda at: print("the other"))
        never_freed.append(other)
        with_deleter(p, lambda at: (p._count(at), setattr(m, "deleter", other)))
        dlf.as_storage(p)
        print(p.freed)
        """
    )
    assert printed == "1"


def test_a_deleter_may_wait_for_a_thread_that_imports_and_drops():
    printed = run(
        """
        def waiting(at):
            p.freed += 1
            thread = threading.Thread(target=lambda: dlf.as_storage(Producer()))
            thread.start()
            thread.join(10)
            print(thread.is_alive())

        with_deleter(p, waiting)
        dlf.as_storage(p)
        print(p.freed)
        """
    )
    assert printed.split() == ["False", "1"]


@EVERY_VIEW
def test_the_last_view_may_be_dropped_on_another_thread(view):
    printed = run(
        f"""
        ran_on = []
        with_deleter(p, lambda at: (p._count(at), ran_on.append(threading.get_ident())))
        held = [{view}]
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        print(p.freed, ran_on == [thread.ident])
        """
    )
    assert printed == "1 True"


@LEGACY
@pytest.mark.parametrize("after", ["", "; 1 / 0"], ids=["well", "raising"])
def test_the_last_tensor_may_be_released_on_a_thread_that_python_does_not_know(legacy, after):
    printed = run(
        f"""
        def deleter(at):
            p.freed += 1{after}

        with_deleter(p, deleter)
        managed = consume(dlf.as_storage(p).__dlpack__(max_version={None if legacy else (1, 0)}))
        assert p.freed == 0
        call_on_a_bare_thread(managed.deleter, ctypes.addressof(managed))
        print(p.freed, len(unraisable))
        """,
        legacy=legacy,
    )
    assert printed == f"1 {1 if after else 0}"


def test_a_deleter_that_is_a_plain_c_function_frees_the_struct_once():
    printed = run(
        """
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        for _ in range(1000):
            p = Producer()
            p.managed.deleter = ctypes.cast(libc.free, DELETER)
            p.address = libc.malloc(ctypes.sizeof(p.managed))
            ctypes.memmove(p.address, ctypes.addressof(p.managed), ctypes.sizeof(p.managed))
            dlf.as_storage(p)
        print("a second free would have ended the process")
        """
    )
    assert "a second free" in printed
