"""Foreign exchange tables of DLPack with memory on a GPU: the stream orders work in flight."""

import ctypes
import gc

import dlfield as dlf
import pytest

from support.cuda.devices import LEGACY, PER_THREAD, current, delay, new_stream, stream_on
from support.cuda.driver import call, stats
from support.cuda.kinds import every_device, two_devices
from support.cuda.order import CUDA, device_address, own_stream, put_from, seen_from
from support.cuda.producers import CPU, VALUES, OnGpu, workshop
from support.dlpack_structs import READ_ONLY, never_freed
from support.exchange_structs import STREAM, raising, table, with_table

LATE = (VALUES + 10).tolist()
DOOR = "dlpack_c_exchange_api"


@pytest.fixture
def held():
    """Makes objects that have a table and nothing else, over a producer each.

    `work_stream` is what the table's function of that name does: a callback, a number for a stream,
    or None without such a function.
    """
    with workshop() as make:

        def hold(work_stream=LEGACY, **options):
            made = with_table(forged(work_stream), base=object)()
            made.producer = make(OnGpu, **options)
            return made

        yield hold


def forged(work_stream):
    made = table()
    if isinstance(work_stream, int):
        work_stream = naming(work_stream)
    if work_stream is not None:
        never_freed.append(callback := STREAM(work_stream))
        made.current_work_stream = ctypes.cast(callback, ctypes.c_void_p)
    return made


def naming(stream, asked=None):
    def name(device_type, device_id, room):
        if asked is not None:
            asked.append((device_type, device_id))
        room[0] = stream
        return 0

    return name


def taken(one):
    return dlf.as_storage(one, managed=None)


def values_of(storage):
    return dlf.storage(storage, device="cpu").to_numpy().tolist()


@every_device
def test_a_tensor_on_a_device_comes_in_where_it_is(held, device):
    one = held(device=device)
    storage = taken(one)
    assert (type(storage), storage.door) == (dlf.GPUStorage, DOOR)
    assert (storage.device_id, device_address(storage)) == (device, one.producer.memory.address)
    assert (storage.readonly, values_of(storage)) == (False, VALUES.tolist())


def test_a_read_only_device_tensor_stays_read_only(held):
    assert taken(held(flags=READ_ONLY)).readonly


@two_devices
@pytest.mark.parametrize("number", [0, 7])
def test_the_address_of_a_tensor_of_the_table_decides_the_device(held, number):
    storage = taken(held(device=1, claims=(CUDA, number)))
    assert (storage.device_id, values_of(storage)) == (1, VALUES.tolist())


def test_a_tensor_of_host_memory_that_claims_a_device_is_refused(held):
    one = held(kind=CPU, claims=(CUDA, 0))
    with pytest.raises(BufferError, match="expected an address on a GPU"):
        dlf.as_storage(one)
    assert one.producer.freed == 1


@every_device
def test_the_table_is_asked_for_the_work_stream_of_the_device(held, device):
    asked = []
    taken(held(naming(LEGACY, asked), device=device))
    assert asked == [(CUDA, device)]


def test_of_memory_of_the_host_no_work_stream_is_asked_for(held):
    asked = []
    dlf.as_storage(held(naming(LEGACY, asked), kind=CPU))
    assert asked == []


@every_device
@pytest.mark.parametrize("stream", ["new", LEGACY, PER_THREAD])
def test_work_on_the_tables_stream_is_waited_for(held, stream, device):
    stream = stream_on(device) if stream == "new" else stream
    storage = taken(held(stream, late=stream, device=device))
    with current(device):  # where the per-thread stream of this thread is the producer's
        assert values_of(storage) == LATE


def test_a_missing_name_means_the_legacy_stream(held):
    stream, storage = new_stream(), taken(held(0, late=LEGACY))
    target = dlf.storage(VALUES, device="gpu", managed=None)
    there = device_address(target)
    with dlf.use_stream(stream):  # which keeps no order with the legacy one by itself
        target[...] = storage
    assert seen_from(stream, there).tolist() == LATE


@pytest.mark.stand_in
@pytest.mark.parametrize("stream", ["new", LEGACY])
def test_work_on_the_tables_stream_is_waited_for_by_the_device_alone(held, stream):
    stream = new_stream() if stream == "new" else stream
    one = held(stream, late=stream)
    before = stats().syncs
    storage = taken(one)
    copy = dlf.storage(storage, device="gpu", managed=None)
    assert stats().syncs == before
    assert values_of(copy) == LATE


def test_the_tables_stream_waits_for_what_dlfield_reads(held):
    stream = new_stream()
    one = held(stream)
    delay(own_stream())
    copy = dlf.storage(taken(one), device="gpu", managed=None)
    put_from(stream, one.producer.memory.address, VALUES + 50)
    assert values_of(copy) == VALUES.tolist()


def test_the_tables_stream_waits_for_what_dlfield_writes(held):
    stream = new_stream()
    one, source = held(stream), dlf.full((4,), 7.0, device="gpu", managed=None)
    storage = taken(one)
    delay(own_stream())
    storage[...] = source
    assert seen_from(stream, one.producer.memory.address).tolist() == [7.0] * 4
    call("cuCtxSynchronize")


WITHOUT = {"none": None, "failing": lambda *_asked: -1, "refusing": lambda *_asked: 1}


@pytest.mark.parametrize("work_stream", WITHOUT.values(), ids=WITHOUT)
def test_where_no_stream_is_named_all_work_on_the_device_is_waited_for(held, work_stream):
    one = held(work_stream, late=new_stream())
    storage = taken(one)
    assert seen_from(new_stream(), one.producer.memory.address).tolist() == LATE
    assert storage.shape == (4,)


@two_devices
def test_where_no_stream_is_named_it_is_the_device_of_the_memory_that_is_waited_for(held):
    one = held(None, late=stream_on(1), device=1)
    storage = taken(one)
    seen = seen_from(stream_on(1), one.producer.memory.address, device=1)
    assert (seen.tolist(), storage.device_id) == (LATE, 1)


@pytest.mark.parametrize("code", [-1, 0])
def test_an_exception_of_the_work_stream_is_not_left_behind(held, code):
    stream = new_stream()

    def name_and_raise(_device_type, _device_id, room):
        room[0] = stream
        return raising(code)

    assert values_of(taken(held(name_and_raise, late=stream))) == LATE


def test_the_tensor_is_released_once_with_the_last_view(held):
    one = held(new_stream())
    view = taken(one)[1:]
    gc.collect()
    assert one.producer.freed == 0
    del view
    assert one.producer.freed == 1


@pytest.mark.parametrize("work_stream", [LEGACY, None])
def test_the_tensor_is_released_when_the_work_on_it_is_done(held, work_stream):
    stream = new_stream()
    one = held(work_stream, reuses=LEGACY if work_stream else new_stream())
    target = dlf.storage(VALUES + 50, device="gpu", managed=None)
    call("cuCtxSynchronize")
    storage = taken(one)
    delay(stream)
    with dlf.use_stream(stream):
        target[...] = storage
    del storage
    assert one.producer.freed == 1
    assert values_of(target) == VALUES.tolist()


def test_the_tensor_is_released_when_dlfields_work_is_done_whichever_stream_it_was_made_for(held):
    one = held(new_stream(), reuses=new_stream())
    target = dlf.storage(VALUES + 50, device="gpu", managed=None)
    call("cuCtxSynchronize")
    storage = taken(one)
    delay(own_stream())
    target[...] = storage
    del storage
    assert one.producer.freed == 1
    assert values_of(target) == VALUES.tolist()


def test_the_tensor_is_released_once_where_a_wish_is_not_met(held):
    one = held()
    with pytest.raises(ValueError, match="dims"):
        dlf.as_storage(one, dims=("I", "J"))
    assert one.producer.freed == 1
