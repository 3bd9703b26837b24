"""What every interop test needs: a library or a skip, and the proofs that nothing was copied.

The proofs: both sides name the same address; a write on one side is seen on the other; and whoever
owns the memory is told exactly once that it is free, not before the last view of it is gone.
"""

import ctypes
import gc
import subprocess
import sys
import textwrap
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

#: The types that NumPy has and a storage can hold.
NUMPY_DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
    *("complex64", "complex128"),
)


def library(name):
    """Import a library, or skip the test, or the file, that needs it."""
    return pytest.importorskip(name, exc_type=ImportError)


def run_in_subprocess(code):
    """Run a snippet where nothing is imported yet, and give what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        pytest.fail(f"exit status {done.returncode}\n{code}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def address_of(storage):
    """Where the first element of a storage lies, according to dlfield."""
    return storage.__array_interface__["data"][0]


@contextmanager
def refused(error, *texts):
    """Expect an error whose text, with its notes, says all of `texts`."""
    with pytest.raises(error) as caught:
        yield
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    for text in texts:
        assert text in said


def assert_freed_once(*steps):
    """Check that a chain of objects, each made from the one before, keeps memory and frees it.

    Only the last object of the chain is kept. While it lives the memory must, too; when it dies,
    the deleter of the memory must be called, and not a second time.
    """
    gc.freeze()  # a collection then looks at the chain only, and not at every imported library
    memory = CountedMemory()
    link = memory
    for step in steps:
        link = step(link)
    gc.collect()
    assert memory.deletions == 0, "freed while it was in use"
    del link
    gc.collect()
    gc.unfreeze()
    assert memory.deletions == 1


def frees(owner):
    """Return a list that gets an entry when `owner` dies."""
    told = []
    weakref.finalize(owner, told.append, "freed")
    return told


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
