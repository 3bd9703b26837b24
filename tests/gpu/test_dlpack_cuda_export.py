"""DLPack out of storages on a GPU: which device they announce, each keyword, and the capsule."""

import math

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.cuda.devices import OnDevice, new_stream, read
from support.cuda.driver import call, stats
from support.cuda.kinds import every_device, every_kind, two_devices
from support.cuda.order import device_address, own_stream, seen_from
from support.dlpack_structs import (
    IS_COPIED,
    LEGACY,
    READ_ONLY,
    VERSIONED,
    capsule_name,
    consume,
    contents,
    release,
)
from support.optional import library
from support.parameters import readable

NEW = {"max_version": (1, 3)}
with_host = pytest.mark.parametrize("managed", ["gt4py", "cuda"], ids=["pair", "managed"])
VALUES = np.arange(6.0).reshape(2, 3)


def made(values=VALUES, managed=None, **options):
    """Return a storage on a GPU with these values, both sides up to date and nothing in flight."""
    options = {"device": "gpu", **options}
    storage = dlf.storage(values, managed=managed, **options)
    storage.synchronize()
    call("cuCtxSynchronize")
    return storage


def tensor_in(capsule):
    return contents(capsule).dl_tensor


def device_of(capsule):
    device = tensor_in(capsule).device
    return device.device_type, device.device_id


@every_device
@every_kind
def test_the_device_that_is_announced_is_the_one_in_the_capsule(managed, device):
    storage = dlf.zeros((2, 3), device=("gpu", device), managed=managed)
    assert storage.__dlpack_device__() == (2, device) == device_of(storage.__dlpack__(**NEW))


def test_a_pair_announces_the_side_that_is_newer_and_the_device_when_both_are():
    storage = made(managed="gt4py")
    assert storage.__dlpack_device__() == (2, 0) == device_of(storage.__dlpack__(**NEW))
    storage.set_host_modified()
    assert storage.__dlpack_device__() == (1, 0) == device_of(storage.__dlpack__(**NEW))
    storage.set_device_modified()
    assert storage.__dlpack_device__() == (2, 0) == device_of(storage.__dlpack__(**NEW))


def test_page_locked_memory_is_announced_as_memory_of_the_host():
    array = made(managed="gt4py").to_numpy()
    storage = dlf.as_storage(array)
    assert storage.__dlpack_device__() == (1, 0) == device_of(storage.__dlpack__(**NEW))


@every_kind
@pytest.mark.parametrize("asked", [{}, {"max_version": None}, {"max_version": (0, 8)}], ids=str)
def test_a_consumer_that_knows_no_versions_gets_a_legacy_capsule(managed, asked):
    assert capsule_name(made(managed=managed).__dlpack__(**asked)) == LEGACY


@pytest.mark.parametrize("max_version", [(1, 0), (1, 99), (2, 0), (100, 3)])
def test_a_device_capsule_is_versioned_for_a_consumer_of_version_one(max_version):
    capsule = made().__dlpack__(max_version=max_version)
    assert (capsule_name(capsule), contents(capsule).version.major) == (VERSIONED, 1)


@every_kind
@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
@pytest.mark.parametrize(
    ("view", "shape", "strides", "offset"),
    [
        (lambda s: s, [2, 3], [3, 1], 0),
        (lambda s: s.T, [3, 2], [1, 3], 0),
        (lambda s: s[1:, 1:], [1, 2], [3, 1], 32),
        (lambda s: s[:, ::2], [2, 2], [3, 2], 0),
        (lambda s: s[1], [3], [1], 24),
    ],
)
def test_the_tensor_describes_the_view(managed, legacy, view, shape, strides, offset):
    storage = made(managed=managed)
    start = device_address(storage)
    capsule = view(storage).__dlpack__(**({} if legacy else NEW))
    tensor = tensor_in(capsule)
    assert (tensor.data, tensor.byte_offset) == (start + offset, 0)
    assert (tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]) == (shape, strides)
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (2, 64, 1)


@every_kind
def test_a_tensor_of_no_elements_has_no_address(managed):
    tensor = tensor_in(dlf.zeros((0, 3), device="gpu", managed=managed).__dlpack__(**NEW))
    assert (tensor.data, tensor.device.device_type) == (None, 2)


def test_a_type_that_only_dlpack_can_name_goes_out():
    bfloat16 = library("ml_dtypes").bfloat16
    dtype = tensor_in(dlf.zeros(3, bfloat16, device="gpu").__dlpack__(**NEW)).dtype
    assert (dtype.code, dtype.bits) == (4, 16)


@every_kind
def test_negative_strides_are_refused_in_a_device_capsule(managed):
    with pytest.raises(BufferError, match="strides of at least 0"):
        made(managed=managed)[::-1].__dlpack__(**NEW)


@pytest.mark.parametrize("managed", [None, "gt4py"])
def test_a_device_capsule_is_marked_read_only_or_refused(managed):
    storage = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=managed)
    assert contents(storage.__dlpack__(**NEW)).flags & READ_ONLY
    with pytest.raises(BufferError, match="read-only"):
        storage.__dlpack__()


@every_kind
@pytest.mark.parametrize(
    ("keyword", "value", "error"),
    [
        ("stream", 0, ValueError),
        ("stream", -2, ValueError),
        ("stream", 2**64, ValueError),
        ("stream", True, TypeError),
        ("stream", "x", TypeError),
        ("stream", 1.5, TypeError),
        ("stream", object(), TypeError),
        ("dl_device", (2, 7), BufferError),
        ("dl_device", (3, 0), BufferError),
        ("dl_device", (10, 0), BufferError),
        ("dl_device", (13, 0), BufferError),
        ("dl_device", (1, 5), BufferError),
        ("dl_device", (99, 0), BufferError),
        ("dl_device", (2,), TypeError),
        ("dl_device", [2, 0], TypeError),
        ("dl_device", "gpu", TypeError),
        ("max_version", [1, 0], TypeError),
        ("max_version", (-1, 0), ValueError),
        ("copy", "yes", ValueError),
    ],
    ids=readable,
)
def test_an_impossible_keyword_of_a_device_export_is_refused_by_name(
    managed, keyword, value, error
):
    with pytest.raises(error, match=f"{keyword}: expected"):
        made(managed=managed).__dlpack__(**{**NEW, keyword: value})


@two_devices
def test_another_device_is_refused_and_not_copied_to():
    with pytest.raises(BufferError, match=r"dl_device: expected \(1, 0\) or \(2, 1\)"):
        made(device=("gpu", 1)).__dlpack__(dl_device=(2, 0), copy=True)


@pytest.mark.parametrize("stream", [1, 2, 0])
@with_host
def test_a_capsule_for_the_host_refuses_a_stream(managed, stream):
    with pytest.raises(RuntimeError, match="stream: expected None or -1 for host memory"):
        made(managed=managed).__dlpack__(dl_device=(1, 0), stream=stream)


@every_kind
@pytest.mark.parametrize("copy", [None, False])
@pytest.mark.parametrize("dl_device", [None, (2, 0)])
def test_memory_is_shared_where_it_is(managed, dl_device, copy):
    storage = made(managed=managed)
    exported = contents(storage.__dlpack__(dl_device=dl_device, copy=copy, **NEW))
    assert (exported.dl_tensor.data, exported.flags) == (device_address(storage), 0)


@every_kind
@pytest.mark.parametrize("dl_device", [None, (2, 0)])
def test_a_copy_on_the_device_belongs_to_the_consumer_alone(managed, dl_device):
    storage = made(managed=managed)
    taken = consume(storage.__dlpack__(dl_device=dl_device, copy=True, **NEW))
    assert (taken.flags, taken.dl_tensor.device.device_type) == (IS_COPIED, 2)
    assert taken.dl_tensor.data != device_address(storage)
    np.testing.assert_array_equal(read(taken.dl_tensor.data, (2, 3), "f8"), VALUES)
    release(taken)


@with_host
@pytest.mark.parametrize("copy", [None, False])
def test_the_host_shares_the_buffer_that_it_reaches(managed, copy):
    storage = made(managed=managed)
    exported = contents(storage.__dlpack__(dl_device=(1, 0), copy=copy, **NEW))
    device = exported.dl_tensor.device
    assert (device.device_type, device.device_id, exported.flags) == (1, 0, 0)
    assert exported.dl_tensor.data == address_of(storage)


@every_kind
def test_a_copy_for_the_host_is_finished_when_it_is_handed_over(managed):
    storage = made(managed=managed)
    storage[...] = dlf.full((2, 3), 7.0, device="gpu", managed=None)
    taken = contents(storage.__dlpack__(dl_device=(1, 0), copy=True, **NEW))
    assert (taken.flags, taken.dl_tensor.device.device_type) == (IS_COPIED, 1)
    assert host_values(taken) == [7.0] * 6


def host_values(exported):
    """Read the float64 values of a tensor on the host, in C order."""
    tensor = exported.dl_tensor
    count = math.prod(tensor.shape[: tensor.ndim])
    pointer = np.ctypeslib.ctypes.c_double * count
    return list(pointer.from_address(tensor.data))


def test_memory_of_a_device_alone_is_copied_to_the_host_unless_that_is_forbidden():
    storage = made()
    taken = contents(storage.__dlpack__(dl_device=(1, 0), **NEW))
    assert (taken.flags, host_values(taken)) == (IS_COPIED, VALUES.ravel().tolist())
    with pytest.raises(BufferError, match="copy=False"):
        storage.__dlpack__(dl_device=(1, 0), copy=False, **NEW)


@with_host
def test_the_host_gets_its_side_up_to_date_and_finished(managed):
    storage = made(managed=managed)
    with dlf.use_stream(new_stream()):
        storage[...] = dlf.full((2, 3), 7.0, device="gpu", managed=None)
        exported = contents(storage.__dlpack__(dl_device=(1, 0), **NEW))
    assert host_values(exported) == [7.0] * 6


def test_the_device_gets_its_side_up_to_date():
    storage = made(managed="gt4py")
    with storage.host() as array:
        array[...] = 7
    exported = contents(storage.__dlpack__(dl_device=(2, 0), **NEW))
    assert storage.sync_state.state == dlf.SyncState.SYNC_CLEAN
    assert seen_from(own_stream(), exported.dl_tensor.data, (2, 3)).tolist() == [[7.0] * 3] * 2


@pytest.mark.stand_in
def test_a_pair_that_is_up_to_date_is_handed_over_without_a_copy():
    storage, before = made(managed="gt4py"), stats().copies
    for asked in ({}, {"dl_device": (1, 0)}, {"dl_device": (2, 0)}, {"copy": False}):
        storage.__dlpack__(**asked, **NEW)
    assert stats().copies == before


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
@every_kind
def test_a_capsule_keeps_the_memory_until_it_is_released(managed, legacy):
    storage = made(managed=managed)
    capsule = storage.__dlpack__(**({} if legacy else NEW))
    del storage
    taken = consume(capsule)
    del capsule
    np.testing.assert_array_equal(read(taken.dl_tensor.data, (2, 3), "f8"), VALUES)
    release(taken)


@every_kind
def test_a_device_capsule_that_is_never_consumed_frees_the_memory(managed):
    for asked in ({}, NEW, {"copy": True}, {"dl_device": (1, 0)}):
        made(managed=managed).__dlpack__(**asked)
