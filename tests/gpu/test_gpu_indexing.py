"""`storage[key]` and `storage[key] = value` on a GPU: which side is read, which one is written."""

import itertools

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import Counted, buffers, pair, values
from support.cuda.devices import LEGACY, OnDevice, delay
from support.cuda.kinds import (
    CLASSES,
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    every_kind,
    every_state,
    host_backed,
    two_devices,
)
from support.optional import library
from support.parameters import ML_DTYPES, NUMPY_DTYPES

VALUES = np.arange(24).reshape(2, 3, 4)
NEW = -np.arange(4.0) - 1


def made(managed, dtype="float64"):
    """24 numbers, in neither C nor Fortran order where that matters, and padded."""
    options = {"layout": (1, 2, 0), "alignment_size": 64}
    return dlf.storage(VALUES, dtype=dtype, device="gpu", managed=managed, **options)


def value_of(kind, state=CLEAN, numbers=NEW):
    """Return a value of a kind, and the side that it is written on."""
    if kind == "number":
        return 5, HOST_NEWER
    if kind == "list":
        return list(numbers), HOST_NEWER
    if kind == "NumPy":
        return numbers.copy(), HOST_NEWER
    if kind == "CPUStorage":
        return dlf.storage(numbers), HOST_NEWER
    if kind == "CUDA array":
        return OnDevice(numbers), DEVICE_NEWER
    if kind == "pair":
        return pair(numbers, state), HOST_NEWER if state == HOST_NEWER else DEVICE_NEWER
    return dlf.storage(numbers, device="gpu", managed=kind), DEVICE_NEWER


KINDS = ["number", "list", "NumPy", "CPUStorage", "CUDA array", None, "cuda"]
VALUE_KINDS = [(kind, CLEAN) for kind in KINDS] + [
    ("pair", state) for state in (CLEAN, HOST_NEWER, DEVICE_NEWER)
]
every_value = pytest.mark.parametrize(("kind", "newer"), VALUE_KINDS, ids=str)


@pytest.mark.source(
    "GDP-3",
    "Choosing the Device",
    "a value without the interface is on a GPU if CuPy takes it",
    "assignment to a synchronised pair runs on the GPU exactly if the value is on a GPU",
    "a synchronised storage is on the GPU unless its host buffer is newer",
)
@every_value
@every_state
def test_a_pair_is_written_on_the_device_where_the_value_is_there(kind, newer, state):
    """GDP-3, "Choosing the Device"."""
    storage, expected = pair(np.zeros((3, 4)), state), np.zeros((3, 4))
    value, side = value_of(kind, newer)
    storage[1:] = value
    expected[1:] = 5 if kind == "number" else NEW
    assert storage.sync_state.state == side
    np.testing.assert_array_equal(buffers(storage)[side == DEVICE_NEWER], expected)
    np.testing.assert_array_equal(values(storage), expected)


@every_value
@every_kind
def test_every_class_takes_every_kind_of_value(kind, newer, managed):
    storage, expected = made(managed), VALUES.astype(float)
    value, _ = value_of(kind, newer)
    for key in (..., (0, slice(None, None, -1)), (slice(None), [2, 0])):
        storage[key] = value
        expected[key] = 5 if kind == "number" else NEW
        np.testing.assert_array_equal(values(storage), expected)


@every_value
@pytest.mark.parametrize("dtype", ["int16", "float32", "complex128"])
def test_a_value_of_another_type_is_converted_and_written_on_its_side(kind, newer, dtype):
    for managed in CLASSES:
        storage, expected = made(managed, dtype), VALUES.astype(dtype)
        value, side = value_of(kind, newer)
        storage[1] = value
        expected[1] = 5 if kind == "number" else NEW
        if managed == "gt4py":
            assert storage.sync_state.state == side
        np.testing.assert_array_equal(values(storage), expected, strict=True)


@pytest.mark.stand_in
def test_a_value_on_the_device_is_copied_there_and_nowhere_else():
    for managed, (kind, newer) in itertools.product(CLASSES, VALUE_KINDS):
        storage, (value, side) = dlf.zeros(4, device="gpu", managed=managed), value_of(kind, newer)
        if side == DEVICE_NEWER:
            with Counted() as copies:
                storage[...] = value
            assert (copies.made, copies.to_host, copies.to_device) == (1, 0, 0)


@pytest.mark.stand_in
def test_a_value_of_the_host_is_written_there_and_copied_when_the_device_is_asked():
    storage = pair(np.zeros(4), CLEAN)
    with Counted() as copies:
        storage[...] = NEW
        storage[0] = 7
    assert copies.made == 0
    with Counted() as copies:
        assert "data" in storage.__cuda_array_interface__
    assert copies.to_device == 1


@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER], ids=["host newer", "device newer"])
def test_the_side_that_is_written_is_up_to_date_before(state):
    for value in (NEW, OnDevice(NEW)):
        storage = pair(np.arange(12.0).reshape(3, 4), state)
        storage[1] = value
        expected = np.arange(12.0).reshape(3, 4)
        expected[1] = NEW
        storage.synchronize()
        np.testing.assert_array_equal(buffers(storage), [expected, expected])


class TwoSided:
    """Has other values on the host than on a GPU, and shows both."""

    def __init__(self, doors):
        self.here, self.there, self.calls = np.full(4, 1.0), OnDevice(np.full(4, 2.0)), []
        for door in doors:
            setattr(self, door, getattr(self, f"_{door.strip('_')}")())

    def _array_interface(self):
        return self.here.__array_interface__

    def _cuda_array_interface(self):
        return self.there.interface

    def _gt_data_interface(self):
        note = self.calls.append
        host = {**self.here.__array_interface__, "acquire": lambda: note("host")}
        gpu = {**self.there.interface, "acquire": lambda: note("gpu")}
        return {None: host, "gpu": gpu}


@host_backed
@pytest.mark.parametrize(
    "doors",
    [["__gt_data_interface__"], ["__array_interface__", "__cuda_array_interface__"]],
    ids=["data interface", "both interfaces"],
)
def test_a_value_that_a_gpu_can_reach_is_taken_from_there(doors, managed):
    value, storage = TwoSided(doors), dlf.zeros(4, device="gpu", managed=managed)
    storage[...] = value
    assert values(storage).tolist() == [2.0] * 4
    assert value.calls == ["gpu"] * (doors == ["__gt_data_interface__"])


@two_devices
@every_kind
def test_a_value_on_another_gpu_is_copied_from_there(managed):
    for there in CLASSES:
        storage = dlf.zeros((3, 4), device=("gpu", 1), managed=managed)
        storage[1:, ::-1] = dlf.storage(NEW, device=("gpu", 0), managed=there)
        storage[0] = OnDevice(NEW)
        assert values(storage).tolist() == [NEW.tolist(), *[NEW[::-1].tolist()] * 2]


@host_backed
@every_state
def test_numpy_arrays_over_a_storages_own_memory_are_copied_first(state, managed):
    array = np.arange(5.0)
    storage = (
        pair(array, state)
        if managed == "gt4py"
        else dlf.storage(array, device="gpu", managed="cuda")
    )
    storage[...] = storage.to_numpy()[::-1]
    assert values(storage).tolist() == [4, 3, 2, 1, 0]
    storage[1:] = storage.to_numpy()[:-1]
    assert values(storage).tolist() == [4, 4, 3, 2, 1]


@pytest.mark.parametrize("owner", ["gt4py", "cuda", None])
def test_an_array_may_be_written_as_soon_as_its_values_are_assigned(owner):
    """`owner` is the owner of the array's memory: a storage, or NumPy."""
    source = np.ones(4) if owner is None else dlf.ones(4, device="gpu", managed=owner)
    array = source if owner is None else source.to_numpy()
    if owner == "gt4py":
        source.set_host_modified()
    target = dlf.zeros(4, device="gpu", managed=None)
    delay(LEGACY)  # dlfield's stream keeps order with this one
    target[...] = source
    array[...] = 9
    assert values(target).tolist() == [1] * 4


@every_kind
@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_an_element_is_a_number_of_its_type(dtype, managed):
    storage, array = made(managed, dtype), VALUES.astype(dtype)
    for key in ((0, 0, 0), (1, 2, 3), (-1, -3, 1), (np.int8(1), 0, np.array(3))):
        assert type(storage[key]) is type(array[key])
        assert storage[key] == array[key]
    assert storage.item(5) == array.item(5)
    assert storage.item(1, 2, 3) == array.item(1, 2, 3)


@every_kind
@pytest.mark.parametrize("name", ML_DTYPES)
def test_types_of_ml_dtypes_are_read_and_assigned(name, managed):
    dtype = np.dtype(getattr(library("ml_dtypes"), name))
    storage = dlf.storage(np.array([1, 0.5, 2]).astype(dtype), device="gpu", managed=managed)
    assert [float(storage[i]) for i in range(3)] == [1, 0.5, 2]
    storage[0], storage[1:] = 4, np.array([0.25, 1], dtype)
    storage[2:] = dlf.storage(storage[:1])
    assert values(storage).astype(float).tolist() == [4, 0.25, 4]


@every_kind
def test_a_storage_of_one_element_is_a_number(managed):
    storage = dlf.full((1, 1), 3, device="gpu", managed=managed)
    assert (float(storage), int(storage), complex(storage), bool(storage)) == (3.0, 3, 3 + 0j, True)
    assert [type(row) for row in dlf.zeros((2, 3), device="gpu", managed=managed)] == [
        type(storage)
    ] * 2
    assert list(dlf.full(2, 4, device="gpu", managed=managed)) == [4, 4]


@pytest.mark.source(
    "GDP-3", "Methods", "an object with a CUDA array interface can be used as an index array"
)
@every_kind
def test_keys_and_masks_may_be_on_a_gpu(managed):
    indices, mask = np.array([2, 0]), VALUES[:, 0, 0] > 5
    for there in CLASSES:
        storage, expected = made(managed), VALUES.astype(float)
        for key, plain in (
            (OnDevice(mask), mask),
            ((0, OnDevice(indices)), (0, indices)),
            ((..., dlf.storage(indices, device="gpu", managed=there)), (..., indices)),
        ):
            storage[key] = expected[plain] = -7
            np.testing.assert_array_equal(values(storage), expected)
            if managed is not None:
                np.testing.assert_array_equal(storage[key], expected[plain])
