"""Arrays with names in a key: masks are matched by name, and other names are refused."""

import itertools

import dlfield as dlf
import numpy as np
import pytest

from support.gt_objects import Described

CUBE = np.arange(64.0).reshape(4, 4, 4)  # the shape does not distinguish the dimensions
MASK = CUBE % 7 > 3
ORDERS = ["".join(order) for order in itertools.permutations("IJK")]


class Named(np.ndarray):
    """A NumPy array that names its axes for GT4Py."""

    __gt_dims__ = ("K", "I", "J")


@pytest.fixture
def field():
    return dlf.storage(CUBE, dims="IJK")


def mask(dims, values=MASK):
    """Return the mask of I, J, K with its axes in another order."""
    return dlf.as_storage(values.transpose(["IJK".index(name) for name in dims]), dims=dims)


def described(dims):
    return Described(mask(dims).to_numpy(), dims=dims)


@pytest.mark.source(
    "GDP-3", "Methods", "an object with an array interface can be used as an index array"
)
@pytest.mark.parametrize("make", [mask, described])
@pytest.mark.parametrize("dims", ORDERS)
def test_a_mask_reads_where_its_names_say(field, make, dims):
    np.testing.assert_array_equal(field[make(dims)], CUBE[MASK], strict=True)


@pytest.mark.parametrize("make", [mask, described])
@pytest.mark.parametrize("dims", ORDERS)
@pytest.mark.parametrize("value", [-1.0, np.arange(np.count_nonzero(MASK))], ids=type)
def test_a_mask_writes_where_its_names_say(field, make, dims, value):
    expected = CUBE.copy()
    expected[MASK] = value
    field[make(dims)] = value
    np.testing.assert_array_equal(field.to_numpy(), expected)


def test_a_mask_of_numpy_that_names_its_axes_lies_where_they_say(field):
    np.testing.assert_array_equal(field[mask("KIJ").to_numpy().view(Named)], CUBE[MASK])


KEYS = {
    "alone": ("JI", lambda mask: mask),
    "before an integer": ("JI", lambda mask: (mask, 1)),
    "before a slice": ("JI", lambda mask: (mask, slice(None, None, 2))),
    "before an ellipsis": ("JI", lambda mask: (mask, ...)),
    "behind an integer": ("KJ", lambda mask: (2, mask)),
    "behind a slice": ("KJ", lambda mask: (slice(1, 3), mask)),
    "behind an ellipsis": ("KJ", lambda mask: (..., mask)),
    "behind a new axis": ("KJ", lambda mask: (None, 2, mask)),
    "behind indices": ("KJ", lambda mask: ([2], mask)),
    "behind a bool": ("KJ", lambda mask: (True, 1, mask)),
    "behind a mask": ("KJ", lambda mask: ([False, True, False, False], mask)),
}


@pytest.mark.parametrize(("dims", "key"), KEYS.values(), ids=KEYS)
def test_a_mask_lies_on_the_dimensions_that_the_other_entries_leave(field, dims, key):
    turned = dlf.as_storage(MASK[0].T, dims=dims)
    np.testing.assert_array_equal(field[key(turned)], CUBE[key(MASK[0])])


@pytest.mark.parametrize(
    ("key", "dims"),
    [
        (lambda mask: mask, "JK"),
        (lambda mask: (0, mask), "IJ"),
        (lambda mask: (..., mask), "IK"),
        (lambda mask: mask, "I0"),
        (lambda mask: mask, ("I", "lev")),
        (lambda mask: mask, ("lev", "J")),
    ],
)
def test_a_mask_with_names_of_other_dimensions_is_refused(field, key, dims):
    own = key(dlf.as_storage(MASK[0], dims=dims))
    with pytest.raises(ValueError, match=r"key: expected an array with the dims .*by position"):
        field[own]
    with pytest.raises(ValueError, match=r"key: expected an array with the dims .*by position"):
        field[own] = -1
    np.testing.assert_array_equal(field.to_numpy(), CUBE)


def test_indices_with_the_name_of_another_dimension_are_refused(field):
    own = dlf.as_storage(np.array([2, 0]), dims="J")
    with pytest.raises(ValueError, match=r"dims \('I',\), which it stands for, got \('J',\)"):
        field[own]
    np.testing.assert_array_equal(field[:, own], CUBE[:, [2, 0]])
    np.testing.assert_array_equal(field[own.to_numpy()], CUBE[[2, 0]])


def test_a_name_that_stands_elsewhere_in_the_storage_is_not_a_strangers():
    storage = dlf.as_storage(CUBE[0], dims=("lat", "lon"))
    with pytest.raises(ValueError, match=r"dims \('lat',\), which it stands for, got \('lon',\)"):
        storage[dlf.as_storage(np.array([0]), dims=("lon",))]


@pytest.mark.parametrize(
    ("own", "target"),
    [(None, "IJK"), ("KJI", None), (("dim_0", "dim_1", "dim_2"), "IJK")],
    ids=repr,
)
def test_where_one_side_has_no_names_the_position_counts(own, target):
    storage = dlf.as_storage(CUBE, dims=target)
    np.testing.assert_array_equal(storage[dlf.as_storage(MASK, dims=own)], CUBE[MASK])


@pytest.mark.parametrize(
    ("own", "target"),
    [(("lev", "lat", "lon"), "IJK"), ("KJI", ("lon", "lat", "lev"))],
    ids=repr,
)
def test_a_mask_with_names_of_another_kind_is_refused(own, target):
    storage = dlf.as_storage(CUBE, dims=target)
    with pytest.raises(ValueError, match=r"key: expected an array with the dims .*by position"):
        storage[dlf.as_storage(MASK, dims=own)]


def test_one_axis_of_indices_may_have_any_other_name(field):
    own = dlf.as_storage(np.array([2, 0]), dims=("points",))
    np.testing.assert_array_equal(field[:, own], CUBE[:, [2, 0]])


def test_a_mask_of_more_dimensions_than_there_are_is_an_index_error(field):
    with pytest.raises(IndexError):
        field[0, mask("IJK")]


def test_nothing_is_acquired_for_a_key_whose_names_are_refused(field):
    calls = []
    hooks = {"acquire": lambda: calls.append("acquire"), "release": lambda: calls.append("release")}
    first = Described(np.array([0]), dims="I", **hooks)
    with pytest.raises(ValueError, match="key: expected"):
        field[first, Described(np.array([0]), dims="K", **hooks)]
    assert calls == []
