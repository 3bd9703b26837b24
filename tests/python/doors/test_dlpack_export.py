"""DLPack out: each keyword of `__dlpack__`, and the struct in the capsule."""

import enum

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.dlpack_structs import (
    IS_COPIED,
    LEGACY,
    READ_ONLY,
    VERSIONED,
    Handover,
    Versioned,
    capsule_name,
    consume,
    contents,
    release,
)
from support.optional import library
from support.owners import tracked
from support.parameters import readable

NEW = {"max_version": (1, 0)}


class Device(enum.IntEnum):
    CPU = 1


@pytest.mark.parametrize("max_version", [(1, 0), (1, 3), (1, 99), (2, 0), (100, 3)])
def test_a_consumer_that_knows_version_one_gets_a_versioned_capsule(max_version):
    capsule = dlf.zeros((2,)).__dlpack__(max_version=max_version)
    assert capsule_name(capsule) == VERSIONED
    assert contents(capsule).version.major == 1


@pytest.mark.parametrize("asked", [{}, {"max_version": None}, {"max_version": (0, 8)}], ids=str)
def test_a_consumer_that_does_not_gets_a_legacy_capsule(asked):
    assert capsule_name(dlf.zeros((2,)).__dlpack__(**asked)) == LEGACY


@pytest.mark.parametrize(
    ("keyword", "value", "error"),
    [
        ("max_version", [1, 0], TypeError),
        ("max_version", (1,), TypeError),
        ("max_version", (1, 0, 0), TypeError),
        ("max_version", ("1", "0"), TypeError),
        ("max_version", (1.0, 0), TypeError),
        ("max_version", 1, TypeError),
        ("max_version", (-1, 0), ValueError),
        ("max_version", (1, -1), ValueError),
        ("max_version", (2**70, 0), ValueError),
        ("stream", 0, RuntimeError),
        ("stream", 1, RuntimeError),
        ("stream", 2, RuntimeError),
        ("stream", 94, RuntimeError),
        ("stream", -2, RuntimeError),
        ("stream", 2**64, RuntimeError),
        ("stream", True, RuntimeError),
        ("stream", "x", RuntimeError),
        ("stream", 1.5, RuntimeError),
        ("stream", object(), RuntimeError),
        ("dl_device", (2, 0), BufferError),
        ("dl_device", (3, 0), BufferError),
        ("dl_device", (13, 0), BufferError),
        ("dl_device", (1, 5), BufferError),
        ("dl_device", (99, 0), BufferError),
        ("dl_device", (1,), TypeError),
        ("dl_device", [1, 0], TypeError),
        ("dl_device", (1.0, 0), TypeError),
        ("dl_device", (None, 0), TypeError),
        ("dl_device", "cpu", TypeError),
        ("copy", "yes", ValueError),
        ("copy", 1, ValueError),
        ("copy", np.array([1, 2]), ValueError),
    ],
    ids=readable,
)
def test_an_impossible_keyword_of_dlpack_is_refused_by_name(keyword, value, error):
    with pytest.raises(error, match=f"{keyword}: expected"):
        dlf.zeros((2,)).__dlpack__(**{**NEW, keyword: value})


@pytest.mark.parametrize(
    "asked",
    [
        {"stream": None},
        {"stream": -1},
        {"dl_device": None},
        {"dl_device": (1, 0)},
        {"dl_device": (Device.CPU, 0)},
        {"copy": None},
        {"copy": False},
    ],
    ids=str,
)
def test_a_keyword_that_asks_for_the_memory_as_it_is_gets_it(asked):
    storage = dlf.zeros((2,))
    assert contents(storage.__dlpack__(**NEW, **asked)).dl_tensor.data == address_of(storage)


def test_the_signature_has_these_keywords_and_no_other():
    storage = dlf.zeros((2,))
    with pytest.raises(TypeError, match="nonsense"):
        storage.__dlpack__(nonsense=1)
    with pytest.raises(TypeError, match="positional"):
        storage.__dlpack__(None)


def test_the_methods_are_on_the_type():
    assert {"__dlpack__", "__dlpack_device__"} <= set(dir(dlf.CPUStorage))
    assert dlf.zeros((2,)).__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("asked", [NEW, {}], ids=["versioned", "legacy"])
def test_the_struct_says_what_the_storage_is(asked):
    storage = dlf.zeros((2, 3, 4), "int16", layout=(2, 1, 0), alignment_size=64)
    tensor = contents(capsule := storage.__dlpack__(**asked)).dl_tensor
    assert (tensor.data, tensor.byte_offset) == (address_of(storage), 0)
    assert (tensor.device.device_type, tensor.device.device_id) == (1, 0)
    assert (tensor.ndim, tensor.shape[:3], tensor.strides[:3]) == (3, [2, 3, 4], [1, 32, 96])
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (0, 16, 1)
    assert contents(capsule).deleter


@pytest.mark.parametrize(
    ("name", "code", "bits"),
    [
        ("bool", 6, 8),
        *((f"int{bits}", 0, bits) for bits in (8, 16, 32, 64)),
        *((f"uint{bits}", 1, bits) for bits in (8, 16, 32, 64)),
        *((f"float{bits}", 2, bits) for bits in (16, 32, 64)),
        *((f"complex{bits}", 5, bits) for bits in (64, 128)),
    ],
)
def test_every_numpy_type_has_its_code_and_goes_to_numpy(name, code, bits):
    storage = dlf.ones((3,), name)
    dtype = contents(capsule := storage.__dlpack__(**NEW)).dl_tensor.dtype
    assert (dtype.code, dtype.bits) == (code, bits)
    np.testing.assert_array_equal(np.from_dlpack(storage), np.ones(3, name), strict=True)
    del capsule


@pytest.mark.parametrize(
    ("name", "code", "bits"),
    [("bfloat16", 4, 16), ("float8_e4m3fn", 10, 8), ("float8_e5m2", 12, 8)],
)
def test_types_that_numpy_lacks_go_out_and_come_in(name, code, bits):
    storage = dlf.full((3,), 2, getattr(library("ml_dtypes"), name))
    capsule = storage.__dlpack__(**NEW)
    dtype = contents(capsule).dl_tensor.dtype
    assert (dtype.code, dtype.bits) == (code, bits)
    again = dlf.as_storage(Handover(capsule))
    again.to_numpy()[1] = 4
    assert storage.to_numpy().astype(float).tolist() == [2, 4, 2]


def test_an_empty_storage_goes_out_without_an_address():
    tensor = contents(capsule := dlf.zeros((0, 3)).__dlpack__(**NEW)).dl_tensor
    assert (tensor.data, tensor.shape[:2], bool(tensor.strides)) == (None, [0, 3], True)
    del capsule


def test_numpy_shares_the_memory_and_holds_it():
    source, watch = tracked(np.arange(6.0).reshape(2, 3))
    array = np.from_dlpack(dlf.as_storage(source))
    array[0, 0] = 9
    assert source[0, 0] == 9
    del source
    assert not watch.freed
    del array
    assert watch.freed


@pytest.mark.parametrize("asked", [NEW, {}], ids=["versioned", "legacy"])
def test_a_capsule_that_is_never_consumed_frees_the_memory(asked):
    source, watch = tracked(np.zeros(3))
    capsule = dlf.as_storage(source).__dlpack__(**asked)
    del source
    assert not watch.freed
    del capsule
    assert watch.freed


@pytest.mark.parametrize("asked", [NEW, {}], ids=["versioned", "legacy"])
def test_the_deleter_of_a_consumed_tensor_frees_the_memory(asked):
    source, watch = tracked(np.zeros(3))
    capsule = dlf.as_storage(source).__dlpack__(**asked)
    managed = consume(capsule)
    del source, capsule
    assert not watch.freed
    release(managed)
    assert watch.freed


@pytest.mark.parametrize("asked", [NEW, {}], ids=["versioned", "legacy"])
def test_an_exported_capsule_is_consumed_once(asked):
    handover = Handover(dlf.zeros((3,)).__dlpack__(**asked))
    first = np.from_dlpack(handover)
    with pytest.raises(ValueError, match="incorrect name"):
        np.from_dlpack(handover)
    with pytest.raises(ValueError, match="consumed before"):
        dlf.as_storage(handover)
    assert first.shape == (3,)


def test_every_capsule_has_a_struct_of_its_own():
    storage = dlf.zeros((3,))
    one, other = storage.__dlpack__(**NEW), storage.__dlpack__(**NEW)
    contents(one).dl_tensor.shape[0] = 99
    assert contents(other).dl_tensor.shape[0] == 3
    assert storage.shape == (3,)


def test_read_only_memory_says_so_in_a_versioned_capsule():
    storage = dlf.as_storage(b"abc")
    assert contents(storage.__dlpack__(**NEW)).flags == READ_ONLY
    assert not np.from_dlpack(storage).flags.writeable


def test_read_only_memory_is_refused_in_a_legacy_capsule_with_the_way_out():
    with pytest.raises(BufferError, match=r"max_version=\(1, 0\).*to_jax\(copy=None\)"):
        dlf.as_storage(b"abc").__dlpack__()


def test_a_broadcast_goes_out_read_only():
    repeated = np.lib.stride_tricks.as_strided(np.zeros(3), (4, 3), (0, 8))
    storage = dlf.as_storage(repeated)
    assert contents(storage.__dlpack__(**NEW)).flags == READ_ONLY
    with pytest.raises(BufferError, match="read-only"):
        storage.__dlpack__()


def test_writable_memory_has_no_flag():
    assert contents(dlf.zeros((3,)).__dlpack__(**NEW)).flags == 0


@pytest.mark.parametrize("asked", [NEW, {}], ids=["versioned", "legacy"])
def test_negative_strides_are_refused_with_axis_and_way_out(asked):
    storage = dlf.as_storage(np.zeros((3, 4))[:, ::-1])
    with pytest.raises(BufferError, match=r"got -1 elements on axis 1.*hand over a copy"):
        storage.__dlpack__(**asked)


@pytest.mark.parametrize("shape", [(1, 4), (0, 4)])
def test_negative_strides_without_meaning_go_out(shape):
    array = np.zeros((shape[0] + 1, 4))[: shape[0]][::-1]
    assert array.strides[0] < 0 or shape[0] == 0
    assert np.from_dlpack(dlf.as_storage(array)).shape == shape


@pytest.mark.parametrize(
    "source",
    [
        np.arange(12.0).reshape(3, 4),
        np.arange(12.0).reshape(3, 4)[::-1, ::2],
        np.broadcast_to(np.arange(4.0), (3, 4)),
        np.frombuffer(bytes(32)),
    ],
    ids=["plain", "negative", "broadcast", "read-only"],
)
def test_a_copy_is_separate_memory_and_says_that_it_is_one(source):
    storage = dlf.as_storage(source)
    capsule = storage.__dlpack__(**NEW, copy=True)
    assert contents(capsule).flags == IS_COPIED
    copied = np.from_dlpack(Handover(capsule))
    np.testing.assert_array_equal(copied, source)
    copied[...] = -1
    assert (np.asarray(source) >= 0).all()


def test_a_copy_of_read_only_memory_goes_out_in_a_legacy_capsule():
    copied = np.from_dlpack(Handover(dlf.as_storage(b"abc").__dlpack__(copy=True)))
    assert copied.tolist() == [97, 98, 99]


def test_a_copy_does_not_hold_the_storage():
    source, watch = tracked(np.zeros(3))
    capsule = dlf.as_storage(source).__dlpack__(**NEW, copy=True)
    del source
    assert watch.freed
    assert isinstance(contents(capsule), Versioned)


@pytest.mark.parametrize("copy", [None, True, False])
def test_numpy_asks_for_a_copy_or_not(copy):
    storage = dlf.zeros((3,))
    shared = np.from_dlpack(storage, copy=copy).ctypes.data == address_of(storage)
    assert shared is (copy is not True)
