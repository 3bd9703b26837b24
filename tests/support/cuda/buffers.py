"""Storages of every kind on a GPU, in every state, and a look at both buffers behind their back."""

import dlfield as dlf
import numpy as np

from support.cuda.devices import current, read
from support.cuda.driver import call, stats
from support.cuda.kinds import CLEAN, DEVICE_NEWER
from support.cuda.order import device_count


def values(storage):
    """Return a copy of the values that count, as dlfield brings them to the host."""
    return dlf.storage(storage, device="cpu").to_numpy()


def buffers(storage):
    """Return the values of the buffers on host and device as they are; None where there is none."""
    interface = storage.__gt_data_interface__  # which neither copies nor waits
    for device in range(device_count()):
        with current(device):
            call("cuCtxSynchronize")
    host, device = interface.get(None), interface.get("gpu")
    return (
        None if host is None else np.array(_Interface(host)),
        None if device is None else _on_device(device, storage.device_id),
    )


class _Interface:
    def __init__(self, interface):
        self.__array_interface__ = interface


def _on_device(interface, device):
    found = np.empty(interface["shape"], interface["typestr"])
    if found.size == 0:
        return found
    strides = interface["strides"] or found.strides
    ways = [(n - 1) * stride for n, stride in zip(found.shape, strides, strict=True)]
    low = sum(way for way in ways if way < 0)
    count = sum(abs(way) for way in ways) + found.itemsize
    block = read(interface["data"][0] + low, count, np.uint8, device)
    found[...] = np.ndarray(found.shape, found.dtype, block, -low, strides)
    return found


def pair(values, state=CLEAN, *, older=-77, **options):
    """Return a pair in a state: the newer buffer has the values, the other one something older."""
    values = np.asarray(values)
    storage = dlf.full(values.shape, older, values.dtype, device="gpu", **options)
    storage.synchronize()
    if state == DEVICE_NEWER:
        with storage.device() as side:
            side[...] = values
    else:
        storage.to_numpy()[...] = values
        storage.set_host_modified()
        if state == CLEAN:
            storage.synchronize()
    assert storage.sync_state.state == state
    return storage


def in_state(state):
    """Return a new object for the state of a pair."""
    made = dlf.SyncState()
    made.state = state
    return made


class Counted:
    """Counts copies from here on: `with Counted() as copies:`, then `copies.made`."""

    def __enter__(self):
        self._before = stats()
        return self

    def __exit__(self, *exception):
        after = stats()
        self.to_device = after.h2d - self._before.h2d
        self.to_host = after.d2h - self._before.d2h
        self.made = after.copies - self._before.copies
        self.waits = after.syncs - self._before.syncs
        self.allocated = after.allocs - self._before.allocs
