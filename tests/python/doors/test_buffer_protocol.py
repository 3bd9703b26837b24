"""The buffer protocol: import from any exporter of a buffer, export to any consumer."""

import array
import ctypes
import mmap

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of, address_of_buffer, address_of_bytes
from support.lying_producers import PyBuffer
from support.optional import library
from support.owners import Watch, tracked
from support.parameters import ML_DTYPES, NUMPY_DTYPES

SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0, 1, 4, 8, 0x18
C_ORDER, F_ORDER, ANY_ORDER = 0x38, 0x58, 0x98


def request(exporter, flags):
    """Ask for a view as C code does. The caller releases it."""
    view = PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(
        ctypes.py_object(exporter), ctypes.byref(view), ctypes.c_int(flags)
    )
    return view


def release(view):
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))


@pytest.mark.source(
    "Allocation note", "Supported Buffer Interfaces", "the buffer protocol is accepted"
)
@pytest.mark.parametrize(
    ("kind", "make", "find", "grow"),
    [
        ("bytearray", lambda: bytearray(24), address_of_buffer, lambda a: a.extend(b"1" * 99)),
        ("array", lambda: array.array("d", [0, 0, 0]), address_of_buffer, lambda a: a.append(1)),
        ("mmap", lambda: mmap.mmap(-1, 4096), address_of_buffer, lambda a: a.close()),
        ("ctypes", lambda: (ctypes.c_double * 3)(), ctypes.addressof, None),
        ("memoryview", lambda: memoryview(bytearray(24)), address_of_buffer, lambda a: a.release()),
    ],
)
def test_a_producer_shares_its_memory_sees_writes_and_is_released(kind, make, find, grow):
    producer = make()
    storage = dlf.as_storage(producer)
    assert address_of(storage) == find(producer)
    assert (storage.door, storage.readonly) == ("buffer", False)
    storage.to_numpy()[1] = 1
    assert bytes(memoryview(producer)) == storage.to_numpy().tobytes()
    if grow:
        with pytest.raises(BufferError):
            grow(producer)
        del storage
        grow(producer)


@pytest.mark.parametrize("text", [b"abc", memoryview(b"abc")], ids=type)
def test_immutable_bytes_are_read_only(text):
    storage = dlf.as_storage(text)
    assert (address_of(storage), storage.readonly) == (address_of_bytes(text), True)
    with pytest.raises(ValueError, match="read-only"):
        storage.to_numpy()[0] = 1


def test_a_ctypes_array_of_arrays_keeps_its_shape_and_type():
    rows = ((ctypes.c_int32 * 3) * 2)()
    storage = dlf.as_storage(rows)
    assert (storage.shape, storage.dtype) == ((2, 3), np.dtype("int32"))
    storage.to_numpy()[1, 2] = 5
    assert rows[1][2] == 5


def test_an_array_is_released_with_its_last_view():
    source, watch = tracked(np.arange(6.0))
    storage = dlf.as_storage(source)
    view = memoryview(storage)
    del source, storage
    assert not watch.freed
    assert view.tolist() == [0, 1, 2, 3, 4, 5]
    del view
    assert watch.freed


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_every_numpy_type_comes_in_through_its_buffer(name):
    source = np.ones((2, 3), name)
    storage = dlf.as_storage(source)
    assert (storage.dtype, address_of(storage)) == (source.dtype, address_of(source))
    np.testing.assert_array_equal(storage.to_numpy(), source, strict=True)


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_every_numpy_type_is_shown_as_numpy_shows_it(name):
    ours, theirs = memoryview(dlf.zeros((2, 3), name)), memoryview(np.zeros((2, 3), name))
    assert (ours.format, ours.itemsize, ours.shape) == (theirs.format, theirs.itemsize, (2, 3))


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_every_number_of_the_array_module_comes_in(code):
    source = array.array(code, [1, 2, 3])
    storage = dlf.as_storage(source)
    assert storage.to_numpy().tolist() == [1, 2, 3]
    assert storage.dtype.itemsize == source.itemsize


@pytest.mark.parametrize(
    "view",
    [
        np.arange(24.0).reshape(2, 3, 4).T,
        np.arange(24.0).reshape(4, 6)[::-1, ::-2],
        np.arange(24.0).reshape(4, 6)[1:3, 2:5],
        np.broadcast_to(np.arange(3.0), (4, 3)),
        np.array(7.0),
        np.zeros((0, 3)),
        np.zeros((1, 5))[::-1],
    ],
    ids=["transposed", "reversed", "padded", "broadcast", "scalar", "empty", "one row"],
)
def test_every_view_of_numpy_comes_in_and_goes_out_unchanged(view):
    storage = dlf.as_storage(view)
    again = np.asarray(memoryview(storage))
    assert (storage.shape, again.shape) == (view.shape, view.shape)
    assert address_of(storage) == address_of(view)
    np.testing.assert_array_equal(storage.to_numpy(), view)
    np.testing.assert_array_equal(again, view)


def test_an_empty_field_has_a_buffer():
    view = memoryview(dlf.zeros((0, 3)))
    assert (view.shape, view.nbytes, view.tolist()) == ((0, 3), 0, [])


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((0,), (0,)),
        ((0,), (-8,)),
        ((1,), (24,)),
        ((0, 3), (0, 0)),
        ((3, 0), (8, 16)),
        ((1, 3), (0, 8)),
    ],
    ids=repr,
)
def test_strides_that_mean_nothing_are_shown_as_numpy_shows_them(shape, strides):
    array = np.lib.stride_tricks.as_strided(np.zeros(4), shape, strides)
    shown, wanted = memoryview(dlf.as_storage(array)), memoryview(array)
    assert (shown.strides, shown.c_contiguous) == (wanted.strides, wanted.c_contiguous)
    assert wanted.c_contiguous


def test_read_only_memory_is_shown_as_read_only():
    storage = dlf.as_storage(b"abc")
    assert memoryview(storage).readonly
    with pytest.raises(BufferError, match="expected writable memory, got a read-only storage"):
        request(storage, WRITABLE)


def test_a_broadcast_cannot_be_written_through_a_buffer():
    repeated = np.lib.stride_tricks.as_strided(np.zeros(3), (4, 3), (0, 8))
    assert memoryview(dlf.as_storage(repeated)).readonly


FIELDS = {
    "c": lambda: dlf.zeros((3, 4)),
    "f": lambda: dlf.zeros((3, 4), layout=(1, 0)),
    "padded": lambda: dlf.zeros((3, 4), alignment_size=64),
    "reversed": lambda: dlf.as_storage(np.zeros((3, 4))[::-1]),
}


@pytest.mark.parametrize(
    ("flags", "served"),
    [
        (SIMPLE, {"c"}),
        (ND, {"c"}),
        (STRIDES, {"c", "f", "padded", "reversed"}),
        (C_ORDER, {"c"}),
        (F_ORDER, {"f"}),
        (ANY_ORDER, {"c", "f"}),
    ],
)
@pytest.mark.parametrize("kind", FIELDS)
def test_an_order_is_promised_exactly_where_the_memory_has_it(flags, served, kind):
    field = FIELDS[kind]()
    if kind not in served:
        with pytest.raises(BufferError, match=r"buffer: expected .*; pass a copy"):
            request(field, flags)
        return
    view = request(field, flags | WRITABLE)
    ndim = 2 if flags & ND else 0
    assert (view.buf, view.len, view.itemsize, view.ndim) == (address_of(field), 96, 8, ndim)
    release(view)


@pytest.mark.parametrize("flags", [SIMPLE, FORMAT, ND, ND | FORMAT, STRIDES, STRIDES | FORMAT])
def test_a_view_says_only_what_was_asked(flags):
    view = request(dlf.zeros((3, 4)), flags)
    assert (view.format == b"d") is bool(flags & FORMAT)
    assert bool(view.shape) is bool(flags & ND)
    assert bool(view.strides) is (flags & STRIDES == STRIDES)
    release(view)


def test_a_view_holds_the_storage_until_it_is_released():
    source, watch = tracked(np.zeros((3, 4)))
    view = request(dlf.as_storage(source), STRIDES)
    del source
    assert not watch.freed
    release(view)
    assert watch.freed


def test_a_refused_request_holds_nothing():
    field = dlf.zeros((3, 4), layout=(1, 0))
    watch = Watch(field)
    with pytest.raises(BufferError):
        request(field, C_ORDER)
    del field
    assert watch.freed


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (np.array([None, 1]), "buffer format: expected bool, int8.*got 'O'"),
        (np.zeros(2, [("a", "i4"), ("b", "f8")]), "buffer format: expected bool, int8"),
        (np.array([b"ab", b"c"]), "buffer format: expected bool, int8"),
        (np.array(["ab", "c"]), "buffer format: expected bool, int8"),
        (np.zeros(2, "longdouble"), "buffer format: expected bool, int8.*got 'g'"),
        (np.zeros(2, ">f8"), "expected native byte order.*newbyteorder"),
        (np.zeros(2, ">c8"), "expected native byte order|buffer format: expected bool"),
        (np.ndarray((3,), "f4", bytes(30), strides=(9,)), "multiple of the item size 4, got 9"),
    ],
    ids=["object", "structured", "bytes", "text", "longdouble", ">f8", ">c8", "odd stride"],
)
def test_what_a_storage_cannot_hold_is_refused(source, text):
    with pytest.raises(BufferError, match=text):
        dlf.as_storage(source)


@pytest.mark.parametrize("source", [np.zeros(2, "M8[s]"), np.zeros(2, "m8[D]")], ids=str)
def test_times_are_refused(source):
    with pytest.raises((BufferError, ValueError)):
        dlf.as_storage(source)


def test_an_odd_stride_of_a_single_element_does_not_matter():
    source = np.ndarray((1,), "f4", bytes(4), strides=(9,))
    assert dlf.as_storage(source).shape == (1,)


def test_unaligned_memory_is_taken_as_it_is():
    source = np.frombuffer(bytearray(25), "f8", offset=1)
    storage = dlf.as_storage(source)
    storage.to_numpy()[...] = [1, 2, 3]
    assert address_of(storage) == address_of(source)
    assert source.tolist() == [1, 2, 3]


def test_a_released_memoryview_says_so():
    view = memoryview(bytearray(3))
    view.release()
    with pytest.raises(ValueError, match="released memoryview"):
        dlf.as_storage(view)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_a_type_without_a_format_comes_in_and_back_to_numpy(name):
    dtype = np.dtype(getattr(library("ml_dtypes"), name))
    source = np.array([[1, 2, 4], [8, 1, 2]], dtype)[:, ::-1]
    storage = dlf.as_storage(source)
    assert (storage.dtype, storage.strides) == (dtype, source.strides)
    assert storage.to_numpy().ctypes.data == source.ctypes.data
    storage.to_numpy()[0, 0] = 1
    assert source[0, 0] == dtype.type(1)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_a_type_without_a_format_shows_no_buffer(name):
    storage = dlf.zeros((2,), getattr(library("ml_dtypes"), name))
    with pytest.raises(BufferError, match=f"PEP 3118 can name, got {name}"):
        memoryview(storage)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_a_scalar_without_a_format_is_taken_as_one_that_has_one(name):
    scalar = getattr(library("ml_dtypes"), name)(2)
    shared, copied = dlf.as_storage(scalar), dlf.storage(scalar)
    assert (shared.shape, shared.dtype, shared.readonly) == ((), scalar.dtype, True)
    assert copied[()] == scalar
    assert dlf.zeros_like(scalar).dtype == scalar.dtype


def test_a_read_only_array_without_a_format_stays_read_only():
    source = np.zeros(3, library("ml_dtypes").bfloat16)
    source.flags.writeable = False
    storage = dlf.as_storage(source)
    assert storage.readonly
    assert not storage.to_numpy().flags.writeable
