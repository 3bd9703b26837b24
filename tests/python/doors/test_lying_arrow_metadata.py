"""Metadata of Arrow schemas that lies: its bytes, a tensor's shape, dlfield's own entries."""

import json

import dlfield as dlf
import pytest

from support.arrow_structs import (
    EXTENSION,
    ITS_METADATA,
    TENSOR,
    Producer,
    batch,
    encoded,
    lists,
    tensor,
)
from support.processes import run_in_fork

#: Bytes of key-value metadata that cannot be: a number of pairs or of bytes below zero.
NEGATIVE = {
    "pairs": "encoded({}, count=-1)",
    "pairs, as many as can be": "encoded({}, count=-(2**31))",
    "bytes of a key": "encoded([(b'key', b'value', -1, 5)])",
    "bytes of a value": "encoded([(b'key', b'value', 3, -1)])",
    "bytes of a value, as many as can be": "encoded([(b'key', b'value', 3, -(2**31))])",
    "bytes of a second key": "encoded([(b'a', b'b'), (b'key', b'value', -5, 5)])",
}

#: Metadata of a tensor of 3 by 2 that cannot be right.
NO_SHAPE = {
    "nothing": b"",
    "no JSON": b"shape: 3, 2",
    "half of it": b'{"shape": [3, 2',
    "more behind it": b'{"shape": [3, 2]} {"shape": [3, 2]}',
    "a comma too many": b'{"shape": [3, 2],}',
    "other quotes": b"{'shape': [3, 2]}",
    "not UTF-8": b'{"shape": [3, 2], "dim_names": ["\xff", "b"]}',
    "a NUL": b'{"shape": [3, 2]}\0',
    "half a surrogate": rb'{"shape": [3, 2], "dim_names": ["\ud800", "b"]}',
    "lists without end": b"[" * 100_000,
    "dicts without end": b'{"a":' * 100_000,
    "lists without end in the shape": b'{"shape": ' + b"[" * 100_000,
    "a list": b"[3, 2]",
    "null": b"null",
    "a number": b"6",
    "a text": b'"[3, 2]"',
    "no key": b"{}",
    "another key": b'{"Shape": [3, 2]}',
    "a shape of null": b'{"shape": null}',
    "a shape that is a number": b'{"shape": 6}',
    "a shape that is a text": b'{"shape": "3, 2"}',
    "a shape that is a dict": b'{"shape": {"0": 3, "1": 2}}',
    "extents that are texts": b'{"shape": ["3", "2"]}',
    "extents that are fractions": b'{"shape": [1.5, 4]}',
    "extents that are truth values": b'{"shape": [true, 6]}',
    "extents that are lists": b'{"shape": [[3], [2]]}',
    "no extents": b'{"shape": []}',
    "too few elements": b'{"shape": [3, 1]}',
    "too many elements": b'{"shape": [3, 3]}',
    "no elements": b'{"shape": [3, 0]}',
    "extents below zero": b'{"shape": [-3, -2]}',
    "an extent below zero": b'{"shape": [-6]}',
    "an extent beyond 64 bits": b'{"shape": [18446744073709551622]}',
    "an extent far beyond": b'{"shape": [1e400]}',
    "a product that overflows to the right one": b'{"shape": [9223372036854775811, 2]}',
    "a product of many that overflows": b'{"shape": [4294967296, 4294967296, 6]}',
    "too many dimensions": json.dumps({"shape": [6] + [1] * 64}).encode(),
    "very many dimensions": json.dumps({"shape": [6] + [1] * 100_000}).encode(),
}

NO_PERMUTATION = ([0], [0, 0], [1, 1], [0, 2], [-1, 0], [0, 1, 2], [0.5, 1], ["1", "0"], "10", 1)
NO_PERMUTATION += ([2**64, 0], [[1], [0]], {"0": 1}, [True, False], [])

NO_NAMES = (["a"], ["a", "b", "c"], ["a", "a"], ["", ""], [1, 2], "ab", 3, {"a": 0}, [["a"], "b"])

#: Field metadata of a 1-D array of four values that cannot be right.
NO_FIELD = {
    "nothing": b"",
    "no JSON": b"axis 0",
    "half of it": b'{"shape": [4], "axis": 0',
    "not UTF-8": b'{"shape": [4], "axis": 0, "dims": ["\xff"]}',
    "lists without end": b"[" * 100_000,
    "a list": b"[4]",
    "null": b"null",
    "no keys": {},
    "no shape": {"axis": 0},
    "no axis": {"shape": [4]},
    "a shape that is a number": {"shape": 4, "axis": 0},
    "a shape of texts": {"shape": ["4"], "axis": 0},
    "a shape below zero": {"shape": [-4], "axis": 0},
    "a shape of fractions": {"shape": [4.5], "axis": 0},
    "a shape of other dimensions": {"shape": [2, 2], "axis": 0},
    "a shape without dimensions": {"shape": [], "axis": 0},
    "a shape beyond 64 bits": {"shape": [2**64], "axis": 0},
    "an axis behind the last": {"shape": [4], "axis": 1},
    "an axis below zero": {"shape": [4], "axis": -1},
    "an axis that is a text": {"shape": [4], "axis": "0"},
    "an axis that is a fraction": {"shape": [4], "axis": 0.5},
    "an axis beyond 64 bits": {"shape": [4], "axis": 2**64},
    "dims that are too many": {"shape": [4], "axis": 0, "dims": ["I", "J"]},
    "dims that are too few": {"shape": [4], "axis": 0, "dims": []},
    "dims that are numbers": {"shape": [4], "axis": 0, "dims": [1]},
    "dims that are a text": {"shape": [4], "axis": 0, "dims": "I"},
    "a halo of too many": {"shape": [4], "axis": 0, "halo": [[0, 0], [0, 0]]},
    "a halo of none": {"shape": [4], "axis": 0, "halo": []},
    "a halo below zero": {"shape": [4], "axis": 0, "halo": [[-1, 0]]},
    "a halo that is too wide": {"shape": [4], "axis": 0, "halo": [[3, 2]]},
    "a halo that overflows": {"shape": [4], "axis": 0, "halo": [[2**63, 2**63]]},
    "a halo of one end": {"shape": [4], "axis": 0, "halo": [[1]]},
    "a halo of three ends": {"shape": [4], "axis": 0, "halo": [[1, 1, 1]]},
    "a halo of numbers": {"shape": [4], "axis": 0, "halo": [1]},
    "a halo of texts": {"shape": [4], "axis": 0, "halo": [["1", "1"]]},
    "a halo that is a number": {"shape": [4], "axis": 0, "halo": 1},
    "an origin of too many": {"shape": [4], "axis": 0, "default_origin": [0, 0]},
    "an origin below 64 bits": {"shape": [4], "axis": 0, "default_origin": [-(2**70)]},
    "an origin behind the end": {"shape": [4], "axis": 0, "default_origin": [5]},
    "an origin that is a text": {"shape": [4], "axis": 0, "default_origin": ["1"]},
    "an origin that is a number": {"shape": [4], "axis": 0, "default_origin": 1},
}

#: The same of a tensor of 3 by 2, four times.
NO_TENSOR_FIELD = {
    "an extent of another size": {"shape": [4, 3, 3], "axis": 0},
    "extents in another order": {"shape": [4, 2, 3], "axis": 0},
    "too few dimensions": {"shape": [4, 6], "axis": 0},
    "too many dimensions": {"shape": [4, 3, 2, 1], "axis": 0},
    "an axis that does not fit": {"shape": [4, 3, 2], "axis": 1},
    "an axis behind the last": {"shape": [4, 3, 2], "axis": 3},
    "repeated dims": {"shape": [4, 3, 2], "axis": 0, "dims": ["I", "J", "I"]},
    "dims that are too few": {"shape": [4, 3, 2], "axis": 0, "dims": ["I", "J"]},
    "a halo that is too wide": {"shape": [4, 3, 2], "axis": 0, "halo": [[0, 0], [2, 2], [0, 0]]},
    "a halo of too few": {"shape": [4, 3, 2], "axis": 0, "halo": [[0, 0], [0, 0]]},
    "an origin outside": {"shape": [4, 3, 2], "axis": 0, "default_origin": [0, 4, 0]},
}


def outcome(producer):
    printed = run_in_fork(
        f"""
        from support.arrow_structs import *
        from support.lying_producers import report

        p = {producer}
        report(p, p)
        """
    )
    return json.loads(printed)


def refused(producer, *texts):
    """Expect a refusal that contains all of `texts` and leaves both structs to their capsules."""
    with pytest.raises(BufferError) as caught:
        dlf.as_storage(producer)
    for text in texts:
        assert text in str(caught.value)
    assert len(str(caught.value)) < 1000
    del caught
    assert producer.freed == [1, 1]


def readable(text):
    return text.encode() if isinstance(text, str) else text


@pytest.mark.parametrize("text", NEGATIVE.values(), ids=NEGATIVE)
def test_metadata_that_is_less_than_nothing_is_refused(text):
    seen = outcome(f"Producer().says({text})")
    assert (seen["error"], seen["freed"]) == ("BufferError", [1, 1]), seen
    assert "metadata" in seen["text"]


def test_metadata_without_pairs_says_nothing():
    assert dlf.as_storage(Producer().says({})).shape == (4,)


def test_metadata_of_others_is_not_looked_at():
    pairs = {
        b"": b"",
        b"\xff": b"\xff",
        b"dlfield ": b"no",
        b"ARROW:extension": b"[",
        b"k" * 9999: b"",
    }
    assert dlf.as_storage(Producer().says(pairs)).shape == (4,)


def test_metadata_off_a_boundary_is_read_where_it_is():
    producer = tensor(dim_names=["a", "b"])
    text = b"\0" + encoded({EXTENSION: TENSOR, ITS_METADATA: b'{"shape": [3, 2]}'})
    producer.says(text).schema.metadata += 1
    assert dlf.as_storage(producer).shape == (4, 3, 2)


@pytest.mark.parametrize("text", NO_SHAPE.values(), ids=NO_SHAPE)
def test_a_tensor_whose_shape_cannot_be_is_refused(text):
    refused(tensor(text=text), "metadata")


@pytest.mark.parametrize("how", ["[", '{"a":', '{"shape": [', '{"shape": [3, 2], "dim_names": ['])
def test_a_tensor_with_brackets_without_end_is_refused_on_a_small_stack(how):
    printed = run_in_fork(f"""
        import threading
        from support.arrow_structs import *
        from support.lying_producers import report

        threading.stack_size(256 * 1024)
        p = tensor(text={how.encode()!r} + {how[-1].encode()!r} * 1_000_000)
        thread = threading.Thread(target=report, args=(p, p))
        thread.start()
        thread.join()
    """)
    assert json.loads(printed)["error"] == "BufferError"


def test_a_tensor_without_a_shape_is_refused():
    refused(lists(6).says({EXTENSION: TENSOR}), "arrow.fixed_shape_tensor")


@pytest.mark.parametrize("permutation", NO_PERMUTATION)
def test_a_permutation_that_is_none_is_refused(permutation):
    refused(tensor((3, 2), permutation=permutation), "permutation")


@pytest.mark.parametrize("permutation", NO_PERMUTATION)
def test_a_permutation_under_its_misspelt_name_is_checked_too(permutation):
    refused(tensor((3, 2), permutations=permutation), "permutation")


@pytest.mark.parametrize("names", NO_NAMES)
def test_names_that_do_not_fit_are_refused(names):
    refused(tensor((3, 2), dim_names=names), "metadata")


def test_a_name_that_is_that_of_the_list_axis_is_not_there_twice():
    producer = tensor((3, 2), dim_names=["dim_0", "x"])
    try:
        dims = dlf.as_storage(producer).dims
    except BufferError:
        return
    assert dims is None or len(set(dims)) == 3


@pytest.mark.parametrize("producer", [Producer, lambda: batch(Producer(name=b"a"))])
def test_a_tensor_that_is_stored_as_something_else_is_refused(producer):
    pairs = {EXTENSION: TENSOR, ITS_METADATA: b'{"shape": [1]}'}
    refused(producer().says(pairs), "arrow.fixed_shape_tensor")


def test_tensors_of_several_shapes_are_refused():
    offsets = lists(2, Producer(b"i", 8, name=b"shape"))
    producer = batch(Producer(b"+l", children=[Producer()], name=b"data"), offsets)
    refused(producer.says({EXTENSION: b"arrow.variable_shape_tensor"}), "data")


@pytest.mark.parametrize("field", NO_FIELD.values(), ids=NO_FIELD)
def test_what_dlfield_would_never_say_of_an_array_is_refused(field):
    text = field if isinstance(field, bytes) else json.dumps(field).encode()
    refused(Producer().says({b"dlfield": text}), "metadata")


@pytest.mark.parametrize("field", NO_TENSOR_FIELD.values(), ids=NO_TENSOR_FIELD)
def test_what_dlfield_would_never_say_of_a_tensor_is_refused(field):
    refused(tensor((3, 2), field=field), "metadata")


def test_what_dlfield_says_of_a_column_is_checked_too():
    column = Producer(name=b"a").says({b"dlfield": b'{"shape": [4], "axis": 1}'})
    refused(batch(column), "metadata")


@pytest.mark.parametrize(
    "text",
    [
        b' \t\r\n{ "shape" : [ 3 , 2 ] } \n',
        b'{"shape": [3, 2], "dim_names": null, "permutation": null}',
        b'{"unheard of": {"a": [1, {"b": null}]}, "shape": [3, 2]}',
        b'{"shape": [3, 2], "value_type": "double", "number": -1.5e+300, "truth": true}',
        rb'{"sh\u0061pe": [3, 2]}',
        b'{"shape": [3, 2], "permutation": [0, 1]}',
    ],
)
def test_json_may_be_written_in_other_ways(text):
    assert dlf.as_storage(tensor(text=text)).shape == (4, 3, 2)


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (rb'["\u00e9", "\ud83d\ude00"]', ("é", "😀")),
        ('["é", "😀"]'.encode(), ("é", "😀")),
        (rb'["\"\\\/\b\f\n\r\t", "b"]', ('"\\/\b\f\n\r\t', "b")),
        (b'["", "b"]', ("", "b")),
    ],
)
def test_names_may_be_written_in_other_ways(written, names):
    producer = tensor(text=b'{"shape": [3, 2], "dim_names": ' + written + b"}")
    assert dlf.as_storage(producer).dims == ("dim_0", *names)


@pytest.mark.parametrize(
    "field",
    [
        {"shape": [4], "axis": 0},
        {"shape": [4], "axis": 0, "dims": None, "halo": None, "default_origin": None},
        {"shape": [4], "axis": 0, "unheard of": 3},
    ],
)
def test_what_dlfield_leaves_out_is_unknown(field):
    storage = dlf.as_storage(Producer().says({b"dlfield": json.dumps(field).encode()}))
    assert (storage.shape, storage.dims) == ((4,), None)
    assert not hasattr(storage, "default_origin")
