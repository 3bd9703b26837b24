"""When memory of a GPU goes: after the work on it, once, in whichever order its holders go."""

import ctypes
import gc
import itertools
import threading

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.apart import run
from support.cuda.devices import OnDevice, current, delay, is_done, new_stream, read
from support.cuda.driver import call, stats
from support.cuda.kinds import every_device, every_kind, two_devices
from support.cuda.order import device_address, own_stream, seen_from
from support.dlpack_structs import call_on_a_bare_thread, consume, contents, release
from support.exchange_structs import Exchange
from support.owners import Watch

OURS = Exchange(dlf.Storage)
VALUES, SEVENS = np.arange(4.0), np.full(4, 7.0)


def on_gpu(values=VALUES, managed=None, device=0):
    """Return a storage with nothing in flight, whose address was never exposed."""
    storage = dlf.storage(values, device=("gpu", device), managed=managed)
    storage.synchronize()
    with current(device):
        call("cuCtxSynchronize")
    return storage


def by_interface(storage):
    return storage.__cuda_array_interface__["data"][0]


def by_capsule(storage):
    return contents(storage.__dlpack__(stream=-1, max_version=(1, 3))).dl_tensor.data


def by_legacy_capsule(storage):
    return contents(storage.__dlpack__()).dl_tensor.data


def by_tensor(storage):
    managed = OURS.tensor_of(storage)
    there = managed.dl_tensor.data
    release(managed)
    return there


def by_view(storage):
    return OURS.view_of(storage).data


def by_part(storage):
    return storage[:].__cuda_array_interface__["data"][0]


DOORS = [by_interface, by_capsule, by_legacy_capsule, by_tensor, by_view, by_part]


@pytest.mark.parametrize("door", DOORS)
@every_kind
def test_exposed_memory_outlives_the_work_on_it(managed, door):
    storage, stream, target = on_gpu(managed=managed), new_stream(), OnDevice(SEVENS)
    there = door(storage)
    delay(stream)
    call("cuMemcpyDtoDAsync_v2", target.address, there, 32, stream)
    del storage
    assert is_done(stream)
    assert target.values().tolist() == VALUES.tolist()


@pytest.mark.stand_in
def test_memory_whose_address_went_out_by_gt4pys_interface_outlives_that_work_too():
    run("""
        storage, stream = dlf.zeros(4, device="gpu", managed=None), new_stream()
        there, target = storage.__gt_data_interface__["gpu"]["data"][0], OnDevice(np.ones(4))
        storage.synchronize()
        call("cuMemcpyDtoDAsync_v2", target.address, there, 32, stream)
        del storage
        assert not target.values().any()
    """)


@two_devices
def test_it_is_the_device_of_the_memory_whose_work_is_waited_for():
    storage, target = on_gpu(device=1), OnDevice(SEVENS, device=1)
    with current(1):
        stream, there = new_stream(), by_interface(storage)
        call("cuMemcpyDtoDAsync_v2", target.address, there, 32, stream)
    del storage
    assert target.values().tolist() == VALUES.tolist()


@pytest.mark.stand_in
@every_device
def test_memory_that_was_never_exposed_is_freed_without_a_wait(device):
    storage, before = dlf.zeros((4,), device=("gpu", device), managed=None), stats()
    del storage
    after = stats()
    assert (after.frees - before.frees, after.syncs) == (1, before.syncs)


@pytest.mark.stand_in
def test_the_end_of_memory_comes_after_work_on_streams_of_the_user():
    stream, source, target = new_stream(), on_gpu(), on_gpu(SEVENS)
    there, before = device_address(target), stats().syncs
    with dlf.use_stream(stream):
        target[...] = source
    del source
    assert stats().syncs == before
    call("cuStreamSynchronize", own_stream())
    assert seen_from(stream, there).tolist() == VALUES.tolist()


def test_a_pair_goes_after_a_copy_between_its_sides():
    pair, target = dlf.storage(VALUES, device="gpu"), on_gpu(SEVENS)
    delay(own_stream())
    target[...] = pair  # by way of the sibling
    pair.set_host_modified()
    target[...] = dlf.as_storage(pair, managed="gt4py")
    del pair
    assert dlf.storage(target, device="cpu").to_numpy().tolist() == VALUES.tolist()


@two_devices
def test_a_pair_goes_after_a_copy_from_its_host_side_to_another_device():
    pair, target = dlf.storage(VALUES, device=("gpu", 0)), on_gpu(SEVENS, device=1)
    delay(own_stream(1))
    target[...] = pair
    del pair
    assert dlf.storage(target, device="cpu").to_numpy().tolist() == VALUES.tolist()


@every_kind
def test_a_view_keeps_the_memory(managed):
    storage = on_gpu(managed=managed)
    view = storage[1:][::-1]
    watch = Watch(storage)
    del storage
    assert watch.freed
    assert dlf.storage(view, device="cpu").to_numpy().tolist() == [3, 2, 1]


@pytest.mark.parametrize("managed", ["gt4py", "cuda"])
def test_an_array_of_the_host_outlives_its_storage(managed):
    storage = on_gpu(managed=managed)
    array, view = storage.to_numpy(), memoryview(storage)
    del storage
    gc.collect()
    array[0] = 9
    assert view.tolist() == [9, 1, 2, 3]


@pytest.mark.stand_in
def test_an_array_of_the_host_does_not_hold_the_buffer_of_the_device():
    storage = on_gpu(managed="gt4py")
    array, before = storage.to_numpy(), stats()
    del storage
    call("cuCtxSynchronize")
    after = stats()
    assert (after.frees - before.frees, before.live_bytes - after.live_bytes) == (1, 32)
    assert array.tolist() == VALUES.tolist()


@pytest.mark.stand_in
def test_a_sync_state_holds_no_memory():
    storage, before = on_gpu(managed="gt4py"), stats().live_bytes
    state = storage.sync_state
    del storage
    call("cuCtxSynchronize")
    assert before - stats().live_bytes == 64
    assert state.state == dlf.SyncState.SYNC_CLEAN


def side(storage):
    with storage.device() as array:
        return array


HOLDERS = {
    "storage": lambda storage: storage,
    "view": lambda storage: storage[1:],
    "capsule": lambda storage: storage.__dlpack__(max_version=(1, 3)),
    "side": side,
    "interface": lambda storage: storage.__gt_data_interface__,
}


@pytest.mark.parametrize("first", HOLDERS)
def test_the_memory_is_there_until_the_last_holder_is_gone_whichever_that_is(first):
    others = [name for name in HOLDERS if name != first]
    for order in itertools.permutations(others):
        storage = on_gpu(managed="gt4py")
        held = {name: hold(storage) for name, hold in HOLDERS.items()}
        there = device_address(storage)
        del storage
        for name in (first, *order):
            assert read(there, (4,), "f8").tolist() == VALUES.tolist()
            del held[name]


@every_kind
def test_a_cycle_is_collected(managed):
    cycle = [on_gpu(managed=managed)]
    cycle.append(cycle)
    watch = Watch(cycle[0])
    del cycle
    assert watch.freed


@every_kind
@every_device
def test_the_last_holder_may_be_another_thread(managed, device):
    held = [on_gpu(managed=managed, device=device)]
    held[0].__cuda_array_interface__  # noqa: B018 -- now the end waits for the device
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert held == []


@every_kind
@every_device
def test_a_capsules_deleter_may_run_on_a_thread_that_neither_python_nor_cuda_knows(managed, device):
    storage = on_gpu(managed=managed, device=device)
    taken = consume(storage.__dlpack__(max_version=(1, 3)))
    del storage
    call_on_a_bare_thread(taken.deleter, ctypes.addressof(taken))


def test_an_exception_on_its_way_survives_the_end_of_memory():
    def fail():
        storage = on_gpu()
        storage.__cuda_array_interface__  # noqa: B018
        raise error

    error = RuntimeError("on its way")
    with pytest.raises(RuntimeError) as caught:
        fail()
    assert caught.value is error


@pytest.mark.stand_in
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_a_thousand_rounds_leave_nothing(managed):
    before = stats().live_bytes
    for _ in range(1000):
        storage = dlf.zeros((4,), device="gpu", managed=managed)
        storage[1:].__dlpack__()
        storage[...] = 3
    del storage
    call("cuCtxSynchronize")
    assert stats().live_bytes == before
