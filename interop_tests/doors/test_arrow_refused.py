"""What does not go between dlfield and pyarrow, with its way out; copies; what is asked for."""

import datetime
import decimal

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.owners import assert_freed_once

pa = library("pyarrow")


# --- out -----------------------------------------------------------------------------------------

#: Fields that have gaps, or lie backwards, and could be copied into memory that has none.
WITH_GAPS = {
    "padded": lambda: dlf.ones((4, 3), dims="IJ", halo=(1, 0), alignment_size=64),
    "padded in another order": lambda: dlf.ones((4, 3, 2), layout=(2, 0, 1), alignment_size=64),
    "inside a halo": lambda: dlf.ones((4, 4), dims="IJ", halo=(1, 1)).domain_view,
    "part of rows": lambda: dlf.ones((4, 3))[:, 1:],
    "every second": lambda: dlf.ones(6)[::2],
    "backwards": lambda: dlf.storage(np.arange(6.0))[::-1],
    "backwards along one axis": lambda: dlf.storage(np.arange(6.0).reshape(3, 2))[:, ::-1],
    "repeated": lambda: dlf.as_storage(np.broadcast_to(np.arange(3.0), (4, 3))),
}
with_gaps = pytest.mark.parametrize("make", WITH_GAPS.values(), ids=WITH_GAPS)

OUT = {
    "to_arrow": lambda storage: storage.to_arrow(),
    "batch": lambda storage: storage.to_arrow_batch("a"),
    "pa.array": pa.array,
}
every_way_out = pytest.mark.parametrize("export", OUT.values(), ids=OUT)


@with_gaps
@every_way_out
def test_a_field_with_gaps_is_refused_with_a_way_out(make, export):
    with refused(BufferError, "expected", "got", "copy=True"):
        export(make())


@with_gaps
def test_a_copy_of_it_has_no_gaps_and_the_same_values(make):
    storage = make()
    copy = dlf.as_storage(storage.to_arrow_batch("a", copy=True))
    assert address_of(copy) != address_of(storage)
    assert np.array_equal(copy.to_numpy(), storage.to_numpy())
    assert (copy.shape, copy.dims, copy.halo) == (storage.shape, storage.dims, storage.halo)
    storage.to_arrow(copy=True).validate(full=True)


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_a_copy_has_the_same_order_of_axes(layout):
    storage = dlf.ones((4, 3, 2), layout=layout, alignment_size=64)
    copy = dlf.as_storage(storage.to_arrow_batch("a", copy=True))
    assert copy.layout == layout
    assert storage.to_arrow(copy=True).type == dlf.ones((4, 3, 2), layout=layout).to_arrow().type


def test_a_copy_is_made_where_none_was_needed_too():
    storage = dlf.ones((4, 3))
    array = storage.to_arrow(copy=True)
    storage[...] = 5.0
    assert set(np.asarray(array.storage.flatten()).tolist()) == {1.0}


def test_a_copy_needs_no_boundary():
    storage = dlf.as_storage(np.zeros(25, np.uint8)[1:].view(np.float64))
    with refused(BufferError, "boundaries of 8 bytes", "copy=True"):
        storage.to_arrow()
    assert storage.to_arrow(copy=True).to_pylist() == [0.0] * 3


def test_a_copy_holds_no_memory_of_the_storage():
    def copied(storage):
        array = storage.to_arrow(copy=True)
        del storage
        return array

    with pytest.raises(AssertionError, match="freed while it was in use"):
        assert_freed_once(dlf.as_storage, copied)


WITHOUT_A_WORD = {
    "complex64": (lambda: dlf.zeros(3, dtype="complex64"), "complex64"),
    "complex128": (lambda: dlf.zeros((3, 2), dtype="complex128"), "complex128"),
    "bool in two dimensions": (lambda: dlf.zeros((3, 2), dtype=bool), "bool"),
    "bfloat16": (lambda: dlf.zeros(3, dtype="bfloat16"), "bfloat16"),
    "float8": (lambda: dlf.zeros((3, 2), dtype="float8_e5m2"), "float8_e5m2"),
    "one number": (lambda: dlf.zeros(()), "dimension"),
}


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize(("make", "said"), WITHOUT_A_WORD.values(), ids=WITHOUT_A_WORD)
def test_what_arrow_has_no_word_for_is_refused_with_its_name(make, said, copy):
    if "float" in said:
        library("ml_dtypes")
    storage = make()
    with refused(BufferError, "expected", "got", said, ";"):
        storage.to_arrow(copy=copy)
    with refused(BufferError, said):
        storage.to_arrow_batch("a", copy=copy)


def test_copy_is_a_keyword():
    with pytest.raises(TypeError):
        dlf.zeros(3).to_arrow(True)  # noqa: FBT003


@pytest.mark.parametrize("name", [None, 3, b"a"])
def test_the_name_of_a_column_is_a_text(name):
    with pytest.raises(TypeError):
        dlf.zeros(3).to_arrow_batch(name)


@pytest.mark.parametrize("name", ["", "wind", "é", "a b", "a\nb"])
def test_a_column_has_the_name_that_was_given(name):
    assert dlf.zeros(3).to_arrow_batch(name).schema.names == [name]


# --- in ------------------------------------------------------------------------------------------

TENSOR = pa.fixed_shape_tensor(pa.float64(), [2])


def lists(values, size=2):
    return pa.array(values, pa.list_(pa.float64(), size))


def with_tensor(values):
    return pa.ExtensionArray.from_storage(TENSOR, lists(values))


NULLS = {
    "numbers": (lambda: pa.array([1.0, None, None]), 2),
    "whole lists": (lambda: lists([[1.0, 2.0], None]), 1),
    "numbers in lists": (lambda: lists([[1.0, None], [None, None]]), 3),
    "whole tensors": (lambda: with_tensor([[1.0, 2.0], None]), 1),
    "numbers in tensors": (lambda: with_tensor([[1.0, None]]), 1),
    "a column": (lambda: pa.table({"a": [1.0, None]}), 1),
    "a slice": (lambda: pa.array([None, 1.0, None, 2.0])[1:], 1),
}


@pytest.mark.parametrize(("make", "count"), NULLS.values(), ids=NULLS)
def test_nulls_of_pyarrow_are_counted_and_refused_with_a_way_out(make, count):
    with refused(BufferError, f"got {count}", "null", "fill_null", "drop_null"):
        dlf.as_storage(make())


def test_nulls_outside_of_a_slice_do_not_count():
    array = pa.array([None, 1.0, 2.0, None])[1:3]
    assert dlf.as_storage(array).to_numpy().tolist() == [1, 2]


def test_nulls_in_lists_outside_of_a_slice_do_not_count():
    array = lists([[None, 1.0], [2.0, 3.0], None])[1:2]
    assert dlf.as_storage(array).to_numpy().tolist() == [[2, 3]]


def test_the_ways_out_for_nulls_lead_out():
    array = pa.array([1.0, None])
    assert dlf.as_storage(array.fill_null(7.0)).to_numpy().tolist() == [1, 7]
    assert dlf.as_storage(array.drop_null()).to_numpy().tolist() == [1]


OTHER_TYPES = {
    "text": (lambda: pa.array(["a"]), ()),
    "bytes": (lambda: pa.array([b"a"]), ()),
    "bytes of one size": (lambda: pa.array([b"ab"], pa.binary(2)), ()),
    "views of text": (lambda: pa.array(["a"], pa.string_view()), ()),
    "nothing": (lambda: pa.nulls(3), ()),
    "bits": (lambda: pa.array([True, False]), ("uint8", "bool8")),
    "lists of bits": (lambda: pa.array([[True]], pa.list_(pa.bool_(), 1)), ("uint8", "bool8")),
    "lists of any length": (lambda: pa.array([[1.0], [2.0, 3.0]]), ()),
    "long lists": (lambda: pa.array([[1.0]], pa.large_list(pa.float64())), ()),
    "maps": (lambda: pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), ()),
    "days": (lambda: pa.array([datetime.date(2000, 1, 1)]), ()),
    "times": (lambda: pa.array([0], pa.timestamp("ns")), ("int64",)),
    "times of a zone": (lambda: pa.array([0], pa.timestamp("us", "UTC")), ()),
    "durations": (lambda: pa.array([0], pa.duration("s")), ()),
    "decimals": (lambda: pa.array([decimal.Decimal("1.5")]), ("float64",)),
    "dictionaries": (lambda: pa.array(["a", "a"]).dictionary_encode(), ("decode it first",)),
    "dictionaries of numbers": (
        lambda: pa.array([1.0, 1.0]).dictionary_encode(),
        ("decode it first",),
    ),
    "unions": (
        lambda: pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1.0])]),
        (),
    ),
    "runs": (lambda: pa.RunEndEncodedArray.from_arrays([2], [1.0]), ()),
    "two columns": (lambda: pa.table({"wind": [1.0], "rain": [2.0]}), ("wind", "rain")),
    "no columns": (lambda: pa.record_batch([], []), ()),
    "a struct of two": (lambda: pa.array([{"wind": 1.0, "rain": 2.0}]), ("wind", "select one")),
    "two chunks": (lambda: pa.chunked_array([[1.0], [2.0]]), ("combine_chunks", "rechunk")),
    "a table of two chunks": (
        lambda: pa.concat_tables([pa.table({"a": [1.0]})] * 2),
        ("combine_chunks", "rechunk"),
    ),
}


@pytest.mark.parametrize(("make", "texts"), OTHER_TYPES.values(), ids=OTHER_TYPES)
def test_data_without_one_block_of_numbers_is_refused(make, texts):
    with refused(BufferError, "expected", "got", *texts):
        dlf.as_storage(make())


WAYS_OUT = {
    "bits as bytes": lambda: pa.array([True, False]).cast(pa.uint8()),
    "a dictionary that is decoded": lambda: (
        pa.array([1, 0]).dictionary_encode().dictionary_decode()
    ),
    "one column of two": lambda: pa.table({"a": [1, 0], "b": [2, 2]}).select(["a"]),
    "the column itself": lambda: pa.table({"a": [1, 0], "b": [2, 2]})["a"],
    "chunks together": lambda: pa.chunked_array([[1], [0]]).combine_chunks(),
    "a table's chunks together": lambda: pa.concat_tables(
        [pa.table({"a": [1]}), pa.table({"a": [0]})]
    ).combine_chunks(),
    "times as numbers": lambda: pa.array([1, 0], pa.timestamp("ns")).cast(pa.int64()),
    "decimals as floats": lambda: pa.array([1, 0], pa.decimal128(3, 0)).cast(pa.float64()),
}


@pytest.mark.parametrize("make", WAYS_OUT.values(), ids=WAYS_OUT)
def test_the_ways_out_of_errors_work_in_pyarrow(make):
    assert dlf.as_storage(make()).to_numpy().tolist() == [1, 0]


NOT_ARRAYS = {
    "a type": pa.float64,
    "a field": lambda: pa.field("a", pa.float64()),
    "a schema": lambda: pa.schema([("a", pa.float64())]),
    "a scalar": lambda: pa.scalar(1.0),
}


@pytest.mark.parametrize("make", NOT_ARRAYS.values(), ids=NOT_ARRAYS)
def test_the_error_for_other_objects_names_what_is_accepted(make):
    with refused(TypeError, "array: expected one that speaks"):
        dlf.as_storage(make())


@pytest.mark.parametrize("make", ["Series", "DataFrame"])
def test_pandas_is_not_taken_by_its_stream(make):
    pd = library("pandas")
    with refused(TypeError, "array: expected one array, got a ", "pass x.to_numpy()"):
        dlf.as_storage(getattr(pd, make)({"a": [1.0, 2.0]}))


# --- what is asked for ---------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [pa.float64(), pa.float32(), pa.string()])
def test_a_type_that_is_asked_for_changes_nothing(asked):
    storage = dlf.zeros(3)
    pair = storage.__arrow_c_array__(requested_schema=asked.__arrow_c_schema__())
    array = pa.Array._import_from_c_capsule(*pair)
    assert array.type == pa.float64()
    assert array.buffers()[1].address == address_of(storage)


def test_a_field_of_pyarrow_is_made_of_a_storage():
    made = pa.field(dlf.zeros((4, 3), dims="IJ", halo=(1, 0)))
    assert made.type == pa.fixed_shape_tensor(pa.float64(), [3], dim_names=["J"])
    assert b"dlfield" in made.metadata


def test_the_error_names_the_door_and_the_obstacle():
    explanation = dlf.explain(dlf.zeros((4, 3), dims="IJ").to_arrow())
    assert explanation.door == "arrow"
    assert "arrow" in explanation.doors
    assert explanation.storage.dims == ("dim_0", "J")
    assert any("read-only" in obstacle for obstacle in explanation.obstacles)


@pytest.mark.parametrize("make", [pa.array, lambda values: pa.table({"a": values})])
def test_an_array_of_numbers_names_its_door(make):
    assert "arrow" in dlf.explain(make([1.0, 2.0])).doors


def test_explain_gives_the_error_of_an_arrow_object():
    explanation = dlf.explain(pa.array([1.0, None]))
    assert explanation.storage is None
    (obstacle,) = explanation.obstacles
    assert obstacle.startswith("BufferError: ")
    assert "fill_null" in obstacle


# --- no elements ---------------------------------------------------------------------------------

EMPTY = [(0,), (0, 3), (3, 0), (0, 3, 2), (4, 0, 2), (4, 3, 0), (0, 0)]


@pytest.mark.parametrize("shape", EMPTY)
def test_a_field_without_elements_goes_through_pyarrow(shape):
    storage = dlf.zeros(shape, dims="IJK"[: len(shape)])
    array = storage.to_arrow()
    array.validate(full=True)
    assert len(array) == shape[0]
    back = dlf.as_storage(storage.to_arrow_batch("a"))
    assert (back.shape, back.dims, back.layout) == (shape, storage.dims, storage.layout)
    assert dlf.as_storage(array).shape == shape
    if len(shape) > 1:
        assert array.to_numpy_ndarray().shape == shape


@pytest.mark.parametrize("make", [lambda: pa.array([], pa.float64()), lambda: lists([])])
def test_an_array_without_elements_arrives(make):
    assert dlf.as_storage(make()).shape[0] == 0
