"""`storage[key] = value` by name: if both have names, dimensions are matched by name."""

import itertools
import re

import dlfield as dlf
import numpy as np
import pytest

from support.gt_objects import Described

CUBE = np.arange(27.0).reshape(3, 3, 3)  # the shape does not distinguish the dimensions
ORDERS = ["".join(order) for order in itertools.permutations("IJK")]


class Named(np.ndarray):
    """A NumPy array that names its axes for GT4Py."""

    __gt_dims__ = ("K", "I")


def named(values, dims):
    return dlf.as_storage(np.array(values), dims=dims)


VALUES = {
    "a storage": named,
    "a storage in another layout": lambda values, dims: dlf.storage(
        values, dims=dims, layout=lambda names: range(len(names))[::-1]
    ),
    "another type": lambda values, dims: named(values.astype("int16"), dims),
    "__gt_data_interface__": lambda values, dims: Described(np.array(values), dims=dims),
}


@pytest.mark.source("GDP-3 draft", "Methods", "assignment matches dimensions by name")
@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("own", ORDERS)
@pytest.mark.parametrize("target", ORDERS)
def test_every_dimension_goes_where_its_name_says(make, own, target):
    storage = dlf.zeros((3, 3, 3), dims=target)
    storage[...] = make(CUBE, own)
    expected = CUBE.transpose([own.index(name) for name in target])
    np.testing.assert_array_equal(storage.to_numpy(), expected)


def test_the_extents_follow_the_names():
    storage, value = dlf.zeros((2, 3, 4), dims="IJK"), np.arange(24.0).reshape(4, 3, 2)
    storage[...] = named(value, "KJI")
    np.testing.assert_array_equal(storage.to_numpy(), value.T)


@pytest.mark.source(
    "GDP-3 draft",
    "Broadcasting",
    "assigning a field with fewer dimensions repeats it along those that it lacks",
    "an output with more dimensions gets the result along all of them",
)
@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize(
    ("dims", "index"),
    [
        ("K", (None, None, slice(None))),
        ("J", (None, slice(None), None)),
        ("I", (slice(None), None, None)),
    ],
)
def test_a_profile_is_repeated_along_the_dimensions_it_lacks(make, dims, index):
    storage, profile = dlf.zeros((3, 3, 3), dims="IJK"), np.array([1.0, 2, 3])
    storage[...] = make(profile, dims)
    np.testing.assert_array_equal(storage.to_numpy(), np.broadcast_to(profile[index], (3, 3, 3)))


@pytest.mark.source(
    "GDP-3 draft",
    "Broadcasting",
    "assigning a field with fewer dimensions repeats it along those that it lacks",
    "an output with more dimensions gets the result along all of them",
)
@pytest.mark.parametrize(
    ("dims", "expected"), [("IJ", CUBE[0][..., None]), ("KI", CUBE[0].T[:, None])]
)
def test_a_plane_is_repeated_along_the_dimension_it_lacks(dims, expected):
    storage = dlf.zeros((3, 3, 3), dims="IJK")
    storage[...] = named(CUBE[0], dims)
    np.testing.assert_array_equal(storage.to_numpy(), np.broadcast_to(expected, (3, 3, 3)))


def test_an_extent_of_1_is_repeated_where_its_name_is():
    storage = dlf.zeros((3, 3, 3), dims="IJK")
    storage[...] = named(np.array([[[1.0]], [[2]], [[3]]]), "KIJ")
    np.testing.assert_array_equal(storage.to_numpy(), np.broadcast_to([1, 2, 3], (3, 3, 3)))


def test_a_number_without_dimensions_goes_everywhere():
    storage = dlf.zeros((2, 2), dims="IJ")
    storage[...] = named(5.0, ())
    assert (storage.to_numpy() == 5).all()


@pytest.mark.source("GDP-3 draft", "Methods", "assignment matches dimensions by name")
@pytest.mark.parametrize(
    ("key", "dims", "order"),
    [
        (1, "KJ", (1, 0)),
        ((slice(None), 0), "KI", (1, 0)),
        ((slice(None, None, -1), ..., 2), "JI", (1, 0)),
        ((slice(1, 3), slice(None), slice(0, 3)), "KIJ", (1, 2, 0)),
    ],
    ids=repr,
)
def test_the_names_of_the_part_that_is_written_count(key, dims, order):
    storage, expected = dlf.zeros((3, 3, 3), dims="IJK"), np.zeros((3, 3, 3))
    expected[key] = np.arange(expected[key].size).reshape(expected[key].shape)
    value = expected[key].transpose(np.argsort(order))
    storage[key] = named(value, dims)
    np.testing.assert_array_equal(storage.to_numpy(), expected)


def test_a_transposed_storage_takes_a_value_to_the_same_places():
    one, other = dlf.zeros((3, 3, 3), dims="IJK"), dlf.zeros((3, 3, 3), dims="IJK")
    one[...] = named(CUBE, "JKI")
    other.T[...] = named(CUBE, "JKI")
    np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())


def test_a_storage_takes_its_own_transposed_view_as_it_is():
    storage = named(CUBE, "IJK")
    storage[...] = storage.T
    storage.transpose(1, 0, 2)[...] = storage
    np.testing.assert_array_equal(storage.to_numpy(), CUBE)


def test_overlapping_memory_goes_by_name_too():
    storage = named(CUBE, "IJK")
    view = dlf.as_storage(storage.to_numpy(), dims="KJI")
    storage[...] = view
    np.testing.assert_array_equal(storage.to_numpy(), CUBE.T)


@pytest.mark.parametrize(
    ("own", "target"),
    [("0I", "I0"), (("lat", "lev"), ("lev", "lat")), (("x", "I"), ("I", "x"))],
    ids=repr,
)
def test_names_of_any_kind_lead_to_their_place_where_the_target_has_them_all(own, target):
    storage = dlf.zeros((3, 3), dims=target)
    storage[...] = named(CUBE[0], own)
    np.testing.assert_array_equal(storage.to_numpy(), CUBE[0].T)


RENAMED = {
    "names of coordinates": (
        ("level", "lat", "lon"),
        "IJK",
        {"level": "K", "lat": "J", "lon": "I"},
    ),
    "names of GT4Py": ("KJ", ("I", "lev"), {"K": "lev", "J": "..."}),
    "coordinates of another kind": (("y", "x"), ("lon", "lat"), {"y": "lat", "x": "lon"}),
    "one of them": (("I", "height"), "IK", {"height": "K"}),
    "one that means nothing": (("I", "Cell"), "IK", {"Cell": "K"}),
    "names that mean nothing": (("a", "b"), "IJ", {"a": "...", "b": "..."}),
}


@pytest.mark.parametrize(("own", "target", "mapping"), RENAMED.values(), ids=RENAMED)
def test_names_of_another_kind_are_refused_with_the_line_that_maps_them(own, target, mapping):
    storage = dlf.zeros((3,) * len(target), dims=target)
    pairs = ", ".join(f'"{name}": "{meant}"' for name, meant in mapping.items())
    pairs = pairs.replace('"..."', "...")
    with pytest.raises(ValueError, match=re.escape(f"with value.rename({{{pairs}}}), or")):
        storage[...] = named(np.ones((3,) * len(own)), own)
    assert not storage.to_numpy().any()


def test_names_that_xarray_has_only_numbered_go_by_position():
    storage = dlf.zeros((3, 3), dims="JI")
    storage[...] = named(CUBE[0], ("dim_0", "dim_1"))
    np.testing.assert_array_equal(storage.to_numpy(), CUBE[0])
    numbered = dlf.zeros((3, 3), dims=("dim_0", "dim_1"))
    numbered[...] = named(CUBE[0], "JI")
    np.testing.assert_array_equal(numbered.to_numpy(), CUBE[0])


@pytest.mark.parametrize(
    ("own", "target"),
    [(("J", "lat"), "IJ"), (("b", "a"), ("a", "c")), ("IK", ("I", "lev"))],
    ids=repr,
)
def test_names_of_which_one_has_a_place_and_one_has_none_are_refused(own, target):
    storage = dlf.zeros((3, 3), dims=target)
    with pytest.raises(ValueError, match=r"dims: expected names among"):
        storage[...] = named(CUBE[0], own)
    assert not storage.to_numpy().any()


@pytest.mark.parametrize(("own", "target"), [(None, "JI"), ("JI", None), (None, None)], ids=repr)
def test_where_one_side_has_no_names_the_position_counts(own, target):
    storage = dlf.zeros((3, 3), dims=target)
    storage[...] = named(CUBE[0], own)
    np.testing.assert_array_equal(storage.to_numpy(), CUBE[0])


@pytest.mark.parametrize(
    ("own", "target"),
    [("IK", "IJ"), ("K", "IJ"), ("IJK", "IJ"), ("0", "I"), ("01", "0K"), ("I0", "IJ")],
    ids=repr,
)
@pytest.mark.parametrize("extent", [1, 3])
def test_a_name_of_gt4py_that_the_target_lacks_is_refused(own, target, extent):
    storage = dlf.ones((extent,) * len(target), dims=target)
    with pytest.raises(ValueError, match=r"dims: expected names among .*by position") as refused:
        storage[...] = dlf.zeros((extent,) * len(own), dims=own)
    assert str(tuple(own)).strip("(),") in str(refused.value)
    assert storage.to_numpy().all()


def test_an_integer_takes_the_name_away_that_a_value_may_use():
    storage = dlf.ones((3, 3), dims="IJ")
    with pytest.raises(ValueError, match=r"among .*'J'.*, got .*'I'"):
        storage[0] = dlf.zeros((3,), dims="I")
    assert storage.to_numpy().all()


def test_to_numpy_goes_by_position():
    storage = dlf.zeros((3, 3), dims="IJ")
    storage[...] = named(CUBE[0], "JI").to_numpy()
    np.testing.assert_array_equal(storage.to_numpy(), CUBE[0])


def test_a_shape_is_refused_after_the_names_have_put_it_in_order():
    storage = dlf.ones((2, 3), dims="IJ")
    with pytest.raises(ValueError, match="shape"):
        storage[...] = dlf.zeros((2, 3), dims="JI")
    assert storage.to_numpy().all()


@pytest.mark.parametrize(
    "dtype",
    [
        "float64",
        "float32",
        "int8",
        ">f8",
        "g",
    ],
)
def test_an_array_of_numpy_that_names_its_axes_goes_by_name(dtype):
    storage = dlf.zeros((3, 3), dims="IK")
    storage[...] = CUBE[0].astype(dtype).view(Named)
    np.testing.assert_array_equal(storage.to_numpy(), CUBE[0].T)


def test_a_named_value_for_an_advanced_key_must_be_in_order():
    storage = dlf.zeros((3, 3), dims="IJ")
    storage[[0, 1, 2]] = named(CUBE[0], "IJ")
    np.testing.assert_array_equal(storage.to_numpy(), CUBE[0])
    with pytest.raises(
        ValueError, match=r"for an advanced key, got \('J', 'I'\); transpose it, or"
    ):
        storage[[0, 1, 2]] = named(CUBE[1], "JI")


@pytest.mark.parametrize("dims", [("x",), ("lev",), None, ("0x",)], ids=repr)
def test_a_value_for_a_mask_goes_by_position_where_its_names_are_unrelated(dims):
    storage, mask = dlf.zeros((3, 3), dims="IJ"), CUBE[0] > 5
    storage[mask] = named([1.0, 2, 3], dims)
    np.testing.assert_array_equal(storage.to_numpy()[mask], [1, 2, 3])


PROFILE, MASK = np.arange(3.0), CUBE[0] % 2 == 0

BEHIND = {
    "a mask": (MASK, "K", PROFILE),
    "a mask and a slice": ((MASK, slice(None)), "K", PROFILE),
    "a mask and dots": ((MASK, ...), "K", PROFILE),
    "a named mask in another order": (dlf.as_storage(MASK.T.copy(), dims="JI"), "K", PROFILE),
    "a list": ([0, 2], "JK", CUBE[1]),
    "a list and a slice": (([0, 2], slice(1, 3)), "JK", CUBE[1, 1:]),
    "a list after a slice": ((slice(None), [0, 2]), "K", PROFILE),
    "a list before a number": (([0, 2], slice(None), 1), "J", PROFILE),
}


@pytest.mark.parametrize(("key", "dims", "value"), BEHIND.values(), ids=BEHIND)
def test_a_value_goes_along_the_dimensions_behind_a_mask_or_list(key, dims, value):
    storage, expected = dlf.zeros((3, 3, 3), dims="IJK"), np.zeros((3, 3, 3))
    storage[key] = named(value, dims)
    plain = MASK if isinstance(key, dlf.Storage) else key
    expected[plain] = value
    np.testing.assert_array_equal(storage.to_numpy(), expected)


def test_a_capsule_is_taken_once_as_a_mask_before_the_dimension_of_a_value():
    storage, expected = dlf.zeros((3, 3, 3), dims="IJK"), np.zeros((3, 3, 3))
    storage[MASK.__dlpack__(), :] = named(PROFILE, "K")
    expected[MASK] = PROFILE
    np.testing.assert_array_equal(storage.to_numpy(), expected)


BEFORE = {
    "the dimension of a list": ([0, 1, 2], "I"),
    "that between lists": (([0, 1, 2], slice(None), [0, 1, 2]), "J"),
    "one that a number drops": (([0, 2], slice(None), 1), "K"),
    "another order": ([0, 1, 2], "KJ"),
    "a new axis": (([0, 2], None), "I"),
}


@pytest.mark.parametrize(("key", "dims"), BEFORE.values(), ids=BEFORE)
def test_a_value_with_names_of_other_dimensions_is_refused_for_a_list(key, dims):
    storage = dlf.zeros((3, 3, 3), dims="IJK")
    with pytest.raises(ValueError, match="for an advanced key"):
        storage[key] = named(CUBE[0] if len(dims) == 2 else PROFILE, dims)


def test_two_names_of_another_kind_are_refused_for_an_advanced_key():
    storage = dlf.zeros((3, 3), dims="IJ")
    with pytest.raises(ValueError, match=r"for an advanced key, got \('lat', 'lon'\); pass to_"):
        storage[[0, 1, 2]] = named(CUBE[0], ("lat", "lon"))
    assert not storage.to_numpy().any()


def test_a_value_without_dimensions_has_no_names_that_differ():
    storage = dlf.zeros((3, 3), dims="IJ")
    storage[[0, 2]] = named(5.0, ())
    np.testing.assert_array_equal(storage.to_numpy(), [[5] * 3, [0] * 3, [5] * 3])


@pytest.mark.parametrize("dims", ["I", "K", "0"])
def test_the_error_for_a_masked_value_does_not_suggest_transpose(dims):
    storage, mask = dlf.zeros((3, 3), dims="IJ"), CUBE[0] > 5
    with pytest.raises(
        ValueError, match=r"for an advanced key, got \(.*\); pass to_numpy\(\) to go"
    ):
        storage[mask] = named([1.0, 2, 3], dims)
    assert not storage.to_numpy().any()


def test_a_named_value_without_a_protocol_is_not_assigned_by_position():
    class Opaque:
        __gt_dims__ = ("J", "I")

        def __array__(self, dtype=None, copy=None):
            return CUBE[0]

    with pytest.raises(TypeError, match="array: expected one that speaks"):
        dlf.zeros((3, 3), dims="IJ")[...] = Opaque()
