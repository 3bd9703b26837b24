"""The driver's functions from Python, by ctypes: for tests, on the stand-in or on a real driver.

Call a function by its name; integers are passed as 64 bits, which serves every integer argument of
the driver on x86-64. Memory and objects belong to the test, and mostly to its short process.
"""

import ctypes
import os
from ctypes import byref

import numpy as np

from support.cuda.built import library_path

#: "real" makes tests use the driver of the machine.
REAL = os.environ.get("DLFIELD_TEST_CUDA") == "real"
NON_BLOCKING = 1
NEW = 0xCD  # what new device memory is filled with

#: `void emulate(const dimensions *, void *const *arguments)`
EMULATION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Refused(Exception):
    """A call of the driver gave an error number."""


class Stats(ctypes.Structure):
    """The counters, in the order of the stand-in."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "allocs",
            "frees",
            "live_bytes",
            "copies",
            "h2d",
            "d2h",
            "d2d",
            "kernels",
            "syncs",
            "violations",
        )
    ]


class Side2D(ctypes.Structure):
    """One side of CUDA_MEMCPY2D."""

    _fields_ = [
        ("x", ctypes.c_size_t),
        ("y", ctypes.c_size_t),
        ("memory_type", ctypes.c_uint),
        ("host", ctypes.c_uint64),
        ("device", ctypes.c_uint64),
        ("array", ctypes.c_uint64),
        ("pitch", ctypes.c_size_t),
    ]


class Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = [
        ("source", Side2D),
        ("target", Side2D),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    ]


class Side3D(ctypes.Structure):
    """One side of CUDA_MEMCPY3D."""

    _fields_ = [
        ("x", ctypes.c_size_t),
        ("y", ctypes.c_size_t),
        ("z", ctypes.c_size_t),
        ("level", ctypes.c_size_t),
        ("memory_type", ctypes.c_uint),
        ("host", ctypes.c_uint64),
        ("device", ctypes.c_uint64),
        ("array", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64),
        ("pitch", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    ]


class Copy3D(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = [
        ("source", Side3D),
        ("target", Side3D),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
    ]


def _load():
    """Load the driver; a later request for libcuda.so.1 gets the same one."""
    path = "libcuda.so.1" if REAL else library_path()
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) if path else None


_library = _load()


def status(name, *arguments):
    """Call a function of the driver and give its number."""
    passed = [ctypes.c_uint64(a) if isinstance(a, int) else a for a in arguments]
    return getattr(_library, name)(*passed)


def call(name, *arguments):
    """Call a function that has to succeed."""
    number = status(name, *arguments)
    if number:
        raise Refused(f"{name} gave {number}")


def made(name, *arguments, kind=ctypes.c_uint64):
    """Call a function whose first argument is where its answer goes."""
    answer = kind(0)
    call(name, byref(answer), *arguments)
    return answer.value


def start(device=0):
    """Make the primary context of a device current, as every library does; give its handle."""
    call("cuInit", 0)
    context = made("cuDevicePrimaryCtxRetain", device)
    call("cuCtxSetCurrent", context)
    return context


def stream(flags=NON_BLOCKING):
    """Return a new stream."""
    return made("cuStreamCreate", flags)


def event():
    """Return a new event."""
    return made("cuEventCreate", 0)


def address(array):
    """Return the host address of an array."""
    return array.ctypes.data


def device_array(values):
    """Return the device address of a copy of some bytes, which has arrived."""
    values = np.asarray(values, np.uint8)
    there = made("cuMemAlloc_v2", values.nbytes)
    call("cuMemcpyHtoD_v2", there, address(values), values.nbytes)
    return there


def on_host(there, count):
    """Return a list of the bytes at a device address: a synchronous copy."""
    values = np.zeros(count, np.uint8)
    call("cuMemcpyDtoH_v2", address(values), there, count)
    return values.tolist()


def host_view(there, count):
    """Return an array over memory that the host can read: pinned or managed."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(there))


def pointer_attribute(number, there, kind=ctypes.c_uint64):
    """Ask what an address is."""
    answer = kind(0)
    call("cuPointerGetAttribute", byref(answer), number, there)
    return answer.value


def stats():
    """Return the counters."""
    counters = Stats()
    _library.fake_cuda_stats(byref(counters))
    return counters


def reset():
    """Count from 0 again."""
    _library.fake_cuda_reset()


def register_kernel(name, emulation, sizes):
    """Make a function of type EMULATION the kernel of this name. The caller keeps it alive."""
    list_of_sizes = (ctypes.c_size_t * len(sizes))(*sizes)
    call("fake_cuda_register_kernel", name.encode(), emulation, list_of_sizes, len(sizes))


def bytes_behind(there, count):
    """Return an array over device memory, for emulations of kernels."""
    reach = _library.fake_cuda_reach
    reach.restype, reach.argtypes = ctypes.c_void_p, (ctypes.c_uint64, ctypes.c_size_t)
    found = reach(there, count)
    return None if found is None else host_view(found, count)
