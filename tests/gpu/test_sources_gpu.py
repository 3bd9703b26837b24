"""Statements about GPUs that no other test shows; docs/sources.md names these."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import Counted, buffers, pair, values
from support.cuda.devices import OnDevice, delay, new_stream, write, write_late
from support.cuda.driver import call, stats
from support.cuda.kinds import CLASSES, CLEAN, DEVICE_NEWER, HOST_NEWER, every_kind, host_backed
from support.cuda.order import own_stream, put_from, seen_from
from support.optional import library
from support.stencils.stand_ins import SHAPE, GpuStandIn, StandIn, field

VALUES = np.arange(6.0).reshape(2, 3)


class Shown:
    """Shows a buffer of a GPU by GT4Py's data interface, and perhaps others."""

    def __init__(self, entry, others=()):
        self.__gt_data_interface__ = {**dict(others), "gpu": entry}


# GDP-3, "Data Interface"


@pytest.mark.source(
    "GDP-3", "Data Interface", "copying a buffer from the other side gives a warning"
)
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


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    '`__gt_data_interface__` has the CUDA array interface under "gpu", with `acquire` and `touch`',
)
@every_kind
def test_under_gpu_the_data_interface_has_the_cuda_array_interface_and_two_functions(managed):
    storage = dlf.storage(VALUES, device="gpu", managed=managed, dims="IJ", halo=(0, 1))
    storage.synchronize()
    entry = storage.__gt_data_interface__["gpu"]
    assert entry.pop("acquire").__name__ == "host_to_device"
    assert entry.pop("touch").__name__ == "set_device_modified"
    assert (entry.pop("dims"), entry.pop("halo")) == (("I", "J"), ((0, 0), (1, 1)))
    assert entry == {**storage.__cuda_array_interface__, "stream": None}


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    '`__gt_data_interface__` has the CUDA array interface under "gpu", with `acquire` and `touch`',
)
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


@pytest.mark.source("GDP-3", "Storage Creation", "`storage(device_data=…)` copies a device buffer")
@pytest.mark.parametrize("options", [{}, *({"managed": managed} for managed in CLASSES)], ids=str)
def test_device_data_is_copied_into_a_new_buffer_of_the_device(options):
    data = OnDevice(VALUES)
    copied = dlf.storage(device_data=data, **options)
    assert type(copied) is CLASSES[options.get("managed", "gt4py")]
    assert copied.__cuda_array_interface__["data"][0] != data.address
    np.testing.assert_array_equal(values(copied), VALUES)


# GDP-3, "Choosing the Device"


@pytest.mark.source(
    "GDP-3",
    "Choosing the Device",
    "assignment to memory managed by CUDA runs on the GPU exactly if the value is on a GPU",
)
@pytest.mark.stand_in
def test_managed_memory_is_written_on_the_gpu_exactly_where_the_value_is_there():
    storage = dlf.zeros((2, 3), device="gpu", managed="cuda")
    storage.synchronize()
    for value, on_gpu in ((VALUES, 0), (dlf.storage(VALUES), 0), (OnDevice(VALUES), 1)):
        with Counted() as copies:
            storage[...] = value
        assert (copies.made, copies.to_device, copies.to_host) == (on_gpu, 0, 0)
        np.testing.assert_array_equal(values(storage), VALUES)


@pytest.mark.source(
    "GDP-3",
    "Choosing the Device",
    'a value is on a GPU if its interface has "gpu", and is acquired first',
)
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


@pytest.mark.source(
    "GDP-3",
    "Choosing the Device",
    "the interface of a DataArray decides, not the array that it holds",
)
def test_a_data_array_counts_by_its_interface_and_not_by_what_it_holds():
    xarray = library("xarray")
    held = pair(VALUES, HOST_NEWER)
    target = pair(np.zeros((2, 3)))
    target[...] = held
    assert target.sync_state.state == HOST_NEWER
    target[...] = xarray.DataArray(Around(held), dims=("x", "y"))
    assert target.sync_state.state == DEVICE_NEWER
    np.testing.assert_array_equal(target.to_numpy(), VALUES)


# CUDA array interface, "Synchronization"


@pytest.mark.source(
    "GDP-3", "Data Interface", "the CUDA array interface of a CuPy array can be passed on unchanged"
)
def test_the_stream_under_gpu_is_waited_for():
    stream, there = new_stream(), OnDevice(np.zeros((2, 3)))
    late = write_late(there.address, VALUES, stream)
    shown = Shown({**there.interface, "stream": stream})
    np.testing.assert_array_equal(values(dlf.as_storage(shown, managed=None)), VALUES)
    assert late.start


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "a producer with work on several streams makes the exported one wait for the others",
)
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


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "a consumer that works in the producer's stream may return at once",
)
@pytest.mark.stand_in
@pytest.mark.parametrize("on", ["own", "new"])
def test_a_copy_in_the_producers_stream_returns_at_once_and_in_order(on):
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


@pytest.mark.source(
    "CUDA array interface", "Lifetime management: Data", "the interface does not hold the owner"
)
@pytest.mark.stand_in
@every_kind
def test_a_description_alone_keeps_no_memory_of_a_gpu(managed):
    call("cuCtxSynchronize")
    before = stats().live_bytes
    described = dlf.zeros((40, 50), device="gpu", managed=managed).__cuda_array_interface__
    gc.collect()
    call("cuCtxSynchronize")
    assert (stats().live_bytes, described["shape"]) == (before, (40, 50))


@pytest.mark.source(
    "CUDA array interface",
    "Lifetime management: Streams",
    "a stream lives as long as the object that exported it",
)
def test_an_exported_stream_outlives_what_was_exported():
    storage, other = dlf.zeros((2, 3), device="gpu", managed=None), OnDevice(VALUES)
    delay(own_stream())
    storage[...] = dlf.ones((2, 3), device="gpu", managed=None)
    stream = storage.__cuda_array_interface__["stream"]
    del storage
    gc.collect()
    np.testing.assert_array_equal(seen_from(stream, other.address, (2, 3)), VALUES)
