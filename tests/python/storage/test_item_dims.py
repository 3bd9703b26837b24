"""Types whose items are arrays: what is known of the dimensions that they add."""

import dlfield as dlf
import numpy as np
import pytest

VECTOR = ("float32", (4,))
MATRIX = np.dtype(("float64", (4, 5)))


@pytest.mark.parametrize(
    "make",
    [
        dlf.empty,
        dlf.zeros,
        dlf.ones,
        lambda shape, dtype, **options: dlf.full(shape, 1, dtype, **options),
        lambda shape, dtype, **options: dlf.storage(shape=shape, dtype=dtype, **options),
    ],
    ids=["empty", "zeros", "ones", "full", "storage"],
)
@pytest.mark.parametrize(
    ("dtype", "item"), [(VECTOR, (4,)), (MATRIX, (4, 5)), ("(2,)i8", (2,))], ids=str
)
def test_the_dimensions_of_an_item_come_last_as_in_numpy(make, dtype, item):
    made = make((2, 3), dtype)
    assert made.shape == np.zeros((2, 3), dtype).shape == (2, 3, *item)
    assert made.dtype == np.dtype(dtype).base


NESTED = np.dtype((np.dtype(("float32", (2,))), (3,)))


def test_the_dimensions_of_items_of_items_come_last_as_in_numpy():
    made = dlf.full((4,), 1, NESTED, dims="K")
    assert made.shape == np.zeros((4,), NESTED).shape == (4, 3, 2)
    assert (made.dims, made.dtype) == (("K", "0", "1"), np.float32)


@pytest.mark.parametrize("dtype", [VECTOR, NESTED], ids=str)
def test_items_that_are_arrays_are_refused_by_what_adds_no_dimensions(dtype):
    for make in (dlf.storage, dlf.zeros_like):
        with pytest.raises(ValueError, match=r"^dtype: .* items that are arrays, .*; only empty"):
            make(np.zeros(3), dtype=dtype)


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ("IJ", ("I", "J", "0", "1")),
        ("I0", ("I", "0", "1", "2")),
        ("I3", ("I", "3", "4", "5")),
        (("Cell", "K"), ("Cell", "K", "0", "1")),
        ("IJ01", ("I", "J", "0", "1")),
        (None, None),
    ],
)
def test_they_are_called_by_the_numbers_after_those_that_exist(dims, expected):
    assert dlf.zeros((2, 3), MATRIX, dims=dims).dims == expected


def test_item_dims_have_no_halo_and_begin_at_zero():
    options = {"dims": "IJ", "halo": (1, (2, 0)), "default_origin": (1, 2)}
    made = dlf.zeros((4, 5), MATRIX, **options)
    assert made.halo == ((1, 1), (2, 0), (0, 0), (0, 0))
    assert made.default_origin == (1, 2, 0, 0)


def test_the_aligned_element_is_the_first_of_its_item():
    made = dlf.zeros((4, 5), VECTOR, aligned_index=(1, 2), alignment_size=64)
    assert made.aligned_index == (1, 2, 0)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("halo", ((1, 1), (0, 2), (0, 0))),
        ("aligned_index", (1, 1, 3)),
        ("default_origin", (1, 1, 3)),
    ],
)
def test_an_option_may_also_speak_of_all_dimensions(option, value):
    made = dlf.zeros((2, 3), VECTOR, **{option: value})
    assert getattr(made, option) == value


@pytest.mark.parametrize("option", ["halo", "aligned_index", "default_origin"])
def test_an_option_of_another_length_is_refused(option):
    with pytest.raises(
        ValueError, match=f"{option}: expected one entry for each of the 4 dimensions"
    ):
        dlf.zeros((2, 3), MATRIX, **{option: (0, 0, 0)})


def test_a_layout_ranks_them_too():
    assert dlf.zeros((2, 3), VECTOR, layout=(2, 1, 0)).layout == (2, 1, 0)
    with pytest.raises(ValueError, match=r"layout: expected a permutation of \[0, 1, 2\]"):
        dlf.zeros((2, 3), VECTOR, layout=(1, 0))


@pytest.mark.parametrize(
    ("dims", "layout"),
    [("IJK", (3, 2, 1, 0)), ("IJ", (2, 1, 0)), ("K", (1, 0)), ("KJI", (1, 2, 3, 0))],
)
def test_a_backend_puts_them_outermost(dims, layout):
    shape = (2, 3, 4)[: len(dims)]
    assert dlf.zeros(shape, VECTOR, dims=dims, backend="gt:cpu_ifirst").layout == layout


@pytest.mark.parametrize(
    "shape",
    [
        (2, 3, 4),
        (2, 3),
        (2,),
    ],
    ids=repr,
)
def test_a_backend_puts_them_outermost_without_names_too(shape):
    made = dlf.zeros(shape, VECTOR, backend="gt:cpu_kfirst")
    assert made.layout.index(0) == len(shape)


def test_full_gives_every_element_of_every_item_the_value():
    np.testing.assert_array_equal(dlf.full((2,), 3, "(2,)i4").to_numpy(), np.full((2, 2), 3, "i4"))


@pytest.mark.parametrize(
    "dtype", [([("a", "f4")], (2,)), ("datetime64[s]", (2,)), (">f8", (2,))], ids=str
)
def test_items_of_types_that_no_storage_holds_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype: expected"):
        dlf.zeros((2,), dtype)
