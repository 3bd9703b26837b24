"""default_origin=: kept, checked, in GT4Py's order of dimensions, and moved with views."""

import dlfield as dlf
import numpy as np
import pytest


def test_an_origin_is_shown_under_both_names():
    storage = dlf.zeros((4, 5, 6), default_origin=(1, 2, 3))
    assert storage.__gt_origin__ == storage.default_origin == (1, 2, 3)


def test_an_origin_counts_in_the_order_of_gt4py_whatever_the_axes():
    storage = dlf.zeros((1, 8, 9), dims="KJI", default_origin=(9, 8, 1))
    assert storage.__gt_origin__ == (9, 8, 1)
    with pytest.raises(ValueError, match=r"default_origin: expected at most 1 for axis 0 .* got 2"):
        dlf.zeros((1, 8, 9), dims="KJI", default_origin=(9, 8, 2))


@pytest.mark.parametrize("origin", [(1,), (1, 1, 1), (0, 5)])
def test_an_origin_behind_the_field_or_of_another_length_is_refused(origin):
    with pytest.raises(ValueError, match="default_origin: expected"):
        dlf.zeros((3, 4), default_origin=origin)


@pytest.mark.parametrize("origin", [3, "ab", (1.5, 0), [None, 1]])
def test_an_origin_must_be_a_sequence_of_ints(origin):
    with pytest.raises(TypeError, match="default_origin: expected"):
        dlf.zeros((3, 4), default_origin=origin)


def test_an_origin_moves_with_the_domain():
    storage = dlf.zeros((9, 8, 4), dims="JIK", halo=(2, 1, 0), default_origin=(3, 2, 0))
    assert storage.domain_view.__gt_origin__ == (2, 0, 0)


@pytest.mark.parametrize("name", ["default_origin", "__gt_origin__"])
def test_the_error_for_a_lost_origin_says_that_the_view_lost_it(name):
    storage = dlf.zeros((3, 4), default_origin=(1, 1))
    for without in (storage[2:], storage[::2], dlf.zeros((3, 4))):
        with pytest.raises(AttributeError, match=f"^{name}: expected an origin, .* or a view that"):
            getattr(without, name)


def test_an_origin_before_the_domain_is_dropped_with_it():
    assert not hasattr(dlf.zeros(9, halo=(2,), default_origin=(1,)).domain_view, "__gt_origin__")


@pytest.mark.parametrize("again", [dlf.as_storage, dlf.storage])
def test_an_origin_stays_with_a_storage_that_is_wrapped_or_copied(again):
    assert again(dlf.zeros((3, 4), default_origin=(1, 2))).default_origin == (1, 2)


def test_an_origin_is_taken_away_by_none():
    storage = dlf.zeros((3, 4), default_origin=(1, 2))
    assert not hasattr(dlf.as_storage(storage, default_origin=None), "default_origin")


def test_an_origin_can_be_given_to_memory_of_others():
    assert dlf.as_storage(np.zeros((3, 4)), default_origin=(1, 2)).__gt_origin__ == (1, 2)


def test_an_origin_counts_along_the_axes_if_gt4py_does_not_know_a_name():
    storage = dlf.zeros((5, 3, 4), dims=("lev", "J", "I"), default_origin=(5, 1, 2))
    assert storage.transpose(2, 0, 1).default_origin == (2, 5, 1)
    assert storage[0].default_origin == (2, 1)  # J and I are left, and count as I, J
    assert storage.max("lev").default_origin == (2, 1)


def test_an_origin_may_lie_before_the_array():
    storage = dlf.zeros((3, 4), dims="IJ", default_origin=(-5, 1))
    assert storage.__gt_origin__ == storage.default_origin == (-5, 1)
    assert (storage + 1).default_origin == np.copy(storage, subok=True).default_origin == (-5, 1)


def test_an_origin_before_the_array_moves_with_views():
    storage = dlf.zeros((3, 4), dims="IJ", default_origin=(-5, 1))
    assert storage[2:, 1:].default_origin == (-7, 0)
    assert not hasattr(storage[:, 2:], "default_origin"), "a point that the view excludes"


def test_an_origin_goes_with_the_names_it_counted_by():
    storage = dlf.zeros((4, 5, 6), dims="KIJ", default_origin=(1, 2, 3))
    assert not hasattr(dlf.as_storage(storage, dims=None), "default_origin")
    assert dlf.as_storage(storage, dims="KIJ", default_origin=(1, 2, 3)).default_origin == (1, 2, 3)


class Placed(np.ndarray):
    __gt_origin__ = (1, 2)


@pytest.mark.parametrize("take", [dlf.as_storage, dlf.storage])
def test_the_origin_of_an_array_is_kept(take):
    assert take(np.zeros((3, 4)).view(Placed)).default_origin == (1, 2)


def test_an_origin_that_lies_outside_the_array_does_not_come_along():
    assert not hasattr(dlf.as_storage(np.zeros((3, 1)).view(Placed)), "default_origin")


@pytest.mark.parametrize("origin", [5, "abc", [(1,)], {1}, {1: 2}], ids=repr)
def test_an_origin_of_an_array_that_is_none_is_named(origin):
    class Misplaced(np.ndarray):
        __gt_origin__ = origin

    with pytest.raises(TypeError, match=r"__gt_origin__: expected .* ints?, got"):
        dlf.as_storage(np.zeros(3).view(Misplaced))


@pytest.mark.parametrize("inner", [np.zeros((3, 4)), dlf.zeros((3, 4))], ids=["array", "storage"])
def test_an_origin_that_a_wrapper_states_is_kept_unless_it_lies_behind_the_memory(inner):
    class Wrapper:
        ndarray = inner
        __gt_origin__ = (-1, 0)

    class Beyond(Wrapper):
        __gt_origin__ = (-1, 5)

    assert dlf.as_storage(Wrapper()).__gt_origin__ == (-1, 0)
    assert not hasattr(dlf.as_storage(Beyond()), "__gt_origin__")
