"""Producers that lie, for processes of their own: each prints what became of the lie.

Needs no NumPy, so that a process starts quickly.
"""

import ctypes
import gc
import json
import mmap

import dlfield as dlf

from support.dlpack_structs import (
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
    "Pages",
    "Producer",
    "PyBuffer",
    "guarded",
    "lying_buffer",
    "lying_view",
    "misaligned",
    "on_pages",
    "report",
    "resident",
    "with_deleter",
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
            "text": f"shape={storage.shape} strides={storage.strides} readonly={storage.readonly}",
        }
        del storage
    del lie
    gc.collect()
    if producer is not None:
        outcome["freed"] = producer.freed
    print(json.dumps(outcome))


def resident():
    """Return the resident KiB of this process. Its peak would include the parent's."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * mmap.PAGESIZE // 1024


def misaligned(pointer):
    """Return a pointer to numbers that is one byte off."""
    at = ctypes.addressof(pointer.contents) + 1
    return ctypes.cast(at, type(pointer))


class Pages:
    """Memory whose pages can be taken away: what touches them afterwards ends the process."""

    def __init__(self, pages=1):
        self.size = pages * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, self.size)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        never_freed.append(self._memory)

    def take_away(self, first=0):
        """Forbid every access from a page on."""
        offset = first * mmap.PAGESIZE
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        if protect(self.start + offset, self.size - offset, 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")


def guarded(producer, keep):
    """Move a producer's struct to the end of a page: no byte behind `keep` can be read."""
    pages = Pages(2)
    producer.address = pages.start + mmap.PAGESIZE - keep
    ctypes.memmove(producer.address, ctypes.addressof(producer.managed), keep)
    pages.take_away(first=1)


def on_pages(producer):
    """Move a producer's struct, shape and strides to pages, and give what takes them away."""
    pages, tensor = Pages(), producer.managed.dl_tensor
    count, behind = tensor.ndim, ctypes.sizeof(producer.managed)
    for name in ("shape", "strides"):
        at = pages.start + behind
        ctypes.memmove(at, getattr(tensor, name), 8 * count)
        setattr(tensor, name, ctypes.cast(at, type(tensor.shape)))
        behind += 8 * count
    ctypes.memmove(pages.start, ctypes.addressof(producer.managed), ctypes.sizeof(producer.managed))
    producer.address = pages.start
    return pages.take_away


def with_deleter(producer, deleter):
    """Return a producer another deleter, which stays callable until the process is gone."""
    producer.managed.deleter = callback = DELETER(deleter)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((producer, callback)))
    return producer


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
    return (ctypes.c_ssize_t * len(values))(*values) if values else None


def lying_buffer(*, shape=(4,), strides=(8,), suboffsets=None, **changes):
    """Return a view that claims to be four float64 numbers, or the given changes."""
    values = (ctypes.c_double * 4)(1, 2, 3, 4)
    view = PyBuffer(ctypes.addressof(values), None, 32, 8, 0, len(shape), b"d")
    view.shape, view.strides = _numbers(shape), _numbers(strides)
    view.suboffsets = _numbers(suboffsets)
    for field, value in changes.items():
        setattr(view, field, value)
    never_freed.append((values, view))
    return view


def lying_view(**changes):
    """Return a memoryview over such a view. Python checks and mends some of it."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
    view = lying_buffer(**changes)
    return make(("PyMemoryView_FromBuffer", ctypes.pythonapi))(ctypes.addressof(view))
