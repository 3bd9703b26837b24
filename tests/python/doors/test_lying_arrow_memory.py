"""Arrow memory that ends where it must not be read on, or is gone, moved, or off its boundary."""

import contextlib
import ctypes
import json

import dlfield as dlf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_structs import Producer, encoded, lists, tensor
from support.processes import run_in_fork

SETTING = """
import ctypes, mmap
import dlfield as dlf
from support.arrow_structs import *
from support.dlpack_structs import never_freed
from support.lying_producers import Pages, report

def at_the_end(source, size):
    '''Copy bytes to the end of a page. What is behind them cannot be read.'''
    pages = Pages(2)
    where = pages.start + mmap.PAGESIZE - size
    ctypes.memmove(where, source, size)
    pages.take_away(first=1)
    return where
"""


def run(code):
    return run_in_fork(SETTING + code)


def outcome(code):
    return json.loads(run(code + "\nreport(p, p)\n"))


def assert_taken(seen, text):
    assert (seen["error"], seen["freed"]) == (None, [1, 1]), seen
    assert text in seen["text"]


# --- what must not be read -----------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 4, 8, 9, 63, 64, 65, 100, 1000])
@pytest.mark.parametrize("offset", [0, 1, 7, 8, 63])
def test_no_bit_behind_a_bitmap_is_read(length, offset):
    seen = outcome(f"""
p = Producer(length={length + offset}).nulls("1" * {length + offset}).part({offset}, {length})
p.buffers[0] = at_the_end(p.buffers[0], {(length + offset + 7) // 8})
""")
    assert_taken(seen, f"shape=({length},)")


@pytest.mark.parametrize(
    "lie",
    [
        "p.array.null_count = 0",
        "p.array.null_count, p.array.length = -1, 0",
        "p.array.null_count, p.array.length, p.array.offset = -1, 0, 4",
    ],
)
def test_a_bitmap_that_says_nothing_is_not_read(lie):
    seen = outcome(f"p = Producer(); p.buffers[0] = 4096; {lie}")
    assert_taken(seen, "shape=(")


@pytest.mark.parametrize("made", ["Producer()", "lists(3)", "tensor()"])
def test_no_value_is_read(made):
    seen = outcome(f"""
p = {made}
pages, one = Pages(), p.children[0] if p.children else p
pages.take_away()
one.buffers[1] = pages.start
""")
    assert_taken(seen, "shape=(4,")


def test_no_byte_behind_the_metadata_is_read():
    seen = outcome("""
p = tensor((3, 2), dim_names=["a", "b"])
text = encoded({EXTENSION: TENSOR, ITS_METADATA: b'{"shape": [3, 2]}'})
p.schema.metadata = at_the_end(text, len(text))
""")
    assert_taken(seen, "shape=(4, 3, 2)")


def test_no_byte_behind_the_format_is_read():
    seen = outcome("""
p = lists(3)
room = ctypes.c_void_p.from_buffer(p.schema, 0)
room.value = at_the_end(b"+w:3" + bytes(1), 5)
""")
    assert_taken(seen, "shape=(4, 3)")


@pytest.mark.parametrize(("method", "size"), [("array", 80), ("device_array", 128)])
def test_no_byte_behind_an_array_is_read(method, size):
    assert (
        run(f"""
from support.arrow_structs import _new

p = Producer()
at = at_the_end(ctypes.addressof(p.device), {size})
pair = p.schema_capsule(), _new(at, b"arrow_{method}", None)
storage = dlf.as_storage(shown(pair, "__arrow_c_{method}__"))
print(storage.shape, p.array_freed)
del storage
print(p.array_freed)
""")
        == "(4,) 0\n1"
    )


def test_a_field_does_not_look_at_its_schema_again():
    producer = tensor((3, 2), dim_names=["east", "west"], field={"shape": [4, 3, 2], "axis": 0})
    metadata = producer.schema.metadata
    storage = dlf.as_storage(producer)
    ctypes.memset(metadata, 0xFF, 20)
    assert (storage.dims, storage.shape) in [
        (("dim_0", "east", "west"), (4, 3, 2)),
        (None, (4, 3, 2)),
    ]


def test_an_array_is_not_looked_at_again():
    producer = lists(3)
    pair = producer.pair()
    storage = dlf.as_storage(type("Once", (), {"__arrow_c_array__": lambda _self: pair})())
    for made in (producer.array, producer.children[0].array):
        made.length, made.offset, made.n_buffers = -1, 2**62, 100
    assert storage.to_numpy().tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


# --- off its boundary ----------------------------------------------------------------------------


@pytest.mark.parametrize("off", [1, 2, 4])
def test_values_off_the_boundary_of_their_type_are_read_where_they_are(off):
    assert (
        run(f"""
p = Producer(length=3)
at = p.buffers[1] + {off}
ctypes.memmove(at, (ctypes.c_double * 3)(5, 6, 7), 24)
p.buffers[1] = at
array = dlf.as_storage(p).to_numpy()
print(array.tolist(), array.ctypes.data == at, array.flags.aligned)
""")
        == "[5.0, 6.0, 7.0] True False"
    )


@pytest.mark.parametrize("off", [1, 4])
@pytest.mark.parametrize("which", ["schema", "device"])
def test_a_struct_off_its_boundary_is_left_to_its_maker(which, off):
    seen = json.loads(
        run(f"""
from support.arrow_structs import _new

p = Producer()
room = (ctypes.c_char * 200)()
at = ctypes.addressof(room) // 8 * 8 + 8 + {off}
ctypes.memmove(at, ctypes.addressof(p.{which}), ctypes.sizeof(p.{which}))
name = b"arrow_schema" if "{which}" == "schema" else b"arrow_array"
off, pair = _new(at, name, None), p.pair()
never_freed.append(room)
report(shown((off, pair[1]) if "{which}" == "schema" else (pair[0], off)), p)
""")
    )
    assert seen["error"] == "BufferError", seen
    assert "align" in seen["text"]


@pytest.mark.parametrize(
    "lie",
    [
        "p.array.buffers = off(p.array.buffers, 8)",
        "p.array.children = off(p.array.children, 8)",
        "p.schema.children = off(p.schema.children, 8)",
        "p.child_arrays[0] = off(p.child_arrays[0], 80)",
        "p.child_schemas[0] = off(p.child_schemas[0], 72)",
    ],
)
def test_pointers_off_their_boundary_are_refused(lie):
    seen = outcome(f"""
def off(at, size):
    never_freed.append(room := (ctypes.c_char * (size + 16))())
    to = ctypes.addressof(room) // 8 * 8 + 9
    ctypes.memmove(to, at, size)
    return to

p = lists(3)
{lie}
""")
    assert (seen["error"], seen["freed"]) == ("BufferError", [1, 1]), seen
    assert "align" in seen["text"]


# --- anything at all -----------------------------------------------------------------------------


@given(st.text("01", min_size=1, max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_nulls_are_those_of_the_part_that_is_shown(bits, offset, length):
    offset = min(offset, len(bits))
    length = min(length, len(bits) - offset)
    producer = Producer(length=len(bits)).nulls(bits).part(offset, length)
    count = bits[offset : offset + length].count("0")
    if count:
        with pytest.raises(BufferError, match=f"got {count} null"):
            dlf.as_storage(producer)
    else:
        values = dlf.as_storage(producer).to_numpy().tolist()
        assert values == [*range(offset, offset + length)]
    assert producer.freed == [1, 1]


numbers = st.integers(-3, 7) | st.sampled_from([2**31, 2**32, 2**63, 2**64, -(2**63)])
anything = st.recursive(
    st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "shape": anything | st.permutations([3, 2]) | st.just([6]),
            "dim_names": anything | st.lists(st.text(max_size=2), min_size=2, max_size=2),
            "permutation": anything | st.permutations([0, 1]),
            "permutations": anything,
        },
    )
)
def test_whatever_a_tensor_says_ends_in_its_values_or_in_an_error(said):
    producer = tensor(text=json.dumps(said).encode())
    with contextlib.suppress(BufferError):
        storage = dlf.as_storage(producer)
        assert storage.shape[0] == 4
        assert sorted(storage.to_numpy().ravel().tolist()) == [*range(24)]
        assert storage.dims is None or len(set(storage.dims)) == storage.ndim
        del storage
    assert producer.freed == [1, 1]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "shape": anything | st.just([4, 3, 2]) | st.permutations([4, 3, 2]),
            "axis": anything | st.integers(0, 2),
            "dims": anything | st.permutations("IJK"),
            "halo": anything | st.lists(st.lists(numbers, min_size=2, max_size=2), max_size=3),
            "default_origin": anything | st.lists(numbers, min_size=3, max_size=3),
        },
    )
)
def test_forged_metadata_of_dlfield_ends_in_the_values_or_in_an_error(said):
    producer = tensor((3, 2), field=said)
    with contextlib.suppress(BufferError):
        storage = dlf.as_storage(producer)
        assert sorted(storage.shape) == [2, 3, 4]
        assert sorted(storage.to_numpy().ravel().tolist()) == [*range(24)]
        storage.domain_view.to_numpy()
        del storage
    assert producer.freed == [1, 1]


@given(st.dictionaries(st.binary(max_size=4), st.binary(max_size=9)))
def test_whatever_others_say_is_not_looked_at(pairs):
    assert dlf.as_storage(Producer().says(encoded(pairs))).shape == (4,)


@given(st.binary(max_size=200))
def test_bytes_as_json_end_in_an_error(text):
    producer = tensor(text=text)
    with pytest.raises(BufferError, match="metadata"):
        dlf.as_storage(producer)
    assert producer.freed == [1, 1]
