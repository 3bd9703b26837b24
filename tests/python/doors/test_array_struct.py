"""`__array_struct__`: the struct of C that old producers show instead of a buffer."""

import ctypes

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.dlpack_structs import never_freed
from support.owners import Watch
from support.parameters import NUMPY_DTYPES


class ArrayStruct(ctypes.Structure):
    _fields_ = (
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    )


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class Struct:
    """Has only the struct of an array, with changes in it."""

    def __init__(self, array, **changes):
        self.array, self.original = array, array.__array_struct__
        original = ArrayStruct.from_address(_pointer(self.original, None))
        self.struct = ArrayStruct.from_buffer_copy(original)
        for name, value in changes.items():
            setattr(self.struct, name, value)

    @property
    def __array_struct__(self):
        return _new(ctypes.addressof(self.struct), None, None)


@pytest.mark.parametrize("name", NUMPY_DTYPES)
@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1, 1:], np.s_[0, ...], np.s_[:0]], ids=str)
def test_every_view_comes_in_as_numpy_reads_it(view, name):
    source = np.arange(12).reshape(3, 4).astype(name)[view]
    storage = dlf.as_storage(Struct(source))
    assert (storage.door, storage.readonly) == ("array_struct", False)
    assert (storage.strides, address_of(storage)) == (source.strides, source.ctypes.data)
    np.testing.assert_array_equal(storage.to_numpy(), np.asarray(Struct(source)), strict=True)


def test_a_read_only_struct_becomes_a_read_only_storage():
    assert dlf.as_storage(Struct(np.frombuffer(bytes(24)))).readonly


def test_no_strides_are_c_order_in_a_struct():
    assert dlf.as_storage(Struct(np.zeros((2, 3)), strides=None)).strides == (24, 8)


def test_the_object_is_held_until_the_last_view_is_gone():
    watch = Watch(source := Struct(np.zeros(3)))
    view = dlf.as_storage(source).to_numpy()
    del source
    assert not watch.freed
    del view
    assert watch.freed


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"two": 3}, "expected the number two .* got two = 3"),
        ({"nd": -1}, "ndim: expected 0 to 64"),
        ({"nd": 65}, "ndim: expected 0 to 64"),
        ({"flags": 0x400}, "byte order"),
        ({"flags": 0xE00}, "a structured type"),
        ({"typekind": b"O"}, "expected bool, int8"),
        ({"typekind": b"V"}, "expected bool, int8"),
        ({"itemsize": 3}, "expected bool, int8"),
        ({"shape": None}, "shape: expected 2 extents, got NULL"),
        ({"shape": 4097}, "shape: expected a pointer aligned"),
        ({"strides": 4097}, "strides: expected a pointer aligned"),
        ({"data": None}, "data: expected an address"),
    ],
    ids=str,
)
def test_a_struct_that_lies_is_refused_by_name(changes, text):
    with pytest.raises(BufferError, match=f"^__array_struct__: .*{text}"):
        dlf.as_storage(Struct(np.zeros((2, 3)), **changes))


def test_a_capsule_of_another_name_is_no_struct():
    class Named:
        never_freed.append(name := b"struct")
        __array_struct__ = _new(ctypes.addressof(ctypes.c_int(2)), name, None)

    with pytest.raises(ValueError, match=r"expected a capsule without a name, got 'struct'"):
        dlf.as_storage(Named())


@pytest.mark.parametrize("answer", [3, "text", {}], ids=repr)
def test_a_struct_must_be_in_a_capsule(answer):
    with pytest.raises(TypeError, match=r"^__array_struct__: expected a capsule, got"):
        dlf.as_storage(type("Wrong", (), {"__array_struct__": answer})())


def test_an_object_with_both_is_read_through_its_array_interface():
    class Both(Struct):
        __array_interface__ = property(lambda self: self.array.__array_interface__)

    assert dlf.as_storage(Both(np.zeros(3))).door == "array_interface"
