"""The list of borrows that modules share, through its C functions: forks, and what it is given."""

import pytest

from support.processes import run_in_subprocess

#: `enter(address, items, writes)` gives a number, or None if it is refused; `leave(number)`.
LIST = """
import ctypes, os, signal, threading, time
import dlfield as dlf
from support.interpreter_dict import interpreter_dict

pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
NAME = b"dlfield.borrows.1"

class Request(ctypes.Structure):
    _fields_ = [("address", ctypes.c_size_t), ("itemsize", ctypes.c_size_t),
                ("ndim", ctypes.c_size_t), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("writes", ctypes.c_uint8)]

class Functions(ctypes.Structure):
    _fields_ = [("enter", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Request),
                                           ctypes.POINTER(ctypes.c_uint64))),
                ("leave", ctypes.CFUNCTYPE(None, ctypes.c_uint64))]

capsule = interpreter_dict()[NAME.decode()]
functions = Functions.from_address(pointer(capsule, NAME))

def enter(address, items, writes):
    shape, strides = (ctypes.c_int64 * 1)(items), (ctypes.c_int64 * 1)(1)
    number = ctypes.c_uint64()
    request = Request(address, 8, 1, shape, strides, writes)
    refused = functions.enter(ctypes.byref(request), ctypes.byref(number))
    return None if refused else number.value

def in_child(act):
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        os._exit(0 if act() else 1)
    _, status = os.waitpid(child, 0)
    return status
"""


def run(code):
    return run_in_subprocess(LIST + code, warnings="ignore")  # Python 3.12 warns of forks


#: With this dict, memory is freed that C code uses later, torch's since Python 3.12.
REFERENCES = """
import sys
import numpy
from support.interpreter_dict import interpreter_dict

shown = interpreter_dict()
before = sys.getrefcount(shown)
"""


@pytest.mark.parametrize("reader", ["import dlfield", "interpreter_dict()"])
def test_who_reads_the_interpreters_dict_leaves_the_interpreter_its_reference(reader):
    end = f"""
{reader}
assert sys.getrefcount(shown) == before, sys.getrefcount(shown) - before
"""
    run_in_subprocess(REFERENCES + end)


def test_a_writer_excludes_others_until_it_leaves():
    assert run("""
writer = enter(4096, 10, 1)
assert enter(4096 + 72, 1, 0) is None
other = enter(4096 + 80, 1, 1)
functions.leave(writer)
assert enter(4096, 10, 0) is not None
print("done")
""").endswith("done")


def test_a_child_may_borrow_what_its_parent_has_borrowed_and_ends_no_borrow_of_it():
    run("""
writer = enter(4096, 10, 1)

def act():
    functions.leave(writer)  # as the drop of a view that was inherited
    mine = enter(4096, 10, 1)
    other = enter(4096, 10, 1)
    functions.leave(mine)
    return mine not in (None, writer) and other is None and enter(4096, 10, 1) is not None

assert in_child(act) == 0
assert in_child(lambda: in_child(act) == 0) == 0
assert enter(4096, 10, 0) is None
functions.leave(writer)
assert enter(4096, 10, 0) is not None
""")


def test_a_child_does_not_wait_for_a_thread_of_its_parent_that_holds_the_list():
    run("""
for number in range(3000):
    assert enter(4096 + 80 * number, 10, 0) is not None  # the list is long, and asking takes long

def work(address):
    while True:
        functions.leave(enter(address, 10, 1))

for number in range(2):
    threading.Thread(target=work, args=((1 << 30) + (number << 20),), daemon=True).start()
for _ in range(20):
    time.sleep(0.01)
    assert in_child(lambda: enter(1 << 31, 10, 1) is not None) == 0
os._exit(0)
""")


@pytest.mark.parametrize("items", [-1, 2**63 - 1])
def test_an_impossible_request_is_refused_and_does_not_end_the_process(items):
    run(f"assert enter(4096, {items}, 0) is None")


#: A storage with a reader or a writer, which is known to the list of borrows.
FIELD = """
import numpy as np

field = dlf.zeros(10)
address = field.__array_interface__["data"][0]

def refused(what, compute):
    try:
        compute()
    except BufferError as error:
        assert what in str(error), error
    else:
        raise AssertionError("not refused")
    assert not np.any(field.to_numpy())
"""
WRITING = [
    "field.__iadd__(1.0)",
    "np.add(1.0, field, out=field)",
    "np.sqrt(dlf.ones(10), out=field)",
    "np.clip(field, 1.0, 2.0, out=field)",
    "np.max(dlf.ones((3, 10)), axis=0, out=field)",
    "np.max(dlf.ones(3), out=field)",
    "field.__setitem__(..., 1.0)",
    "field.__setitem__(..., np.ones(10))",
    "field.__setitem__([0, *range(10)], np.ones(11))",
    "np.copyto(field, dlf.ones(10))",
    "np.copyto(field, 1.0, where=np.ones(10, bool))",
    "np.add.at(field, list(range(10)), 1.0)",
]


@pytest.mark.parametrize("statement", WRITING)
@pytest.mark.parametrize(("writes", "text"), [(0, "being read"), (1, "being written")])
def test_python_writes_no_storage_that_a_view_uses(statement, writes, text):
    run(f"""{FIELD}
number = enter(address, 1, {writes})
refused({text!r}, lambda: {statement})
functions.leave(number)
{statement}
assert np.all(field.to_numpy() == 1.0)
assert enter(address, 10, 1) is not None  # nothing is left in the list
""")


def test_python_writes_a_part_of_a_storage_that_no_view_uses():
    run(f"""{FIELD}
enter(address, 1, 1)
part = field[1:]
part += 1.0
field[1:] = part + 1.0
assert field.tolist() == [0.0, *[2.0] * 9]
""")


def test_arithmetic_reads_what_views_use():
    run(f"""{FIELD}
enter(address, 1, 0)
enter(address + 8, 1, 1)
assert (field + 1.0).tolist() == [1.0] * 10
""")
