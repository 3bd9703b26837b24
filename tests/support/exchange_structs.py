"""DLPack's exchange table in ctypes: forged ones over an honest producer, and ours taken apart.

A function in a table is called with the GIL held, hence `PYFUNCTYPE`. A callback of ctypes cannot
leave an exception behind, so the functions that do are Python's own: see `TRUTH` and `raising`.
Needs only the standard library, so that a process without NumPy can use it.
"""

import ctypes

from support.dlpack_structs import DLPackVersion, DLTensor, Producer, Versioned, never_freed

NAME, ATTRIBUTE = b"dlpack_exchange_api", "__dlpack_c_exchange_api__"


class Table(ctypes.Structure):
    """DLPackExchangeAPI, with its header first."""

    _fields_ = (
        ("version", DLPackVersion),
        ("prev_api", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


Room, Numbers = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64)
FROM_PY = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, Room)
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, Room)
SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
_ALLOCATOR = (ctypes.c_int, ctypes.POINTER(DLTensor), Room, ctypes.c_void_p, SET_ERROR)
ALLOCATOR, ALLOCATOR_WITHOUT_GIL = ctypes.PYFUNCTYPE(*_ALLOCATOR), ctypes.CFUNCTYPE(*_ALLOCATOR)


def _function(library, name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, library))


_capsule = _function(
    *(ctypes.pythonapi, "PyCapsule_New", ctypes.py_object),
    *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
)
_pointer = _function(
    *(ctypes.pythonapi, "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
)
# Of its own: numba declares that `ctypes.pythonapi.Py_DecRef` takes an object, for everybody.
_let_go = _function(ctypes.pythonapi, "Py_DecRef", None, ctypes.c_void_p)
_lsearch = _function(
    *(ctypes.CDLL(None), "lsearch", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
    *(ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t, ctypes.c_void_p),
)


def _address(name):
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


#: Instead of a tensor, the truth of an object: 0 or 1, or -1 with the exception of `__bool__`.
TRUTH = _address("PyObject_IsTrue")


def raising(code):
    """Return a code that leaves a MemoryError behind once it was returned and is dropped."""

    class Code(int):
        pass

    returned = Code(code)
    returned.dropped = _capsule(1, None, _address("PyErr_NoMemory"))
    return returned


def hand_out(held, room):
    """Return the tensor of the producer that an object holds, as an honest table does."""
    room[0] = held.producer.address
    return 0


def table(from_py=hand_out, *, major=1, prev=None):
    """Forge a table whose only function is `from_py`: a callback, an address, or None for NULL."""
    if callable(from_py):
        never_freed.append(callback := FROM_PY(from_py))
        from_py = ctypes.cast(callback, ctypes.c_void_p)
    made = Table(DLPackVersion(major, 3), prev and ctypes.addressof(prev))
    made.managed_tensor_from_py_object_no_sync = from_py
    never_freed.append(made)
    return made


def shown(made, name=NAME):
    """Put a table into a capsule."""
    never_freed.append((made, name))
    return _capsule(ctypes.addressof(made), name, None)


class Held:
    """Holds an honest producer and has no protocol of its own."""

    def __init__(self, *arguments, **options):
        self.producer = Producer(*arguments, **options)


class HeldWithDlpack(Held):
    """Has a slower door too."""

    def __dlpack__(self, **keywords):
        return self.producer.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return (1, 0)


def with_table(made, base=Held, **attributes):
    """Make a class that has a table, or another object in its place."""
    value = shown(made) if isinstance(made, Table) else made
    return type("Exchanged", (base,), {ATTRIBUTE: value, **attributes})


class Exchange:
    """The functions behind a class's table, called as C calls them."""

    def __init__(self, cls):
        self.table = Table.from_address(_pointer(getattr(cls, ATTRIBUTE), NAME))

    def tensor_of(self, obj):
        """Return an owning tensor over an object."""
        function = self.table.managed_tensor_from_py_object_no_sync
        return Versioned.from_address(_call(function, id(obj), ctypes.c_void_p))

    def view_of(self, obj):
        """Return a tensor that borrows from an object."""
        return _call(self.table.dltensor_from_py_object_no_sync, id(obj), DLTensor)

    def object_over(self, address):
        """Make an object over a tensor, which belongs to it from then on."""
        function = self.table.managed_tensor_to_py_object_no_sync
        made = _call(function, address, ctypes.c_void_p)
        try:
            return ctypes.cast(made, ctypes.py_object).value
        finally:
            _let_go(made)  # of the reference that came with it

    def allocate(self, prototype, *, kind=ALLOCATOR_WITHOUT_GIL):
        """Return the answer, the tensor or None, and the arguments of `set_error`."""
        room, said = ctypes.c_void_p(), []
        function = kind(self.table.managed_tensor_allocator)
        set_error = SET_ERROR(lambda *told: said.append(told))
        code = function(prototype, ctypes.byref(room), 0xC0FFEE, set_error)
        return code, room.value and Versioned.from_address(room.value), said

    def stream(self, device_type, device_id=0):
        """Return the answer and the stream, for a tensor without history."""
        room = ctypes.c_void_p(0xDEAD)
        function = STREAM(self.table.current_work_stream)
        return function(device_type, device_id, ctypes.byref(room)), room.value


def _call(function, argument, out):
    """Call a function of a table with room for an answer, and raise what it raises.

    ctypes raises a pending exception and forgets the result beside it. `lsearch` remembers: it
    calls the function as a comparison, and counts a further element where the answer is not 0.
    """
    room, count = (out * 2)(), ctypes.c_size_t(1)
    try:
        _lsearch(argument, room, ctypes.byref(count), ctypes.sizeof(out), function)
    except BaseException:
        assert count.value == 2, "an exception beside the answer 0"
        raise
    assert count.value == 1, "a failure without an exception"
    return room[0]


def prototype(shape=(3, 4), dtype=(2, 64, 1), device=(1, 0)):
    """Describe a tensor to be allocated; what does not count in a prototype is spoilt."""
    extents = (ctypes.c_int64 * len(shape))(*shape)
    never_freed.append(extents)
    return DLTensor(8, device, len(shape), dtype, extents, ctypes.cast(8, Numbers), 2**63)
