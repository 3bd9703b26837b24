"""Objects whose buffer lies where a memoryview would be checked: their slots are filled by hand.

Needs no NumPy, so that a process starts quickly.
"""

import ctypes

from support.lying_producers import PyBuffer, lying_buffer, never_freed

__all__ = ["Forged", "RaisingAtRelease"]

SLOTS = {"get": 1, "release": 2}  # Py_bf_getbuffer, Py_bf_releasebuffer
BASETYPE = 1 << 10

GET = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int)
RELEASE = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.POINTER(PyBuffer))


class Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(Slot)),
    )


def _class_with_buffer(**functions):
    """Make a class whose buffer slots are these C functions."""
    slots = (Slot * (len(functions) + 1))(
        *(Slot(SLOTS[name], ctypes.cast(at, ctypes.c_void_p)) for name, at in functions.items())
    )
    spec = Spec(b"lying_buffers.Base", object.__basicsize__, 0, BASETYPE, slots)
    never_freed.append((functions, slots, spec))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
    return make(("PyType_FromSpec", ctypes.pythonapi))(ctypes.addressof(spec))


@GET
def _get(exporter, view, flags):
    exporter.asked.append(flags)
    ctypes.memmove(view, ctypes.addressof(exporter.view), ctypes.sizeof(PyBuffer))
    if exporter.answer == 0 and exporter.owns:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(exporter))
        view.contents.obj = id(exporter)
    return exporter.answer


@RELEASE
def _release(exporter, _view):
    exporter.freed += 1


class _Exporter:
    def __init__(self):
        self.view = lying_buffer()
        self.answer, self.owns = 0, True
        self.asked, self.freed = [], 0


class Forged(_Exporter, _class_with_buffer(get=_get, release=_release)):
    """An object that shows `view` to everybody, and counts how often it is released."""


class RaisingAtRelease(
    _Exporter, _class_with_buffer(get=_get, release=ctypes.pythonapi.PyErr_SetNone)
):
    """An object whose release leaves a SystemError behind."""
