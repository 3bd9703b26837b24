"""One side of a pair as a storage of its own: it goes on sharing the state of the pair."""

import copy
import pickle

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import buffers, pair, values
from support.cuda.devices import OnDevice
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER, every_state, two_devices

VALUES = np.arange(6.0).reshape(2, 3)

#: How to get one side of a pair, and which class it is.
SIDES = {
    "as_storage on the device": (lambda one: dlf.as_storage(one, managed=None), dlf.GPUStorage),
    "block of the device": (lambda one: one.device().__enter__(), dlf.GPUStorage),
    "as_storage on the host": (lambda one: dlf.as_storage(one, device="cpu"), dlf.CPUStorage),
    "storage(copy=False)": (
        lambda one: dlf.storage(one, device="cpu", copy=False),
        dlf.CPUStorage,
    ),
}
every_side = pytest.mark.parametrize(("side_of", "kind"), SIDES.values(), ids=SIDES)
WRITES = {
    "number": lambda side: side.__setitem__(..., 5.0),
    "array of the host": lambda side: side.__setitem__(..., np.full((2, 3), 5.0)),
    "array of the device": lambda side: side.__setitem__(..., OnDevice(np.full((2, 3), 5.0))),
    "mask": lambda side: side.__setitem__(np.ones((2, 3), bool), 5.0),
    "view": lambda side: side[:, ::-1].__setitem__(..., 5.0),
    "copy of one side": lambda side: dlf.as_storage(side).__setitem__(..., 5.0),
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
READS = {
    "values": values,
    "copy": lambda side: values(side.copy()),
    "deepcopy": lambda side: values(copy.deepcopy(side)),
    "pickle": lambda side: values(pickle.loads(pickle.dumps(side))),
    "view": lambda side: values(side[:]),
    "onto the device": lambda side: values(dlf.storage(side, device="gpu", managed=None)),
    "assignment": lambda side: _assigned(side),
    "capsule": lambda side: np.from_dlpack(side, device="cpu", copy=True),
    "items": lambda side: [[side[i, j] for j in range(3)] for i in range(2)],
}
every_read = pytest.mark.parametrize("read", READS.values(), ids=READS)


def _assigned(side):
    target = dlf.zeros((2, 3), device="gpu", managed=None)
    target[...] = side
    return values(target)


@pytest.mark.source("GDP-3", "Sync State", "all views of one pair of buffers share one `SyncState`")
@every_side
@every_write
@every_state
def test_what_is_written_on_one_side_is_in_the_pair(side_of, kind, write, state):
    both = pair(VALUES, state)
    side = side_of(both)
    assert type(side) is kind
    write(side)
    newer = DEVICE_NEWER if kind is dlf.GPUStorage else HOST_NEWER
    assert both.sync_state.state == newer
    assert np.all(both.to_numpy() == 5)
    assert np.all(values(both) == 5)


@every_side
@every_read
@pytest.mark.parametrize("written", ["host", "device"])
def test_what_is_written_in_the_pair_is_read_on_one_side(side_of, kind, read, written):
    both = pair(np.zeros((2, 3)), CLEAN)
    side = side_of(both)
    both[...] = VALUES if written == "host" else OnDevice(VALUES)
    np.testing.assert_array_equal(read(side), VALUES)
    assert type(side) is kind


@every_side
def test_a_part_that_is_written_on_one_side_leaves_the_rest_of_the_pair(side_of, kind):
    both = pair(np.zeros((2, 3)), CLEAN)
    side = side_of(both)
    both[0] = 1.0  # on the host
    side[1] = 2.0
    np.testing.assert_array_equal(both.to_numpy(), [[1.0] * 3, [2.0] * 3])
    assert type(side) is kind


def test_both_sides_share_the_memory_of_the_pair():
    both = pair(VALUES, CLEAN)
    host, device = dlf.as_storage(both, device="cpu"), dlf.as_storage(both, managed=None)
    assert host.to_numpy().ctypes.data == both.to_numpy().ctypes.data
    there = both.__cuda_array_interface__["data"][0]
    assert device.__cuda_array_interface__["data"][0] == there
    host[...] = 7.0
    assert np.all(buffers(device)[1] == VALUES)  # until it is requested
    assert np.all(values(device) == 7)


def test_the_side_of_a_pair_is_the_pair_again_where_that_is_wished_for():
    both = pair(VALUES, CLEAN)
    again = dlf.as_storage(dlf.as_storage(both, managed=None), managed="gt4py")
    assert type(again) is dlf.SoftwareManagedGPUStorage
    assert again.sync_state is both.sync_state
    assert again.to_numpy().ctypes.data == both.to_numpy().ctypes.data


def test_one_side_keeps_the_pair_in_step_when_that_is_gone():
    both = pair(VALUES, HOST_NEWER)
    side = dlf.as_storage(both, managed=None)
    del both
    side[0] = 9.0
    assert values(side).tolist() == [[9.0] * 3, VALUES[1].tolist()]


@two_devices
def test_the_side_on_another_gpu_is_refused():
    with pytest.raises(dlf.DeviceUnavailable, match="GPU 1"):
        dlf.as_storage(pair(VALUES, CLEAN), device=("gpu", 1), managed=None)


@pytest.mark.parametrize(
    "made",
    [
        lambda: dlf.as_storage(OnDevice(VALUES, readonly=True)),
        lambda: dlf.as_storage(_frozen(VALUES), device="gpu"),
    ],
    ids=["read-only on the device", "read-only on the host"],
)
def test_the_blocks_of_what_is_read_only_say_nothing_was_written(made):
    storage = made()
    for block in (storage.host, storage.device, storage.host):
        with block() as side:
            np.testing.assert_array_equal(values(side), VALUES)
    assert storage.sync_state.state == CLEAN
    np.testing.assert_array_equal(storage.to_numpy(), VALUES)
    assert storage.__cuda_array_interface__["shape"] == (2, 3)


def _frozen(values):
    array = values.copy()
    array.flags.writeable = False
    return array
