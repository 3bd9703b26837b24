"""Arrow arrays as storages, of producers made with ctypes: values, names, order of axes, halo."""

import itertools
import json

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.addresses import address_of
from support.arrow_structs import OnDevice, Producer, Stream, batch, lists, nested, shown, tensor
from support.owners import tracked


class ByArrow:
    """Shows a storage by Arrow and hides everything else."""

    def __init__(self, storage):
        self.storage = storage

    def __arrow_c_array__(self, requested_schema=None):
        return self.storage.__arrow_c_array__(requested_schema)


class ByDevice(ByArrow):
    """The same, by the other method."""

    __arrow_c_array__ = None

    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        return self.storage.__arrow_c_device_array__(requested_schema, **keywords)


def values(storage):
    return storage.to_numpy().tolist()


# --- values --------------------------------------------------------------------------------------


def test_the_memory_is_shared_and_read_only():
    producer = Producer()
    storage = dlf.as_storage(producer)
    assert storage.to_numpy().ctypes.data == producer.buffers[1]
    producer.values[2] = 7.0
    assert values(storage) == [0, 1, 7, 3]
    assert storage.readonly
    with pytest.raises(BufferError, match="read-only"):
        storage[0] = 1.0


def test_the_door_of_an_arrow_array_is_arrow():
    producer = Producer()
    assert dlf.as_storage(producer).door == "arrow"
    producer.arm()
    explanation = dlf.explain(producer)
    assert explanation.doors == ("arrow",)
    assert "shared through arrow" in str(explanation)


@pytest.mark.parametrize("make", [OnDevice, Stream])
def test_the_door_has_one_name_for_all_its_methods(make):
    explanation = dlf.explain(make(Producer()))
    assert (explanation.door, explanation.doors) == ("arrow", ("arrow",))


def test_an_offset_leaves_out_the_first_elements():
    assert values(dlf.as_storage(Producer().part(1, 2))) == [1, 2]


def test_lists_are_rows():
    assert values(dlf.as_storage(lists(2, length=3))) == [[0, 1], [2, 3], [4, 5]]


def test_lists_of_lists_have_an_axis_each():
    storage = dlf.as_storage(nested(3, 2, length=2))
    assert storage.shape == (2, 3, 2)
    assert np.array_equal(storage.to_numpy(), np.arange(12.0).reshape(2, 3, 2))


def test_an_offset_of_lists_leaves_out_whole_lists():
    assert values(dlf.as_storage(lists(2).part(1, 2))) == [[2, 3], [4, 5]]


def test_an_offset_of_the_values_in_lists_counts_too():
    producer = lists(2, Producer(length=9).part(1, 8)).part(1, 3)
    assert values(dlf.as_storage(producer)) == [[3, 4], [5, 6], [7, 8]]


def test_offsets_on_every_level_add_up():
    numbers = Producer(length=40).part(1, 39)
    producer = lists(3, lists(2, numbers, length=15).part(2, 13), length=4).part(1, 3)
    start = 1 + 2 * (2 + 3 * 1)
    assert dlf.as_storage(producer).to_numpy().ravel().tolist() == [*range(start, start + 18)]


def test_an_offset_of_a_batch_leaves_out_rows_of_its_column():
    assert values(dlf.as_storage(batch(Producer()).part(1, 2))) == [1, 2]
    column = Producer(length=9).part(3, 6)
    assert values(dlf.as_storage(batch(column).part(1, 2))) == [4, 5]


def test_what_has_no_names_gets_none():
    for producer in (Producer(), lists(2), tensor((3, 2)), batch(Producer(name=b"a"))):
        assert dlf.as_storage(producer).dims is None


# --- tensors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["permutation", "permutations"])
@pytest.mark.parametrize("permutation", tuple(itertools.permutations(range(3))))
def test_a_permutation_leads_to_the_logical_axes(permutation, key):
    shape = (2, 3, 4)
    producer = tensor(shape, dim_names=list("abc"), **{key: list(permutation)})
    storage = dlf.as_storage(producer)
    physical = np.arange(96.0).reshape(4, *shape)
    logical = physical.transpose(0, *(1 + axis for axis in permutation))
    assert np.array_equal(storage.to_numpy(), logical)
    assert storage.dims == ("dim_0", *("abc"[axis] for axis in permutation))
    assert address_of(storage) == producer.children[0].buffers[1]


def test_two_spellings_have_to_say_the_same():
    same = tensor((2, 3), permutation=[1, 0], permutations=[1, 0])
    assert dlf.as_storage(same).shape == (4, 3, 2)
    with pytest.raises(BufferError, match="permutation"):
        dlf.as_storage(tensor((2, 3), permutation=[1, 0], permutations=[0, 1]))


def test_a_part_of_tensors_begins_at_its_own():
    producer = tensor((3, 2)).part(2, 2)
    assert dlf.as_storage(producer).to_numpy()[0, 0].tolist() == [12, 13]


def test_tensors_of_one_dimension_are_rows():
    storage = dlf.as_storage(tensor((3,), dim_names=["x"]))
    assert (storage.shape, storage.dims) == ((4, 3), ("dim_0", "x"))


def test_tensors_of_nothing_are_kept():
    assert dlf.as_storage(tensor((3, 0, 2))).shape == (4, 3, 0, 2)
    assert dlf.as_storage(tensor((3, 2), length=0)).shape == (0, 3, 2)


def test_tensors_whose_values_are_lists_are_not_taken_for_flat_ones():
    producer = nested(3, 2, length=4)
    pairs = {b"ARROW:extension:name": b"arrow.fixed_shape_tensor"}
    pairs[b"ARROW:extension:metadata"] = b'{"shape": [3, 2]}'
    producer.says(pairs)
    try:
        storage = dlf.as_storage(producer)
    except BufferError:
        return
    assert np.array_equal(storage.to_numpy(), np.arange(24.0).reshape(4, 3, 2))


# --- metadata of dlfield -------------------------------------------------------------------------


def known(storage):
    origin = getattr(storage, "default_origin", None)
    return storage.shape, storage.dtype, storage.dims, storage.halo, storage.layout, origin


@pytest.mark.parametrize("show", [ByArrow, ByDevice])
@pytest.mark.parametrize("layout", tuple(itertools.permutations(range(3))))
def test_a_storage_that_goes_through_arrow_comes_back_whole(layout, show):
    halo = ((1, 1), (0, 2), (1, 0))
    options = {"dims": "KIJ", "halo": halo, "layout": layout, "default_origin": (1, 0, 2)}
    storage = dlf.storage(np.arange(60.0).reshape(5, 4, 3), **options)
    back = dlf.as_storage(show(storage))
    assert known(back) == known(storage)
    assert (address_of(back), back.strides) == (address_of(storage), storage.strides)
    assert np.array_equal(back.to_numpy(), storage.to_numpy())
    assert (back.door, back.readonly) == ("arrow", True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64"])
def test_a_row_that_goes_through_arrow_comes_back_whole(dtype):
    storage = dlf.storage(np.array([0, 1, 1, 0], dtype), dims="K", halo=((1, 2),))
    back = dlf.as_storage(ByArrow(storage))
    assert known(back) == known(storage)
    assert values(back) == values(storage)
    assert address_of(back) == address_of(storage)


@st.composite
def fields(draw):
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    count = len(shape)
    dims = draw(st.none() | st.permutations("IJKLMNO").map(lambda names: names[:count]))
    halo = []
    for extent in shape:
        low = draw(st.integers(0, extent))
        halo.append((low, draw(st.integers(0, extent - low))))
    layout = draw(st.permutations(range(count)))
    return dlf.zeros(shape, dims=dims, halo=halo, layout=layout)


def test_a_field_without_elements_keeps_the_order_of_its_axes():
    storage = dlf.zeros((0, 3, 2), dims="IJK", layout=(0, 2, 1))
    assert known(dlf.as_storage(ByArrow(storage))) == known(storage)


@given(fields())
def test_any_field_that_goes_through_arrow_comes_back_whole(storage):
    back = dlf.as_storage(ByArrow(storage))
    told_by_strides = min(storage.shape) > 1  # only then strides give the order of axes
    assert told_by_strides <= (back.layout == storage.layout)
    assert known(back)[:4] == known(storage)[:4]
    if told_by_strides:
        assert (address_of(back), back.strides) == (address_of(storage), storage.strides)


def words(**said):
    return {b"dlfield": json.dumps(said).encode()}


def test_a_list_axis_goes_back_where_it_was():
    producer = tensor(
        (3, 2), field={"shape": [2, 4, 3], "axis": 1, "dims": ["K", "I", "J"]}, permutation=[1, 0]
    )
    storage = dlf.as_storage(producer)
    assert (storage.shape, storage.dims) == ((2, 4, 3), ("K", "I", "J"))
    logical = np.arange(24.0).reshape(4, 3, 2).transpose(2, 0, 1)
    assert np.array_equal(storage.to_numpy(), logical)


def test_the_names_of_dlfield_count_more_than_those_of_the_tensor():
    field = {"shape": [4, 3, 2], "axis": 0, "dims": ["I", "J", "K"]}
    storage = dlf.as_storage(tensor((3, 2), dim_names=["a", "b"], field=field))
    assert storage.dims == ("I", "J", "K")


def test_the_halo_of_a_part_is_unknown():
    said = words(shape=[4], axis=0, dims=["I"], halo=[[1, 1]])
    whole, part = Producer().says(said), Producer().says(said).part(1, 2)
    assert dlf.as_storage(whole).halo == ((1, 1),)
    storage = dlf.as_storage(part)
    assert (storage.shape, storage.dims, storage.halo) == ((2,), ("I",), None)


def test_the_halo_of_a_part_of_tensors_is_unknown_along_every_axis():
    field = {"shape": [4, 3, 2], "axis": 0, "halo": [[0, 1], [1, 1], [0, 0]]}
    storage = dlf.as_storage(tensor((3, 2), field=field).part(0, 3))
    assert (storage.shape, storage.halo) == ((3, 3, 2), None)


def test_a_part_has_no_origin_that_lies_outside():
    said = words(shape=[4], axis=0, default_origin=[3])
    storage = dlf.as_storage(Producer().says(said).part(0, 2))
    assert not hasattr(storage, "default_origin") or storage.default_origin <= (2,)


def test_metadata_of_a_column_is_used():
    column = Producer(name=b"wind").says(words(shape=[4], axis=0, dims=["K"], halo=[[1, 0]]))
    storage = dlf.as_storage(batch(column))
    assert (storage.dims, storage.halo) == (("K",), ((1, 0),))


@pytest.mark.parametrize("names", [["dim_0", "dim_1"], ["dim_2", "dim_1"], ["dim_1", "dim_2"]])
def test_names_as_those_of_xarray_are_names_like_any_other(names):
    storage = dlf.as_storage(tensor((3, 2), dim_names=names))
    assert storage.shape == (4, 3, 2)
    assert storage.dims[1:] == tuple(names)


@pytest.mark.parametrize("format", [b"\xff", b"+w:2", b"+m", b"+s", b"w:-3", b"+l"])
def test_a_stream_without_rows_has_a_schema_that_is_checked(format):
    class Empty(Stream):
        def __len__(self):
            return 0

    producer = Producer()
    producer.schema.format = format
    producer.keep()
    with pytest.raises(BufferError, match=r"Arrow (schema|table)"):
        dlf.as_storage(Empty(schema=producer))


def test_metadata_of_a_column_in_a_stream_is_used():
    column = tensor((3, 2), field={"shape": [4, 3, 2], "axis": 0, "dims": ["I", "J", "K"]})
    assert dlf.as_storage(Stream(batch(column))).dims == ("I", "J", "K")


def test_options_add_what_arrow_does_not_say():
    storage = dlf.as_storage(tensor((3, 2)), dims="IJK", halo=(1, 1, 0))
    assert (storage.dims, storage.halo) == (("I", "J", "K"), ((1, 1), (1, 1), (0, 0)))


def test_an_option_may_name_the_list_axis_take_names_away_and_not_contradict_them():
    named = dlf.as_storage(tensor((3, 2), dim_names=["a", "b"]), dims=("t", "a", "b"))
    assert named.dims == ("t", "a", "b")
    assert dlf.as_storage(tensor((3, 2), dim_names=["a", "b"]), dims=None).dims is None
    producer = tensor((3, 2), dim_names=["a", "b"])
    with pytest.raises(ValueError, match="as the array says"):
        dlf.as_storage(producer, dims="IJK")
    assert producer.freed == [1, 1]


# --- which method is called ----------------------------------------------------------------------


def test_a_copy_of_an_arrow_array_is_writable_and_its_own():
    producer = tensor()
    storage = dlf.storage(producer)
    assert producer.freed == [1, 1]
    storage[0, 0, 0] = 5.0
    assert producer.children[0].values[0] == 0.0


def test_an_array_without_arrow_gets_an_error_that_names_arrow():
    with pytest.raises(TypeError, match="array: expected one that speaks"):
        dlf.as_storage(shown(None, "__arrow_c_schema__"))


def test_an_array_of_numpy_is_not_asked_for_arrow():
    array, _watch = tracked(np.zeros(3))
    assert dlf.as_storage(array).door == "buffer"


def test_a_storage_is_itself_and_not_asked_for_arrow():
    storage = dlf.zeros(3)
    assert dlf.as_storage(storage).door is None
