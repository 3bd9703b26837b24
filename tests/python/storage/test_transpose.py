"""`T`, `transpose` and `np.transpose`: a view in another order, and what moves along."""

import itertools
import re

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.owners import tracked
from support.parameters import readable

ORDERS = list(itertools.permutations(range(3)))


class Index:
    def __index__(self):
        return 0


@pytest.fixture
def field():
    """Different in every dimension, padded, in neither C nor Fortran order."""
    storage = dlf.zeros(
        (7, 5, 6),
        dims="IJK",
        halo=((2, 1), (1, 0), 0),
        layout=(2, 0, 1),
        alignment_size=128,
        default_origin=(3, 2, 1),
    )
    storage.to_numpy()[...] = np.arange(210).reshape(7, 5, 6)
    return storage


def assert_is_view(view, array):
    assert type(view) is dlf.CPUStorage
    assert (view.shape, view.strides) == (array.shape, array.strides)
    assert address_of(view) == address_of(array)
    np.testing.assert_array_equal(view.to_numpy(), array, strict=True)


REVERSING = {
    "T": lambda array: array.T,
    "transpose()": lambda array: array.transpose(),
    "transpose(None)": lambda array: array.transpose(None),
    "np.transpose": np.transpose,
    "np.transpose of None": lambda array: np.transpose(array, None),
}


@pytest.mark.parametrize("transpose", REVERSING.values(), ids=REVERSING)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 0, 4), (2, 1, 3, 2, 1)], ids=repr)
def test_without_axes_the_order_is_the_opposite(transpose, shape):
    storage = dlf.zeros(shape, halo=[(extent, 0) for extent in shape])
    assert transpose(storage).shape == transpose(storage.to_numpy()).shape
    assert transpose(storage).halo == storage.halo[::-1]


@pytest.mark.source(
    "GDP-3",
    "NumPy Functions",
    "`np.transpose` gives a view with the strides in the order of `axes`",
)
@pytest.mark.parametrize("axes", ORDERS, ids=repr)
@pytest.mark.parametrize("call", [lambda array, axes: array.transpose(axes), np.transpose])
def test_a_tuple_of_axes_gives_the_view_that_numpy_gives(field, call, axes):
    assert_is_view(call(field, axes), call(field.to_numpy(), axes))


@pytest.mark.source(
    "GDP-3", "Methods", "`transpose(*axes)` is a view with the strides in the given order"
)
@pytest.mark.parametrize("axes", ORDERS, ids=repr)
@pytest.mark.parametrize("kind", [int, np.int8, np.array])
def test_axes_one_by_one_give_the_same(field, axes, kind):
    assert_is_view(field.transpose(*map(kind, axes)), field.to_numpy().transpose(axes))


@pytest.mark.parametrize("axes", [(-1, 0, 1), (-3, -1, -2), (1, -1, 0), (-1, -2, -3)], ids=repr)
def test_negative_axes_count_from_the_end(field, axes):
    assert_is_view(field.transpose(axes), field.to_numpy().transpose(axes))
    assert_is_view(field.transpose(*axes), field.to_numpy().transpose(axes))


@pytest.mark.parametrize(
    "axes", [[2, 0, 1], np.array([2, 0, 1]), iter((2, 0, 1)), (np.uint8(2), Index(), 1)], ids=type
)
def test_axes_may_come_in_any_sequence(field, axes):
    assert field.transpose(axes).dims == ("K", "I", "J")


def test_one_axis_alone_is_enough_for_one_dimension():
    storage = dlf.zeros((4,))
    for view in (storage.transpose(0), storage.transpose(-1), storage.transpose((0,))):
        assert_is_view(view, storage.to_numpy())
    assert dlf.zeros(()).transpose(()).shape == ()


@pytest.mark.source(
    "GDP-3", "Methods", "`transpose(*axes)` is a view with the strides in the given order"
)
@pytest.mark.parametrize("axes", ORDERS, ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda storage, names: storage.transpose(*names),
        lambda storage, names: storage.transpose(names),
        lambda storage, names: storage.transpose(list(names)),
        np.transpose,
    ],
    ids=["one by one", "tuple", "list", "np.transpose"],
)
def test_names_give_the_view_that_their_axes_give(field, axes, call):
    names = tuple("IJK"[axis] for axis in axes)
    assert call(field, names).dims == names
    assert_is_view(call(field, names), field.to_numpy().transpose(axes))


def test_a_name_may_have_several_letters():
    storage = dlf.as_storage(np.zeros((2, 3)), dims=("lat", "lon"))
    assert storage.transpose("lon", "lat").shape == (3, 2)
    assert storage[0].transpose("lon").shape == (3,)


@pytest.mark.parametrize(
    "names", [("K", "J"), ("I", "J", "J"), ("I", "J", "lev"), ("KJI",), ("I", "J", "K", "I")]
)
def test_names_that_are_not_those_of_the_storage_are_refused(field, names):
    shown = re.escape(repr(names))
    with pytest.raises(ValueError, match=rf"axes: .* of \('I', 'J', 'K'\) once, got {shown}"):
        field.transpose(*names)


def test_a_storage_without_names_is_not_transposed_by_name():
    with pytest.raises(
        ValueError, match=r"without dims, got \('J', 'I'\); give it names with dims="
    ):
        dlf.zeros((2, 3)).transpose("J", "I")


def test_the_axes_there_are_are_listed(field):
    with pytest.raises(ValueError, match=r"permutation of \[0, 1, 2\], got \[0, 1\]"):
        field.transpose(0, 1)
    with pytest.raises(ValueError, match=r"permutation of \[0, 1, 2\], got \[0, 1, 3\]"):
        field.transpose(0, 1, 3)


WRONG = [
    (0, 0, 1),
    (0, 1, -2),
    (0, 1, 3),
    (0, 1, -4),
    (0, 1, 2**70),
    (0, 1, -(2**63)),
    (0, 1),
    (0,),
    (0, 1, 2, 3),
    (0, 1, 2, 2),
]


@pytest.mark.parametrize("axes", WRONG, ids=repr)
def test_axes_must_be_a_permutation(field, axes):
    for call in (lambda: field.transpose(*axes), lambda: np.transpose(field, axes)):
        with pytest.raises(ValueError, match="axes: expected"):
            call()


def test_no_axes_in_a_tuple_are_too_few(field):
    with pytest.raises(ValueError, match=r"axes: expected .*, got \[\]"):
        field.transpose(())


def test_a_refusal_shows_the_axis_as_it_was_given(field):
    with pytest.raises(ValueError, match="-4"):
        field.transpose(0, 1, -4)


@pytest.mark.parametrize(
    "axes",
    [(0, 1, 2.0), (0, None, 1), (0, "J", "K"), ((0, 1), 2), {0, 1, 2}, {0: 1}, object()],
    ids=readable,
)
def test_axes_must_be_integers(field, axes):
    with pytest.raises(TypeError, match="axes: expected"):
        field.transpose(axes)


def test_axes_are_positional_as_in_numpy(field):
    with pytest.raises(TypeError):
        field.transpose(axes=(0, 1, 2))


def test_names_and_halo_move_along(field):
    view = field.transpose(2, 0, 1)
    assert view.dims == ("K", "I", "J")
    assert view.halo == ((0, 0), (2, 1), (1, 0))
    assert view.__gt_data_interface__[None]["dims"] == ("K", "I", "J")
    np.testing.assert_array_equal(
        view.domain_view.to_numpy(), field.domain_view.to_numpy().transpose(2, 0, 1)
    )


def test_names_that_are_not_given_stay_so():
    assert dlf.zeros((2, 3)).T.dims is None


def test_a_transposed_unknown_halo_stays_unknown(field):
    assert field[::2].T.halo is None


def test_an_origin_counts_as_before(field):
    assert field.T.default_origin == field.transpose(1, 2, 0).default_origin == (3, 2, 1)


def test_an_origin_without_names_moves_with_its_axes():
    storage = dlf.zeros((2, 3, 4), default_origin=(0, 1, 2))
    assert storage.transpose(2, 0, 1).default_origin == (2, 0, 1)


def test_the_aligned_element_and_the_layout_move_along(field):
    view = field.transpose(1, 2, 0)
    assert (view.alignment_size, view.aligned_index) == (128, (1, 0, 2))
    assert view.layout == (0, 1, 2)
    assert address_of(view[:, :, 2:]) % 128 == 0


def test_a_part_of_a_transposed_storage_knows_where_its_aligned_element_is(field):
    assert field.T[..., 1:].aligned_index == (0, 1, 1)
    assert field.T[1:].alignment_size == 1


def test_twice_is_the_storage_again(field):
    assert_is_view(field.T.T, field.to_numpy())
    assert (field.T.T.dims, field.T.T.halo) == (field.dims, field.halo)
    assert field.T.T.aligned_index == field.aligned_index


def test_what_is_written_into_the_view_is_in_the_storage(field):
    field.T[0, 1, 2] = -1
    field.transpose(1, 0, 2)[3] = -2
    assert field[2, 1, 0] == -1
    assert (field.to_numpy()[:, 3] == -2).all()


def test_a_transposed_view_is_read_only_and_has_the_door_of_its_storage():
    view = dlf.as_storage(b"123456").T
    assert (view.readonly, view.door) == (True, "buffer")


def test_a_transposed_view_keeps_the_memory_alone():
    source, watch = tracked(np.zeros((3, 4)))
    view = dlf.as_storage(source).T
    del source
    assert not watch.freed
    del view
    assert watch.freed


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2"])
def test_types_of_ml_dtypes_can_be_transposed(name):
    library("ml_dtypes")
    storage = dlf.storage(np.arange(6).reshape(2, 3), dtype=name)
    np.testing.assert_array_equal(storage.T.to_numpy(), storage.to_numpy().T, strict=True)


@pytest.mark.parametrize(
    "call",
    [lambda array: np.moveaxis(array, 0, -1), lambda array: np.permute_dims(array, (1, 2, 0))],
    ids=["moveaxis", "permute_dims"],
)
def test_functions_of_numpy_that_transpose_move_the_names_too(field, call):
    view = call(field)
    assert view.dims == ("J", "K", "I")
    assert address_of(view) == address_of(field)
