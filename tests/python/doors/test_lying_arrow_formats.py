"""Arrow formats: those that are numbers, those that are refused with a way out, and garbage."""

import ctypes
import json

import dlfield as dlf
import numpy as np
import pytest

from support.arrow_structs import BOOL8, EXTENSION, ITS_METADATA, Producer
from support.processes import run_in_fork

NUMBERS = {
    "c": ("int8", ctypes.c_int8),
    "C": ("uint8", ctypes.c_uint8),
    "s": ("int16", ctypes.c_int16),
    "S": ("uint16", ctypes.c_uint16),
    "i": ("int32", ctypes.c_int32),
    "I": ("uint32", ctypes.c_uint32),
    "l": ("int64", ctypes.c_int64),
    "L": ("uint64", ctypes.c_uint64),
    "f": ("float32", ctypes.c_float),
    "g": ("float64", ctypes.c_double),
}

#: A producer of the format, and its error without the way out.
OF_OTHER_TYPES = {
    "bits": ("Producer(b'b')", ("uint8", "bool8")),
    "nothing": ("Producer(b'n', buffers=0)", ("null",)),
    "text": ("Producer(b'u', buffers=3)", ("'u'",)),
    "large text": ("Producer(b'U', buffers=3)", ("'U'",)),
    "bytes": ("Producer(b'z', buffers=3)", ("'z'",)),
    "large bytes": ("Producer(b'Z', buffers=3)", ("'Z'",)),
    "view of text": ("Producer(b'vu', buffers=3)", ("'vu'",)),
    "view of bytes": ("Producer(b'vz', buffers=3)", ("'vz'",)),
    "bytes of one size": ("Producer(b'w:8')", ("'w:8'",)),
    "decimal": ("Producer(b'd:10,2')", ("'d:10,2'",)),
    "wide decimal": ("Producer(b'd:40,2,256')", ("'d:40,2,256'",)),
    "list": ("Producer(b'+l', children=[Producer()])", ("'+l'",)),
    "large list": ("Producer(b'+L', children=[Producer()])", ("'+L'",)),
    "view of lists": ("Producer(b'+vl', children=[Producer()], buffers=3)", ("'+vl'",)),
    "map": ("Producer(b'+m', children=[batch(Producer(), Producer())])", ("'+m'",)),
    "dense union": ("Producer(b'+ud:0,1', children=[Producer(), Producer()])", ("'+ud:0,1'",)),
    "sparse union": (
        "Producer(b'+us:0', children=[Producer()], buffers=1)",
        ("'+us:0'",),
    ),
    "runs": (
        "Producer(b'+r', children=[Producer(b'i'), Producer()], buffers=0)",
        ("'+r'",),
    ),
    "list of texts": ("lists(3, Producer(b'u', buffers=3, length=12))", ("'u'",)),
    "list of bits": ("lists(3, Producer(b'b', length=12))", ("uint8", "bool8")),
    "column of texts": ("batch(Producer(b'u', buffers=3))", ("'u'",)),
    **{
        f"time {text}": (f"Producer(b'{text}')", (f"'{text}'",))
        for text in ("tdD", "tdm", "tts", "ttn", "tsn:", "tsu:UTC", "tDs", "tiM", "tiD", "tin")
    },
}

GARBAGE = (
    *(b"", b"gg", b"g ", b" g", b"G", b"q", b"5", b":", b"+", b"t", b"ts", b"v", b"d", b"w", b"e "),
    *(b"+w", b"+w:", b"+w:x", b"+w:3x", b"+w: 3", b"+w:3 ", b"+w:3,3", b"+w:0x3", b"+w3", b"w:"),
    *(b"+w:-1", b"+w:99999999999999999999", b"+s:1", b"+z", b"+W:3", b"+w:3\n", b"\n", b"%s%n%s"),
    *(b"\xff\xfe", b"\xc3\xa9"),
)
#: As statements, since as names of tests they would be too long.
LONG = ("b'g' * 100_000", "b'+w:' + b'9' * 100_000")


def outcome(producer, statement=""):
    printed = run_in_fork(
        f"""
        from support.arrow_structs import *
        from support.lying_producers import report

        p = {producer}
        {statement}
        report(p, p)
        """
    )
    return json.loads(printed)


def made(format, kind, numbers):
    return Producer(format.encode(), len(numbers), values=(kind * len(numbers))(*numbers))


@pytest.mark.parametrize("format", NUMBERS)
def test_numbers_arrive_with_their_type_and_values(format):
    name, kind = NUMBERS[format]
    storage = dlf.as_storage(made(format, kind, [0, 1, 100]))
    assert (storage.dtype, storage.shape, storage.readonly) == (name, (3,), True)
    assert storage.to_numpy().tolist() == [0, 1, 100]


def test_half_floats_arrive_with_their_values():
    halves = np.array([0.5, -2.0, np.inf], np.float16)
    storage = dlf.as_storage(made("e", ctypes.c_uint16, halves.view(np.uint16).tolist()))
    assert storage.dtype == np.float16
    assert storage.to_numpy().tolist() == [0.5, -2.0, np.inf]


def test_bytes_that_call_themselves_truth_values_become_bool():
    producer = made("c", ctypes.c_int8, [0, 1, 1]).says({EXTENSION: BOOL8})
    storage = dlf.as_storage(producer)
    assert storage.dtype == bool
    assert storage.to_numpy().tolist() == [False, True, True]


def test_truth_values_that_are_neither_are_true():
    # arrow.bool8: 0 is false and anything else is true. NumPy shows bytes as they are.
    producer = made("c", ctypes.c_int8, [0, 1, 2]).says({EXTENSION: BOOL8})
    storage = dlf.as_storage(producer)
    assert storage.to_numpy().ctypes.data == producer.buffers[1]
    assert storage.to_numpy().tolist() == [False, True, True]


@pytest.mark.parametrize(("format", "kind"), [("g", ctypes.c_double), ("i", ctypes.c_int32)])
def test_truth_values_in_other_than_bytes_are_not_made_bool(format, kind):
    producer = made(format, kind, [0, 1, 1]).says({EXTENSION: BOOL8})
    try:
        storage = dlf.as_storage(producer)
    except BufferError:
        return
    assert storage.dtype == NUMBERS[format][0]


@pytest.mark.parametrize("name", [b"geoarrow.point", b"", b"arrow.unheard_of"])
@pytest.mark.parametrize("metadata", [b"garbage", b"", b"\x80\x04pickle\xff", b"{}"])
def test_an_unknown_extension_type_is_read_as_its_storage_type(name, metadata):
    producer = Producer().says({EXTENSION: name, ITS_METADATA: metadata})
    assert dlf.as_storage(producer).to_numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("producer", "texts"), OF_OTHER_TYPES.values(), ids=OF_OTHER_TYPES)
def test_a_type_without_numbers_in_a_row_is_refused_and_released_once(producer, texts):
    seen = outcome(producer)
    assert (seen["error"], seen["freed"]) == ("BufferError", [1, 1]), seen
    for text in texts:
        assert text in seen["text"]


@pytest.mark.parametrize("format", [*map(repr, GARBAGE), *LONG])
@pytest.mark.parametrize("producer", ["Producer()", "lists(3)"])
def test_a_format_that_is_none_is_refused_and_released_once(producer, format):
    seen = outcome(producer, f"p.schema.format = {format}")
    assert (seen["error"], seen["freed"]) == ("BufferError", [1, 1]), seen
    assert seen["text"].startswith("Arrow")
    assert len(seen["text"]) < 1000


def test_a_format_of_null_is_refused_and_released_once():
    seen = outcome("Producer()", "p.schema.format = None")
    assert (seen["error"], seen["freed"]) == ("BufferError", [1, 1])
    assert "NULL" in seen["text"]
