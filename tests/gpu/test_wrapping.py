"""`as_storage` and `storage` around one array of any kind: which class, memory and newer side."""

import itertools

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import Counted, buffers, pair, values
from support.cuda.devices import OnDevice
from support.cuda.kinds import (
    CLASSES,
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    every_kind,
    every_state,
    two_devices,
)

VALUES = np.arange(6.0).reshape(2, 3)
#: How data is made, and the default class of a storage over it.
SOURCES = {
    "NumPy array": (VALUES.copy, dlf.CPUStorage),
    "CPUStorage": (lambda: dlf.storage(VALUES), dlf.CPUStorage),
    "GPUStorage": (lambda: dlf.GPUStorage(VALUES), dlf.GPUStorage),
    "pair": (lambda: dlf.SoftwareManagedGPUStorage(VALUES), dlf.SoftwareManagedGPUStorage),
    "managed": (lambda: dlf.CUDAManagedGPUStorage(VALUES), dlf.CUDAManagedGPUStorage),
    "CUDA array": (lambda: OnDevice(VALUES), dlf.SoftwareManagedGPUStorage),
}
DEVICES = {"device unset": {}, "host": {"device": None}, "gpu": {"device": "gpu"}}
MANAGED = {"unset": {}} | {str(managed): {"managed": managed} for managed in CLASSES}

every_source = pytest.mark.parametrize("source", SOURCES)
every_wish = pytest.mark.parametrize(
    "wish",
    [a | b for a, b in itertools.product(DEVICES.values(), MANAGED.values())],
    ids=[f"{a}, managed {b}" for a, b in itertools.product(DEVICES, MANAGED)],
)


def kind_of(own, wish):
    """Return the class for data of a class: options come first, then the data, then GDP-3."""
    on_gpu = wish.get("device", "gpu" if own is not dlf.CPUStorage else None) is not None
    if not on_gpu:
        return dlf.CPUStorage
    if "managed" in wish:
        return CLASSES[wish["managed"]]
    return dlf.SoftwareManagedGPUStorage if own is dlf.CPUStorage else own


@every_source
@every_wish
def test_a_copy_is_of_the_class_that_is_wished_for_and_apart_from_the_data(source, wish):
    make, own = SOURCES[source]
    data = make()
    made = dlf.storage(data, **wish)
    assert type(made) is kind_of(own, wish)
    np.testing.assert_array_equal(values(made), VALUES, strict=True)
    made[...] = -1
    unchanged = data.values() if source == "CUDA array" else values(data)
    np.testing.assert_array_equal(unchanged, VALUES)


#: What shares no memory with its data, since that is not where it is wished for.
REFUSED = {
    dlf.CPUStorage: {None, "cuda"},  # on a GPU
    dlf.GPUStorage: {"cuda", "host"},
    dlf.SoftwareManagedGPUStorage: {"cuda"},
    dlf.CUDAManagedGPUStorage: set(),
}


def is_refused(source, own, wish):
    if kind_of(own, wish) is dlf.CPUStorage:
        return source in ("GPUStorage", "CUDA array") and "device" in wish
    return wish.get("managed", dlf.UNSET) in REFUSED[own]


@every_source
@every_wish
def test_what_is_shared_is_of_the_class_that_is_wished_for_or_refused(source, wish):
    make, own = SOURCES[source]
    data = make()
    if source == "pair":
        data.synchronize()  # for a pair whose host is newer see below
    if is_refused(source, own, wish):
        with pytest.raises(
            (dlf.DeviceUnavailable, dlf.GTNoSuchBufferError), match=r"^(device|managed): "
        ):
            dlf.as_storage(data, **wish)
        return
    shared = dlf.as_storage(data, **wish)
    assert type(shared) is kind_of(own, wish)
    np.testing.assert_array_equal(values(shared), VALUES, strict=True)
    if own is dlf.CPUStorage:
        data[0, 0] = 9
        shared.set_host_modified()
    elif source == "CUDA array":
        dlf.as_storage(data, managed=None)[0, 0] = 9
        shared.set_device_modified()
    elif isinstance(data, dlf.Storage) and type(shared) is type(data):
        data[0, 0] = 9
    else:
        return  # over one of the buffers, on which see below
    assert values(shared)[0, 0] == 9


@pytest.mark.stand_in
@every_source
@every_wish
def test_sharing_copies_nothing(source, wish):
    make, own = SOURCES[source]
    data = make()
    if source == "pair":
        data.synchronize()
    if is_refused(source, own, wish):
        return
    with Counted() as copies:
        dlf.as_storage(data, **wish)
    assert copies.made == 0


@pytest.mark.parametrize("managed", [None, "cuda"])
def test_host_memory_that_is_wanted_on_a_gpu_alone_is_refused_with_what_helps(managed):
    with pytest.raises(dlf.DeviceUnavailable, match=r"got memory of the host.*; make a copy"):
        dlf.as_storage(VALUES.copy(), device="gpu", managed=managed)


def test_host_data_is_the_newer_side_of_its_pair():
    array = VALUES.copy()
    made = dlf.as_storage(array, device="gpu")
    assert made.sync_state.state == HOST_NEWER
    assert np.shares_memory(made.to_numpy(), array)
    made.host_to_device()
    np.testing.assert_array_equal(buffers(made)[1], VALUES)


@pytest.mark.source(
    "GDP-3",
    "Storage Creation",
    "`as_storage(device_data=…)` takes a device buffer, alone or beside a host buffer",
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`device_data` is the buffer of the device"
)
def test_device_data_is_the_newer_side_of_its_pair():
    data = OnDevice(VALUES)
    for made in (dlf.as_storage(data), dlf.as_storage(device_data=data)):
        assert made.sync_state.state == DEVICE_NEWER
        assert made.__cuda_array_interface__["data"][0] == data.address
        np.testing.assert_array_equal(made.to_numpy(), VALUES)


def test_what_is_written_on_the_other_side_comes_back_to_the_data():
    array, data = VALUES.copy(), OnDevice(VALUES)
    around_host, around_device = dlf.as_storage(array, device="gpu"), dlf.as_storage(data)
    with around_host.device() as side:
        side[...] = OnDevice(-VALUES)
    around_host.device_to_host()
    np.testing.assert_array_equal(array, -VALUES)
    around_device.to_numpy()[...] = -VALUES
    around_device.set_host_modified()
    around_device.host_to_device()
    np.testing.assert_array_equal(data.values(), -VALUES)


@pytest.mark.parametrize(
    "part", [np.s_[::-1], np.s_[:, ::2], np.s_[:, 1], np.s_[1:, ::-2], np.s_[:0]], ids=repr
)
def test_only_the_elements_of_the_data_are_copied_back(part):
    array = np.arange(30.0).reshape(5, 6)
    made, untouched = dlf.as_storage(array[part], device="gpu"), array.copy()
    with made.device() as side:
        side[...] = OnDevice(-array[part])
    np.testing.assert_array_equal(made.to_numpy(), -untouched[part])
    untouched[part] *= -1
    np.testing.assert_array_equal(array, untouched)


def test_the_missing_sibling_lies_in_the_order_of_the_data():
    for array in (np.zeros((3, 4, 5)), np.zeros((3, 4, 5)).T, np.zeros((3, 4, 5)).swapaxes(0, 1)):
        for made in (
            dlf.as_storage(array, device="gpu"),
            dlf.as_storage(dlf.GPUStorage(array), managed="gt4py"),
        ):
            host, device = made.__gt_data_interface__.values()
            assert host["strides"] == array.strides
            assert (device["strides"] or host["strides"]) == array.strides


@every_state
def test_a_pair_is_shared_with_its_state(state):
    made = pair(VALUES, state)
    for shared in (dlf.as_storage(made), dlf.as_storage(made, dims="IJ", halo=(1, 0))):
        assert shared.sync_state is made.sync_state
        assert made.sync_state.state == state
    for wish in ({"device": "gpu"}, {"managed": "gt4py"}, {"device": ("gpu", 0), "dims": "IJ"}):
        assert dlf.as_storage(made, **wish).sync_state is made.sync_state


@every_state
def test_the_host_side_of_a_pair_is_shared_up_to_date(state):
    made = pair(VALUES, state)
    shared = dlf.as_storage(made, device="cpu")
    np.testing.assert_array_equal(shared.to_numpy(), VALUES)
    assert np.shares_memory(shared.to_numpy(), made.to_numpy())


@pytest.mark.parametrize(
    "state",
    [
        CLEAN,
        DEVICE_NEWER,
        HOST_NEWER,
    ],
    ids=["clean", "device newer", "host newer"],
)
def test_the_device_side_of_a_pair_is_shared_up_to_date(state):
    made = pair(VALUES, state)
    shared = dlf.as_storage(made, managed=None)
    np.testing.assert_array_equal(values(shared), VALUES)
    shared[...] = -1
    made.set_device_modified()
    assert (made.to_numpy() == -1).all()


@every_kind
@pytest.mark.parametrize("dtype", ["float32", "int16", "complex128", "bool"])
def test_a_copy_is_converted_as_by_numpy_wherever_the_data_is(dtype, managed):
    for make, own in SOURCES.values():
        made = dlf.storage(make(), dtype=dtype, device="gpu", managed=managed)
        assert type(made) is CLASSES[managed]
        np.testing.assert_array_equal(values(made), VALUES.astype(dtype), strict=True)
        assert type(dlf.storage(make(), dtype=dtype)) is own


@every_source
def test_what_is_shared_is_not_converted(source):
    data = SOURCES[source][0]()
    with pytest.raises(ValueError, match=r"dtype: expected float64.*copy=False, got float32"):
        dlf.storage(data, dtype="float32", copy=False)
    with pytest.raises(ValueError, match="shape: expected"):
        dlf.storage(data, shape=(3, 2))


@every_kind
def test_lists_and_byte_swapped_arrays_are_copied_to_a_gpu(managed):
    for data in ([[0, 1, 2], [3, 4, 5]], VALUES.astype(">f4"), 7):
        made = dlf.storage(data, device="gpu", managed=managed, dtype="float64")
        np.testing.assert_array_equal(values(made), np.asarray(data, "float64"), strict=True)


@every_state
def test_a_copy_is_made_of_the_newer_side_and_leaves_the_state(state):
    made = pair(VALUES, state)
    for managed in CLASSES:
        copied = dlf.storage(made, managed=managed)
        assert made.sync_state.state == state
        np.testing.assert_array_equal(values(copied), VALUES)


def test_the_side_of_a_copy_that_is_newer_is_that_of_the_data():
    for data, state in [
        (VALUES, HOST_NEWER),
        (OnDevice(VALUES), DEVICE_NEWER),
        (pair(VALUES, CLEAN), DEVICE_NEWER),
    ]:
        made = dlf.storage(data, device="gpu", managed="gt4py")
        assert made.sync_state.state == state
        np.testing.assert_array_equal(values(made), VALUES)


@two_devices
@every_kind
def test_data_is_copied_from_gpu_to_gpu(managed):
    for make, _ in SOURCES.values():
        made = dlf.storage(make(), device=("gpu", 1), managed=managed)
        assert (type(made), made.device_id) == (CLASSES[managed], 1)
        np.testing.assert_array_equal(values(made), VALUES)
    there = dlf.storage(VALUES, device=("gpu", 1), managed=managed)
    assert dlf.storage(there).device_id == 1
    assert dlf.storage(there, device=("gpu", 0)).device_id == 0


@two_devices
def test_memory_is_shared_on_its_own_gpu_only():
    for data in (
        OnDevice(VALUES, device=1),
        dlf.GPUStorage(VALUES, device=("gpu", 1)),
        dlf.as_storage(OnDevice(VALUES, device=1)),
    ):
        assert dlf.as_storage(data, device="gpu").device_id == 1
        assert dlf.as_storage(data, device=("gpu", 1)).device_id == 1
        with pytest.raises((dlf.DeviceUnavailable, ValueError), match="GPU 0"):
            dlf.as_storage(data, device=("gpu", 0))
    assert dlf.as_storage(VALUES.copy(), device=("gpu", 1)).device_id == 1
