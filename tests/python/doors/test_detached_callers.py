"""Foreign code that lets go of the interpreter inside a call of dlfield's, and then calls dlfield.

PyO3 counts the thread as attached there, and CPython would end the process. Each test runs in a
process of its own.
"""

import textwrap

import pytest

from support.detached import OWNERS
from support.processes import run_in_subprocess

EVERY_OWNER = pytest.mark.parametrize("kind", OWNERS)
ENTRIES = """
FROM_PY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)
table, room = Exchange(type(dlf.zeros(1))).table, ctypes.c_void_p()
storage = dlf.full((4,), 2.0)
def call(name, argument, room=room):
    return FROM_PY(getattr(table, name))(argument, ctypes.addressof(room))
"""


def run(code, kind="a buffer"):
    """Run code that has an object `x` with an owner of a kind, and `freed` that counts."""
    return run_in_subprocess(
        f"""
import ctypes, gc, os, sys, threading
import dlfield as dlf
from support import detached, dlpack_structs
from support.addresses import address_of
from support.arrow_structs import *
from support.detached import counted, inside_a_call, passed_on, release, taken
from support.exchange_structs import Exchange, prototype

x = detached.OWNERS[{kind!r}]()
freed = counted(x)
{textwrap.dedent(code)}
"""
    )


@pytest.mark.parametrize("version", ["None", "(1, 0)"], ids=["legacy", "versioned"])
@EVERY_OWNER
def test_a_deleter_that_is_called_detached_frees_the_memory_once(kind, version):
    run(
        f"""
        tensor = dlpack_structs.consume(dlf.as_storage(x).__dlpack__(max_version={version}))
        del x
        gc.collect()
        assert freed() == 0
        inside_a_call(lambda: dlpack_structs.release(tensor))
        gc.collect()
        assert freed() == 1
        """,
        kind,
    )


@EVERY_OWNER
def test_a_storage_over_memory_that_is_deleted_detached_frees_it_once(kind):
    run(
        """
        last = dlf.as_storage(passed_on(dlf.as_storage(passed_on(dlf.as_storage(x)))))
        del x
        gc.collect()
        assert freed() == 0
        del last
        gc.collect()
        assert freed() == 1
        """,
        kind,
    )


@EVERY_OWNER
def test_a_pending_exception_survives_a_deleter_that_is_called_detached(kind):
    run(
        """
        kept = [dlf.as_storage(passed_on(dlf.as_storage(x)))]
        del x
        try:
            [].index(kept.pop())  # the storage dies while the exception is pending
        except ValueError as error:
            assert "not in list" in str(error)
        gc.collect()
        assert freed() == 1
        """,
        kind,
    )


@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("__arrow_c_array__", "[(SCHEMA, ArrowSchema), (ARRAY, ArrowArray)]"),
        ("__arrow_c_device_array__", "[(SCHEMA, ArrowSchema), (DEVICE_ARRAY, ArrowArray)]"),
    ],
    ids=["array", "device array"],
)
@EVERY_OWNER
def test_what_arrow_releases_detached_is_freed_once(kind, method, names):
    run(
        f"""
        capsules = dlf.as_storage(x).{method}()
        made = [taken(one, *name) for one, name in zip(capsules, {names}, strict=True)]
        del x, capsules
        gc.collect()
        assert freed() == 0
        inside_a_call(lambda: [release(one) for one in made])
        gc.collect()
        assert freed() == 1
        """,
        kind,
    )


@EVERY_OWNER
def test_the_exchange_table_gives_a_tensor_to_a_caller_without_the_interpreter(kind):
    run(
        f"""
        {textwrap.indent(ENTRIES, 8 * " ").strip()}
        storage = dlf.as_storage(x)
        def ask():
            assert call("managed_tensor_from_py_object_no_sync", id(storage)) == 0
        inside_a_call(ask)
        tensor = dlpack_structs.Versioned.from_address(room.value)
        assert tensor.dl_tensor.data == address_of(storage)
        del x, storage
        inside_a_call(lambda: dlpack_structs.release(tensor))
        gc.collect()
        assert freed() == 1
        """,
        kind,
    )


def test_the_exchange_table_makes_an_object_for_a_caller_without_the_interpreter():
    run(f"""
        {textwrap.indent(ENTRIES, 8 * " ").strip()}
        p = dlpack_structs.Producer((4,))
        def ask():
            assert call("managed_tensor_to_py_object_no_sync", p.address) == 0
        inside_a_call(ask)
        made = ctypes.cast(room, ctypes.py_object).value
        assert type(made) is type(storage) and address_of(made) == p.managed.dl_tensor.data
        ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))(made)
        del made
        assert p.freed == 1
    """)


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        ('call("managed_tensor_from_py_object_no_sync", id(p))', "TypeError"),
        ('call("dltensor_from_py_object_no_sync", id(p))', "TypeError"),
        ('call("managed_tensor_to_py_object_no_sync", 1)', "BufferError"),
        ("STREAM(table.current_work_stream)(10, 0, ctypes.addressof(room))", "DeviceUnavailable"),
    ],
    ids=["from_py", "view", "to_py", "stream"],
)
def test_the_exchange_table_raises_for_a_caller_without_the_interpreter(ask, error):
    printed = run(f"""
        {textwrap.indent(ENTRIES, 8 * " ").strip()}
        p = object()
        def ask():
            try:
                {ask}
            except SystemError as wrong:  # ctypes has not looked for an exception
                print(type(wrong.__cause__).__name__)
        inside_a_call(ask)
    """)
    assert printed == error


@EVERY_OWNER
def test_a_capsule_that_dies_inside_a_call_frees_the_memory_once(kind):
    run(
        """
        capsules = [dlf.as_storage(passed_on(dlf.as_storage(x))).__dlpack__(max_version=(1, 0))]
        del x
        inside_a_call(capsules.clear)
        gc.collect()
        assert freed() == 1
        """,
        kind,
    )


SUB_INTERPRETER = """
import sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters
beside = interpreters.create()
"""


@EVERY_OWNER
def test_a_deleter_that_is_called_detached_beside_a_sub_interpreter_frees_the_memory(kind):
    run(
        f"""
        {textwrap.indent(SUB_INTERPRETER, 8 * " ").strip()}
        last = dlf.as_storage(passed_on(dlf.as_storage(x)))
        del x, last
        gc.collect()
        assert freed() == 1
        interpreters.destroy(beside)  # Python 3.15 warns of one that is left
        """,
        kind,
    )


def test_a_thread_that_frees_memory_while_python_ends_comes_back_and_leaks_it():
    printed = run_in_subprocess("""
        import atexit, ctypes
        from support import dlpack_structs

        class Bytes(bytearray):
            def __del__(self):
                print("freed")

        def free():  # runs after the exit handler of dlfield, which is imported later
            dlpack_structs.call_on_a_bare_thread(tensor.deleter, ctypes.addressof(tensor))
            print("came back")

        atexit.register(free)
        import dlfield as dlf
        tensor = dlpack_structs.consume(dlf.as_storage(Bytes(32)).__dlpack__())
    """)
    assert printed == "came back"


def test_arrow_releases_memory_of_dlfield_while_another_thread_keeps_the_interpreter():
    run("""
        keeping = ctypes.PyDLL(None)  # whose calls keep the interpreter
        schema, array = dlf.zeros(4).__arrow_c_array__()
        array = taken(array, ARRAY, ArrowArray)
        thread, start = ctypes.c_ulong(), ctypes.c_void_p(array.release)
        there = ctypes.c_void_p(ctypes.addressof(array))
        assert keeping.pthread_create(ctypes.byref(thread), None, start, there) == 0
        assert keeping.pthread_join(thread, None) == 0
    """)


def test_a_thread_that_waits_for_the_interpreter_as_python_begins_to_end_comes_back():
    printed = run_in_subprocess("""
        import atexit, ctypes, sys
        from support import dlpack_structs

        def join():  # runs after the exit handler of dlfield, which is imported later
            assert ctypes.CDLL(None).pthread_join(thread, None) == 0
            print("came back")

        atexit.register(join)
        import dlfield as dlf
        tensor = dlpack_structs.consume(dlf.as_storage(bytearray(32)).__dlpack__())
        thread, start = ctypes.c_ulong(), ctypes.cast(tensor.deleter, ctypes.c_void_p)

        @atexit.register
        def begin():  # and this one before; its calls keep the interpreter
            sys.setswitchinterval(100)
            there = ctypes.c_void_p(ctypes.addressof(tensor))
            assert ctypes.PyDLL(None).pthread_create(ctypes.byref(thread), None, start, there) == 0
            ctypes.PyDLL(None).usleep(100_000)  # until the thread waits
    """)
    assert printed == "came back"
