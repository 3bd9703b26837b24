"""Arrow's C device interface in, from producers with memory of CUDA: where it is found, what it
becomes, and what is refused.
"""

import ctypes
import gc

import dlfield as dlf
import numpy as np
import pytest

from support.arrow_structs import OnDevice as Shown
from support.arrow_structs import Producer, lists, shown
from support.cuda.arrow import OfArrow
from support.cuda.buffers import values
from support.cuda.devices import LEGACY, new_stream, read, stream_on
from support.cuda.driver import call, event
from support.cuda.kinds import DEVICE_NEWER, every_device, two_devices
from support.cuda.order import device_address, seen_from
from support.cuda.producers import CPU, CUDA, MANAGED, PINNED, ROCM, VALUES, workshop
from support.stencils.stand_ins import GpuStandIn, StandIn, field

LATE = (VALUES + 10).tolist()
METHOD = "__arrow_c_device_array__"


class Anew:
    """Gives another array each time it is asked, as libraries do."""

    def __init__(self, make):
        self.make, self.made = make, []

    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        self.made.append(self.make())
        return Shown(self.made[-1]).__arrow_c_device_array__(requested_schema, **keywords)


@pytest.fixture
def producer():
    """Makes producers, whose memory goes at the end of the test."""
    with workshop() as make:
        yield lambda **options: make(OfArrow, **options)


def taken(one, **options):
    return dlf.as_storage(Shown(one), managed=None, **options)


# --- where it is found ------------------------------------------------------------------------


@every_device
@pytest.mark.parametrize("late", [False, True], ids=["ready", "late"])
def test_an_arrow_device_array_comes_in_at_its_address(producer, device, late):
    one = producer(device=device, late=stream_on(device) if late else None)
    storage = taken(one)
    assert (type(storage), storage.door) == (dlf.GPUStorage, "arrow")
    assert (storage.device_id, device_address(storage)) == (device, one.memory.address)
    assert (storage.shape, storage.dtype, storage.readonly) == ((4,), np.float64, True)
    assert values(storage).tolist() == (LATE if late else VALUES.tolist())
    assert one.calls == [(None, {})]


def test_by_default_the_memory_becomes_the_newer_side_of_a_pair_that_is_not_written(producer):
    for options in ({}, {"device": "gpu"}, {"device": ("gpu", 0)}, {"managed": "gt4py"}):
        one = producer()
        storage = dlf.as_storage(Shown(one), **options)
        assert type(storage) is dlf.SoftwareManagedGPUStorage
        assert (storage.sync_state.state, storage.readonly) == (DEVICE_NEWER, True)
        assert storage.to_numpy().tolist() == VALUES.tolist()
        assert device_address(storage) == one.memory.address


def test_the_memory_may_be_the_side_of_a_pair_on_the_device(producer):
    one = producer()
    storage = dlf.as_storage(VALUES, Shown(one))
    assert type(storage) is dlf.SoftwareManagedGPUStorage
    assert device_address(storage) == one.memory.address


def test_memory_that_is_never_written_is_not_written(producer):
    one = producer()
    with pytest.raises(BufferError, match="read-only"):
        taken(one)[...] = 1
    assert read(one.memory.address, (4,), "f8").tolist() == VALUES.tolist()


def test_the_offset_is_counted_in_elements_of_the_device(producer):
    one = producer()
    one.part(1, 2)
    storage = taken(one)
    assert device_address(storage) == one.memory.address + 8
    assert values(storage).tolist() == [1, 2]


def in_pairs(one):
    """Return lists of two numbers each over the memory of a producer of four."""
    metadata = b'{"shape": [2], "dim_names": ["J"]}'
    names = {b"ARROW:extension:name": b"arrow.fixed_shape_tensor"}
    outer = lists(2, one, length=2).says({**names, b"ARROW:extension:metadata": metadata})
    outer.device.device_type = CUDA
    outer.device.device_id = 0
    return outer


def test_tensors_come_from_a_device_with_their_names():
    with workshop() as make:
        one = make(OfArrow)
        storage = taken(in_pairs(one))
        assert (storage.shape, storage.dims) == ((2, 2), ("dim_0", "J"))
        assert device_address(storage) == one.memory.address
        assert values(storage).tolist() == [[0, 1], [2, 3]]


def test_what_a_storage_has_shown_comes_back_as_it_was():
    storage = dlf.storage(
        np.arange(24.0).reshape(4, 3, 2), dims="IJK", layout=(2, 0, 1), device="gpu", managed=None
    )
    back = dlf.as_storage(shown(storage.__arrow_c_device_array__(), METHOD), managed=None)
    assert (back.shape, back.strides, back.dims) == (storage.shape, storage.strides, storage.dims)
    assert device_address(back) == device_address(storage)
    assert values(back).tolist() == values(storage).tolist()


def test_no_elements_are_taken_from_anywhere(producer):
    for there in (None, 8, 2**47 - 8):
        one = producer(late=new_stream())
        one.array.length, one.buffers[1] = 0, there
        assert taken(one).shape == (0,)


def test_an_arrow_array_of_managed_memory_serves_both_sides(producer):
    one = producer(kind=MANAGED)
    storage = dlf.as_storage(Shown(one))
    assert (type(storage), storage.readonly) == (dlf.CUDAManagedGPUStorage, True)
    assert device_address(storage) == one.memory.address
    assert storage.to_numpy().tolist() == VALUES.tolist()


@pytest.mark.parametrize("kind", [PINNED, CPU])
def test_memory_of_the_host_comes_in_as_such(producer, kind):
    one = producer(kind=kind)
    storage = dlf.as_storage(Shown(one))
    assert (type(storage), storage.to_numpy().tolist()) == (dlf.CPUStorage, VALUES.tolist())
    assert storage.__array_interface__["data"][0] == one.memory.address


def test_memory_of_rocm_that_is_ready_passes_through(producer):
    storage = dlf.as_storage(Shown(producer(kind=ROCM, device=3)))
    assert (type(storage), storage.__dlpack_device__()) == (dlf.GPUStorage, (ROCM, 3))


@two_devices
@pytest.mark.parametrize("late", [False, True], ids=["ready", "late"])
def test_the_address_of_an_arrow_array_decides_the_device(producer, late):
    one = producer(device=1, late=stream_on(1) if late else None)
    one.device.device_id = 0
    storage = taken(one)
    assert storage.device_id == 1
    assert values(storage).tolist() == (LATE if late else VALUES.tolist())


def test_an_object_with_an_array_for_each_side_is_asked_for_the_one_that_is_wanted(producer):
    class Both(Shown):
        def __arrow_c_array__(self, requested_schema=None):
            return on_host.pair()

    one, on_host = producer(), Producer()
    assert type(dlf.as_storage(Both(one))) is dlf.SoftwareManagedGPUStorage
    assert type(dlf.as_storage(Both(one), device="cpu")) is dlf.CPUStorage
    assert one.array_freed == on_host.array_freed == 1


for_the_host = pytest.mark.parametrize(
    "take",
    [lambda one: dlf.as_storage(one, device="cpu"), dlf.as_numpy],
    ids=["as_storage", "as_numpy"],
)


@for_the_host
def test_a_request_for_the_host_accepts_a_device_array_of_host_memory(producer, take):
    assert np.asarray(take(Shown(producer(kind=CPU)))).tolist() == VALUES.tolist()


@for_the_host
def test_a_request_for_the_host_gets_an_error_that_names_the_gpu(producer, take):
    one = producer()
    with pytest.raises(dlf.DeviceUnavailable, match="cuda:0"):
        take(Shown(one))
    gc.collect()
    assert one.freed == [1, 1]


def test_explain_names_the_door(producer):
    text = str(dlf.explain(Shown(producer())))
    assert "shared through arrow" in text
    assert "memory of GPU 0, read-only" in text


# --- what it becomes --------------------------------------------------------------------------


@every_device
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_a_copy_may_be_written_wherever_it_is_wanted(producer, managed, device):
    copy = dlf.storage(Shown(producer(late=new_stream())), device=("gpu", device), managed=managed)
    assert (copy.device_id, copy.readonly, values(copy).tolist()) == (device, False, LATE)


def test_a_copy_is_a_pair_unless_asked_otherwise(producer):
    copy = dlf.storage(Shown(producer()))
    assert type(copy) is dlf.SoftwareManagedGPUStorage


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_memory_of_a_device_is_assigned_to_a_storage(producer, managed):
    target = dlf.zeros(4, device="gpu", managed=managed)
    target[...] = Shown(producer(late=new_stream()))
    assert values(target).tolist() == LATE


def test_memory_of_a_device_is_assigned_to_a_storage_of_the_host(producer):
    target = dlf.zeros(4)
    target[...] = Shown(producer(late=new_stream()))
    assert target.to_numpy().tolist() == LATE


def bound(kind, access="READ", **options):
    """Return a stand-in for a stencil with one argument along K, and a call of it."""
    stencil = kind(x=field(access, axes="K"))
    run = dlf.bind(stencil, **options)
    return stencil, lambda x: run(x, domain=(1, 1, 4))


def test_a_bound_stencil_reads_it_where_it_is(producer):
    one, (stencil, run) = producer(), bound(GpuStandIn)
    run(Shown(one))
    assert stencil.seen["x"].__cuda_array_interface__["data"][0] == one.memory.address


def test_a_bound_stencil_on_the_default_stream_finds_what_was_still_being_written(producer):
    one, found = producer(late=new_stream()), []
    stencil, run = bound(GpuStandIn)
    stencil.body = lambda x: found.extend(seen_from(LEGACY, one.memory.address))
    run(Shown(one))
    assert found == LATE


def test_a_bound_stencil_does_not_write_it(producer):
    _, run = bound(GpuStandIn, "WRITE")
    with pytest.raises(BufferError, match="argument 'x': expected a writable output"):
        run(Shown(producer()))


@pytest.mark.filterwarnings("ignore::dlfield.DeviceCopyWarning")
def test_a_bound_stencil_of_the_host_reads_a_copy_where_that_is_allowed(producer):
    stencil, run = bound(StandIn, on_mismatch="copy")
    run(Anew(lambda: producer(late=new_stream())))
    assert np.asarray(stencil.seen["x"]).tolist() == LATE


# --- what is refused --------------------------------------------------------------------------


def says(**numbers):
    """Change numbers of the struct."""

    def lie(one):
        for name, value in numbers.items():
            setattr(one.device, name, value)

    return lie


def with_event(one):
    one.record(LEGACY)


def with_event_off_its_boundary(one):
    one.record(LEGACY)
    one.device.sync_event += 4


def with_bitmap(count):
    """Put a validity bitmap on the device, where the host must not read it."""

    def lie(one):
        one.buffers[0], one.array.null_count = one.memory.address, count

    return lie


def at(place):
    """Change the address of the values."""
    return lambda one: one.buffers.__setitem__(1, place)


ROCM_EVENT, UNKNOWN = "sync_event for memory on rocm:0", "CUDA does not know"
LIES = {
    # kind of memory, lie, error, text
    "device type 77": (CUDA, says(device_type=77), BufferError, "got code 77"),
    "device type -1": (CUDA, says(device_type=-1), BufferError, "got code -1"),
    "device number -1": (CUDA, says(device_id=-1), BufferError, "with id -1"),
    "device number of 64 bits": (CUDA, says(device_id=2**40), BufferError, f"got {2**40}"),
    "event of the host": (CPU, with_event, BufferError, "no sync_event for memory of the CPU"),
    "event of ROCm": (ROCM, with_event, dlf.DeviceUnavailable, ROCM_EVENT),
    "event nowhere": (CUDA, with_event_off_its_boundary, dlf.DeviceUnavailable, "or an event of"),
    "host": (CPU, says(device_type=CUDA, device_id=0), BufferError, UNKNOWN),
    "page-locked": (PINNED, says(device_type=CUDA), BufferError, "page-locked memory of the host"),
    "not managed": (CUDA, says(device_type=MANAGED), BufferError, "memory that CUDA manages"),
    "no address": (CUDA, at(None), BufferError, "got NULL"),
    "low address": (CUDA, at(8), BufferError, UNKNOWN),
    "a null": (CUDA, with_bitmap(1), BufferError, "got 1 nulls"),
    "nulls that nobody counted": (CUDA, with_bitmap(-1), BufferError, "bitmap on cuda:0"),
}


@pytest.mark.parametrize(("kind", "lie", "error", "text"), LIES.values(), ids=LIES)
def test_an_array_that_cannot_be_taken_is_refused_and_released_once(
    producer, kind, lie, error, text
):
    one = producer(kind=kind)
    lie(one)
    with pytest.raises(error, match=text):
        dlf.as_storage(Shown(one))
    gc.collect()
    assert one.freed == [1, 1]


@pytest.mark.stand_in  # a real driver may crash
def test_an_event_that_the_driver_does_not_know_is_refused(producer):
    one, gone = producer(), ctypes.c_uint64(event())
    one.device.sync_event = ctypes.addressof(gone)
    call("cuEventDestroy_v2", gone.value)
    with pytest.raises(dlf.DeviceUnavailable):
        dlf.as_storage(Shown(one))
    gc.collect()
    assert one.freed == [1, 1]


@pytest.mark.parametrize("count", [0, -1])
def test_an_array_without_nulls_is_taken_with_or_without_their_count(producer, count):
    one = producer()
    one.array.null_count = count
    assert values(taken(one)).tolist() == VALUES.tolist()


def test_a_bitmap_on_the_device_is_not_read_where_it_has_no_nulls(producer):
    one = producer()
    with_bitmap(0)(one)
    assert values(taken(one)).tolist() == VALUES.tolist()
