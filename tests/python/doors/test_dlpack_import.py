"""DLPack in: what is asked of `__dlpack__`, and what becomes of the tensor that it gives."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.dlpack_structs import (
    READ_ONLY,
    USED_LEGACY,
    USED_VERSIONED,
    DLDataType,
    Handover,
    Producer,
    capsule_name,
)
from support.no_driver import no_driver, without_driver
from support.optional import library

BOTH = pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])


@BOTH
def test_memory_is_shared_written_through_and_given_back_once(legacy):
    producer = Producer((3, 4), legacy=legacy)
    storage = dlf.as_storage(producer)
    assert (storage.door, storage.shape, storage.strides) == ("dlpack", (3, 4), (32, 8))
    assert address_of(storage) == producer.managed.dl_tensor.data
    storage.to_numpy()[2, 3] = -1
    assert producer.values[11] == -1
    assert producer.freed == 0
    del storage
    assert producer.freed == 1


@BOTH
def test_the_last_of_several_views_gives_the_memory_back(legacy):
    producer = Producer(legacy=legacy)
    views = [dlf.as_storage(producer)]
    views += [views[0].to_numpy(), np.from_dlpack(views[0]), memoryview(views[0])]
    views += [dlf.as_storage(views[0]), views[0].domain_view]
    while views:
        assert producer.freed == 0
        views.pop(0)
    assert producer.freed == 1


def test_a_versioned_capsule_is_asked_for_without_a_copy():
    producer = Producer()
    dlf.as_storage(producer)
    (asked,) = producer.calls
    assert asked["max_version"][0] == 1
    assert asked["copy"] is False


@BOTH
def test_a_capsule_is_renamed_when_it_is_consumed(legacy):
    capsule = Producer(legacy=legacy).capsule()
    dlf.as_storage(Handover(capsule))
    assert capsule_name(capsule) == (USED_LEGACY if legacy else USED_VERSIONED)


@BOTH
def test_a_capsule_is_consumed_once(legacy):
    producer = Producer(legacy=legacy)
    handover = Handover(producer.capsule())
    storage = dlf.as_storage(handover)
    with pytest.raises(ValueError, match=r"got 'used_dltensor.*consumed before"):
        dlf.as_storage(handover)
    del storage, handover
    assert producer.freed == 1


def test_a_copy_gives_the_memory_back_at_once():
    producer = Producer()
    copied = dlf.storage(producer)
    assert producer.freed == 1
    assert copied.to_numpy()[2, 3] == 11


@pytest.mark.parametrize("flags", [0, 0xF0, READ_ONLY, READ_ONLY | 0xF0])
def test_the_read_only_flag_is_honoured_and_unknown_flags_are_not_passed_on(flags):
    storage = dlf.as_storage(Producer(flags=flags))
    assert storage.readonly is bool(flags & READ_ONLY)
    assert storage.to_numpy().flags.writeable is not storage.readonly
    assert np.from_dlpack(storage).flags.writeable is not storage.readonly


def test_a_legacy_capsule_is_writable():
    assert not dlf.as_storage(Producer(legacy=True)).readonly


def test_missing_strides_are_c_order():
    producer = Producer((2, 3, 4))
    producer.managed.dl_tensor.strides = None
    assert dlf.as_storage(producer).strides == (96, 32, 8)


def test_strides_of_every_sign_come_in():
    producer = Producer((3, 4))
    producer.strides[:] = (-4, 0)
    producer.managed.dl_tensor.byte_offset = 64
    storage = dlf.as_storage(producer)
    assert storage.to_numpy().tolist() == [[8] * 4, [4] * 4, [0] * 4]


def test_the_byte_offset_counts():
    producer = Producer((2,))
    producer.managed.dl_tensor.byte_offset = 24
    assert dlf.as_storage(producer).to_numpy().tolist() == [3, 4]


def test_shape_and_strides_are_copied_when_they_are_read():
    producer = Producer((3, 4))
    storage = dlf.as_storage(producer)
    producer.shape[:], producer.strides[:] = (9, 9), (9, 9)
    assert (storage.shape, storage.strides) == ((3, 4), (32, 8))


@without_driver
def test_the_device_is_that_of_the_capsule():
    class Elsewhere(Producer):
        def __dlpack_device__(self):
            return (13, 7)

    producer = Elsewhere()
    assert dlf.as_storage(producer).shape == (3, 4)
    producer.managed.dl_tensor.device.device_type = 2
    with no_driver("memory on cuda:0: "):
        dlf.as_storage(producer)


@pytest.mark.parametrize("device", [(1, 7), (3, 0), (11, 0), (13, 0)])
def test_memory_that_the_host_reaches_is_host_memory(device):
    producer = Producer()
    tensor = producer.managed.dl_tensor
    tensor.device.device_type, tensor.device.device_id = device
    assert dlf.as_storage(producer).to_numpy()[2, 3] == 11


@pytest.mark.parametrize(
    ("code", "bits", "name"),
    [
        (4, 16, "bfloat16"),
        (7, 8, "float8_e3m4"),
        (8, 8, "float8_e4m3"),
        (9, 8, "float8_e4m3b11fnuz"),
        (10, 8, "float8_e4m3fn"),
        (11, 8, "float8_e4m3fnuz"),
        (12, 8, "float8_e5m2"),
        (13, 8, "float8_e5m2fnuz"),
        (14, 8, "float8_e8m0fnu"),
    ],
)
def test_types_that_numpy_lacks_come_in(code, bits, name):
    dtype = np.dtype(getattr(library("ml_dtypes"), name))
    producer = Producer((4,))
    producer.managed.dl_tensor.dtype = DLDataType(code, bits, 1)
    storage = dlf.as_storage(producer)
    assert (storage.dtype, storage.to_numpy().dtype) == (dtype, dtype)


def test_numpy_arrays_of_a_class_with_dlpack_alone_come_in():
    class Only:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    source = np.arange(6.0).reshape(2, 3)[:, ::-1]
    storage = dlf.as_storage(Only(source))
    assert storage.strides == source.strides
    np.testing.assert_array_equal(storage.to_numpy(), source)


def test_a_deleter_may_import_and_drop_storages_itself():
    inner = Producer()

    class Reentering(Producer):
        def _count(self, managed):
            dlf.as_storage(np.zeros(3))
            held.clear()
            super()._count(managed)

    outer, held = Reentering(), [dlf.as_storage(inner)]
    dlf.as_storage(outer)
    assert (outer.freed, inner.freed) == (1, 1)
