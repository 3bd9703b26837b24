"""Owners of memory that record when, and how often, they free it."""

import ctypes
import gc
import weakref

import numpy as np


class Watch:
    """Watches whether an object is gone."""

    def __init__(self, watched):
        self._watched = weakref.ref(watched)

    @property
    def freed(self):
        gc.collect()
        return self._watched() is None


class Tracked(np.ndarray):
    """An array that can be watched, which plain arrays cannot be once they are views."""


def tracked(array):
    """Return a view of an array, and its watch. The view is the last owner that Python can see."""
    view = np.array(array).view(Tracked)
    return view, Watch(view)


def frees(owner):
    """Return a list that gets an entry when `owner` dies."""
    told = []
    weakref.finalize(owner, told.append, "freed")
    return told


def assert_freed_once(*steps):
    """Check that a chain of objects, each made from the one before, keeps memory and frees it.

    Only the last object of the chain is kept. While it lives the memory must, too; when it dies,
    the deleter of the memory must be called, and not a second time.
    """
    gc.freeze()  # a collection then looks at the chain only
    memory = CountedMemory()
    link = memory
    for step in steps:
        link = step(link)
    gc.collect()
    assert memory.deletions == 0, "freed while it was in use"
    del link
    gc.collect()
    assert memory.deletions == 1


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", _Deleter),
    )


_NAME = b"dltensor"  # a capsule keeps a pointer to its name


class CountedMemory:
    """Memory of 4 x 3 float64 that hands itself out once, by DLPack, and counts its deletions.

    Everything the consumer may touch lives as long as this object, and this object for ever, so
    that a deleter that is called once too often, or late because a test has failed or was skipped
    on the way, is counted and not a crash.
    """

    def __init__(self):
        self.deletions = 0
        room = np.zeros(4 * 3 + 8)
        first = -room.ctypes.data % 64 // 8  # JAX shares memory from a boundary of 64 bytes only
        self.values = room[first : first + 12].reshape(4, 3)
        shape, strides = (ctypes.c_int64 * 2)(4, 3), (ctypes.c_int64 * 2)(3, 1)
        device, ndim, float64 = (1, 0), 2, (2, 64, 1)
        self._tensor = _Tensor(
            *(self.values.ctypes.data, *device, ndim, *float64),
            *(shape, strides, 0, None, _Deleter(self._count)),
        )
        self._handed_out = False
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def _count(self, _tensor):
        self.deletions += 1

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_keywords):
        assert not self._handed_out, "this memory has one deleter: hand it out once"
        self._handed_out = True
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self._tensor), _NAME, None)
