"""Array interfaces and buffers that lie. Each runs in a process of its own."""

import json

import pytest

from support.processes import run_in_fork

INTERFACES = (
    # arguments of Interface, error, text
    ("without=['shape']", "ValueError", "expected the key 'shape'"),
    ("without=['typestr']", "ValueError", "expected the key 'typestr'"),
    ("without=['data']", "ValueError", "expected the key 'data'"),
    ("shape=[4]", "TypeError", "shape: expected a tuple of ints, got [4]"),
    ("shape=None", "TypeError", "shape: expected a tuple of ints, got None"),
    ("shape=(4.0,)", "TypeError", "shape: expected an int, got 4.0"),
    ("shape=(True,)", "TypeError", "shape: expected an int, got True"),
    ("shape=('4',)", "TypeError", "shape: expected an int, got '4'"),
    ("shape=(-1,)", "ValueError", "got -1 on axis 0"),
    ("shape=(-1, -4)", "ValueError", "got -1 on axis 0"),
    ("shape=(2**70,)", "ValueError", "shape: expected an int of 64 bits"),
    ("shape=(2**63 - 1,)", "ValueError", str(2**63 - 1)),
    ("shape=(2**33, 2**33)", "ValueError", str(2**33)),
    ("shape=(2**32, 2**32, 16)", "ValueError", str(2**32)),
    ("shape=(1,) * 65", "ValueError", "expected at most 64 dimensions"),
    ("typestr=42", "TypeError", "typestr: expected a text, got 42"),
    ("typestr=None", "TypeError", "typestr: expected a text, got None"),
    ("typestr=b'<f8'", "TypeError", "typestr: expected a text, got b'<f8'"),
    ("typestr=''", "ValueError", "typestr: expected an order, a kind and a size"),
    ("typestr='<f'", "ValueError", "got '<f'"),
    ("typestr='f8'", "ValueError", "got 'f8'"),
    ("typestr='<f-4'", "ValueError", "got '<f-4'"),
    ("typestr='<f' + '9' * 40", "ValueError", "9999'"),
    ("typestr='é8'", "ValueError", "got 'é8'"),
    ("typestr='<é'", "ValueError", "got '<é'"),
    ("typestr='<x9'", "ValueError", "got '<x9'"),
    ("typestr='|O8'", "BufferError", "expected bool, int8..int64"),
    ("typestr='<O8'", "BufferError", "got '<O8'"),
    ("typestr='|V2'", "BufferError", "expected bool, int8..int64"),
    ("typestr='|S8'", "BufferError", "expected bool, int8..int64"),
    ("typestr='<U2'", "BufferError", "got '<U2'"),
    ("typestr='<M8[s]'", "BufferError", "got '<M8[s]'"),
    ("typestr='|t8'", "BufferError", "expected bool, int8..int64"),
    ("typestr='<f16'", "BufferError", "got '<f16'"),
    ("typestr='<c32'", "BufferError", "got '<c32'"),
    ("typestr='>f4'", "BufferError", "native byte order, got byte-swapped"),
    ("data=(1,)", "TypeError", "data: expected a pair (address, read-only)"),
    ("data=()", "TypeError", "data: expected a pair (address, read-only)"),
    ("data=(1, False, 0)", "TypeError", "data: expected a pair (address, read-only)"),
    ("data=(None, False)", "TypeError", "data: expected a pair (address, read-only)"),
    ("data=(1.0, False)", "TypeError", "data: expected a pair (address, read-only)"),
    ("data='x'", "TypeError", "an object with a buffer"),
    ("data=3", "TypeError", "an object with a buffer"),
    ("data=None", "ValueError", "expected the key 'data'"),
    ("data=(-1, False)", "ValueError", "data: expected an address, got -1"),
    ("data=(2**64, False)", "ValueError", "data: expected an address, got 1844674407370955"),
    ("data=(0, False)", "BufferError", "data: expected an address"),
    ("data=(2**64 - 8, False)", "BufferError", "data: expected an address"),
    ("data=(64, False), strides=(-(2**40),)", "BufferError", "data: expected an address"),
    ("strides=[8]", "TypeError", "strides: expected a tuple of ints, got [8]"),
    ("strides=(8.0,)", "TypeError", "strides: expected an int, got 8.0"),
    ("strides=()", "ValueError", "strides: expected one for each extent"),
    ("strides=(8, 8)", "ValueError", "strides: expected one for each extent"),
    ("strides=(2**62,)", "BufferError", "distance beyond that"),
    ("strides=(-(2**63),)", "BufferError", "distance beyond that"),
    ("strides=(2**63,)", "ValueError", "strides: expected an int of 64 bits"),
    ("strides=(12,)", "BufferError", "multiple of the item size 8, got 12"),
    ("data=bytes(31)", "BufferError", "0 to 32 for this shape, strides and offset, got 31"),
    ("data=bytes(32), offset=1", "BufferError", "1 to 33"),
    ("data=bytes(64), offset=-8", "BufferError", "-8 to 24"),
    ("data=bytes(64), offset=2**63 - 1", "BufferError", "got 64 bytes"),
    ("data=bytes(64), offset=2**63", "ValueError", "offset: expected an int of 64 bits"),
    ("data=bytes(64), offset=0.5", "TypeError", "offset: expected an int"),
    ("data=bytes(64), strides=(-8,)", "BufferError", "-24 to 8"),
    ("data=bytes(64), strides=(24,)", "BufferError", "0 to 80"),
    ("data=bytes(7), shape=()", "BufferError", "0 to 8"),
    ("data=memoryview(bytes(80))[::2]", "BufferError", "contiguous buffer"),
    ("data=bytes(64), offset=64", "BufferError", "64 to 96"),
    ("data=bytes(64), strides=(-8,), offset=16", "BufferError", "-8 to 24"),
    ("data=lying_view(buf=2**64 - 8)", "BufferError", "data: expected an address"),
    ("mask=(1, False)", "BufferError", "mask: expected none"),
    ("descr=[('a', '<i4'), ('b', '<f4')]", "BufferError", "descr: expected [('', '<f8')]"),
)

BUFFERS = (
    # arguments of lying_view, text
    ("len=31", "len"),
    ("len=64", "len"),
    ("len=-32", "len"),
    ("itemsize=4", "got itemsize 4"),
    ("itemsize=0", "itemsize: expected at least 1 byte, got 0"),
    ("itemsize=-8", "itemsize: expected at least 1 byte, got -8"),
    ("format=b'=l'", "expected items of 4 bytes as '=l' says, got itemsize 8"),
    *(
        (f"format={text.encode()!r}", "buffer format: expected")
        for text in (
            *("T{d:a:}", "2f", "(2,2)f", "O", "P", "&d", "Z", "", ":a:d", "X{}", "g", "8s", "é"),
            *("<", "@", " d", "d ", "dd", "x", "<n", "<Zg"),
        )
    ),
    *((f"format={text!r}", "native byte order") for text in (b">d", b"!d", b">q")),
    ("shape=(-4,)", "[-4]"),
    ("shape=(2**61,)", "len"),
    ("shape=(2**33, 2**33), strides=(8, 8)", "len"),
    ("strides=(2**62,)", "distance beyond that"),
    ("strides=(-(2**63),)", "distance beyond that"),
    ("strides=(12,)", "multiple of the item size 8, got 12"),
    ("buf=2**64 - 8", "data: expected an address"),
    ("suboffsets=(0,)", "suboffsets"),
)


def outcome(lie, more=""):
    printed = run_in_fork(f"from support.lying_producers import *; {more}\nreport({lie})")
    return json.loads(printed)


@pytest.mark.source("GDP-3", "Data Interface", "each dict has shape, typestr and data")
@pytest.mark.parametrize(("arguments", "error", "text"), INTERFACES)
def test_an_interface_that_lies_is_refused_by_name(arguments, error, text):
    seen = outcome(f"Interface({arguments})")
    assert seen["error"] == error, seen
    assert text in seen["text"]


@pytest.mark.parametrize(("arguments", "text"), BUFFERS)
def test_a_buffer_that_lies_is_refused_by_name(arguments, text):
    seen = outcome(f"lying_view({arguments})")
    assert seen["error"] == "BufferError", seen
    assert text in seen["text"]


@pytest.mark.parametrize(
    "arguments",
    [
        "data=(0, False), shape=(0,)",
        "data=(2**64 - 1, False), shape=(4, 0)",
        "data=bytes(0), shape=(0,)",
        "data=(3, False), shape=(0,), strides=(5,)",
        "data=bytes(8), shape=(1,), strides=(5,)",
        "without=['version']",
        "without=['strides', 'version']",
        "version=2**70",
        "data=bytes(33), offset=1",
        "typestr='|i1', strides=(-1,), data=bytes(4), offset=3",
        "shape=(1,) * 64",
        "unknown=object()",
    ],
)
def test_what_has_no_meaning_in_an_interface_is_not_looked_at(arguments):
    assert outcome(f"Interface({arguments})")["error"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        "buf=2**64 - 1, shape=(0,), len=0",
        "shape=(1,), len=8, strides=(5,)",
        "format=None, itemsize=1, len=4, strides=(1,)",
        "format=b'^d'",
        "format=b'=q'",
    ],
)
def test_what_is_strange_but_true_in_a_buffer_is_taken(arguments):
    assert outcome(f"lying_view({arguments})")["error"] is None


def test_a_released_memoryview_in_an_interface_says_so():
    seen = outcome("Interface(data=view)", "view = memoryview(bytes(32)); view.release()")
    assert seen["error"] == "ValueError", seen
    assert "released memoryview" in seen["text"]


def test_a_class_that_derives_from_dict_is_read_through_its_own_methods():
    made = """
class Claims(dict):
    def __getitem__(self, key):
        return (2,) if key == 'shape' else super().__getitem__(key)
i = Interface()
i.__array_interface__ = Claims(i.__array_interface__)
"""
    seen = outcome("i", made)
    assert (seen["error"], "shape=(2,)" in seen["text"]) == (None, True), seen


def test_an_interface_that_changes_while_it_is_read_is_refused_by_what_is_gone():
    made = """
class Emptying(list):
    def __eq__(self, other):
        i.__array_interface__.clear()
        return True
i = Interface(descr=Emptying())
"""
    seen = outcome("i", made)
    assert seen["error"] == "ValueError", seen
    assert "expected the key" in seen["text"]


@pytest.mark.parametrize("error", ["BufferError", "RuntimeError", "TypeError"])
@pytest.mark.parametrize("key", ["shape", "strides"])
def test_what_a_number_raises_passes_unchanged(key, error):
    made = f"""
class Number:
    def __index__(self):
        raise {error}("of the number")
i = Interface({key}=(Number(),))
"""
    seen = outcome("i", made)
    assert (seen["error"], seen["text"]) == (error, "of the number")


def test_memory_that_its_object_frees_outlives_every_view_of_it():
    printed = run_in_fork("""
        import ctypes
        import gc
        import dlfield as dlf
        from support.lying_producers import Interface, Pages

        class Freeing(Interface):
            def __init__(self):
                self.pages = Pages()
                super().__init__(data=(self.pages.start, False))

            def __del__(self):
                self.pages.take_away()
                print("taken away")

        storage = dlf.as_storage(Freeing())
        view = memoryview(storage)
        del storage
        gc.collect()
        print(view.tolist())
        del view
        gc.collect()
    """)
    assert printed.split("\n") == ["[0.0, 0.0, 0.0, 0.0]", "taken away"]


@pytest.mark.parametrize("claimed", ["[]", "3", "'<f8'", "None"])
def test_an_array_interface_must_be_a_dict(claimed):
    seen = outcome("i", f"i = Interface(); i.__array_interface__ = {claimed}")
    assert seen["error"] == "TypeError", seen
    assert "__array_interface__: expected a dict" in seen["text"]


def test_a_type_that_lies_about_its_size_is_not_read_beyond_its_end():
    printed = run_in_fork("""
        from types import SimpleNamespace

        import numpy as np
        from support.lying_producers import report

        class Liar(np.ndarray):
            dtype = SimpleNamespace(name="bfloat16")

            def view(self, *_):
                return bytearray(1)

        report(np.zeros(1, "M8[s]").view(Liar))
    """)
    assert json.loads(printed)["error"] == "BufferError", printed
