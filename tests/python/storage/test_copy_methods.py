"""`copy()`, `copy.copy`, `copy.deepcopy`, `storage()`: equal values and labels in other memory."""

import copy

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.owners import tracked
from support.parameters import KNOWN, ML_DTYPES, NUMPY_DTYPES, every_view

every_way = pytest.mark.parametrize(
    "copied",
    [lambda storage: storage.copy(), copy.copy, copy.deepcopy, dlf.storage],
    ids=["copy()", "copy.copy", "copy.deepcopy", "storage()"],
)


@pytest.fixture
def field():
    """A field that is unusual in every respect."""
    options = {"halo": (1, (0, 2)), "layout": (1, 0), "alignment_size": 64}
    storage = dlf.zeros((6, 7), dims=("lat", "lon"), aligned_index=(2, 3), **options)
    storage.to_numpy()[...] = np.arange(42).reshape(6, 7)
    return storage


@pytest.mark.source(
    "GDP-3", "Methods", "`copy()` gives a storage with the same parameters and its own values"
)
@pytest.mark.source(
    "GDP-3 draft", "Methods", "`copy` and `copy.deepcopy` allocate, and copy the values"
)
@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "after the preset, a missing option comes from the data",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "a missing option comes from the preset, then the data, then a default",
)
@every_way
def test_a_copy_knows_what_its_source_knows(field, copied):
    for name in KNOWN:
        assert getattr(copied(field), name) == getattr(field, name)
    assert copied(field).strides == field.strides


@pytest.mark.source(
    "GDP-3",
    "Methods",
    "`copy.deepcopy` works",
    "`copy()` gives a storage with the same parameters and its own values",
)
@pytest.mark.source(
    "GDP-3 draft", "Methods", "`copy` and `copy.deepcopy` allocate, and copy the values"
)
@pytest.mark.source(
    "GDP-3", "Storage Creation", "`storage(data, …)` copies an array into a new storage"
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "`empty`, `zeros`, `ones`, `full` and `storage` allocate",
    "`data` is what `asstorage` and `storage` start from",
)
@every_way
def test_a_copy_has_the_values_and_memory_of_its_own(field, copied):
    other = copied(field)
    np.testing.assert_array_equal(other.to_numpy(), field.to_numpy())
    other.to_numpy()[...] = -1
    assert field.to_numpy().max() == 41


@every_way
def test_a_copy_is_aligned_as_its_source(field, copied):
    other = copied(field)
    strides = other.strides
    assert (address_of(other) + 2 * strides[0] + 3 * strides[1]) % 64 == 0


@every_way
@every_view
def test_a_copy_of_a_view_has_what_the_view_shows(field, view, copied):
    other = copied(view(field))
    np.testing.assert_array_equal(other.to_numpy(), view(field).to_numpy(), strict=True)
    assert (other.dims, other.halo) == (view(field).dims, view(field).halo)
    assert all(stride > 0 for stride in other.strides)


@every_way
def test_a_copy_keeps_an_origin_and_an_unknown_halo(copied):
    storage = dlf.zeros((4, 4), default_origin=(1, 2), halo=(1, 1))
    storage.halo = None
    assert (copied(storage).default_origin, copied(storage).halo) == ((1, 2), None)


@every_way
@pytest.mark.parametrize("name", NUMPY_DTYPES + ML_DTYPES)
def test_every_type_is_copied(name, copied):
    dtype = np.dtype(getattr(library("ml_dtypes"), name)) if name in ML_DTYPES else name
    storage = dlf.ones((2, 3), dtype)
    assert copied(storage).dtype == storage.dtype
    assert copied(storage).to_numpy().tobytes() == storage.to_numpy().tobytes()


@every_way
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 64], ids=len)
def test_every_shape_is_copied(shape, copied):
    assert copied(dlf.zeros(shape)).shape == shape


@every_way
def test_a_copy_of_read_only_memory_is_writable(copied):
    other = copied(dlf.as_storage(b"123"))
    other.to_numpy()[0] = 0
    assert (other.readonly, other.to_numpy().tolist(), other.door) == (False, [0, 50, 51], None)


@every_way
def test_a_copy_of_a_broadcast_has_an_element_for_every_index(copied):
    other = copied(dlf.as_storage(np.broadcast_to(np.arange(3.0), (4, 3))))
    other.to_numpy()[1, 1] = 9
    assert other.to_numpy()[2, 1] == 1


@every_way
def test_a_copy_does_not_hold_its_source(copied):
    source, watch = tracked(np.zeros(3))
    other = copied(dlf.as_storage(source))
    del source
    assert watch.freed
    assert other.shape == (3,)


def test_one_storage_in_two_places_is_one_storage_after_a_deep_copy(field):
    array = np.zeros(3)
    for thing in (array, field):
        first, second = copy.deepcopy([thing, thing])
        assert first is second
        assert first is not thing


def test_a_deep_copy_is_found_in_the_memo(field):
    memo = {}
    other = copy.deepcopy(field, memo)
    assert memo[id(field)] is other


def test_a_deep_copy_may_be_asked_for_without_a_memo(field):
    assert field.__deepcopy__({}).shape == field.__deepcopy__(None).shape == (6, 7)


@pytest.mark.source("GDP-3", "Methods", "`__deepcopy__` may be called without a memo")
def test_the_memo_of_a_deep_copy_may_be_left_out(field):
    assert field.__deepcopy__().shape == (6, 7)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_unset_is_one_object(again):
    assert again(dlf.UNSET) is dlf.UNSET
