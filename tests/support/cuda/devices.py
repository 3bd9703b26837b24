"""Memory of a device outside dlfield: what tests pass to dlfield, and read without it.

Everything goes through the driver's own functions (`driver`), on the stand-in or a real driver.
"""

import ctypes
import weakref

import numpy as np

from support.cuda.driver import NON_BLOCKING, REAL, address, call, made, stream

LEGACY, PER_THREAD = 1, 2


class Memory:
    """A block of device memory with an owner: freed once, when the last reference is gone.

    The source of a copy that is still to come belongs in `kept`: freeing this memory waits for the
    copy, and comes first.
    """

    def __init__(self, nbytes, device=0):
        self.device = device
        with current(device):
            self.address = made("cuMemAlloc_v2", max(nbytes, 1))
        weakref.finalize(self, _free, self.address, device)


def _free(there, device):
    with current(device):
        call("cuMemFree_v2", there)


class current:
    """The primary context of a device, current inside."""

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        call("cuCtxPushCurrent_v2", made("cuDevicePrimaryCtxRetain", self.device))

    def __exit__(self, *exception):
        made("cuCtxPopCurrent_v2")


class OnDevice:
    """An array on a device with the CUDA array interface, version 3.

    `words` are other entries of the dict, for instance `stream=7`.
    """

    def __init__(self, values, *, device=0, strides=None, readonly=False, **words):
        values = np.asarray(values, order="C")  # of 0 dimensions, too
        self.memory = Memory(values.nbytes, device)
        self.dtype, self.shape = values.dtype, values.shape
        write(self.memory.address, values, device)
        self.interface = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (self.memory.address if values.size else 0, readonly),
            "strides": strides,
            "version": 3,
            **words,
        }

    @property
    def __cuda_array_interface__(self):
        """Return the dict."""
        return self.interface

    @property
    def address(self):
        """Address of the first element."""
        return self.memory.address

    def values(self):
        """Return the values, once everything that was started is done."""
        return read(self.address, self.shape, self.dtype, self.memory.device)


def write(there, values, device=0):
    """Copy values of the host to an address, and wait."""
    values = np.ascontiguousarray(values)
    with current(device):
        if values.nbytes:
            call("cuMemcpyHtoD_v2", there, address(values), values.nbytes)


def read(there, shape, dtype, device=0):
    """Copy values from an address, once everything on the device is done."""
    values = np.empty(shape, dtype)
    with current(device):
        call("cuCtxSynchronize")
        if values.nbytes:
            call("cuMemcpyDtoH_v2", address(values), there, values.nbytes)
    return values


def write_late(there, values, on):
    """Put a copy of values to an address on a stream, which comes to it later.

    Gives the pinned memory that the values are in: keep it until the stream is done.
    """
    values = np.ascontiguousarray(values)
    start = made("cuMemHostAlloc", values.nbytes, 1)
    pinned = np.ctypeslib.as_array((ctypes.c_uint8 * values.nbytes).from_address(start))
    pinned[...] = values.reshape(-1).view(np.uint8)
    delay(on)
    call("cuMemcpyHtoDAsync_v2", there, start, values.nbytes, on)
    return Pinned(start, pinned)


class Pinned:
    """Page-locked memory of the host, freed when the last reference is gone."""

    def __init__(self, start, array):
        self.start, self.array = start, array
        weakref.finalize(self, call, "cuMemFreeHost", start)


def delay(on, seconds=0.05):
    """Keep a stream busy for a while, so that what comes behind is late; the stand-in always is."""
    if REAL:
        # A function of C: one of Python would wait for an interpreter that may be waiting for it.
        call("cuLaunchHostFunc", on, _usleep, int(seconds * 1e6))


_usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)


def new_stream(flags=NON_BLOCKING):
    """Return a stream of its own, which keeps no order with the default streams."""
    return stream(flags)


def stream_on(device):
    """Return one on a device."""
    with current(device):
        return new_stream()


def is_done(on):
    """Whether a stream has nothing to do any more. Does not wait."""
    from support.cuda.driver import status

    return status("cuStreamQuery", on) == 0


def device_view(storage):
    """Return the values of a storage's buffer on the device, once the device is idle."""
    interface = storage.__cuda_array_interface__
    there = interface["data"][0]
    values = np.empty(storage.shape, interface["typestr"])
    if values.size == 0:
        return values
    strides = interface["strides"] or values.strides
    span = sum((n - 1) * abs(s) for n, s in zip(storage.shape, strides, strict=True))
    low = sum((n - 1) * min(s, 0) for n, s in zip(storage.shape, strides, strict=True))
    raw = read(there + low, span + values.itemsize, np.uint8, storage.device_id)
    view = np.ndarray(storage.shape, values.dtype, raw.data, -low, strides)
    values[...] = view
    return values
