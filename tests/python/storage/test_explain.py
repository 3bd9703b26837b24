"""explain: what it says about arrays that come in, and about those that do not."""

import doctest

import dlfield as dlf
import numpy as np
import pytest
from dlfield.show import explanation as explaining

from support.dlpack_structs import READ_ONLY, Producer
from support.gt_objects import Synchronised
from support.no_driver import without_driver
from support.optional import library
from support.owners import tracked


def said(data, **options):
    return str(dlf.explain(data, **options))


def misaligned():
    return np.zeros(25, np.uint8)[1:].view(np.float64)


def test_the_door_that_was_taken_and_those_there_are_are_named():
    explanation = dlf.explain(np.zeros((2, 3)))
    assert explanation.door == "buffer"
    assert explanation.doors == ("buffer", "dlpack", "array_interface", "array_struct")
    assert "shared through buffer" in str(explanation)


def test_what_was_found_is_in_elements():
    explanation = dlf.explain(np.zeros((2, 3, 4), np.float32).transpose(2, 0, 1))
    assert (explanation.shape, explanation.strides) == ((4, 2, 3), (1, 12, 4))
    assert "shape (4, 2, 3), strides (1, 12, 4) elements, float32, no dims" in str(explanation)


def test_a_halo_is_shown_where_there_is_one_or_nobody_knows():
    field = dlf.zeros((8, 8, 4), dims="IJK", halo=(1, 1, 0))
    assert "dims ('I', 'J', 'K'), halo ((1, 1), (1, 1), (0, 0)), host" in said(field)
    assert "unknown halo" in said(field[::2])
    assert "halo" not in said(dlf.zeros((8, 8, 4), dims="IJK"))


def test_a_field_that_is_perfect_has_nothing_in_the_way():
    storage = dlf.zeros((8, 8, 4), dims="IJK", backend="gt:cpu_kfirst")
    explanation = dlf.explain(storage, backend="gt:cpu_kfirst")
    assert explanation.obstacles == ()
    assert "a storage of dlfield's own memory" in str(explanation)
    assert str(explanation).endswith("in the way: nothing")


def test_the_alignment_is_a_power_of_two_that_divides_the_address():
    assert dlf.explain(misaligned()).alignment == 1
    assert dlf.explain(dlf.zeros(1 << 20)).alignment >= 64
    assert dlf.explain(dlf.zeros(0)).alignment == 4096


OBSTACLES = {
    "read-only": (lambda: Producer(flags=READ_ONLY), "read-only"),
    "misaligned": (misaligned, "boundary of 8 bytes"),
    "off a cache line": (lambda: dlf.zeros(9).to_numpy()[1:], "boundary of 64 bytes"),
    "backwards": (lambda: dlf.zeros(9).to_numpy()[::-1], "negative strides"),
    "rows with gaps": (lambda: np.zeros((4, 8))[:, :6], r"to_arrow(copy=True)"),
    "no name in Arrow": (lambda: dlf.zeros(3, dtype="complex64"), "to_arrow() refuses"),
}


@pytest.mark.parametrize(("make", "text"), OBSTACLES.values(), ids=OBSTACLES)
def test_what_stands_in_the_way_of_some_is_said(make, text):
    explanation = dlf.explain(make())
    assert explanation.storage is not None
    assert any(text in obstacle for obstacle in explanation.obstacles)


REFUSED = {
    "no array": ([1, 2], "TypeError", "'list'"),
    "a class": (np.ndarray, "TypeError", "the class 'ndarray'"),
    "byte-swapped": (np.zeros(3, ">f4"), "BufferError", "byte-swapped"),
    "a time": (np.datetime64("2000-01-01"), "BufferError", "got a time"),
    "objects": (np.array([None]), "BufferError", "got 'O'"),
}


@pytest.mark.parametrize(("data", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_come_in_is_explained_by_its_error(data, error, text):
    explanation = dlf.explain(data)
    (obstacle,) = explanation.obstacles
    assert obstacle.startswith(f"{error}: ")
    assert text in obstacle
    nothing = (explanation.storage, explanation.door, explanation.shape, explanation.strides)
    assert nothing == (None,) * 4
    assert explanation.alignment is None
    assert "not taken" in str(explanation)


def test_what_a_producer_raises_is_part_of_the_answer():
    class Broken(Producer):
        def __dlpack__(self, **_keywords):
            raise RuntimeError("no memory today")

    assert "RuntimeError: no memory today" in said(Broken())


def test_a_door_that_raises_when_it_is_asked_for_is_a_door():
    class Lost:
        @property
        def __dlpack__(self):
            raise RuntimeError("device lost")

    explanation = dlf.explain(Lost())
    assert explanation.doors == ("dlpack",)
    assert explanation.obstacles == ("RuntimeError: device lost",)


def test_a_layout_that_a_backend_would_rather_have_is_named():
    array = dlf.zeros((8, 8, 4), layout=(0, 1, 2))
    assert dlf.explain(array, backend="gt:cpu_kfirst").obstacles == ()
    (obstacle,) = dlf.explain(array, backend="gt:cpu_ifirst").obstacles
    assert obstacle.startswith("slower than it could be on gt:cpu_ifirst: layout")


@without_driver
def test_a_backend_of_another_device_is_named():
    assert "DeviceUnavailable" in said(dlf.zeros(3), backend="gt:gpu")


def test_a_backend_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="backend: expected one of"):
        dlf.explain(np.zeros(3), backend="gt:cpu")


def test_a_type_that_numpy_lacks_is_explained_too():
    assert "bfloat16" in said(dlf.zeros(3, dtype=library("ml_dtypes").bfloat16))


def test_an_explanation_keeps_the_memory_and_its_end_gives_it_back():
    array, watch = tracked(np.zeros(3))
    explanation = dlf.explain(array)
    del array
    assert not watch.freed
    del explanation
    assert watch.freed


def test_nothing_is_acquired_for_an_explanation():
    field = Synchronised((2, 3))
    explanation = dlf.explain(field)
    assert (explanation.door, explanation.shape) == ("gt_data_interface", (2, 3))
    del explanation
    assert field.told == []


def test_the_examples_of_the_documentation_run():
    library("gt4py.cartesian")
    result = doctest.testmod(explaining, optionflags=doctest.ELLIPSIS)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_each_door_of_a_storage_is_listed_once_and_its_own_first():
    doors = dlf.explain(dlf.zeros((2, 3))).doors
    assert doors[0] == "storage"
    assert len(set(doors)) == len(doors)
