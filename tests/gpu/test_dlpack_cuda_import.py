"""DLPack in, from producers with memory of CUDA: what they are asked, and where it is found."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, PER_THREAD, current, new_stream
from support.cuda.driver import made, stats
from support.cuda.kinds import every_device, two_devices
from support.cuda.order import device_address, own_stream
from support.cuda.producers import (
    CPU,
    CUDA,
    MANAGED,
    PINNED,
    ROCM,
    VALUES,
    OfNoKeywords,
    OfStreamAlone,
    OnGpu,
    WithoutCopy,
    workshop,
)
from support.dlpack_structs import READ_ONLY


@pytest.fixture
def producer():
    """Makes producers, whose memory goes at the end of the test."""
    with workshop() as make:
        yield make


def taken(one, **options):
    return dlf.as_storage(one, managed=None, **options)


def values_of(storage):
    return dlf.storage(storage, device="cpu").to_numpy().tolist()


@every_device
def test_a_producer_is_asked_once_with_the_stream_of_dlfield_and_todays_keywords(producer, device):
    one = producer(device=device)
    taken(one)
    assert one.calls == [{"stream": own_stream(device), "max_version": (1, 3), "copy": False}]


def test_a_producer_of_managed_memory_is_asked_with_a_stream_too(producer):
    one = producer(kind=MANAGED)
    dlf.as_storage(one)
    assert one.calls == [{"stream": own_stream(), "max_version": (1, 3), "copy": False}]


@pytest.mark.parametrize("stream", [LEGACY, PER_THREAD, "new"])
def test_in_use_stream_a_producer_is_asked_with_that_stream(producer, stream):
    one = producer()
    stream = new_stream() if stream == "new" else stream
    with dlf.use_stream(stream):
        taken(one)
    assert one.calls[0]["stream"] == stream


@pytest.mark.parametrize("kind", [PINNED, ROCM])
def test_a_producer_whose_memory_cuda_has_no_streams_for_is_asked_without_one(producer, kind):
    one = producer(kind=kind)
    dlf.as_storage(one)
    assert one.calls == [{"max_version": (1, 3), "copy": False}]


@two_devices
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_the_producers_device_is_current_when_it_is_asked_and_only_then(producer, device, before):
    one = producer(device=device)
    with current(before):
        context = made("cuCtxGetCurrent")
        taken(one)
        assert made("cuCtxGetCurrent") == context
    assert one.contexts == [device]


def test_the_context_is_given_back_when_a_producer_raises(producer):
    class Raising(OnGpu):
        def __dlpack__(self, **keywords):
            raise error

    error, context = RuntimeError("not today"), made("cuCtxGetCurrent")
    with pytest.raises(RuntimeError) as caught:
        taken(producer(Raising, device=0))
    assert caught.value is error
    assert made("cuCtxGetCurrent") == context


@pytest.mark.parametrize(
    ("cls", "calls"),
    [
        (WithoutCopy, [{"stream": ..., "max_version": (1, 3)}]),
        (OfStreamAlone, [{"stream": ...}]),
        (OfNoKeywords, [{}]),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
@every_device
def test_a_producer_with_an_older_signature_is_asked_in_its_own_words(producer, cls, calls, device):
    one = producer(cls, device=device, legacy=cls is not WithoutCopy)
    storage = taken(one)
    own = own_stream(device)
    assert one.calls == [{k: own if v is ... else v for k, v in call.items()} for call in calls]
    assert (one.contexts, values_of(storage)) == ([device], VALUES.tolist())


def test_a_type_error_from_inside_a_producer_is_shown_after_calls_with_fewer_keywords(producer):
    class Confused(OnGpu):
        def __dlpack__(self, **keywords):
            self.calls.append(keywords)
            return len(3)

    one = producer(Confused)
    with pytest.raises(TypeError, match="has no len"):
        taken(one)
    assert [sorted(asked) for asked in one.calls] == [
        ["copy", "max_version", "stream"],
        ["max_version", "stream"],
        ["stream"],
        [],
    ]


@every_device
@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_a_device_capsule_comes_in_at_its_address(producer, device, legacy):
    one = producer(device=device, legacy=legacy)
    storage = taken(one)
    assert (type(storage), storage.door) == (dlf.GPUStorage, "dlpack")
    assert (storage.device_id, device_address(storage)) == (device, one.memory.address)
    assert (storage.shape, storage.dtype, storage.readonly) == ((4,), np.float64, False)
    assert values_of(storage) == VALUES.tolist()


def test_read_only_memory_of_a_device_stays_read_only(producer):
    assert taken(producer(flags=READ_ONLY)).readonly


def test_by_default_the_memory_becomes_the_newer_side_of_a_pair(producer):
    storage = dlf.as_storage(producer())
    assert type(storage) is dlf.SoftwareManagedGPUStorage
    assert storage.sync_state.state == dlf.SyncState.SYNC_DEVICE_DIRTY
    assert storage.to_numpy().tolist() == VALUES.tolist()


def test_page_locked_memory_comes_in_as_memory_of_the_host(producer):
    one = producer(kind=PINNED)
    storage = dlf.as_storage(one)
    assert (type(storage), storage.__dlpack_device__()) == (dlf.CPUStorage, (1, 0))
    assert storage.__array_interface__["data"][0] == one.memory.address
    assert storage.to_numpy().tolist() == VALUES.tolist()


def test_a_capsule_of_managed_memory_serves_both_sides(producer):
    one = producer(kind=MANAGED)
    storage = dlf.as_storage(one)
    assert (type(storage), storage.device_id) == (dlf.CUDAManagedGPUStorage, 0)
    assert device_address(storage) == one.memory.address
    assert storage.__array_interface__["data"][0] == one.memory.address
    assert storage.to_numpy().tolist() == VALUES.tolist()


@two_devices
def test_managed_memory_of_the_second_device_is_found_there(producer):
    assert dlf.as_storage(producer(kind=MANAGED, device=1)).device_id == 1


def test_host_memory_that_claims_to_be_managed_is_refused(producer):
    with pytest.raises(BufferError):
        dlf.as_storage(producer(kind=CPU, announces=(MANAGED, 0)))


@pytest.mark.stand_in
@pytest.mark.parametrize("number", [0, 3])
def test_memory_of_rocm_passes_through_without_a_call_of_cuda(producer, number):
    one = producer(kind=ROCM, announces=(ROCM, number))
    before = bytes(stats())
    storage = dlf.as_storage(one)
    assert (type(storage), storage.device_id) == (dlf.GPUStorage, number)
    assert storage.__dlpack_device__() == (ROCM, number)
    found = storage.__cuda_array_interface__
    assert (found["data"][0], found["stream"]) == (one.memory.address, None)
    del storage
    gc.collect()
    assert (bytes(stats()), one.freed) == (before, 1)


@pytest.mark.parametrize("stream", [None, -1, 0, 3, 2**40])
def test_memory_of_rocm_goes_out_to_streams_of_rocm(producer, stream):
    """0 is its default stream, and handles begin at 3. Nothing of dlfield's is in flight."""
    storage = dlf.as_storage(producer(kind=ROCM))
    assert storage.__dlpack__(stream=stream, max_version=(1, 3)) is not None


@pytest.mark.parametrize(("stream", "error"), [(1, ValueError), (2, ValueError), (True, TypeError)])
def test_a_value_that_is_not_a_stream_of_rocm_is_refused(producer, stream, error):
    """1 and 2 stand for CUDA's default streams."""
    storage = dlf.as_storage(producer(kind=ROCM))
    with pytest.raises(error, match="stream: expected"):
        storage.__dlpack__(stream=stream, max_version=(1, 3))


@two_devices
@pytest.mark.parametrize("claims", [(CUDA, 0), (CUDA, 7)])
@pytest.mark.parametrize("announces", [(CUDA, 0), (CUDA, 1)])
def test_the_address_of_a_capsule_decides_the_device(producer, announces, claims):
    one = producer(device=1, announces=announces, claims=claims)
    storage = taken(one)
    assert storage.device_id == 1
    assert values_of(storage) == VALUES.tolist()


@pytest.mark.parametrize("announces", [(CPU, 0), (PINNED, 0), (MANAGED, 0), (ROCM, 0)])
def test_the_capsule_is_right_about_the_device_and_not_the_announcement(producer, announces):
    storage = taken(producer(announces=announces, claims=(CUDA, 0)))
    assert (type(storage), values_of(storage)) == (dlf.GPUStorage, VALUES.tolist())


@pytest.mark.parametrize("kind", [CPU, PINNED])
def test_a_capsule_of_the_host_from_a_producer_that_announces_a_device_is_of_the_host(
    producer, kind
):
    storage = dlf.as_storage(producer(kind=kind, announces=(CUDA, 0), claims=(kind, 0)))
    assert (type(storage), storage.to_numpy().tolist()) == (dlf.CPUStorage, VALUES.tolist())


@pytest.mark.parametrize("kind", [CPU, PINNED])
def test_a_capsule_of_host_memory_that_claims_a_device_is_refused(producer, kind):
    one = producer(kind=kind, announces=(CUDA, 0))
    with pytest.raises(BufferError, match="expected an address on a GPU"):
        dlf.as_storage(one)
    assert one.freed == 1


@pytest.mark.stand_in
def test_importing_a_device_capsule_neither_copies_nor_waits(producer):
    one = producer(late=new_stream())
    before = stats()
    storage = taken(one)
    after = stats()
    assert (after.copies, after.syncs, after.allocs) == (before.copies, before.syncs, before.allocs)
    assert values_of(storage) == (VALUES + 10).tolist()


class OfCupy(OnGpu):
    """Four numbers in reverse, described as CuPy 14.2 does: -8 // 8 of unsigned numbers."""

    def __init__(self, **options):
        super().__init__(**options)
        self.own_strides, self.strides = self.strides, (-8,)  # the struct points to its own
        last = self.memory.address + VALUES.nbytes - 8
        self.managed.dl_tensor.data = last
        self.managed.dl_tensor.strides[0] = ((1 << 64) - 8) // 8
        self.interface = {
            "shape": (4,),
            "typestr": "<f8",
            "data": (last, False),
            "strides": (-8,),
            "version": 3,
        }

    @property
    def __cuda_array_interface__(self):
        return self.interface


@pytest.mark.parametrize("options", [{}, {"device": "gpu"}], ids=["anywhere", "on a GPU"])
def test_an_array_in_reverse_comes_by_its_interface_if_its_capsule_is_wrong(producer, options):
    one = producer(OfCupy)
    storage = taken(one, **options)
    assert (storage.door, storage.strides) == ("cuda_array_interface", (-8,))
    assert values_of(storage) == VALUES[::-1].tolist()


class Endless:
    """A sequence that says it has more entries than any memory holds."""

    def __len__(self):
        return 1 << 62

    def __getitem__(self, at):
        return 8


@pytest.mark.parametrize(
    "strides", [(8,), None, "-8", Endless()], ids=["forward", "none", "a text", "endless"]
)
def test_a_capsule_that_is_wrong_otherwise_is_refused(producer, strides):
    one = producer(OfCupy)
    one.strides = strides
    with pytest.raises(BufferError, match="expected sizes and distances up to"):
        taken(one)


def test_an_interruption_while_strides_are_asked_for_passes(producer):
    class Interrupted(OfCupy):
        def __getattribute__(self, name):
            if name == "strides" and "interface" in self.__dict__:
                raise KeyboardInterrupt
            return super().__getattribute__(name)

    with pytest.raises(KeyboardInterrupt):
        taken(producer(Interrupted))
