"""`empty_like` and its kin: what a new storage takes from its model, and what it leaves alone."""

import copy
import pickle
from functools import partial
from itertools import permutations

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.owners import tracked
from support.parameters import KNOWN, ML_DTYPES, NUMPY_DTYPES
from support.processes import run_in_subprocess


def full_like(model, dtype=None, **options):
    """Fill with a value that every type can hold."""
    return dlf.full_like(model, 1, dtype, **options)


MAKERS = {
    "empty_like": dlf.empty_like,
    "zeros_like": dlf.zeros_like,
    "ones_like": dlf.ones_like,
    "full_like": full_like,
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def known(storage):
    """Return all attributes of a storage except its values and its address."""
    origin = getattr(storage, "default_origin", None)
    return {**{name: getattr(storage, name) for name in KNOWN}, "default_origin": origin}


@pytest.fixture
def field():
    """A field that is unusual in every respect."""
    options = {"halo": (1, (0, 2)), "layout": (1, 0), "alignment_size": 64}
    return dlf.full((6, 7), 3.0, "float32", dims="IJ", default_origin=(1, 0), **options)


@pytest.mark.source("GDP-3", "Storage Creation", "options that are not given are those of `data`")
@pytest.mark.source(
    "Allocation note", "Allocation", "options that are not given are those of `data`"
)
@every_maker
def test_a_storage_like_another_knows_the_same(field, make):
    assert known(make(field)) == known(field)
    assert make(field).strides == field.strides


@pytest.mark.parametrize(
    "view",
    [
        lambda field: field[1:],
        lambda field: field[:, 2:5],
        lambda field: field[2],
        lambda field: field[:, ::-1],
        lambda field: field[::2],
        lambda field: field.T,
        lambda field: field.domain_view,
    ],
    ids=["tail", "middle", "row", "mirrored", "thinned out", "transposed", "domain"],
)
def test_a_storage_like_a_view_knows_what_the_view_knows(field, view):
    assert known(dlf.zeros_like(view(field))) == known(view(field))


def test_a_like_of_an_unknown_halo_has_an_unknown_halo(field):
    assert field[::2].halo is None
    assert dlf.zeros_like(field[::2]).halo is None


def test_the_aligned_element_of_the_new_storage_lies_on_the_boundary():
    model = dlf.zeros((6, 7), halo=(0, 3), alignment_size=64)
    like = dlf.empty_like(model)
    assert (address_of(like) + 3 * like.strides[1]) % 64 == 0


def test_a_halo_set_after_the_allocation_does_not_move_the_aligned_element():
    model = dlf.zeros((8, 8), halo=(1, 1), alignment_size=64)
    model.halo = (2, 2)
    like = dlf.zeros_like(model)
    assert (like.halo, like.aligned_index) == (((2, 2), (2, 2)), (1, 1))


def test_the_layout_of_a_model_with_extents_of_one_is_kept():
    model = dlf.empty((6, 1, 7), layout=(2, 1, 0))
    assert model.layout == dlf.empty_like(model).layout == (2, 1, 0)


ORDERS = list(permutations(range(3)))
short_shapes = pytest.mark.parametrize("shape", [(6, 1, 7), (1, 1, 1), (0, 1, 2), (1, 5, 1)])


@short_shapes
@pytest.mark.parametrize("layout", ORDERS)
def test_an_order_that_strides_do_not_tell_is_kept_by_whatever_is_made_of_a_storage(shape, layout):
    model = dlf.empty(shape, layout=layout)
    made = {
        "like": dlf.zeros_like(model),
        "copy": model.copy(),
        "deepcopy": copy.deepcopy(model),
        "pickle": pickle.loads(pickle.dumps(model)),
        "storage": dlf.storage(model),
        "wrapped": dlf.as_storage(model),
        "all of it": model[...],
        "there and back": model.transpose(2, 0, 1).transpose(1, 2, 0),
    }
    assert {how: one.layout for how, one in made.items()} == dict.fromkeys(made, layout)


@short_shapes
@pytest.mark.parametrize("layout", ORDERS)
def test_a_view_ranks_its_dimensions_as_the_storage_does(shape, layout):
    model = dlf.empty(shape, layout=layout)
    assert model.T.layout == layout[::-1]
    for axis in (axis for axis in range(3) if shape[axis]):
        rest = [rank for at, rank in enumerate(layout) if at != axis]
        part = model[(slice(None),) * axis + (0,)]
        assert part.layout == tuple(sorted(rest).index(rank) for rank in rest), axis


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (2, 0), (0, 2), (0, 0)])
@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
def test_the_order_of_memory_without_a_second_row_is_the_one_asked_for(shape, layout):
    for array in (np.zeros(shape), np.zeros(shape, order="F"), np.zeros(shape[::-1]).T):
        wrapped = dlf.as_storage(array, layout=layout)
        assert wrapped.layout == wrapped[...].layout == wrapped.T.layout[::-1] == layout


def test_an_order_of_memory_goes_along_with_the_dimensions_of_its_views():
    wrapped = dlf.as_storage(np.zeros((1, 5, 1)), layout=(2, 0, 1))
    assert wrapped.transpose(1, 2, 0).layout == (0, 1, 2)
    assert (wrapped[0].layout, wrapped[:, 0].layout, wrapped[..., 0].layout) == (
        (0, 1),
        (1, 0),
        (1, 0),
    )


@pytest.mark.parametrize("key", [np.s_[::80], np.s_[:0], np.s_[5:6], np.s_[:, ::-1]], ids=repr)
def test_a_part_of_a_storage_is_in_the_order_of_the_storage(key):
    assert dlf.empty((64, 2), layout=(1, 0))[key].layout == (1, 0)


def test_a_new_axis_is_ranked_by_its_stride():
    assert sorted(dlf.empty((6, 1), layout=(1, 0))[:, None].layout) == [0, 1, 2]


def test_labels_order_foreign_memory_if_strides_leave_it_open():
    array = np.zeros((6, 1, 7))
    assert dlf.as_storage(array).layout == (0, 1, 2)
    assert dlf.as_storage(array, layout=(1, 0, 2)).layout == (1, 0, 2)


@pytest.mark.parametrize(
    ("array", "strides"),
    [
        (np.zeros((4, 6)), (48, 8)),
        (np.zeros((4, 6), order="F"), (8, 32)),
        (np.zeros((2, 3, 4)).transpose(1, 0, 2), (32, 96, 8)),
        (np.zeros((4, 6))[:, ::2], (24, 8)),
        (np.zeros((4, 6))[:, :5], (40, 8)),
        (np.zeros((4, 6))[::-1, ::-1], (48, 8)),
        (np.zeros((4, 6), order="F")[::-1], (8, 32)),
    ],
    ids=["C", "F", "transposed", "thinned out", "padded", "reversed", "F reversed"],
)
def test_a_storage_like_an_array_has_its_order_without_its_gaps(array, strides):
    like = dlf.zeros_like(array)
    assert (like.shape, like.strides, like.dtype) == (array.shape, strides, array.dtype)


def test_a_storage_like_an_array_has_no_dims_and_no_halo():
    like = dlf.zeros_like(np.zeros((4, 6)))
    assert (like.dims, like.halo, like.alignment_size) == (None, ((0, 0), (0, 0)), 1)


class Described:
    """Shows an array by the array interface alone."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


def test_the_order_that_an_array_interface_describes_is_kept():
    like = dlf.ones_like(Described(np.zeros((4, 6), "int16", order="F")))
    assert (like.strides, like.dtype) == ((2, 8), np.dtype("int16"))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)], ids=repr)
def test_a_model_may_be_empty_or_without_dimensions(shape):
    assert dlf.full_like(np.zeros(shape), 2).to_numpy().tolist() == np.full(shape, 2.0).tolist()


@pytest.mark.source(
    "GDP-3",
    "Storage Creation",
    "`zeros_like(data, dtype, **options)` holds zeros",
    "`ones_like(data, dtype, **options)` holds ones",
    "`full_like(data, fill_value, dtype, **options)` holds one number",
)
@pytest.mark.source(
    "Allocation note",
    "Allocation",
    "`zeros_like(data, dtype, **options)` holds zeros",
    "`ones_like(data, dtype, **options)` holds ones",
    "`full_like(data, fill_value, dtype, **options)` holds one number",
)
@pytest.mark.parametrize(
    ("make", "value"),
    [(dlf.zeros_like, 0), (dlf.ones_like, 1), (lambda model: dlf.full_like(model, 7), 7)],
    ids=["zeros_like", "ones_like", "full_like"],
)
def test_every_element_has_the_value_that_the_name_says(field, make, value):
    np.testing.assert_array_equal(
        make(field).to_numpy(), np.full((6, 7), value, "float32"), strict=True
    )


@pytest.mark.source("GDP-3", "Storage Creation", "`dtype` is that of `data` unless given")
@pytest.mark.source("Allocation note", "Allocation", "`dtype` is that of `data` unless given")
@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_another_dtype_replaces_the_one_of_the_model(field, name):
    like = dlf.ones_like(field, name)
    np.testing.assert_array_equal(like.to_numpy(), np.ones((6, 7), name), strict=True)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_a_model_may_be_of_an_ml_dtype(name):
    dtype = np.dtype(getattr(library("ml_dtypes"), name))
    like = dlf.ones_like(np.ones((2, 3), dtype))
    assert like.dtype == dtype
    assert (like.to_numpy().astype(float) == 1).all()


@pytest.mark.source("GDP-3", "Storage Creation", "`dtype` is that of `data` unless given")
@pytest.mark.source("Allocation note", "Allocation", "`dtype` is that of `data` unless given")
@pytest.mark.parametrize("nothing", [None, dlf.UNSET], ids=repr)
def test_no_dtype_means_that_of_the_model(field, nothing):
    assert dlf.zeros_like(field, nothing).dtype == np.float32


def test_an_alignment_that_the_new_dtype_cannot_meet_is_refused():
    model = dlf.zeros((2, 3), "float32", alignment_size=12)
    with pytest.raises(ValueError, match=r"alignment_size: .*item size 8.*got 12"):
        dlf.zeros_like(model, "float64")


@pytest.mark.source("GDP-3", "Storage Creation", "the `_like` functions take the options as well")
@pytest.mark.source(
    "Allocation note", "Allocation", "the `_like` functions take the options as well"
)
@pytest.mark.parametrize(
    ("option", "value", "attribute", "expected"),
    [
        ("halo", (0, 1), "halo", ((0, 0), (1, 1))),
        ("layout", (0, 1), "layout", (0, 1)),
        ("alignment_size", 1, "alignment_size", 1),
        ("alignment_size", 32, "alignment_size", 32),
        ("aligned_index", (2, 5), "aligned_index", (2, 5)),
        ("default_origin", (3, 3), "default_origin", (3, 3)),
        ("dims", None, "dims", None),
        ("defaults", "C", "layout", (0, 1)),
        ("backend", "gt:cpu_kfirst", "alignment_size", 1),
    ],
)
@every_maker
def test_an_option_overrides_the_model(field, make, option, value, attribute, expected):
    assert getattr(make(field, **{option: value}), attribute) == expected


def test_an_option_overrides_nothing_but_what_it_names(field):
    like = dlf.zeros_like(field, halo=(0, 0), aligned_index=(1, 0))
    assert {**known(like), "halo": field.halo} == known(field)


@pytest.mark.parametrize(
    "option",
    [
        *("halo", "layout", "alignment_size", "aligned_index", "default_origin", "defaults"),
        "dims",
    ],
)
def test_an_option_that_is_unset_overrides_nothing(field, option):
    assert known(dlf.zeros_like(field, **{option: dlf.UNSET})) == known(field)


@pytest.mark.source("GDP-3", "Storage Creation", "the `_like` functions take `dims` as well")
@pytest.mark.source("Allocation note", "Allocation", "the `_like` functions take `dims` as well")
def test_other_names_override_those_of_the_model(field):
    assert dlf.zeros_like(field, dims="KJ").dims == ("K", "J")


@pytest.mark.source("GDP-3", "Storage Creation", "the `_like` functions do not take `shape`")
@pytest.mark.source("Allocation note", "Allocation", "the `_like` functions do not take `shape`")
def test_a_like_refuses_a_shape(field):
    with pytest.raises(TypeError, match="option 'shape': expected one of"):
        dlf.zeros_like(field, shape=(2, 3))


def read_only():
    """Return a read-only array."""
    array = np.zeros((2, 3))
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "model",
    [b"123", read_only(), np.broadcast_to(np.zeros(3), (2, 3)), np.float64(2.5)],
    ids=["bytes", "array", "broadcast", "NumPy scalar"],
)
@every_maker
def test_a_storage_like_read_only_memory_is_writable(model, make):
    like = make(model)
    like.to_numpy()[...] = 5
    assert (like.readonly, like.to_numpy().max()) == (False, 5)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`empty_like(data, dtype, **options)` leaves the values undefined"
)
@pytest.mark.source(
    "Allocation note",
    "Allocation",
    "`empty_like(data, dtype, **options)` leaves the values undefined",
)
@every_maker
def test_the_new_storage_has_memory_of_its_own(field, make):
    like = make(field)
    like.to_numpy()[...] = -1
    assert (field.to_numpy() == 3).all()
    assert like.door is None


@every_maker
def test_the_model_is_not_kept_alive(make):
    model, watch = tracked(np.zeros((2, 3)))
    like = make(model)
    del model
    assert watch.freed
    assert like.shape == (2, 3)


def test_no_element_of_the_model_is_read():
    code = """
        import dlfield as dlf

        class Nowhere:  # a page that no process has
            __array_interface__ = {
                "version": 3, "typestr": "<f8", "shape": (100, 100), "data": (4096, False)
            }

        for make in (dlf.empty_like, dlf.zeros_like, dlf.ones_like):
            print(make(Nowhere()).shape)
    """
    assert run_in_subprocess(code).splitlines() == ["(100, 100)"] * 3


def test_a_model_is_neither_acquired_nor_touched():
    class Careful:
        def __init__(self):
            self.array, self.calls = np.zeros(3), []

        @property
        def __gt_data_interface__(self):
            hooks = {name: partial(self.calls.append, name) for name in ("acquire", "touch")}
            return {None: {**self.array.__array_interface__, **hooks}}

    careful = Careful()
    dlf.zeros_like(careful)
    assert careful.calls == []


@pytest.mark.parametrize("model", [[1.0, 2.0], (1,), 3, 2.5, None, "text"], ids=repr)
@every_maker
def test_a_model_must_be_an_array(model, make):
    with pytest.raises(TypeError, match=rf"'{type(model).__name__}'.*np\.asarray"):
        make(model)


BACKWARDS = {
    "byte-swapped": np.zeros((3, 4, 2), ">f4", order="F"),
    "masked": np.ma.masked_greater(np.arange(24, dtype="f4").reshape((3, 4, 2), order="F"), 3),
    "both": np.ma.masked_greater(np.arange(24, dtype=">f4").reshape((3, 4, 2), order="F"), 3),
}


@every_maker
@pytest.mark.parametrize("model", BACKWARDS.values(), ids=BACKWARDS)
def test_only_shape_layout_and_type_of_a_model_are_read(make, model):
    made = make(model)
    assert type(made) is dlf.CPUStorage
    assert (made.shape, made.dtype, made.layout) == ((3, 4, 2), np.dtype("f4"), (2, 1, 0))


OTHER_TYPES = {
    "objects": np.array([[None, "a"]], object),
    "times": np.array([["2020-01-01", "2021-01-01"]], "datetime64[D]"),
    "texts": np.array([["a", "b"]]),
    "fields": np.zeros((1, 2), "i4,f4"),
    "long double": np.zeros((1, 2), "g"),
}


@every_maker
@pytest.mark.parametrize("model", OTHER_TYPES.values(), ids=OTHER_TYPES)
def test_a_model_of_a_type_that_storages_do_not_hold_needs_a_dtype(make, model):
    assert (make(model, "int8").shape, make(model, "int8").dtype) == ((1, 2), np.int8)
    with pytest.raises(ValueError, match=r"dtype: expected .*, got .*; pass dtype="):
        make(model)


def test_a_model_of_numpy_that_names_its_axes_keeps_the_names():
    class Named(np.ndarray):
        __gt_dims__ = ("K", "I")

    assert dlf.zeros_like(np.zeros((2, 3), ">f8").view(Named)).dims == ("K", "I")


def test_an_origin_counts_for_the_names_that_it_came_with():
    model = dlf.zeros((4, 5), dims=("K", "I"), default_origin=(2, 1))
    assert not hasattr(dlf.empty_like(model, dims=None), "default_origin")
    assert dlf.empty_like(model, dims=model.dims).default_origin == (2, 1)
    assert dlf.empty_like(model, dims=None, default_origin=(0, 0)).default_origin == (0, 0)
    plain = dlf.zeros((4, 5), default_origin=(1, 2))
    labelled = dlf.as_storage(dlf.zeros((4, 5), dims=("K", "I")), like=plain)
    assert not hasattr(labelled, "default_origin")


def test_a_wrapper_of_itself_is_no_model():
    class Itself:
        variable = data = property(lambda self: self)

    with pytest.raises(TypeError, match="array: expected one that speaks"):
        dlf.empty_like(Itself())


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_a_model_raises_passes_unchanged(error):
    class Model(np.ndarray):
        @property
        def __gt_data_interface__(self):
            raise error("on purpose")

    with pytest.raises(error, match="on purpose"):
        dlf.empty_like(np.zeros(3).view(Model))
