"""A layout may be a function: what it is asked, and what it may answer."""

import dlfield as dlf
import numpy as np
import pytest


def remembered(answer, asked):
    """Return a layout function that notes what it was asked."""

    def layout(about):
        asked.append(about)
        return answer

    return layout


@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "`layout_map` may be a function of the number of dimensions",
)
def test_a_function_is_asked_with_the_number_of_dimensions():
    asked = []
    assert dlf.zeros((2, 3), layout=remembered((1, 0), asked)).layout == (1, 0)
    assert asked == [2]


@pytest.mark.parametrize("dims", ["IJ", ("lat", "lon")])
def test_a_function_is_asked_with_the_names_where_they_are_known(dims):
    asked = []
    dlf.zeros((2, 3), dims=dims, layout=remembered((1, 0), asked))
    assert asked == [tuple(dims)]


def test_the_names_may_be_those_of_a_model_or_of_the_data():
    field, asked = dlf.zeros((2, 3), dims="IJ"), []
    for make in (dlf.zeros_like, dlf.storage):
        assert make(field, layout=remembered((1, 0), asked)).layout == (1, 0)
    assert dlf.as_storage(field, layout=remembered((0, 1), asked)).layout == (0, 1)
    assert asked == [("I", "J")] * 3


def by_number(ndim):
    return tuple(reversed(range(ndim)))


def by_table(ndim):
    return {2: (1, 0), 3: (2, 1, 0)}[ndim]


def by_name(dims):
    return tuple({"I": 2, "J": 1, "K": 0}[name] - 3 + len(dims) for name in dims)


@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "`layout_map` may be a function of the number of dimensions",
)
@pytest.mark.parametrize("layout", [by_number, by_table, by_name])
@pytest.mark.parametrize("dims", ["IJK", None])
def test_a_function_of_either_kind_works_with_and_without_names(layout, dims):
    assert dlf.zeros((2, 3, 4), dims=dims, layout=layout).layout == (2, 1, 0)


@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "`layout_map` may be a function of the number of dimensions",
)
def test_a_function_of_the_number_works_with_names_that_gt4py_does_not_know():
    assert dlf.zeros((3, 4), dims=("lat", "lon"), layout=by_number).layout == (1, 0)


def test_a_name_that_the_function_lacks_is_what_is_raised():
    with pytest.raises(KeyError, match="lat"):
        dlf.zeros((3, 4), dims=("lat", "lon"), layout=by_name)
    with pytest.raises(KeyError, match="'0'"):
        dlf.zeros((2, 3, 4, 5), layout=by_name)


def test_an_interrupt_is_not_asked_again():
    asked = []

    def layout(about):
        asked.append(about)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dlf.zeros((2, 3), layout=layout)
    assert asked == [2]


def test_the_order_in_which_options_are_given_does_not_matter():
    asked = []
    layout = remembered((1, 0), asked)
    dlf.zeros((2, 3), layout=layout, dims="IJ")
    dlf.zeros((2, 3), dims="IJ", layout=layout)
    assert asked == [("I", "J")] * 2


def test_the_answer_may_be_any_sequence_of_ints():
    for answer in (range(2), [0, 1], np.array([0, 1])):
        assert dlf.zeros((2, 3), layout=remembered(answer, [])).layout == (0, 1)


def test_a_function_overrides_a_preset():
    made = dlf.zeros((2, 3), defaults="F", layout=remembered((0, 1), []))
    assert made.layout == (0, 1)


def test_a_function_is_not_asked_beside_a_backend():
    asked = []
    with pytest.raises(ValueError, match="backend: expected no 'layout' beside it"):
        dlf.zeros((2, 3), backend="numpy", layout=remembered((0, 1), asked))
    assert asked == []


def test_what_a_function_raises_passes():
    def layout(_ndim):
        raise KeyError("no such grid")

    with pytest.raises(KeyError, match="no such grid"):
        dlf.zeros((2, 3), layout=layout)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((0, 0), ValueError),
        ((0, 1, 2), ValueError),
        ((), ValueError),
        (None, TypeError),
        (1, TypeError),
        ((0.0, 1.0), TypeError),
        ("01", TypeError),
    ],
)
def test_a_layout_function_must_return_a_permutation(answer, error):
    with pytest.raises(error, match="layout: expected"):
        dlf.zeros((2, 3), layout=remembered(answer, []))


@pytest.mark.parametrize(
    ("dims", "about"),
    [
        (None, 3),
        ("IJ", ("I", "J", "0")),
    ],
)
def test_a_function_is_asked_about_the_dimension_of_an_item_too(dims, about):
    asked = []
    layout = remembered((1, 2, 0), asked)
    assert dlf.zeros((2, 3), ("float32", (4,)), dims=dims, layout=layout).layout == (1, 2, 0)
    assert asked == [about]
