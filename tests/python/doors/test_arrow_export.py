"""Storages as Arrow arrays, read with ctypes alone: types, addresses and metadata."""

import itertools
import math

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.addresses import address_of
from support.arrow_structs import EXTENSION, ITS_METADATA, TENSOR, Producer, Taken

FORMATS = {
    "int8": b"c",
    "uint8": b"C",
    "int16": b"s",
    "uint16": b"S",
    "int32": b"i",
    "uint32": b"I",
    "int64": b"l",
    "uint64": b"L",
    "float16": b"e",
    "float32": b"f",
    "float64": b"g",
}
every_format = pytest.mark.parametrize("dtype", FORMATS)

EXPORTS = {
    "array": lambda storage: storage.__arrow_c_array__(),
    "device array": lambda storage: storage.__arrow_c_device_array__(),
}
every_export = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)


def first(storage, taken, array=None):
    """Return where the first element lies that an array shows."""
    array = array or taken.array
    return taken.buffer(1, array) + array.offset * storage.itemsize


def expected(storage):
    """Return the list axis and the tensor's axes, in the order of memory."""
    order = sorted(range(storage.ndim), key=storage.layout.__getitem__)
    inner, logical = order[1:], [axis for axis in range(storage.ndim) if axis != order[0]]
    said = {"shape": [storage.shape[axis] for axis in inner]}
    if storage.dims is not None:
        said["dim_names"] = [storage.dims[axis] for axis in inner]
    elif order[0] != 0:  # otherwise the list axis would count as the first
        said["dim_names"] = [f"dlfield_axis_{axis}" for axis in inner]
    permutation = [inner.index(axis) for axis in logical]
    if permutation != sorted(permutation):
        said["permutation"] = permutation
    return order[0], said


# --- one dimension -------------------------------------------------------------------------------


@every_export
@every_format
def test_numbers_in_a_row_are_an_array_of_their_type(dtype, export):
    storage = dlf.zeros(5, dtype=dtype)
    taken = Taken(export(storage))
    schema, array = taken
    assert (schema.format, schema.n_children, schema.dictionary) == (FORMATS[dtype], 0, None)
    assert (array.length, array.null_count, array.n_children) == (5, 0, 0)
    assert (array.n_buffers, taken.buffer(0), array.dictionary) == (2, None, None)
    assert first(storage, taken) == address_of(storage)
    taken.release()


def test_truth_values_are_bytes_that_call_themselves_so():
    storage = dlf.zeros(5, dtype=bool)
    taken = Taken(storage.__arrow_c_array__())
    assert taken.schema.format == b"c"
    assert taken.words()[EXTENSION] == b"arrow.bool8"
    assert taken.words().get(ITS_METADATA, b"") == b""
    assert first(storage, taken) == address_of(storage)
    taken.release()


@pytest.mark.parametrize("part", [np.s_[2:], np.s_[:2], np.s_[1:4], np.s_[3:3]])
def test_a_part_of_a_row_begins_at_its_own_first_element(part):
    storage = dlf.zeros(5)[part]
    taken = Taken(storage.__arrow_c_array__())
    assert taken.array.length == len(storage)
    if len(storage):
        assert first(storage, taken) == address_of(storage)
    taken.release()


@pytest.mark.parametrize("length", [0, 1])
@every_format
def test_few_numbers_are_an_array_too(dtype, length):
    taken = Taken(dlf.zeros(length, dtype=dtype).__arrow_c_array__())
    assert (taken.array.length, taken.array.n_buffers) == (length, 2)
    taken.release()


def test_memory_that_must_not_be_written_is_exported_too():
    storage = dlf.as_storage(np.frombuffer(bytes(16), np.float64))
    taken = Taken(storage.__arrow_c_array__())
    assert first(storage, taken) == address_of(storage)
    taken.release()


# --- more dimensions ---------------------------------------------------------------------------


def assert_tensor(storage, taken):
    axis, said = expected(storage)
    size = math.prod(said["shape"])
    schema, array = taken
    (inner_schema, inner) = taken.child()
    assert (schema.format, schema.n_children) == (b"+w:%d" % size, 1)
    assert taken.words()[EXTENSION] == TENSOR
    assert taken.words()[ITS_METADATA] == said
    assert (array.length, array.null_count) == (storage.shape[axis], 0)
    assert (array.n_buffers, array.n_children, taken.buffer(0)) == (1, 1, None)
    assert inner_schema.format == FORMATS[storage.dtype.name]
    assert inner.length >= size * (array.length + array.offset)
    assert (inner.n_buffers, inner.null_count, taken.buffer(0, inner)) == (2, 0, None)
    start = inner.offset + array.offset * size
    if storage.size:
        assert taken.buffer(1, inner) + start * storage.itemsize == address_of(storage)


def test_a_field_in_c_order_is_lists_along_its_first_axis():
    storage = dlf.zeros((4, 3, 2), dims="IJK")
    taken = Taken(storage.__arrow_c_array__())
    assert taken.words()[ITS_METADATA] == {"shape": [3, 2], "dim_names": ["J", "K"]}
    assert taken.array.length == 4
    assert_tensor(storage, taken)
    taken.release()


def test_a_field_in_fortran_order_is_lists_along_its_last_axis():
    storage = dlf.zeros((4, 3, 2), dims="IJK", layout=(2, 1, 0))
    taken = Taken(storage.__arrow_c_array__())
    said = {"shape": [3, 4], "dim_names": ["J", "I"], "permutation": [1, 0]}
    assert taken.words()[ITS_METADATA] == said
    assert taken.array.length == 2
    assert_tensor(storage, taken)
    taken.release()


@every_export
@every_format
def test_a_tensor_holds_numbers_of_every_type(dtype, export):
    storage = dlf.zeros((4, 3, 2), dtype=dtype, layout=(1, 2, 0))
    taken = Taken(export(storage))
    assert_tensor(storage, taken)
    taken.release()


@pytest.mark.parametrize("dims", [None, "IJKL"])
@pytest.mark.parametrize("layout", tuple(itertools.permutations(range(4))))
def test_every_order_of_axes_is_written_in_arrows_metadata(layout, dims):
    storage = dlf.zeros((5, 4, 3, 2), layout=layout, dims=dims)
    taken = Taken(storage.__arrow_c_array__())
    assert_tensor(storage, taken)
    taken.release()


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=5).flatmap(
        lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))
    )
)
def test_extents_of_zero_and_one_keep_the_order_that_was_asked_for(shape_and_layout):
    shape, layout = shape_and_layout
    storage = dlf.zeros(shape, layout=layout)
    taken = Taken(storage.__arrow_c_array__())
    assert_tensor(storage, taken)
    taken.release()


PARTS = {
    "along the list axis": np.s_[1:3],
    "one list": np.s_[2:3],
    "no list": np.s_[3:3],
    "a plane": np.s_[2],
    "a plane of one list": np.s_[2:3, 1:],
    "a row of it": np.s_[2, 1],
    "nothing of each list": np.s_[:, :0],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_part_without_gaps_begins_at_its_own_first_element(part):
    storage = dlf.zeros((4, 3, 2))[part]
    taken = Taken(storage.__arrow_c_array__())
    if storage.ndim > 1:
        assert_tensor(storage, taken)
    else:
        assert first(storage, taken) == address_of(storage)
    taken.release()


# --- metadata beside the type --------------------------------------------------------------------


def words(storage):
    taken = Taken(storage.__arrow_c_array__())
    said = taken.words()[b"dlfield"]
    taken.release()
    return said


def test_what_a_storage_knows_of_itself_is_in_the_metadata():
    halo = ((1, 1), (0, 1), (0, 0))
    said = words(dlf.zeros((4, 3, 2), dims="IJK", halo=halo, layout=(2, 1, 0)))
    assert (said["shape"], said["axis"], said["dims"]) == ([4, 3, 2], 2, ["I", "J", "K"])
    assert said["halo"] == [[1, 1], [0, 1], [0, 0]]
    assert said.get("default_origin") is None


def test_an_origin_is_in_the_metadata():
    said = words(dlf.zeros((4, 3, 2), default_origin=(1, 2, 0)))
    assert said["default_origin"] == [1, 2, 0]


def test_a_storage_without_names_has_none_in_the_metadata():
    said = words(dlf.zeros(4))
    assert (said["shape"], said["axis"], said.get("dims")) == ([4], 0, None)


@pytest.mark.parametrize("name", ["é", "😀", 'a"b', "a\\b", "a\nb", "\x01", "x" * 1000, " "])
def test_every_name_of_a_dimension_is_written_as_json(name):
    storage = dlf.zeros((2, 3), dims=(name, "other"), layout=(1, 0))
    taken = Taken(storage.__arrow_c_array__())
    assert taken.words()[b"dlfield"]["dims"] == [name, "other"]
    assert taken.words()[ITS_METADATA]["dim_names"] == [name]
    taken.release()


# --- schemas, devices, requests ------------------------------------------------------------------


@pytest.mark.parametrize("shape", [4, (4, 3), (4, 3, 2)])
def test_the_schema_alone_is_that_of_the_array(shape):
    storage = dlf.zeros(shape)
    alone = Taken((storage.__arrow_c_schema__(), Producer().array_capsule()))
    taken = Taken(storage.__arrow_c_array__())
    assert alone.schema.format == taken.schema.format
    assert alone.words() == taken.words()
    alone.release()
    taken.release()


def test_an_array_of_the_host_says_that_it_is_there():
    taken = Taken(dlf.zeros(3).__arrow_c_device_array__())
    device = taken.device
    assert (device.device_type, device.device_id, device.sync_event) == (1, -1, None)
    assert list(device.reserved) == [0, 0, 0]
    taken.release()


@every_export
def test_capsules_have_the_names_of_the_protocol(export):
    schema, array = map(repr, export(dlf.zeros(3)))
    assert '"arrow_schema"' in schema
    assert '"arrow_array"' in array or '"arrow_device_array"' in array


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_device_array__"])
@pytest.mark.parametrize("format", [b"g", b"f", b"u"])
def test_a_schema_that_is_asked_for_changes_nothing_and_is_released_once(method, format):
    storage, asked = dlf.zeros(3), Producer(format)
    taken = Taken(getattr(storage, method)(requested_schema=asked.schema_capsule()))
    assert taken.schema.format == b"g"
    assert first(storage, taken) == address_of(storage)
    taken.release()
    assert asked.schema_freed == 1


def test_an_unknown_keyword_of_the_arrow_export_is_refused():
    with pytest.raises(NotImplementedError, match="unheard_of"):
        dlf.zeros(3).__arrow_c_device_array__(unheard_of=3)


def test_a_keyword_that_asks_for_nothing_is_not_looked_at():
    Taken(dlf.zeros(3).__arrow_c_device_array__(None, unheard_of=None)).release()
