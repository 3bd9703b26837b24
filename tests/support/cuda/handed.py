"""Storages that are handed to other libraries: of every kind, idle or with work in flight."""

import gc
import math

import dlfield as dlf
import numpy as np

from support.cuda.devices import OnDevice, Pinned, delay, new_stream
from support.cuda.driver import call, host_view, made

VALUES = np.arange(12.0).reshape(3, 4)


def handed(values, managed, **options):
    """Return a storage with these values, which are there, and newest, on the device."""
    storage = dlf.storage(values, device="gpu", managed=managed, **options)
    storage.host_to_device()
    call("cuCtxSynchronize")
    return storage


class Late:
    """A storage to which values are on their way, on a stream that keeps no order with others."""

    def __init__(self, values, managed):
        # Kept: to give it back dlfield would wait.
        self.source = dlf.as_storage(OnDevice(values), managed=None)
        self.storage = dlf.empty(values.shape, values.dtype, device="gpu", managed=managed)
        call("cuCtxSynchronize")
        self.stream = new_stream()
        delay(self.stream)
        with dlf.use_stream(self.stream):
            self.storage[...] = self.source


class Inbox:
    """Pinned memory for values from a device. Make it while nothing is in flight: that may wait."""

    def __init__(self, shape=VALUES.shape, dtype=np.float64):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.nbytes = self.dtype.itemsize * math.prod(shape)
        start = made("cuMemHostAlloc", self.nbytes, 1)
        self._pinned = Pinned(start, host_view(start, self.nbytes))

    @property
    def address(self):
        """Where the values go."""
        return self._pinned.start

    def fetch(self, there, stream):
        """Copy from an address on a stream, and give what has come once that stream is done."""
        call("cuMemcpyDtoHAsync_v2", self.address, there, self.nbytes, stream)
        call("cuStreamSynchronize", stream)
        return self.values()

    def values(self):
        """Return what has come so far."""
        return self._pinned.array.view(self.dtype).reshape(self.shape).copy()


def address_of(storage):
    """Return the address of the first element on the device, which needs no work."""
    return storage.__gt_data_interface__["gpu"]["data"][0]


def collect():
    """Collect garbage, and let the device finish what frees it."""
    gc.collect()
    call("cuCtxSynchronize")
