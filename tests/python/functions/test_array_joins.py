"""Several arrays in one new storage: names where they agree, and a halo where it has a meaning."""

from itertools import pairwise

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.optional import library

JOINS = {"concatenate": np.concatenate, "stack": np.stack}
every_join = pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)


def field(shape=(6, 4), **options):
    options = {"dims": "IJ", "halo": (1, 0), **options}
    return dlf.storage(np.arange(float(np.prod(shape))).reshape(shape), **options)


# --- values ------------------------------------------------------------------------------------


@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "storages implement NumPy's function protocol (NEP 18)",
)
@every_join
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_values_are_those_that_numpy_puts_together(join, axis):
    pieces = [field(), field().to_numpy() + 100, field(layout=(1, 0))]
    joined = join(pieces, axis=axis)
    assert type(joined) is dlf.CPUStorage
    np.testing.assert_array_equal(
        joined.to_numpy(), join([np.asarray(piece) for piece in pieces], axis=axis), strict=True
    )


def test_the_result_shares_no_memory():
    pieces = [field(), field()]
    for made in (np.concatenate(pieces), np.stack(pieces)):
        made[...] = -1
        assert not any(np.shares_memory(made, piece) for piece in pieces)
    assert all(piece[1, 1] == 5 for piece in pieces)


def test_a_storage_is_a_sequence_of_arrays():
    assert np.array_equal(np.concatenate(field()), np.concatenate(field().to_numpy()))
    assert np.array_equal(np.stack(field()), field().to_numpy())


def test_storages_without_axes_are_stacked():
    assert np.stack([dlf.full((), 1.0), dlf.full((), 2.0)]).to_numpy().tolist() == [1.0, 2.0]


def test_numbers_and_lists_go_beside_storages():
    assert np.concatenate([field()[0], [7, 8]]).to_numpy().tolist() == [0, 1, 2, 3, 7, 8]


def test_types_are_promoted_and_cast_by_the_rule_of_numpy():
    whole, half = dlf.ones(2, "int32"), dlf.ones(2, "float32")
    assert np.concatenate([whole, half]).dtype == np.float64
    assert np.concatenate([whole, half], dtype="float32").dtype == np.float32
    with pytest.raises(TypeError, match=r"rule 'same_kind', got float32; pass casting="):
        np.concatenate([whole, half], dtype="int32")
    assert np.stack([whole, half], dtype="int32", casting="unsafe").dtype == np.int32


def test_types_of_ml_dtypes_are_put_together():
    pytest.importorskip("ml_dtypes")
    storage = field().astype("bfloat16")
    joined = np.concatenate([storage, storage])
    assert joined.dtype == "bfloat16"
    assert np.array_equal(joined[6:], storage)


@pytest.mark.parametrize(
    ("arrays", "axis"),
    [
        ([field(), field((6, 5))], 0),
        ([field(), field()[0]], 0),
        ([field(), field()[:, 0]], 1),
        ([dlf.zeros(()), dlf.zeros(())], 0),
    ],
    ids=["other extent", "fewer axes", "fewer axes, without the last", "no axes"],
)
def test_shapes_that_do_not_go_together_are_refused(arrays, axis):
    with pytest.raises(ValueError, match=r"concatenate: (expected|needs) .*; "):
        np.concatenate(arrays, axis=axis)


def test_without_an_axis_arrays_are_flattened_and_joined():
    plain = field().to_numpy()
    joined = np.concatenate([field(), plain, dlf.ones(())], axis=None)
    assert joined.dims is None
    expected = np.concatenate([plain, plain, np.ones(())], axis=None)
    np.testing.assert_array_equal(joined.to_numpy(), expected, strict=True)


def test_shapes_that_do_not_stack_are_refused():
    with pytest.raises(ValueError, match=r"one shape.* got \(6, 4\) and \(4,\); slice them"):
        np.stack([field(), field()[0]])


@every_join
def test_a_result_is_not_written_into_an_array_that_is_there(join):
    with pytest.raises(TypeError, match=r"out=None.*copyto"):
        join([field(), field()], out=np.zeros((12, 4)))


# --- names -------------------------------------------------------------------------------------


def test_names_on_which_all_agree_are_those_of_the_result():
    plain = field().to_numpy()
    for first, second in ((field(), field()), (plain, field()), (field(dims=None), field())):
        assert np.concatenate([first, second]).dims == ("I", "J")


@every_join
@pytest.mark.parametrize("other", ["JI", "IK", ("I", "x")], ids=str)
def test_joined_fields_with_contradicting_names_are_refused(join, other):
    with pytest.raises(ValueError, match=r"dims agree, got \('I', 'J'\) .*; transpose or rename"):
        join([field(), field(dims=other)])


def test_names_of_another_kind_go_by_position_and_the_result_has_none():
    lat = field(dims=("lat", "lon"))
    assert np.concatenate([field(), lat]).dims is None


def test_a_new_axis_has_no_name():
    assert np.stack([field(), field()]).dims is None


# --- halo --------------------------------------------------------------------------------------


@given(st.data())
def test_the_joined_parts_of_a_field_have_its_halo(data):
    low, inside, high = (data.draw(st.integers(0, 3)) for _ in range(3))
    whole = field((low + inside + high, 3), halo=((low, high), 1))
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=4))
    bounds = [0, *sorted(cuts), len(whole)]
    parts = [whole[start:stop] for start, stop in pairwise(bounds)]
    joined = np.concatenate(parts)
    assert np.array_equal(joined, whole)
    assert joined.halo == whole.halo


@given(st.data())
def test_the_blocks_of_a_field_together_have_its_halo(data):
    whole = field((7, 6), halo=((2, 1), (1, 2)))
    row, column = data.draw(st.integers(0, 7)), data.draw(st.integers(0, 6))
    rows = [
        np.concatenate([one[:, :column], one[:, column:]], 1) for one in (whole[:row], whole[row:])
    ]
    assert np.concatenate(rows).halo == whole.halo


def test_a_halo_in_between_is_unknown():
    assert np.concatenate([field(), field()]).halo is None
    assert np.concatenate([field(), np.zeros((1, 4))]).halo is None
    assert np.concatenate([field()[:5], np.zeros((1, 4))]).halo == ((1, 0), (0, 0))


def test_a_join_with_an_unknown_halo_has_an_unknown_halo():
    assert np.concatenate([field()[::2], field(halo=(0, 0))]).halo is None
    assert np.stack([field()[::2], field()[::2]]).halo is None


def test_arrays_without_a_halo_leave_that_of_the_others():
    wide = field(halo=(2, 1))
    assert np.stack([wide, field(halo=(0, 0))], 1).halo == ((2, 2), (0, 0), (1, 1))


def test_two_halos_make_it_unknown():
    assert np.stack([field(), field(halo=(0, 1))]).halo is None


# --- memory ------------------------------------------------------------------------------------


def test_layout_and_alignment_are_those_of_the_first_storage():
    first = field(layout=(1, 0), alignment_size=64)
    joined = np.concatenate([field().to_numpy(), first, field()])
    assert (joined.layout, joined.alignment_size) == ((1, 0), 64)
    assert joined.strides[1] % 64 == 0


@pytest.mark.parametrize(("axis", "layout"), [(0, (0, 2, 1)), (1, (2, 0, 1)), (2, (2, 1, 0))])
def test_a_new_axis_is_the_outermost_in_memory(axis, layout):
    stacked = np.stack([field(layout=(1, 0))] * 2, axis)
    assert stacked.layout == layout


@pytest.mark.parametrize("join", [np.hstack, np.vstack])
def test_a_data_array_is_not_joined_by_position_with_other_names(join):
    library("xarray")
    one = field((2, 2), halo=None)
    with pytest.raises(ValueError, match="expected arrays whose dims agree"):
        join([one, one.transpose("J", "I").to_xarray()])


def test_elements_that_are_joined_without_an_axis_are_aligned_as_the_first_storage():
    pieces = [field(alignment_size=64), field()]
    made = np.concatenate(pieces, axis=None)
    assert (made.alignment_size, made.ptr % 64) == (64, 0)
    np.testing.assert_array_equal(made, np.concatenate([*map(np.asarray, pieces)], axis=None))


def test_an_iterator_of_arrays_is_refused_by_what_to_pass():
    with pytest.raises(TypeError, match=r"expected a list or tuple of arrays, got a .*pass list"):
        np.concatenate(iter([field(), field()]))
