"""Arrow's paths many times over: memory, objects, references and release counts stay flat."""

import pytest

from support.rounds import assert_flat, refused

ROUNDS = 10_000

TAKEN = {
    "array": ("dlf.as_storage(array)", 1),
    "lists": ("dlf.as_storage(of_lists)", 1),
    "tensor": ("dlf.as_storage(of_tensors)", 1),
    "batch": ("dlf.as_storage(of_columns)", 1),
    "device array": ("dlf.as_storage(on_device)", 1),
    "stream": ("dlf.as_storage(stream)", 1),
    "export": ("own.__arrow_c_array__()", 0),
    "export to a device": ("own.__arrow_c_device_array__()", 0),
    "schema": ("own.__arrow_c_schema__()", 0),
    "export that is taken": ("dlf.as_storage(own_by_arrow)", 0),
    "export that is released": ("Taken(own.__arrow_c_array__()).release()", 0),
}

REFUSED = {
    "array": ("dlf.as_storage(liar)", 1),
    "metadata": ("dlf.as_storage(garbage)", 1),
    "nulls": ("dlf.as_storage(with_nulls)", 1),
    "two columns": ("dlf.as_storage(two_columns)", 1),
    "two chunks": ("dlf.as_storage(two_chunks)", 1),
    "stream that fails": ("dlf.as_storage(failing)", 1),
    "another name": ("dlf.as_storage(nameless)", 0),
    "no pair": ("dlf.as_storage(shown_none)", 0),
    "exception on its way": ("[].index(dlf.as_storage(array))", 1),
    "export with gaps": ("padded.__arrow_c_array__()", 0),
    "export of what Arrow lacks": ("complex_numbers.__arrow_c_array__()", 0),
    "unknown keyword": ("own.__arrow_c_device_array__(unheard_of=1)", 0),
}

SETTING = """
from support.arrow_structs import *

class ByArrow:
    def __arrow_c_array__(self, requested_schema=None):
        return own.__arrow_c_array__(requested_schema)

own = dlf.zeros((3, 4), dims="IJ", halo=(1, 1), default_origin=(1, 1))
padded, complex_numbers = dlf.zeros((3, 4))[:, :2], dlf.zeros(3, dtype="complex64")
array, of_lists, of_tensors = Producer(), lists(3), tensor((3, 2), dim_names=["a", "b"])
of_columns, held, own_by_arrow = batch(Producer(name=b"a")), Producer(), ByArrow()
on_device, stream = OnDevice(held), Stream(tensor())
liar, garbage, with_nulls = Producer(), tensor(text=b"no"), Producer().nulls("1011")
liar.array.length = -1
two_columns = batch(Producer(name=b"a"), Producer(name=b"b"))
two_chunks, failing = Stream(Producer(), Producer()), Stream(Producer(), fails={0: 5})
nameless, shown_none = shown((held.schema_capsule(b"nope"),) * 2), shown(None)

producers = (array, of_lists, of_tensors, of_columns, held, stream, liar, garbage, with_nulls)
producers += (two_columns, two_chunks, failing)
objects = (*producers, own, padded, complex_numbers, own_by_arrow, on_device, nameless)

for one in producers:
    one.keep()

def after(n):
    for one in producers:
        one.arm()
        one.calls.clear()

def forget():
    for one in producers:
        one.forget()

def freed():
    return [count for one in producers for count in one.freed]
"""


@pytest.mark.parametrize("path", TAKEN)
def test_arrow_imports_leave_nothing_behind(path):
    what, released = TAKEN[path]
    assert_flat(SETTING, what, ROUNDS, released=bool(released))


@pytest.mark.parametrize("path", REFUSED)
def test_refused_arrow_imports_leave_nothing_behind(path):
    what, released = REFUSED[path]
    errors = "TypeError, ValueError, OSError, BufferError, NotImplementedError"
    assert_flat(SETTING, refused(what, errors), ROUNDS, released=bool(released))
