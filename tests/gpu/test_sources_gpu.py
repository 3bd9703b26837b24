"""Statements about GPUs that no other test shows; docs/sources.md names these."""

import gc

import dlfield as dlf
import numpy as np
import pytest
from cuda_calls import call, stats
from devices import OnDevice, delay, new_stream, write, write_late
from order import own_stream, put_from, seen_from
from pairs import (
    CLASSES,
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    Counted,
    buffers,
    every_kind,
    host_backed,
    pair,
    values,
)
from stand_in import SHAPE, GpuStandIn, StandIn, field
from support import import_or_skip

VALUES = np.arange(6.0).reshape(2, 3)


class Shown:
    """Shows a buffer of a GPU by GT4Py's data interface, and perhaps others."""

    def __init__(self, entry, others=()):
        self.__gt_data_interface__ = {**dict(others), "gpu": entry}


# GDP-3, "Data Interface"


@pytest.mark.parametrize(
    ("make", "given"),
    [(StandIn, OnDevice), (GpuStandIn, np.array)],
    ids=["to the host", "to the GPU"],
)
def test_a_copy_that_a_stencil_needs_of_memory_on_the_other_side_comes_with_a_warning(make, given):
    run = dlf.bind(make(inp=field("READ")), on_mismatch="copy")
    with pytest.warns(dlf.DeviceCopyWarning, match="argument 'inp': .*copied at each call"):
        run(given(np.zeros(SHAPE)))


# GDP-3, "Attributes and Properties"


@every_kind
def test_under_gpu_the_data_interface_has_the_cuda_array_interface_and_two_functions(managed):
    storage = dlf.storage(VALUES, device="gpu", managed=managed, dims="IJ", halo=(0, 1))
    storage.synchronize()
    entry = storage.__gt_data_interface__["gpu"]
    assert entry.pop("acquire").__name__ == "host_to_device"
    assert entry.pop("touch").__name__ == "set_device_modified"
    assert (entry.pop("dims"), entry.pop("halo")) == (("I", "J"), ((0, 0), (1, 1)))
    assert entry == {**storage.__cuda_array_interface__, "stream": None}


def test_the_functions_under_gpu_bring_the_device_up_to_date_and_mark_it():
    storage = pair(VALUES, HOST_NEWER)
    entry = storage.__gt_data_interface__["gpu"]
    entry["acquire"]()
    np.testing.assert_array_equal(buffers(storage)[1], VALUES)
    assert storage.sync_state.state == CLEAN
    write(entry["data"][0], -VALUES)
    entry["touch"]()
    np.testing.assert_array_equal(storage.to_numpy(), -VALUES)


# GDP-3, "Storage Creation"


@pytest.mark.parametrize("options", [{}, *({"managed": managed} for managed in CLASSES)], ids=str)
def test_device_data_is_copied_into_a_new_buffer_of_the_device(options):
    data = OnDevice(VALUES)
    copied = dlf.storage(device_data=data, **options)
    assert type(copied) is CLASSES[options.get("managed", "gt4py")]
    assert copied.__cuda_array_interface__["data"][0] != data.address
    np.testing.assert_array_equal(values(copied), VALUES)


# GDP-3, "Choosing the Device"


@pytest.mark.stand_in
def test_managed_memory_is_written_on_the_gpu_exactly_where_the_value_is_there():
    storage = dlf.zeros((2, 3), device="gpu", managed="cuda")
    storage.synchronize()
    for value, on_gpu in ((VALUES, 0), (dlf.storage(VALUES), 0), (OnDevice(VALUES), 1)):
        with Counted() as copies:
            storage[...] = value
        assert (copies.made, copies.to_device, copies.to_host) == (on_gpu, 0, 0)
        np.testing.assert_array_equal(values(storage), VALUES)


@host_backed
@pytest.mark.parametrize("others", [{}, {None: VALUES.__array_interface__}], ids=["alone", "both"])
def test_a_value_under_gpu_is_acquired_before_it_is_read(others, managed):
    there = OnDevice(np.zeros((2, 3)))
    told = {**there.interface, "acquire": lambda: write(there.address, -VALUES)}
    storage = dlf.zeros((2, 3), device="gpu", managed=managed)
    storage[...] = Shown(told, others)
    assert managed == "cuda" or storage.sync_state.state == DEVICE_NEWER
    np.testing.assert_array_equal(values(storage), -VALUES)


class Around:
    """What xarray keeps as it is; shows the data interface of a storage."""

    __array_function__ = __array_ufunc__ = lambda *_arguments, **_keywords: NotImplemented
    shape, ndim, dtype = VALUES.shape, VALUES.ndim, VALUES.dtype

    def __init__(self, storage):
        self.storage = storage

    @property
    def __gt_data_interface__(self):
        return self.storage.__gt_data_interface__


def test_a_data_array_counts_by_its_interface_and_not_by_what_it_holds():
    xarray = import_or_skip("xarray")
    held = pair(VALUES, HOST_NEWER)
    target = pair(np.zeros((2, 3)))
    target[...] = held
    assert target.sync_state.state == HOST_NEWER
    target[...] = xarray.DataArray(Around(held), dims=("x", "y"))
    assert target.sync_state.state == DEVICE_NEWER
    np.testing.assert_array_equal(target.to_numpy(), VALUES)


# CUDA array interface, "Synchronization"


def test_the_stream_under_gpu_is_waited_for():
    stream, there = new_stream(), OnDevice(np.zeros((2, 3)))
    late = write_late(there.address, VALUES, stream)
    shown = Shown({**there.interface, "stream": stream})
    np.testing.assert_array_equal(values(dlf.as_storage(shown, managed=None)), VALUES)
    assert late.start


def test_the_exported_stream_waits_for_work_on_several_others():
    storage = dlf.zeros((3, 4), device="gpu", managed=None)
    sources = [dlf.full((4,), row + 1.0, device="gpu", managed=None) for row in range(3)]
    call("cuCtxSynchronize")
    for row, source in enumerate(sources):
        stream = new_stream()
        delay(stream)
        with dlf.use_stream(stream):
            storage[row] = source
    found = storage.__cuda_array_interface__
    assert found["stream"] is not None
    assert seen_from(found["stream"], found["data"][0], (3, 4))[:, 0].tolist() == [1, 2, 3]


@pytest.mark.stand_in
@pytest.mark.parametrize("on", ["own", "new"])
def test_who_works_in_the_producers_stream_returns_at_once_and_in_order(on):
    stream = own_stream() if on == "own" else new_stream()
    producer = OnDevice(np.zeros((2, 3)), stream=stream)
    target = dlf.zeros((2, 3), device="gpu", managed=None)
    call("cuCtxSynchronize")
    there, before = target.__cuda_array_interface__["data"][0], stats().syncs
    late = write_late(producer.address, VALUES, stream)
    with dlf.use_stream(stream):
        target[...] = producer
    assert stats().syncs == before
    put_from(stream, producer.address, -VALUES)  # what the producer does next
    np.testing.assert_array_equal(seen_from(stream, there, (2, 3)), VALUES)
    assert late.start


# CUDA array interface, "Lifetime management"


@pytest.mark.stand_in
@every_kind
def test_a_description_alone_keeps_no_memory_of_a_gpu(managed):
    call("cuCtxSynchronize")
    before = stats().live_bytes
    described = dlf.zeros((40, 50), device="gpu", managed=managed).__cuda_array_interface__
    gc.collect()
    call("cuCtxSynchronize")
    assert (stats().live_bytes, described["shape"]) == (before, (40, 50))


def test_an_exported_stream_outlives_what_was_exported():
    storage, other = dlf.zeros((2, 3), device="gpu", managed=None), OnDevice(VALUES)
    delay(own_stream())
    storage[...] = dlf.ones((2, 3), device="gpu", managed=None)
    stream = storage.__cuda_array_interface__["stream"]
    del storage
    gc.collect()
    np.testing.assert_array_equal(seen_from(stream, other.address, (2, 3)), VALUES)
