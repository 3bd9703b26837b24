"""One dimension after the other, and single elements: len, iteration, item."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library

VALUES = np.arange(6).reshape(2, 3)


class Index:
    def __index__(self):
        return 4


def test_the_length_is_the_first_extent():
    assert [len(dlf.zeros(shape)) for shape in [(3,), (0, 4), (2, 0)]] == [3, 0, 2]


@pytest.mark.parametrize("call", [len, iter, list])
def test_a_storage_without_dimensions_has_no_length_and_no_parts(call):
    with pytest.raises(TypeError, match="at least one dimension"):
        call(dlf.zeros(()))


def test_iteration_gives_views_of_the_first_dimension():
    storage = dlf.storage(VALUES, dims="IJ", halo=(0, 1))
    rows = list(storage)
    assert [address_of(row) for row in rows] == [address_of(storage), address_of(storage) + 24]
    assert [(row.dims, row.halo) for row in rows] == [(("J",), ((1, 1),))] * 2


def test_iteration_over_one_dimension_gives_numbers():
    numbers = list(dlf.storage(VALUES[1])[::-1])
    assert numbers == [5, 4, 3]
    assert {type(number) for number in numbers} == {np.int64}


def test_iteration_over_an_extent_of_0_gives_nothing():
    assert list(dlf.zeros((0, 3))) == []


def test_a_storage_can_be_unpacked():
    (first, *_), second = dlf.storage(VALUES)
    assert (first, second.shape) == (0, (3,))


def test_a_storage_can_be_gone_through_backwards():
    assert list(reversed(dlf.storage([1, 2, 3]))) == [3, 2, 1]


def test_an_element_cannot_be_deleted():
    storage = dlf.storage(VALUES)
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        del storage[0]
    np.testing.assert_array_equal(storage.to_numpy(), VALUES)


@pytest.mark.parametrize(
    "index",
    [(0,), (-1,), (np.int8(3),), (1, 2), (-2, -3), ((1, 1),), (Index(),)],
    ids=lambda index: repr(index)[:20],
)
def test_item_gives_the_python_number_that_numpy_gives(index):
    number = dlf.storage(VALUES, layout=(1, 0)).item(*index)
    assert (number, type(number)) == (VALUES.item(*index), int)


@pytest.mark.parametrize(
    ("name", "kind"), [("bool", bool), ("float32", float), ("complex64", complex)]
)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_item_alone_gives_the_only_element(name, kind, shape):
    number = dlf.ones(shape, name).item()
    assert (number, type(number)) == (1, kind)


def test_item_knows_the_types_of_ml_dtypes():
    library("ml_dtypes")
    assert dlf.full((2, 2), 1.5, "bfloat16").item(0, 1) == 1.5


@pytest.mark.parametrize(
    ("error", "index"),
    [
        (ValueError, ()),
        (ValueError, (0, 0, 0)),
        (IndexError, (6,)),
        (IndexError, (-7,)),
        (IndexError, (2, 0)),
        (TypeError, ("a",)),
        (TypeError, (1.0,)),
        (TypeError, (slice(None),)),
    ],
    ids=repr,
)
def test_item_refuses_what_numpy_refuses(error, index):
    with pytest.raises(error):
        VALUES.item(*index)
    with pytest.raises(error):
        dlf.storage(VALUES).item(*index)


def test_a_view_of_one_element_is_that_number():
    storage = dlf.storage(VALUES)
    assert int(storage[1:, 2:]) == 5
    assert float(storage[1, 1, ...]) == 4
    assert [10, 20, 30][storage[0, 1, ...]] == 20
