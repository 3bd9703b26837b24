"""`__cuda_array_interface__` read: every version, from wherever the memory is."""

import gc
from types import MappingProxyType

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import Memory, OnDevice, Pinned, current, new_stream
from support.cuda.driver import call, made, stats
from support.cuda.kinds import two_devices
from support.cuda.order import device_address
from support.cuda.stand_in import run
from support.owners import Watch

VALUES = np.arange(6.0).reshape(2, 3)


def taken(exporter, **options):
    """Return a storage over the memory of the device alone."""
    return dlf.as_storage(exporter, managed=None, **options)


def values_of(storage):
    """Return the values, by a copy."""
    return dlf.storage(storage, device="cpu").to_numpy()


def without(exporter, *keys):
    for key in keys:
        del exporter.interface[key]
    return exporter


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "an object with only a CUDA array interface counts as GPU memory",
)
@pytest.mark.source(
    "GDP-3", "Data Interface", "without the interface, a CUDA array interface counts as GPU memory"
)
@pytest.mark.source("CUDA array interface", "Python Interface Specification", "`version` is 3")
@pytest.mark.source(
    "CUDA array interface",
    "Differences with earlier versions",
    "version 0 does not have a mask",
    "versions before 3 do not define synchronisation",
)
@pytest.mark.source(
    "Interface note",
    "Storages without the interface",
    "without the interface, `__cuda_array_interface__` is read, depending on the backend",
)
@pytest.mark.source(
    "Allocation note", "Supported Buffer Interfaces", "`__cuda_array_interface__` is accepted"
)
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 99])
def test_every_version_comes_in_at_its_address(version):
    exporter = OnDevice(VALUES, version=version)
    storage = taken(exporter)
    assert (storage.door, type(storage)) == ("cuda_array_interface", dlf.GPUStorage)
    assert device_address(storage) == exporter.address
    assert (storage.shape, storage.strides, storage.dtype) == ((2, 3), (24, 8), np.float64)


@pytest.mark.source(
    "CUDA array interface",
    "Differences with earlier versions",
    "versions 0 and 1 do not define strides in C order, nor size zero",
)
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_strides_may_be_spelled_out_for_c_order(version):
    assert taken(OnDevice(VALUES, version=version, strides=(24, 8))).strides == (24, 8)


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "absent `strides`, or None, means C order",
)
@pytest.mark.parametrize("keys", [("strides",), ("strides", "version")])
def test_a_missing_version_is_refused_and_missing_strides_are_c_order(keys):
    exporter = without(OnDevice(VALUES), *keys)
    if "version" in keys:
        with pytest.raises(ValueError, match="version of at least 0, got None"):
            taken(exporter)
    else:
        assert taken(exporter).strides == (24, 8)


@pytest.mark.parametrize("key", ["shape", "typestr", "data"])
def test_a_key_that_has_to_be_there_is_missed_by_name(key):
    with pytest.raises(ValueError, match=f"expected the key '{key}'"):
        taken(without(OnDevice(VALUES), key))


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`mask` is None or an array of the valid elements",
)
@pytest.mark.parametrize("words", [{}, {"mask": None, "descr": None, "stream": None}], ids=str)
def test_optional_keys_may_be_left_out_or_none(words):
    np.testing.assert_array_equal(values_of(taken(OnDevice(VALUES, **words))), VALUES)


@pytest.mark.source(
    "CUDA array interface", "Python Interface Specification", "`strides` are in bytes"
)
@pytest.mark.parametrize(
    ("strides", "offset", "expected"),
    [
        ((8, 24), 0, [[0, 3], [1, 4], [2, 5]]),
        ((16, 8), 0, [[0, 1], [2, 3], [4, 5]]),
        ((-16, 8), 32, [[4, 5], [2, 3], [0, 1]]),
        ((-16, -8), 40, [[5, 4], [3, 2], [1, 0]]),
        ((8, 0), 8, [[1, 1], [2, 2], [3, 3]]),
    ],
)
def test_strides_are_bytes_from_the_first_element(strides, offset, expected):
    exporter = OnDevice(VALUES, strides=strides)
    exporter.interface.update(shape=(3, 2), data=(exporter.address + offset, False))
    np.testing.assert_array_equal(values_of(taken(exporter)), expected)


def test_memory_in_which_indices_share_an_element_becomes_read_only():
    exporter = OnDevice(VALUES, strides=(8, 0))
    exporter.interface.update(shape=(3, 2))
    assert taken(exporter).readonly


@pytest.mark.source(
    "CUDA array interface", "Python Interface Specification", "`typestr` is as in NumPy's interface"
)
@pytest.mark.parametrize("name", ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "c8", "c16"])
def test_numpys_types_come_in_as_themselves(name):
    source = np.array([0, 1, 1], name)
    np.testing.assert_array_equal(values_of(taken(OnDevice(source))), source, strict=True)


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`data` is an address and a read-only flag",
)
@pytest.mark.parametrize("readonly", [True, False, np.True_, 1, 0])
def test_the_read_only_flag_is_honoured_and_passed_on(readonly):
    storage = taken(OnDevice(VALUES, readonly=readonly))
    assert storage.readonly == bool(readonly)
    assert storage.__cuda_array_interface__["data"][1] is bool(readonly)


def test_a_read_only_import_is_not_written():
    exporter = OnDevice(VALUES, readonly=True)
    with pytest.raises(BufferError, match="writable"):
        taken(exporter)[...] = 0
    np.testing.assert_array_equal(exporter.values(), VALUES)


def test_a_write_through_the_cuda_array_interface_is_seen_on_the_other_side():
    exporter = OnDevice(VALUES)
    taken(exporter)[1, :2] = [70, 80]
    np.testing.assert_array_equal(exporter.values(), [[0, 1, 2], [70, 80, 5]])


@pytest.mark.stand_in
def test_importing_a_cuda_array_interface_neither_copies_nor_waits():
    exporter = OnDevice(VALUES, stream=new_stream())
    before = stats()
    storage = taken(exporter)
    after = stats()
    assert (after.copies, after.syncs, after.allocs) == (before.copies, before.syncs, before.allocs)
    assert storage.shape == (2, 3)


def test_the_cuda_array_interface_is_read_once():
    class Counting(OnDevice):
        reads = 0

        @property
        def __cuda_array_interface__(self):
            self.reads += 1
            return self.interface

    exporter = Counting(VALUES)
    taken(exporter)
    assert exporter.reads == 1


@pytest.mark.parametrize("wrapped", [MappingProxyType, type("Own", (dict,), {})])
def test_any_mapping_is_accepted_as_a_cuda_array_interface(wrapped):
    exporter = OnDevice(VALUES)
    exporter.interface = wrapped(exporter.interface)
    assert taken(exporter).shape == (2, 3)


def test_the_dict_may_change_afterwards():
    exporter = OnDevice(VALUES)
    storage = taken(exporter)
    exporter.interface.update(shape=(99,), data=(0, True))
    np.testing.assert_array_equal(values_of(storage), VALUES)


@pytest.mark.source(
    "CUDA array interface",
    "Lifetime management: Data",
    "the user keeps the owner alive while a consumer uses the memory",
)
def test_the_exporting_object_is_held_by_every_view_and_released_once():
    exporter = OnDevice(VALUES)
    interface, watch = exporter.interface, Watch(exporter)
    view = taken(exporter)[1:]
    del exporter
    assert not watch.freed
    np.testing.assert_array_equal(values_of(view), [[3, 4, 5]])
    del view
    assert watch.freed
    assert interface["data"][0] != 0  # the dict alone held nothing


def test_an_exporter_that_frees_its_memory_in_del_does_so_after_the_last_view():
    freed = []

    class Freeing(OnDevice):
        def __del__(self):
            freed.append(self.address)

    exporter = Freeing(VALUES)
    there, storage = exporter.address, taken(exporter)
    del exporter
    gc.collect()
    assert freed == []
    np.testing.assert_array_equal(values_of(storage), VALUES)
    del storage
    gc.collect()
    assert freed == [there]


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "the driver gives the address that is valid in the current context",
)
@pytest.mark.source(
    "CUDA array interface",
    "Pointer Attributes",
    "the driver tells the context of a pointer, and whether it is host or managed memory",
)
@two_devices
@pytest.mark.parametrize("current_device", [0, 1])
def test_memory_of_the_second_device_is_found_there_whichever_context_is_current(current_device):
    exporter = OnDevice(VALUES, device=1)
    with current(current_device):
        storage = taken(exporter)
        assert storage.device_id == 1
        np.testing.assert_array_equal(values_of(storage), VALUES)


@two_devices
def test_memory_of_another_device_than_the_one_asked_for_is_refused():
    with pytest.raises(dlf.DeviceUnavailable, match=r"expected memory on GPU 0, got .* GPU 1"):
        dlf.as_storage(OnDevice(VALUES, device=1), device=("gpu", 0))


def test_managed_memory_comes_in_as_memory_of_a_device():
    start = made("cuMemAllocManaged", 48, 1)
    exporter = OnDevice(VALUES)
    exporter.interface["data"] = (start, False)
    try:
        storage = taken(exporter)
        assert (device_address(storage), storage.device_id) == (start, 0)
        del storage
    finally:
        call("cuMemFree_v2", start)


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "an array of size zero has the address 0",
)
@pytest.mark.source(
    "CUDA array interface",
    "Differences with earlier versions",
    "versions 0 and 1 do not define strides in C order, nor size zero",
)
@pytest.mark.parametrize("there", [0, 1, 8, 2**47 - 8, 2**64 - 1])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2**40)])
def test_of_an_empty_array_the_address_is_never_looked_at(shape, there):
    exporter = OnDevice(np.zeros(3))
    exporter.interface.update(shape=shape, data=(there, False))
    storage = taken(exporter)
    assert (storage.shape, device_address(storage)) == (shape, 0)


def on_the_host():
    return np.zeros(6).ctypes.data


def freed():
    return Memory(48).address


def page_locked():
    start = made("cuMemHostAlloc", 48, 1)
    page_locked.kept = Pinned(start, None)
    return start


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "the device can access the address",
)
@pytest.mark.source(
    "CUDA array interface",
    "Pointer Attributes",
    "the driver tells the context of a pointer, and whether it is host or managed memory",
)
@pytest.mark.parametrize(
    ("place", "text"),
    [
        (on_the_host, "CUDA does not know"),
        (freed, "CUDA does not know"),
        (lambda: 0x10, "CUDA does not know"),
        (lambda: 2**46, "CUDA does not know"),
        (page_locked, "page-locked memory of the host"),
        (lambda: 0, "expected an address"),
    ],
    ids=["host", "freed", "low", "high", "page-locked", "NULL"],
)
def test_an_address_that_is_not_on_a_device_is_refused_here_and_not_by_a_fault(place, text):
    exporter = OnDevice(VALUES)
    exporter.interface["data"] = (place(), False)
    watch = Watch(exporter)
    with pytest.raises(BufferError, match=text):
        dlf.as_storage(exporter)
    del exporter
    assert watch.freed
    page_locked.kept = None


@pytest.mark.stand_in  # behind a block may lie another on a GPU
@pytest.mark.parametrize("words", [{"shape": (700,)}, {"shape": (2, 3), "strides": (8, 4096)}])
def test_an_array_that_ends_behind_its_memory_is_refused(words):
    exporter = OnDevice(VALUES)
    exporter.interface.update(words)
    with pytest.raises(BufferError, match="CUDA does not know"):
        taken(exporter)


def test_a_storage_for_the_host_is_not_made_of_memory_of_a_device():
    with pytest.raises(dlf.DeviceUnavailable, match="that the host can reach, got cuda:0"):
        dlf.as_storage(OnDevice(VALUES), device="cpu")


def test_without_a_device_it_is_the_device_that_is_missed():
    run(
        """
        import dlfield as dlf

        class Exporter:
            __cuda_array_interface__ = dict(
                shape=(3,), typestr="<f8", data=(1 << 40, False), version=3
            )

        try:
            dlf.as_storage(Exporter())
        except dlf.DeviceUnavailable:
            pass
        else:
            raise AssertionError
        """,
        DLFIELD_FAKE_CUDA_DEVICES="0",
    )


@two_devices
@pytest.mark.parametrize("ask", [lambda one: dlf.as_storage(one, device="cpu"), dlf.as_numpy])
def test_a_request_for_host_memory_gets_an_error_that_names_the_gpu(ask):
    with pytest.raises(dlf.DeviceUnavailable, match="cuda:1"):
        ask(OnDevice(np.zeros(4), device=1))
