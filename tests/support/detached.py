"""Calls without the interpreter inside a call of dlfield's, as torch makes them, and owners.

`ctypes` lets go of the interpreter (`PyEval_SaveThread`) for each function of type `CFUNCTYPE`.
"""

import ctypes

import dlfield as dlf
import numpy as np

from support import arrow_structs, dlpack_structs
from support.gt_objects import Synchronised
from support.lying_producers import Interface
from support.owners import frees


class Bytes(bytearray):
    """A bytearray that can be watched."""


class Struct:
    """An object with an array struct alone."""

    def __init__(self):
        self._array = np.zeros(4)

    @property
    def __array_struct__(self):
        return self._array.__array_struct__


class Told(Synchronised):
    """A field whose `release` counts."""

    def __init__(self):
        super().__init__(4)

    @property
    def freed(self):
        return self.told.count("release")


#: Makes an object with memory, for each kind of owner that needs the interpreter to let go.
OWNERS = {
    "a buffer": lambda: Bytes(32),
    "an array interface": Interface,
    "an array struct": Struct,
    "a NumPy array": lambda: np.zeros(4),
    "hooks": Told,
}


def counted(made):
    """Return what tells how often the memory of an object was given back."""
    if hasattr(made, "freed"):
        return lambda: made.freed
    told = frees(made)
    return lambda: len(told)


class During:
    """Runs a function while it is imported, and hands over memory of its own."""

    def __init__(self, function):
        self._function = function

    def __dlpack__(self, **_keywords):
        self._function()
        return dlpack_structs.Producer().capsule()

    def __dlpack_device__(self):
        return (1, 0)


def inside_a_call(function):
    """Run a function inside a call of dlfield's: PyO3 then counts this thread as attached."""
    dlf.as_storage(During(function))


def passed_on(source):
    """Return a producer of another one's memory, whose deleter it calls without the interpreter."""
    tensor = dlpack_structs.consume(source.__dlpack__(max_version=(1, 0)))
    producer = dlpack_structs.Producer(tuple(tensor.dl_tensor.shape[: tensor.dl_tensor.ndim]))
    mine, theirs = producer.managed.dl_tensor, tensor.dl_tensor
    mine.data, mine.dtype = theirs.data, theirs.dtype

    def delete(_managed):
        producer.freed += 1
        dlpack_structs.release(tensor)

    producer.managed.deleter = deleter = dlpack_structs.DELETER(delete)
    dlpack_structs.never_freed.append((tensor, deleter))
    return producer


def taken(capsule, name, kind):
    """Move an Arrow struct out of a capsule, as a consumer does: its release is ours to call."""
    made = kind.from_buffer_copy(ctypes.string_at(_pointer(capsule, name), ctypes.sizeof(kind)))
    kind.from_address(_pointer(capsule, name)).release = None
    dlpack_structs.never_freed.append(made)
    return made


def release(made):
    """Call the release callback of an Arrow struct, from a call that holds no GIL."""
    arrow_structs.RELEASE(made.release)(ctypes.addressof(made))


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
