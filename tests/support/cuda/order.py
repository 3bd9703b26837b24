"""Order of work: memory as seen from one stream, and the stream on which dlfield works."""

import ctypes

import dlfield as dlf
import numpy as np

from support.cuda.devices import current, delay
from support.cuda.driver import address, call, event, made
from support.exchange_structs import Exchange

CUDA = 2  # DLPack's code


def device_count():
    """Return the number of devices that the driver shows."""
    call("cuInit", 0)
    return made("cuDeviceGetCount", kind=ctypes.c_int)


def own_stream(device=0):
    """Return the stream on which dlfield works now, on this thread."""
    code, stream = Exchange(dlf.Storage).stream(CUDA, device)
    assert code == 0
    return stream


def follow(stream, other, device=0):
    """Let what is put on a stream from now on come after what is on another now."""
    with current(device):
        mark = event()
        call("cuEventRecord", mark, other)
        call("cuStreamWaitEvent", stream, mark, 0)
        call("cuEventDestroy_v2", mark)


def seen_from(stream, there, shape=(4,), dtype="f8", device=0):
    """Return the values at an address as work on a stream sees them; nothing else is waited for."""
    values = np.empty(shape, dtype)
    with current(device):
        call("cuMemcpyDtoHAsync_v2", address(values), there, values.nbytes, stream)
        call("cuStreamSynchronize", stream)
    return values


def put_from(stream, there, values, device=0):
    """Write values to an address in the order of a stream, and wait for that stream alone."""
    values = np.ascontiguousarray(values)
    with current(device):
        call("cuMemcpyHtoDAsync_v2", there, address(values), values.nbytes, stream)
        call("cuStreamSynchronize", stream)


def idle(values=(0.0, 1.0, 2.0, 3.0), managed=None, device=0, **options):
    """Return a storage with these values on both sides and nothing in flight."""
    storage = dlf.storage(values, device=("gpu", device), managed=managed, **options)
    storage.synchronize()
    with current(device):
        call("cuCtxSynchronize")
    return storage


def in_flight(old, new, managed=None, on=None, device=0):
    """Return a storage whose old values still have to become new ones.

    By work on dlfield's stream, or on the one that the function `on` makes.
    """
    storage, source = idle(old, managed, device), idle(new, device=device)
    with current(device):
        on = on() if on else own_stream(device)
        delay(on)
    with dlf.use_stream(on):
        storage[...] = source
    return storage


def device_address(storage):
    """Return the address of the first element on the device, up to date."""
    return storage.__cuda_array_interface__["data"][0]
