"""What NumPy and CuPy say of the memory of an array, a storage says of its own."""

import sys

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused

VALUES = np.arange(24.0).reshape(2, 3, 4)

STORAGES = {
    "rows": lambda: dlf.storage(VALUES, dims="IJK"),
    "columns": lambda: dlf.storage(VALUES, layout=(2, 1, 0)),
    "neither": lambda: dlf.storage(VALUES, layout=(1, 0, 2)),
    "one row": lambda: dlf.zeros((1, 5)),
    "thinned out": lambda: dlf.storage(VALUES)[:, ::2],
    "reversed": lambda: dlf.storage(VALUES)[::-1],
    "padded": lambda: dlf.zeros((3, 4), alignment_size=64),
    "read-only": lambda: dlf.as_storage(bytes(8)),
    "borrowed": lambda: dlf.as_storage(np.zeros(3)),
    "off its boundary": lambda: dlf.as_storage(np.zeros(17, "u1")[1:].view("f8")),
    "empty": lambda: dlf.zeros((0, 3)),
    "one element": lambda: dlf.zeros(()),
}
KEYS = ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")


@pytest.mark.parametrize("make", STORAGES.values(), ids=STORAGES)
def test_flags_read_as_those_of_numpy(make):
    storage = make()
    flags, plain = storage.flags, storage.to_numpy().flags
    assert {key: flags[key] for key in KEYS} == {key: plain[key] for key in KEYS}
    for name in map(str.lower, KEYS):
        assert getattr(flags, name) == getattr(plain, name)


def test_flags_are_shown_as_those_of_numpy():
    storage = dlf.zeros((2, 3))
    plain = str(storage.to_numpy().flags).replace("OWNDATA : False", "OWNDATA : True")
    assert str(storage.flags).splitlines() == plain.rstrip("\n").splitlines()


def test_memory_is_owned_if_dlfield_allocated_it():
    assert dlf.zeros(3)[1:].flags.owndata
    assert not dlf.as_storage(np.zeros(3)).flags["OWNDATA"]


def test_flags_cannot_be_set():
    storage = dlf.zeros(3)
    with pytest.raises(AttributeError):
        storage.flags.writeable = False
    with pytest.raises(AttributeError):
        storage.flags = None


@pytest.mark.parametrize("key", ["UPDATEIFCOPY", "C", "CARRAY", "writeable"])
def test_an_unknown_flag_is_refused_with_those_that_exist(key):
    with refused(KeyError, "C_CONTIGUOUS, F_CONTIGUOUS, OWNDATA, WRITEABLE", f"got '{key}'"):
        dlf.zeros(3).flags[key]


@pytest.mark.parametrize("make", STORAGES.values(), ids=STORAGES)
def test_ptr_is_the_address_of_the_first_element(make):
    storage = make()
    assert storage.ptr == address_of(storage)


def test_no_array_is_the_base_of_a_storage():
    assert dlf.zeros(3).base is None
    assert dlf.zeros(3)[1:].base is None


@pytest.mark.parametrize("make", STORAGES.values(), ids=STORAGES)
def test_the_size_of_a_storage_counts_its_elements(make):
    storage, empty = make(), dlf.zeros(0)
    assert sys.getsizeof(storage) - sys.getsizeof(empty) == storage.nbytes


def test_repeated_elements_count_once():
    spread = np.broadcast_to(dlf.zeros(()), (1000, 1000))
    assert sys.getsizeof(spread) - sys.getsizeof(dlf.zeros(0)) == 8


# --- views ---------------------------------------------------------------------------------------


def test_a_view_without_a_type_is_a_storage_over_the_same_memory():
    storage = dlf.zeros((3, 4), dims="IJ", halo=(1, 0))
    view = storage.view()
    assert view is not storage
    assert (view.dims, view.halo, view.ptr) == (storage.dims, storage.halo, storage.ptr)


@pytest.mark.parametrize("dtype", ["u1", "i8", "V8", np.float32])
def test_a_view_as_another_type_is_what_numpy_makes(dtype):
    storage = dlf.ones((3, 4))
    view = storage.view(dtype)
    assert type(view) is np.ndarray
    assert np.array_equal(view, storage.to_numpy().view(dtype))
    assert view.ctypes.data == storage.ptr


def test_fill_writes_every_element_and_tolist_copies_them():
    storage = dlf.zeros((2, 2))
    storage[:, 1].fill(7)
    assert storage.tolist() == [[0, 7], [0, 7]]


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_all_and_any_are_those_of_numpy(axis):
    storage = dlf.storage(np.eye(3, dtype=bool))
    for name in ("all", "any"):
        expected = getattr(storage.to_numpy(), name)(axis=axis, keepdims=True)
        assert np.array_equal(getattr(storage, name)(axis, keepdims=True), expected)
