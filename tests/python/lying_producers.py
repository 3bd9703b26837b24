"""Producers that lie, for processes of their own: each prints what became of the lie.

Needs no NumPy, so that a process starts quickly.
"""

import ctypes
import gc
import json
import mmap

import dlfield as dlf
from dlpack_structs import (
    DELETER,
    DLDataType,
    DLDevice,
    DLPackVersion,
    Handover,
    Producer,
    never_freed,
)

__all__ = [
    "DELETER",
    "DLDataType",
    "DLDevice",
    "DLPackVersion",
    "Handover",
    "Interface",
    "Producer",
    "PyBuffer",
    "guarded",
    "lying_view",
    "misaligned",
    "report",
]


def report(lie, producer=None):
    """Import a lie and print, as JSON, the error's class and text and how often it was freed."""
    try:
        storage = dlf.as_storage(lie)
    except Exception as error:
        outcome = {"error": type(error).__name__, "text": str(error)}
    else:
        outcome = {
            "error": None,
            "text": f"shape={storage.shape} strides={storage.strides}",
        }
        del storage
    del lie
    gc.collect()
    if producer is not None:
        outcome["freed"] = producer.freed
    print(json.dumps(outcome))


def misaligned(pointer):
    """Give a pointer to numbers that is one byte off."""
    at = ctypes.addressof(pointer.contents) + 1
    return ctypes.cast(at, type(pointer))


def guarded(producer, keep):
    """Move a producer's struct to the end of a page: no byte behind `keep` can be read."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    producer.address = start + page - keep
    ctypes.memmove(producer.address, ctypes.addressof(producer.managed), keep)
    if protect(start + page, page, 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    never_freed.append(memory)


class Interface:
    """An object with an array interface over four numbers, changed or shortened."""

    def __init__(self, without=(), **changes):
        self.values = (ctypes.c_double * 4)(1, 2, 3, 4)
        honest = {
            "version": 3,
            "shape": (4,),
            "typestr": "<f8",
            "data": (ctypes.addressof(self.values), False),
            "strides": None,
        }
        self.__array_interface__ = {
            key: value for key, value in {**honest, **changes}.items() if key not in without
        }


class PyBuffer(ctypes.Structure):
    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    )


def _numbers(values):
    return values and (ctypes.c_ssize_t * len(values))(*values)


def lying_view(*, shape=(4,), strides=(8,), suboffsets=None, **changes):
    """Give a memoryview that claims to be four float64 numbers, or whatever else is said."""
    values = (ctypes.c_double * 4)(1, 2, 3, 4)
    view = PyBuffer(ctypes.addressof(values), None, 32, 8, 0, len(shape), b"d")
    view.shape, view.strides = _numbers(shape), _numbers(strides)
    view.suboffsets = _numbers(suboffsets)
    for field, value in changes.items():
        setattr(view, field, value)
    never_freed.append((values, view))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
    return make(("PyMemoryView_FromBuffer", ctypes.pythonapi))(ctypes.addressof(view))
