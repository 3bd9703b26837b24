"""Storages into pyarrow; its arrays, lists, tensors and tables into storages; without a copy."""

import itertools

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.addresses import address_of
from support.optional import library
from support.owners import assert_freed_once

pa = library("pyarrow")

NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS += ("float16", "float32", "float64")
every_number = pytest.mark.parametrize("dtype", NUMBERS)

ORDERS = tuple(itertools.permutations(range(3)))


def inside(array):
    """Return the numbers in an array of any type, of the part that is shown."""
    if isinstance(array, pa.ExtensionArray):
        return inside(array.storage)
    if isinstance(array, pa.FixedSizeListArray):
        return inside(array.flatten())
    return array


def address(array):
    """Where the first number of an array lies, according to pyarrow."""
    numbers = inside(array)
    return numbers.buffers()[1].address + numbers.offset * numbers.type.bit_width // 8


def in_memory(array):
    """Return the tensors of an array, read by the rules of the format: from memory to axes."""
    physical = np.asarray(inside(array)).reshape(len(array), *array.type.shape)
    order = array.type.permutation or range(physical.ndim - 1)
    return physical.transpose(0, *(1 + axis for axis in order))


def field(shape=(4, 3, 2), dtype="float64", **options):
    values = np.arange(np.prod(shape)).reshape(shape) % 100
    return dlf.storage(values.astype(dtype), **options)


# --- out: one dimension --------------------------------------------------------------------------


@every_number
def test_a_row_of_every_dtype_is_an_array_over_its_memory(dtype):
    storage = field(5, dtype)
    array = storage.to_arrow()
    array.validate(full=True)
    assert type(array) is type(pa.array([], pa.from_numpy_dtype(dtype)))
    assert address(array) == address_of(storage)
    assert array.to_pylist() == [0, 1, 2, 3, 4]
    assert array.null_count == 0


def test_truth_values_are_bool8_over_their_memory():
    storage = dlf.storage(np.array([True, False, True]))
    array = storage.to_arrow()
    array.validate(full=True)
    assert array.type == pa.bool8()
    assert address(array) == address_of(storage)
    assert array.to_numpy(zero_copy_only=True).tolist() == [True, False, True]


# --- out: several dimensions ---------------------------------------------------------------------


@every_number
def test_a_field_of_every_dtype_is_tensors_over_its_memory(dtype):
    storage = field(dtype=dtype, dims="IJK")
    array = storage.to_arrow()
    array.validate(full=True)
    assert isinstance(array, pa.FixedShapeTensorArray)
    value_type = pa.from_numpy_dtype(dtype)
    assert array.type == pa.fixed_shape_tensor(value_type, [3, 2], dim_names=["J", "K"])
    assert address(array) == address_of(storage)
    assert np.array_equal(array.to_numpy_ndarray(), storage.to_numpy())


def test_a_field_without_names_is_tensors_without_names():
    assert field().to_arrow().type == pa.fixed_shape_tensor(pa.float64(), [3, 2])


def test_a_field_in_fortran_order_is_tensors_with_a_permutation():
    array = field(dims="IJK", layout=(2, 1, 0)).to_arrow()
    said = pa.fixed_shape_tensor(pa.float64(), [3, 4], dim_names=["J", "I"], permutation=[1, 0])
    assert array.type == said
    assert len(array) == 2


@pytest.mark.parametrize("dims", [None, "IJK", ("lev", "lat", "lon")])
@pytest.mark.parametrize("layout", ORDERS)
def test_every_order_of_three_axes_is_what_pyarrow_makes_of_it(layout, dims):
    storage = field(layout=layout, dims=dims)
    array = storage.to_arrow()
    axis = layout.index(0)
    lists_first = np.moveaxis(storage.to_numpy(), axis, 0)
    for values in (in_memory(array), array.to_numpy_ndarray(), array.to_tensor().to_numpy()):
        assert values.ctypes.data == address_of(storage)
        assert values.strides == lists_first.strides
        assert np.array_equal(values, lists_first)
    if dims is not None:
        names = [name for n, name in enumerate(dims) if n != axis]
        assert list(array.to_tensor().dim_names) == ["", *names]


@given(st.permutations(range(4)), st.lists(st.integers(0, 4), min_size=4, max_size=4))
def test_every_order_of_four_axes_is_written_as_the_format_defines_it(layout, shape):
    storage = field(shape, layout=layout)
    array = storage.to_arrow()
    array.validate(full=True)
    axis = list(layout).index(0)
    assert np.array_equal(in_memory(array), np.moveaxis(storage.to_numpy(), axis, 0))


#: Orders of three axes that are not their own inverse.
CYCLES = ((1, 2, 0), (2, 0, 1))


@pytest.mark.xfail(reason="pyarrow applies the inverse of such a permutation", strict=True)
@pytest.mark.parametrize("order", CYCLES)
def test_pyarrow_reads_its_own_tensors_in_a_cyclic_order(order):
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(48.0)), 24)
    said = pa.fixed_shape_tensor(pa.float64(), [2, 3, 4], permutation=list(order))
    array = pa.ExtensionArray.from_storage(said, values)
    assert np.array_equal(array.to_numpy_ndarray(), in_memory(array))


@pytest.mark.xfail(reason="pyarrow writes the inverse of such a permutation", strict=True)
@pytest.mark.parametrize("order", CYCLES)
def test_pyarrow_makes_tensors_in_a_cyclic_order(order):
    values = np.arange(48.0).reshape(2, 2, 3, 4).transpose(0, *(1 + axis for axis in order))
    array = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    assert np.array_equal(dlf.as_storage(array).to_numpy(), values)


# --- both ways -----------------------------------------------------------------------------------


EXPORTS = {
    "to_arrow": lambda storage: storage.to_arrow(),
    "pa.array": pa.array,
    "batch": lambda storage: storage.to_arrow_batch("a").column(0),
    "table": lambda storage: pa.table({"a": storage}).column(0).chunk(0),
    "chunked": lambda storage: pa.chunked_array([storage]).chunk(0),
    "chunked array of a row": lambda storage: pa.chunked_array([storage.to_arrow()]).chunk(0),
}
every_export = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)


@every_export
@pytest.mark.parametrize("shape", [6, (4, 3), (4, 3, 2)])
def test_every_way_into_pyarrow_shares_the_memory(export, shape):
    storage = field(shape)
    array = export(storage)
    assert address(array) == address_of(storage)
    storage[...] = 7.0
    assert set(np.asarray(inside(array)).tolist()) == {7.0}


@every_export
def test_pyarrow_keeps_the_memory_and_frees_it_once(export):
    assert_freed_once(dlf.as_storage, export)


@every_export
def test_a_storage_over_it_keeps_the_memory_and_frees_it_once(export):
    assert_freed_once(dlf.as_storage, export, dlf.as_storage)


def test_arrow_memory_goes_back_and_forth_and_is_freed_once():
    steps = [dlf.as_storage, pa.array] * 3
    assert_freed_once(*steps, lambda array: array.slice(1, 2), dlf.as_storage, np.asarray)


@pytest.mark.parametrize("layout", ORDERS)
def test_a_batch_comes_back_as_the_field_it_was(layout):
    halo = ((1, 1), (0, 1), (0, 0))
    storage = field(dims="KIJ", halo=halo, layout=layout, default_origin=(0, 1, 1))
    back = dlf.as_storage(storage.to_arrow_batch("a"))
    assert (back.shape, back.dims, back.halo) == (storage.shape, storage.dims, storage.halo)
    assert (back.layout, back.strides) == (storage.layout, storage.strides)
    assert back.default_origin == (0, 1, 1)
    assert address_of(back) == address_of(storage)
    assert back.readonly
    assert back.door == "arrow"


@pytest.mark.parametrize("layout", ORDERS)
def test_an_array_alone_comes_back_with_its_lists_first_and_without_a_halo(layout):
    storage = field(dims="IJK", halo=(1, 1, 0), layout=layout)
    back = dlf.as_storage(storage.to_arrow())
    axis = layout.index(0)
    names = [name for n, name in enumerate("IJK") if n != axis]
    assert back.dims == ("dim_0", *names)
    assert back.halo == ((0, 0),) * 3
    assert np.array_equal(back.to_numpy(), np.moveaxis(storage.to_numpy(), axis, 0))
    assert address_of(back) == address_of(storage)


@every_number
def test_an_array_of_every_dtype_arrives_over_its_memory(dtype):
    array = pa.array(np.arange(5, dtype=dtype))
    storage = dlf.as_storage(array)
    assert (storage.dtype, storage.shape, storage.dims) == (dtype, (5,), None)
    assert address_of(storage) == address(array)
    assert storage.to_numpy().tolist() == [0, 1, 2, 3, 4]
    assert storage.readonly


@every_number
def test_tensors_of_every_dtype_arrive_over_their_memory(dtype):
    values = np.arange(24, dtype=dtype).reshape(4, 3, 2)
    array = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    storage = dlf.as_storage(array)
    assert storage.dtype == dtype
    assert address_of(storage) == address(array)
    assert np.array_equal(storage.to_numpy(), values)


def test_bool8_arrives_as_bool():
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 1], pa.int8()))
    storage = dlf.as_storage(array)
    assert storage.dtype == bool
    assert address_of(storage) == address(array)
    assert storage.to_numpy().tolist() == [True, False, True]


@pytest.mark.parametrize("order", [order for order in ORDERS if order not in CYCLES])
def test_tensors_of_pyarrow_in_another_order_arrive_in_their_own(order):
    values = np.arange(48.0).reshape(2, 2, 3, 4).transpose(0, *(1 + axis for axis in order))
    array = pa.FixedShapeTensorArray.from_numpy_ndarray(values, dim_names=list("abc"))
    storage = dlf.as_storage(array)
    assert np.array_equal(storage.to_numpy(), array.to_numpy_ndarray())
    assert storage.dims == ("dim_0", *list(array.to_tensor().dim_names)[1:])


def lists(*sizes, count=48):
    """Make lists of a fixed size, of lists, of numbers."""
    array = pa.array(np.arange(float(count)))
    for size in reversed(sizes):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array


def columns(array):
    return pa.record_batch([array], ["a"])


def stored_as(array):
    return pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float64(), [3, 4], dim_names=["x", "y"]), array
    )


OBJECTS = {
    # an array, and the shape of what arrives
    "numbers": (lambda: pa.array(np.arange(8.0)), (8,)),
    "lists": (lambda: lists(6), (8, 6)),
    "lists of lists": (lambda: lists(2, 3), (8, 2, 3)),
    "lists of lists of lists": (lambda: lists(2, 3, 2, count=96), (8, 2, 3, 2)),
    "tensors": (lambda: stored_as(lists(12, count=96)), (8, 3, 4)),
    "batch": (lambda: columns(pa.array(np.arange(8.0))), (8,)),
    "batch of lists": (lambda: columns(lists(6)), (8, 6)),
    "batch of tensors": (lambda: columns(stored_as(lists(12, count=96))), (8, 3, 4)),
    "table": (lambda: pa.table({"a": lists(6)}), (8, 6)),
    "chunks": (lambda: pa.chunked_array([lists(6)]), (8, 6)),
    "struct": (lambda: pa.StructArray.from_arrays([lists(6)], ["a"]), (8, 6)),
}
every_object = pytest.mark.parametrize(("make", "shape"), OBJECTS.values(), ids=OBJECTS)


@every_object
def test_everything_that_holds_one_block_of_numbers_arrives(make, shape):
    storage = dlf.as_storage(make())
    assert storage.door == "arrow"
    assert np.array_equal(storage.to_numpy(), np.arange(float(np.prod(shape))).reshape(shape))
    assert storage.readonly


@every_object
@pytest.mark.parametrize(("start", "length"), [(0, 8), (1, 5), (3, 0), (8, 0), (7, 1)])
def test_a_slice_of_it_begins_where_it_begins(make, shape, start, length):
    whole = make()
    if isinstance(whole, pa.Table) and not length:
        return  # it does not have chunks, see `test_arrow_refused.py`
    storage = dlf.as_storage(whole.slice(start, length))
    values = np.arange(float(np.prod(shape))).reshape(shape)[start : start + length]
    assert storage.shape == values.shape
    assert np.array_equal(storage.to_numpy(), values)
    if length:
        of_a_list = values[0].nbytes
        assert address_of(storage) == address_of(dlf.as_storage(whole)) + start * of_a_list


def test_lists_of_a_slice_begin_where_the_slice_begins():
    array = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(9.0))[3:], 2)[1:]
    assert dlf.as_storage(array).to_numpy().tolist() == [[5, 6], [7, 8]]


def test_a_reader_of_one_batch_arrives():
    batch = columns(lists(6))
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    storage = dlf.as_storage(reader)
    assert address_of(storage) == address(batch.column(0))
    with pytest.raises(BufferError, match="chunk"):
        dlf.as_storage(reader)  # which has been read


def test_the_values_of_an_array_go_with_the_storage_over_it():
    def array(memory):
        return lists_over(pa.py_buffer(memory))

    def lists_over(buffer):
        return pa.FixedSizeListArray.from_arrays(
            pa.Array.from_buffers(pa.float64(), 12, [None, buffer]), 3
        )

    assert_freed_once(np.from_dlpack, array, dlf.as_storage)
    assert_freed_once(np.from_dlpack, array, columns, dlf.as_storage, lambda one: one[1:])
