"""What all doors must agree on, and what foreign code may do while they work."""

import gc
import json
import sys
import types
import weakref

import dlfield as dlf
import numpy as np
import pytest

from support.dlpack_structs import DLDevice, Producer, contents
from support.no_driver import without_driver
from support.processes import run_in_fork


#: Managed memory is memory of a GPU where a driver can bring it there.
@pytest.mark.parametrize("code", [3, 11, pytest.param(13, marks=without_driver)])
def test_host_memory_of_any_kind_is_announced_as_cpu_memory(code):
    producer = Producer()
    producer.managed.dl_tensor.device = DLDevice(code, 0)
    storage = dlf.as_storage(producer)
    assert storage.__dlpack_device__() == (1, 0)
    for wish in ({}, {"dl_device": (1, 0)}):
        exported = contents(storage.__dlpack__(max_version=(1, 0), **wish))
        assert exported.dl_tensor.device.device_type == 1


def test_memory_that_repeats_elements_is_read_only_through_every_door():
    producer = Producer((3, 4))
    producer.strides[0] = 0
    storage = dlf.as_storage(producer)
    assert storage.readonly
    assert not storage.to_numpy().flags.writeable
    assert memoryview(storage).readonly
    assert storage.__array_interface__["data"][1]
    assert contents(storage.__dlpack__(max_version=(1, 0))).flags & 1


def test_windows_that_only_interleave_stay_writable():
    interleaved = np.lib.stride_tricks.as_strided(np.zeros(16), (2, 2), (3 * 8, 5 * 8))
    assert not dlf.as_storage(interleaved).readonly


class Exporter:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


def test_the_owner_of_an_interface_is_released_with_the_last_foreign_view():
    exporter = Exporter(np.zeros(4))
    gone = weakref.ref(exporter)
    view = np.from_dlpack(dlf.as_storage(exporter))
    del exporter
    gc.collect()
    assert gone() is not None
    del view
    assert gone() is None


def test_an_exception_on_its_way_survives_the_release_of_a_capsule():
    producer = Producer()
    with pytest.raises(ValueError, match="not in list"):  # the capsule dies while it is pending
        [].index(dlf.as_storage(producer).__dlpack__(max_version=(1, 0)))
    assert producer.freed == 1


def test_an_exception_on_its_way_survives_the_release_of_a_storage():
    producer = Producer()
    with pytest.raises(ValueError, match="not in list"):
        [].index(dlf.as_storage(producer))
    assert producer.freed == 1


def test_a_lazy_module_that_cannot_be_loaded_does_not_matter(monkeypatch):
    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            raise ImportError(f"{name}: not installed")

    monkeypatch.setitem(sys.modules, "numpy.ma", Lazy("numpy.ma"))
    monkeypatch.setitem(sys.modules, "torch", Lazy("torch"))
    assert dlf.as_storage(bytearray(8)).door == "buffer"


@pytest.mark.parametrize(("legacy", "name"), [(True, b"dltensor_versioned"), (False, b"dltensor")])
def test_a_struct_under_the_name_of_the_other_is_refused_without_a_crash(legacy, name):
    seen = run_in_fork(f"""
        from support.lying_producers import Handover, Producer, report
        producer = Producer(legacy={legacy})
        report(Handover(producer.raw_capsule({name!r})), producer)
    """)
    outcome = json.loads(seen)
    assert outcome["error"] == "BufferError"
    assert outcome["freed"] == 1


@pytest.mark.parametrize("layout", [(5, 5), (0, 0), (-1, 3), (0,)])
def test_a_layout_of_existing_memory_must_be_a_permutation_too(layout):
    with pytest.raises(ValueError, match=r"permutation of \[0, 1\]"):
        dlf.as_storage(np.zeros((3, 4)), layout=layout)


@pytest.mark.source("GDP-3", "Optional Keyword-Only Parameters", "any dimension may have a halo")
def test_a_halo_on_a_data_dimension_is_refused():
    with pytest.raises(ValueError, match="data dimension '0'"):
        dlf.zeros((6, 6, 3), dims=("I", "J", "0"), halo=(1, 1, 1))


def test_a_copy_of_byte_swapped_data_keeps_its_dims():
    class Named(np.ndarray):
        __gt_dims__ = ("K", "J", "I")

    swapped = np.arange(24.0).reshape(2, 3, 4).astype(">f8").view(Named)
    copy = dlf.storage(swapped)
    assert copy.dims == ("K", "J", "I")
    np.testing.assert_array_equal(copy.to_numpy(), np.asarray(swapped))
