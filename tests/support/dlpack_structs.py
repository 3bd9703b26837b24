"""dlpack.h in ctypes, an honest producer, and capsules taken apart by hand.

Needs only the standard library, so that a process without NumPy can use it.
"""

import ctypes
import math

READ_ONLY, IS_COPIED, PADDED = 1, 2, 4

VERSIONED, LEGACY = b"dltensor_versioned", b"dltensor"
USED_VERSIONED, USED_LEGACY = b"used_dltensor_versioned", b"used_dltensor"

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Legacy(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", DELETER))


class DLPackVersion(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("version", DLPackVersion),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


def _function(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new = _function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_name = _function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# A dying capsule must not be touched as an object: its reference count is 0 already.
_name_of_dying = _function("PyCapsule_GetName", ctypes.c_char_p, ctypes.c_void_p)

never_freed = []  # callbacks and names that C code may still hold, when Python ends too
ctypes.pythonapi.Py_IncRef(ctypes.py_object(never_freed))


def capsule_name(capsule):
    return _name(capsule)


def _struct_in(capsule):
    name = _name(capsule)
    struct = Versioned if name.endswith(VERSIONED) else Legacy
    return struct.from_address(_pointer(capsule, name))


def contents(capsule):
    """Return the struct in a capsule, which stays unchanged and must outlive the struct."""
    managed = _struct_in(capsule)
    managed.capsule = capsule
    return managed


def consume(capsule):
    """Take the struct out of a capsule, as a consumer does: its deleter is now ours to call."""
    managed = _struct_in(capsule)
    _rename(capsule, USED_VERSIONED if isinstance(managed, Versioned) else USED_LEGACY)
    return managed


def release(managed):
    """Call the deleter, from a call that holds no GIL."""
    managed.deleter(ctypes.addressof(managed))


def call_on_a_bare_thread(function, argument):
    """Call a C function on a thread that Python does not know."""
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    at = ctypes.cast(function, ctypes.c_void_p)
    assert libc.pthread_create(ctypes.byref(thread), None, at, ctypes.c_void_p(argument)) == 0
    assert libc.pthread_join(thread, None) == 0


class Handover:
    """Shows a capsule that was made before as `__dlpack__` does."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_keywords):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


class Producer:
    """An honest producer of float64 values 0, 1, 2, ... whose deleter counts its calls."""

    def __init__(self, shape=(3, 4), *, legacy=False, flags=0):
        ndim, count = len(shape), max(math.prod(shape), 16)
        self.calls, self.freed = [], 0
        self.values = (ctypes.c_double * count)(*range(count))
        self.shape = (ctypes.c_int64 * ndim)(*shape)
        self.strides = (ctypes.c_int64 * ndim)(*(math.prod(shape[n + 1 :]) for n in range(ndim)))
        self.managed = Legacy() if legacy else Versioned(DLPackVersion(1, 3), flags=flags)
        self.managed.deleter = DELETER(self._count)
        tensor = self.managed.dl_tensor
        tensor.data = ctypes.addressof(self.values)
        tensor.device, tensor.dtype = DLDevice(1, 0), DLDataType(2, 64, 1)
        tensor.ndim, tensor.shape, tensor.strides = ndim, self.shape, self.strides
        self.address = ctypes.addressof(self.managed)
        self._destructor = DESTRUCTOR(self._drop)
        never_freed.append(self)

    def _count(self, _managed):
        self.freed += 1

    def _drop(self, capsule):
        if (_name_of_dying(capsule) or b"").startswith(b"used_"):
            return
        if self.managed.deleter:
            self.managed.deleter(self.address)

    def capsule(self, name=None):
        """Make a capsule whose destructor calls the deleter unless it was renamed."""
        name = name or (LEGACY if isinstance(self.managed, Legacy) else VERSIONED)
        return self.raw_capsule(name)

    def raw_capsule(self, name):
        """Make a capsule under any name, or under none."""
        never_freed.append(name)
        return _new(self.address, name, ctypes.cast(self._destructor, ctypes.c_void_p))

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        return self.capsule()

    def __dlpack_device__(self):
        return (1, 0)
