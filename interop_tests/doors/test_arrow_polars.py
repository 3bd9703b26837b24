"""Storages into polars and its Series into storages, both without a copy."""

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
pl = library("polars")

NUMBERS = {
    "int8": pl.Int8,
    "int16": pl.Int16,
    "int32": pl.Int32,
    "int64": pl.Int64,
    "uint8": pl.UInt8,
    "uint16": pl.UInt16,
    "uint32": pl.UInt32,
    "uint64": pl.UInt64,
    "float32": pl.Float32,
    "float64": pl.Float64,
}
every_number = pytest.mark.parametrize("dtype", NUMBERS)


def address(series):
    """Where the numbers of a Series begin, according to polars and pyarrow."""
    array = series.to_arrow()
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    while isinstance(array, pa.FixedSizeListArray):
        array = array.flatten()
    return array.buffers()[1].address + array.offset * array.type.bit_width // 8


# --- out -----------------------------------------------------------------------------------------

INTO = {
    "Series": pl.Series,
    "Series with a name": lambda storage: pl.Series("a", storage),
    "from_arrow": pl.from_arrow,
    "DataFrame": lambda storage: pl.DataFrame({"a": storage})["a"],
    "DataFrame of a batch": lambda storage: pl.DataFrame(storage.to_arrow_batch("a"))["a"],
    "from_arrow of a batch": lambda storage: pl.from_arrow(storage.to_arrow_batch("a"))["a"],
}
every_way = pytest.mark.parametrize("into", INTO.values(), ids=INTO)


@every_number
@every_way
def test_a_row_of_every_dtype_is_a_series_over_its_memory(into, dtype):
    storage = dlf.storage(np.arange(5).astype(dtype))
    series = into(storage)
    assert series.dtype == NUMBERS[dtype]
    assert series.to_list() == [0, 1, 2, 3, 4]
    assert address(series) == address_of(storage)


@every_way
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0)])
def test_a_field_is_a_series_of_tensors_over_its_memory(into, layout):
    storage = dlf.storage(np.arange(24.0).reshape(4, 3, 2), layout=layout)
    series = into(storage)
    stored = series.ext.storage()
    assert stored.dtype == pl.Array(pl.Float64, 24 // len(series))
    assert np.array_equal(stored.to_numpy().ravel(), storage.to_numpy().ravel(order="K"))
    assert address(series) == address(stored) == address_of(storage)


def test_truth_values_are_bytes_over_their_memory():
    storage = dlf.storage(np.array([True, False, True]))
    series = pl.Series(storage)
    assert series.ext.storage().to_list() == [1, 0, 1]
    assert address(series) == address_of(storage)


@every_way
@pytest.mark.parametrize("part", [np.s_[:], np.s_[1:], np.s_[2]])
def test_a_series_keeps_the_memory_and_frees_it_once(into, part):
    assert_freed_once(dlf.as_storage, lambda storage: into(storage[part]))


def test_a_series_goes_back_and_forth_and_is_freed_once():
    assert_freed_once(*[dlf.as_storage, pl.Series] * 3, lambda one: one[1:3], dlf.as_storage)


def test_a_series_sees_later_writes():
    storage = dlf.zeros(4)
    series = pl.Series(storage)
    storage[...] = 7.0
    assert series.to_list() == [7.0] * 4


def test_numbers_computed_by_polars_are_its_own():
    storage = dlf.storage(np.arange(4.0))
    doubled = pl.Series(storage) * 2
    assert storage.to_numpy().tolist() == [0, 1, 2, 3]
    assert dlf.as_storage(doubled).to_numpy().tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("make", [lambda: dlf.zeros(8)[::2], lambda: dlf.zeros((4, 3))[:, :2]])
@pytest.mark.parametrize("into", [pl.Series, pl.from_arrow])
def test_polars_gets_no_field_with_gaps(into, make):
    storage = make()
    with refused(BufferError, "expected", "got", "copy=True"):
        into(storage)
    series = into(storage.to_arrow(copy=True))
    assert len(series) == 4


# --- in ------------------------------------------------------------------------------------------


@every_number
def test_a_series_of_every_dtype_arrives_over_its_memory(dtype):
    series = pl.Series("a", [0, 1, 100], dtype=NUMBERS[dtype])
    storage = dlf.as_storage(series)
    assert (storage.dtype, storage.shape, storage.dims) == (dtype, (3,), None)
    assert storage.to_numpy().tolist() == [0, 1, 100]
    assert address_of(storage) == address(series)
    assert storage.readonly
    assert storage.door == "arrow"


def test_half_floats_arrive_over_their_memory():
    if not hasattr(pl, "Float16"):
        pytest.skip("this polars has no half floats")
    series = pl.Series([0.5, -2.0], dtype=pl.Float16)
    storage = dlf.as_storage(series)
    assert storage.dtype == np.float16
    assert storage.to_numpy().tolist() == [0.5, -2.0]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3), (1,)])
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Int32, pl.UInt8])
def test_arrays_of_a_fixed_shape_arrive_with_an_axis_for_each(dtype, shape):
    values = np.arange(4 * np.prod(shape)).reshape(4, *shape)
    series = pl.Series(values.tolist(), dtype=pl.Array(dtype, shape))
    storage = dlf.as_storage(series)
    assert storage.shape == (4, *shape)
    assert np.array_equal(storage.to_numpy(), values)
    assert address_of(storage) == address(series)


@pytest.mark.parametrize(("start", "length"), [(0, 6), (1, 3), (5, 1), (2, 0)])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_a_slice_of_a_series_begins_where_it_begins(shape, start, length):
    values = np.arange(6.0 * np.prod(shape, dtype=int)).reshape(6, *shape)
    dtype = pl.Array(pl.Float64, shape) if shape else pl.Float64
    series = pl.Series(values.tolist(), dtype=dtype)
    storage = dlf.as_storage(series.slice(start, length))
    assert np.array_equal(storage.to_numpy(), values[start : start + length])
    if length:
        assert address_of(storage) == address(series) + start * values[0].nbytes


def test_a_frame_of_one_column_arrives_over_its_memory():
    frame = pl.DataFrame({"wind": [1.0, 2.0]})
    storage = dlf.as_storage(frame)
    assert storage.to_numpy().tolist() == [1, 2]
    assert address_of(storage) == address(frame["wind"])


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_tensors_come_back_from_polars_with_the_names_that_arrow_keeps(layout):
    storage = dlf.storage(np.arange(24.0).reshape(4, 3, 2), dims="IJK", layout=layout)
    back = dlf.as_storage(pl.Series(storage))
    axis = layout.index(0)
    assert back.dims == ("dim_0", *(name for n, name in enumerate("IJK") if n != axis))
    assert np.array_equal(back.to_numpy(), np.moveaxis(storage.to_numpy(), axis, 0))
    assert address_of(back) == address_of(storage)


def test_metadata_of_a_column_is_lost_in_polars():
    storage = dlf.zeros((4, 3), dims="IJ", halo=(1, 0))
    back = dlf.as_storage(pl.DataFrame(storage.to_arrow_batch("a")))
    assert (back.dims, back.halo) == (("dim_0", "J"), ((0, 0), (0, 0)))


def test_types_that_are_stored_as_numbers_come_in_as_numbers():
    values = dlf.as_storage(pl.Series([1.0, float("nan"), float("inf")])).to_numpy()
    assert np.array_equal(values, [1.0, np.nan, np.inf], equal_nan=True)


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Array(pl.Int8, 3), pl.Array(pl.Int8, (2, 3))])
def test_a_series_without_elements_arrives(dtype):
    storage = dlf.as_storage(pl.Series([], dtype=dtype))
    assert storage.shape == (0, *getattr(dtype, "shape", ()))


def parts(*series):
    return pl.concat([pl.Series("a", one) for one in series], rechunk=False)


REFUSED = {
    "nulls": (lambda: pl.Series([1.0, None]), ("got 1", "fill_null", "drop_null")),
    "whole arrays": (
        lambda: pl.Series([[1.0], None], dtype=pl.Array(pl.Float64, 1)),
        ("null", "fill_null"),
    ),
    "nulls in arrays": (
        lambda: pl.Series([[1.0, None]], dtype=pl.Array(pl.Float64, 2)),
        ("got 1", "fill_null"),
    ),
    "nothing": (lambda: pl.Series([None, None]), ("null",)),
    "bits": (lambda: pl.Series([True, False]), ("uint8", "bool8")),
    "text": (lambda: pl.Series(["a"]), ()),
    "bytes": (lambda: pl.Series([b"a"]), ()),
    "categories": (lambda: pl.Series(["a"], dtype=pl.Categorical), ("decode it first",)),
    "enum": (lambda: pl.Series(["a"], dtype=pl.Enum(["a"])), ("decode it first",)),
    "days": (lambda: pl.Series([datetime.date(2000, 1, 1)]), ("int",)),
    "times": (lambda: pl.Series([datetime.datetime(2000, 1, 1)]), ("int64",)),
    "durations": (lambda: pl.Series([datetime.timedelta(1)]), ("int64",)),
    "times of day": (lambda: pl.Series([datetime.time(1)]), ("int64",)),
    "decimals": (lambda: pl.Series([decimal.Decimal("1.5")]), ("float64",)),
    "lists": (lambda: pl.Series([[1.0], [2.0, 3.0]]), ("fixed size",)),
    "objects": (lambda: pl.Series([object()]), ()),
    "wide ints": (lambda: pl.Series([1], dtype=pl.Int128), ()),
    "structs": (lambda: pl.Series([{"wind": 1, "rain": 2}]), ("wind", "rain", "select one")),
    "two columns": (lambda: pl.DataFrame({"wind": [1], "rain": [2]}), ("wind", "rain")),
    "no columns": (pl.DataFrame, ()),
    "two chunks": (lambda: parts([1.0], [2.0]), ("combine_chunks", "rechunk")),
}


@pytest.mark.parametrize(("make", "texts"), REFUSED.values(), ids=REFUSED)
def test_a_series_without_one_block_of_numbers_is_refused(make, texts):
    with refused(BufferError, "expected", "got", *texts):
        dlf.as_storage(make())


WAYS_OUT = {
    "nulls filled": lambda: pl.Series([1, None]).fill_null(0),
    "nulls dropped": lambda: pl.Series([1, None, 0]).drop_nulls(),
    "bits as bytes": lambda: pl.Series([True, False]).cast(pl.UInt8),
    "one column of two": lambda: pl.DataFrame({"a": [1, 0], "b": [2, 2]}).select("a"),
    "the column itself": lambda: pl.DataFrame({"a": [1, 0], "b": [2, 2]})["a"],
    "chunks together": lambda: parts([1], [0]).rechunk(),
    "a frame's chunks together": lambda: pl.concat(
        [pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [0]})], rechunk=False
    ).rechunk(),
    "times as numbers": lambda: pl.Series([1, 0]).cast(pl.Datetime).cast(pl.Int64),
}


@pytest.mark.parametrize("make", WAYS_OUT.values(), ids=WAYS_OUT)
def test_the_ways_out_of_errors_work_in_polars(make):
    assert dlf.as_storage(make()).to_numpy().tolist() == [1, 0]


def test_a_frame_of_several_chunks_is_put_together_by_polars():
    frames = [pl.DataFrame({"a": [1.0]}), pl.DataFrame({"a": [2.0]})]
    frame = pl.concat(frames, rechunk=False)
    assert frame["a"].n_chunks() == 2
    assert dlf.as_storage(frame).to_numpy().tolist() == [1, 2]


def test_a_lazy_frame_gets_an_error_with_a_way_to_an_array():
    with refused(TypeError, "array: expected one that speaks"):
        dlf.as_storage(pl.LazyFrame({"a": [1.0]}))


def test_the_door_of_a_series_is_arrow():
    explanation = dlf.explain(pl.Series([1.0]))
    assert (explanation.door, explanation.doors) == ("arrow", ("arrow",))


# --- release -------------------------------------------------------------------------------------


def test_a_series_over_memory_of_others_goes_with_the_storage_over_it():
    def series(memory):
        buffer = pa.py_buffer(memory)
        return pl.Series(pa.Array.from_buffers(pa.float64(), 12, [None, buffer]))

    assert_freed_once(np.from_dlpack, series, dlf.as_storage)
    assert_freed_once(np.from_dlpack, series, lambda one: one[3:7], dlf.as_storage, np.asarray)
