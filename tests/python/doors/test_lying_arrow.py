"""Arrow producers that lie about their memory. Each runs in a process of its own.

A lie is a statement about an honest producer `p` with its schema `s`, its array `a` and its first
child `c`. Expected every time: an error that names the fault, the schema and the array released
exactly once, and no crash.
"""

import json

import pytest

from support.processes import run_in_fork

ONE, LIST, TABLE = "Producer()", "lists(3)", "batch(Producer(name=b'a'))"
NESTED, EMPTY = "nested(2, 3)", "Producer(length=0)"

LIES = (
    # producer, statement, part of the error
    (ONE, "a.n_buffers = 0", ("buffers", "got 0")),
    (ONE, "a.n_buffers = 1", ("buffers", "got 1")),
    (ONE, "a.n_buffers = 3", ("buffers", "got 3")),
    (ONE, "a.n_buffers = 100", ("buffers", "got 100")),
    (ONE, "a.n_buffers = -1", ("buffers", "got -1")),
    (ONE, "a.n_buffers = 2**62", ("buffers", f"got {2**62}")),
    (ONE, "a.buffers = None", ("buffers", "NULL")),
    (ONE, "p.buffers[1] = None", ("4 elements", "got NULL")),
    (ONE, "p.buffers[1] = 2**64 - 8", ("address", "0xfffffffffffffff8")),
    (ONE, "a.length = -1", ("at least 0", "length -1")),
    (ONE, "a.length = -(2**63)", ("at least 0", f"length {-(2**63)}")),
    (ONE, "a.length = 2**62", (str(2**62),)),
    (ONE, "a.length = 2**63 - 1", (str(2**63 - 1),)),
    (ONE, "a.offset = -1", ("offset -1",)),
    (ONE, "a.offset = -(2**63)", (f"offset {-(2**63)}",)),
    (ONE, "a.offset = 2**62", (str(2**62),)),
    (ONE, "a.offset = a.length = 2**62", (str(2**62),)),
    (ONE, "a.offset = 2**63 - 1", (str(2**63 - 1),)),
    (ONE, "a.n_children = 1", ("0 children", "got 2 and 1")),
    (ONE, "a.n_children = -1", ("0 children", "got 2 and -1")),
    (ONE, "s.n_children = 1", ("children", "got 1")),
    (ONE, "p.adopt([Producer()])", ("0 children", "got 1")),
    (ONE, "other = Producer(); s.dictionary = addressof(other.schema)", ("dictionary",)),
    (ONE, "other = Producer(); a.dictionary = addressof(other.array)", ("dictionary",)),
    (LIST, "a.n_buffers = 2", ("buffers", "got 2")),
    (LIST, "a.n_buffers = 0", ("buffers", "got 0")),
    (LIST, "a.buffers = None", ("buffers", "NULL")),
    (LIST, "a.length = -1", ("at least 0", "length -1")),
    (LIST, "a.length = 5", ("15", "length 12")),
    (LIST, "a.length = 2**62", (str(2**62),)),
    (LIST, "a.offset = 1", ("12 elements from number 3 on", "length 12")),
    (LIST, "a.offset = 2**62", (str(2**62),)),
    (LIST, "c.length = 11", ("12", "length 11")),
    (LIST, "c.length = -1", ("at least 0", "length -1")),
    (LIST, "c.length = c.offset = 2**62", (str(2**62),)),
    (LIST, "c.offset = -1", ("offset -1",)),
    (LIST, "a.offset, c.offset = 2**61, 2**61", (str(2**61),)),
    (LIST, "a.n_children = 0", ("1 children", "got 1 and 0")),
    (LIST, "a.n_children = 2", ("1 children", "got 1 and 2")),
    (LIST, "a.n_children = 2**62", ("1 children", f"got 1 and {2**62}")),
    (LIST, "s.n_children = 0", ("child", "got 0")),
    (LIST, "s.n_children = 2", ("child", "got 2")),
    (LIST, "s.n_children = a.n_children = 0", ("1 children", "got 0")),
    (LIST, "s.n_children = a.n_children = 2", ("1 children", "got 2")),
    (LIST, "a.children = None", ("child", "NULL")),
    (LIST, "s.children = None", ("child", "NULL")),
    (LIST, "p.child_arrays[0] = None", ("child", "NULL")),
    (LIST, "p.child_schemas[0] = None", ("child", "NULL")),
    (LIST, "c.n_buffers = 1", ("buffers", "got 1")),
    (LIST, "c.buffers = None", ("buffers", "NULL")),
    (LIST, "p.children[0].buffers[1] = None", ("12 elements", "got NULL")),
    (LIST, "p.children[0].schema.format = None", ("format", "NULL")),
    (LIST, "s.format = b'+w:4'", ("16", "length 12")),
    (NESTED, "c.length = 7", ("8", "length 7")),
    (NESTED, "s.format = b'+w:%d' % (2**31 - 1)", (str(4 * (2**31 - 1)), "length 8")),
    (TABLE, "a.length = 5", ("5", "length 4")),
    (TABLE, "a.offset = 1", ("4 elements from number 1 on", "length 4")),
    (TABLE, "a.offset = 2**62", (str(2**62),)),
    (TABLE, "a.length = -1", ("at least 0", "length -1")),
    (TABLE, "a.n_children = 2", ("1 children", "got 1 and 2")),
    (TABLE, "s.n_children = 2", ("column", "got 2")),
    (TABLE, "a.n_children = s.n_children = 0", ("column", "got 0")),
    (TABLE, "a.n_buffers = 2", ("buffers", "got 2")),
    (TABLE, "a.children = None", ("child", "NULL")),
    (TABLE, "p.child_arrays[0] = None", ("child", "NULL")),
    (TABLE, "c.length = 3", ("4", "length 3")),
)

#: Statements after which the array is strange, and yet nothing about it is wrong.
STRANGE_BUT_TRUE = (
    (ONE, "", "shape=(4,) strides=(8,) readonly=True"),
    (ONE, "a.length = 0", "shape=(0,)"),
    (ONE, "a.length = 0; p.buffers[1] = None", "shape=(0,)"),
    (ONE, "a.length = 0; a.offset = 4", "shape=(0,)"),
    (ONE, "a.length = 0; p.buffers[1] = 2**64 - 8", "shape=(0,)"),
    (ONE, "p.buffers[1] += 1", "shape=(4,)"),
    (ONE, "s.name = None", "shape=(4,)"),
    (ONE, "s.name = bytes([255, 254])", "shape=(4,)"),
    (ONE, "s.flags = 2**63 - 1", "shape=(4,)"),
    (ONE, "s.flags = -1", "shape=(4,)"),
    (ONE, "s.private_data = a.private_data = 1", "shape=(4,)"),
    (ONE, "s.children = a.children = 1", "shape=(4,)"),
    (LIST, "", "shape=(4, 3) strides=(24, 8) readonly=True"),
    (LIST, "c.length = 13", "shape=(4, 3)"),
    (LIST, "c.offset = 1", "shape=(4, 3)"),
    (LIST, "a.offset, a.length = 1, 3", "shape=(3, 3)"),
    (LIST, "a.length = 0", "shape=(0, 3)"),
    ("lists(0)", "", "shape=(4, 0)"),
    ("lists(1)", "", "shape=(4, 1)"),
    (NESTED, "", "shape=(4, 2, 3) strides=(48, 24, 8)"),
    ("nested(*[1] * 63)", "", f"shape=({'4, ' + '1, ' * 62}1)"),
    (TABLE, "", "shape=(4,)"),
    (TABLE, "c.length = 5", "shape=(4,)"),
    (TABLE, "a.offset, a.length = 1, 3", "shape=(3,)"),
    (TABLE, "p.children[0].schema.name = None", "shape=(4,)"),
    ("batch(lists(3))", "", "shape=(4, 3)"),
    ("batch(tensor())", "", "shape=(4, 3, 2)"),
    (EMPTY, "", "shape=(0,)"),
    (EMPTY, "p.buffers[1] = None", "shape=(0,)"),
)

NULLS = (
    # producer, statement, nulls in the part that is shown
    (ONE, "p.nulls('1011')", 1),
    (ONE, "p.nulls('0000')", 4),
    (ONE, "p.nulls('1011', count=1)", 1),
    (ONE, "p.nulls('0000', count=4)", 4),
    (ONE, "p.nulls('1001').part(1, 3)", 2),
    (ONE, "p.nulls('0111').part(0, 2)", 1),
    ("Producer(length=100)", "p.nulls('1' * 64 + '0' + '1' * 35)", 1),
    ("Producer(length=100)", "p.nulls('01' * 50).part(3, 90)", 45),
    (LIST, "p.nulls('1011')", 1),
    (LIST, "p.children[0].nulls('1' * 11 + '0')", 1),
    (LIST, "p.children[0].nulls('100' * 4).part(1, 9); p.part(0, 3)", 6),
    (LIST, "p.children[0].nulls('011' * 4); p.part(1, 2)", 2),
    (NESTED, "p.children[0].nulls('1' * 7 + '0')", 1),
    (TABLE, "p.nulls('1010')", 2),
    (TABLE, "p.children[0].nulls('1110')", 1),
    ("batch(lists(3))", "p.children[0].nulls('1110')", 1),
)

NO_NULLS = (
    (ONE, "p.nulls('1111')", "shape=(4,)"),
    (ONE, "p.nulls('0000', count=0)", "shape=(4,)"),
    (ONE, "a.null_count = -1", "shape=(4,)"),
    (ONE, "p.nulls('0111').part(1, 3)", "shape=(3,)"),
    (ONE, "p.nulls('0110').part(1, 2)", "shape=(2,)"),
    (ONE, "p.nulls('0000').part(4, 0)", "shape=(0,)"),
    ("Producer(length=100)", "p.nulls('0' * 9 + '1' * 82 + '0' * 9).part(9, 82)", "shape=(82,)"),
    (LIST, "p.nulls('1111')", "shape=(4, 3)"),
    (LIST, "p.nulls('0110').part(1, 2)", "shape=(2, 3)"),
    (LIST, "p.children[0].nulls('1' * 9 + '000'); p.part(0, 3)", "shape=(3, 3)"),
    (LIST, "p.children[0].nulls('000' + '1' * 9); p.part(1, 3)", "shape=(3, 3)"),
    (LIST, "p.children[0].nulls('0' + '1' * 12).part(1, 12)", "shape=(4, 3)"),
    (TABLE, "p.nulls('1111')", "shape=(4,)"),
    (TABLE, "p.nulls('0111').part(1, 3)", "shape=(3,)"),
    (TABLE, "p.children[0].nulls('0111'); p.part(1, 3)", "shape=(3,)"),
)

#: Where either answer would do, as long as nothing breaks.
UNSAID = (
    (ONE, "a.null_count = -2"),
    (ONE, "a.null_count = 3"),
    (ONE, "p.nulls('1111', count=2)"),
    (ONE, "p.nulls('1011', count=5)"),
    (ONE, "s.dictionary = addressof(s); a.dictionary = addressof(a)"),
    (EMPTY, "a.buffers = None"),
    (LIST, "c.release = None"),
    (LIST, "p.children[0].schema.release = None"),
    (LIST, "a.length = 0; p.child_arrays[0] = None"),
    ("lists(0)", "c.length = 2**62"),
    ("batch(batch(Producer()))", ""),
    ("batch(Producer(b'n', buffers=0), Producer())", ""),
)


def outcome(producer, statement, take="p"):
    printed = run_in_fork(
        f"""
        from ctypes import addressof
        from support.arrow_structs import *
        from support.lying_producers import report

        p = {producer}
        s, a = p.schema, p.array
        c = p.children[0].array if p.children else None
        {statement}
        report({take}, p)
        """
    )
    return json.loads(printed)


def assert_refused(seen, texts, error="BufferError"):
    assert seen["error"] == error, seen
    for text in texts:
        assert text in seen["text"], seen
    assert seen["freed"] == [1, 1]


@pytest.mark.parametrize(("producer", "lie", "texts"), LIES)
def test_an_arrow_lie_is_named_and_released_once(producer, lie, texts):
    assert_refused(outcome(producer, lie), texts)


@pytest.mark.parametrize(("producer", "truth", "text"), STRANGE_BUT_TRUE + NO_NULLS)
def test_an_arrow_array_that_is_strange_but_true_is_taken_and_released_once(producer, truth, text):
    seen = outcome(producer, truth)
    assert (seen["error"], seen["freed"]) == (None, [1, 1]), seen
    assert text in seen["text"]


@pytest.mark.parametrize(("producer", "statement", "count"), NULLS)
def test_counted_nulls_are_refused_with_a_way_out(producer, statement, count):
    seen = outcome(producer, statement)
    assert_refused(seen, ("null", "fill_null", "drop_null"))
    assert f"got {count}" in seen["text"], seen


@pytest.mark.parametrize(("producer", "statement"), UNSAID)
def test_what_no_rule_is_about_ends_in_a_storage_or_an_error_and_is_released_once(
    producer, statement
):
    seen = outcome(producer, statement)
    assert seen["error"] in (None, "BufferError", "ValueError"), seen
    assert seen["freed"] == [1, 1]


def test_a_dictionary_is_refused_with_a_way_out():
    seen = outcome(
        "Producer(b'i')",
        "other = Producer(); s.dictionary = addressof(other.schema);"
        "a.dictionary = addressof(other.array)",
    )
    assert_refused(seen, ("dictionary", "decode it first"))


def test_columns_are_named_where_there_are_several():
    seen = outcome("batch(Producer(name=b'wind'), Producer(name=b'rain'))", "")
    assert_refused(seen, ("wind", "rain", "select one"))


@pytest.mark.parametrize("name", ["None", "bytes([255, 254])"])
def test_columns_without_a_readable_name_are_refused_too(name):
    seen = outcome(f"batch(Producer(name={name}), Producer(name=b'rain'))", "")
    assert_refused(seen, ("rain", "select one"))


@pytest.mark.parametrize("levels", [64, 200])
def test_more_dimensions_than_numpy_has_are_refused(levels):
    seen = outcome(f"nested(*[1] * {levels})", "")
    assert_refused(seen, ("64 dimensions",))


def test_lists_that_hold_themselves_are_refused():
    seen = outcome("lists(1)", "p.child_schemas[0], p.child_arrays[0] = addressof(s), addressof(a)")
    assert_refused(seen, ("64 dimensions",))


def test_a_table_that_holds_itself_is_refused():
    seen = outcome(TABLE, "p.child_schemas[0], p.child_arrays[0] = addressof(s), addressof(a)")
    assert_refused(seen, ())


@pytest.mark.parametrize("sizes", [(2**31 - 1,) * 3, (2**31 - 1, 2**31 - 1, 4)])
def test_lists_whose_sizes_overflow_together_are_refused(sizes):
    seen = outcome(
        "nested(1, 1, 1)",
        f"""
        inner = p
        for size in {sizes}:
            inner.schema.format = b"+w:%d" % size
            inner = inner.children[0]
            inner.array.length = 2**62""",
    )
    assert_refused(seen, ("a size that memory can have",))
