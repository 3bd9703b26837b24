"""`with storage.host()` and `with storage.device()`, and the object for the state."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import buffers, pair, values
from support.cuda.devices import OnDevice, is_done, new_stream, write_late
from support.cuda.kinds import (
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    every_class,
    every_kind,
    every_state,
    host_backed,
)

VALUES = np.arange(6.0).reshape(2, 3)


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`sync_state` says which buffer was modified"
)
@every_state
def test_the_block_of_the_host_gives_the_newer_values_and_says_that_they_are_written(state):
    made = pair(VALUES, state)
    with made.host() as array:
        assert type(array) is np.ndarray
        np.testing.assert_array_equal(array, VALUES)
        array[...] = -VALUES
    assert made.sync_state.state == HOST_NEWER
    made.host_to_device()
    np.testing.assert_array_equal(buffers(made)[1], -VALUES)


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`sync_state` says which buffer was modified"
)
@every_state
def test_the_block_of_the_device_gives_the_newer_values_and_says_that_they_are_written(state):
    made = pair(VALUES, state)
    with made.device() as side:
        assert type(side) is dlf.GPUStorage
        np.testing.assert_array_equal(values(side), VALUES)
        side[...] = OnDevice(-VALUES)
    assert made.sync_state.state == DEVICE_NEWER
    np.testing.assert_array_equal(made.to_numpy(), -VALUES)


@every_kind
def test_the_block_of_the_device_gives_the_same_memory_with_what_is_known_of_it(managed):
    options = {"dims": "IJ", "halo": (1, 0), "layout": (1, 0)}
    made = dlf.ones((4, 3), device="gpu", managed=managed, **options)
    with made[1:].device() as side:
        assert side.__cuda_array_interface__["data"] == made[1:].__cuda_array_interface__["data"]
        assert (side.shape, side.strides, side.dims) == ((3, 3), made.strides, made.dims)
        assert (side.halo, side.layout, side.device_id) == (((0, 1), (0, 0)), (1, 0), 0)
        side[...] = 5
    expected = np.ones((4, 3))
    expected[1:] = 5
    np.testing.assert_array_equal(values(made), expected)


@every_class
def test_the_block_of_the_host_is_there_where_the_host_has_a_buffer(name, options):
    made = dlf.storage(VALUES, **options)
    if name == "GPUStorage":
        with pytest.raises(dlf.GTNoSuchBufferError), made.host():
            pytest.fail("there is no such buffer")
        return
    with made.host() as array:
        array[...] = -VALUES
    np.testing.assert_array_equal(values(made), -VALUES)


def test_the_side_that_a_block_has_given_can_be_used_after_it():
    made = pair(VALUES)
    with made.host() as array:
        pass
    with made.device() as side:
        pass
    array[...] = -VALUES
    made.set_host_modified()
    made.host_to_device()
    np.testing.assert_array_equal(values(side), -VALUES)
    del made
    gc.collect()
    np.testing.assert_array_equal(array, -VALUES)
    np.testing.assert_array_equal(values(side), -VALUES)


class Stop(Exception):
    pass


def stop_after(block, work):
    with block as side:
        work(side)
        raise Stop


@every_state
def test_what_a_block_has_written_before_it_raised_counts(state):
    made = pair(VALUES, state)
    with pytest.raises(Stop):
        stop_after(made.host(), lambda array: array.__setitem__(0, -1))
    assert made.sync_state.state == HOST_NEWER
    with pytest.raises(Stop):
        stop_after(made.device(), lambda side: side.__setitem__(1, OnDevice([-2.0] * 3)))
    assert made.sync_state.state == DEVICE_NEWER
    assert made.to_numpy().tolist() == [[-1] * 3, [-2] * 3]


@every_state
def test_a_block_that_is_not_entered_says_nothing(state):
    made = pair(VALUES, state)
    made.host()
    made.device()
    assert made.sync_state.state == state


def test_a_block_is_entered_once():
    made = pair(VALUES)
    for block in (made.host(), made.device()):
        with block:
            pass
        with pytest.raises((AttributeError, RuntimeError)), block:
            pass


@every_kind
def test_the_end_of_the_block_waits_for_work_on_any_stream(managed):
    made, stream = dlf.storage(VALUES, device="gpu", managed=managed), new_stream()
    with made.device() as side:
        kept = write_late(side.__cuda_array_interface__["data"][0], -VALUES, stream)
        assert not is_done(stream)
    assert is_done(stream)
    np.testing.assert_array_equal(values(made), -VALUES)
    del kept


@every_kind
def test_the_end_of_the_block_waits_also_where_it_raises(managed):
    made, stream = dlf.storage(VALUES, device="gpu", managed=managed), new_stream()
    kept = []

    def work(side):
        there = side.__cuda_array_interface__["data"][0]
        kept.append(write_late(there, -VALUES, stream))

    with pytest.raises(Stop):
        stop_after(made.device(), work)
    assert is_done(stream)
    np.testing.assert_array_equal(values(made), -VALUES)


@pytest.mark.source(
    "GDP-3", "Storage Types", "`CUDAManagedGPUStorage` has unified memory that CUDA synchronises"
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Types",
    "`CUDAManagedGPUStorage` has unified memory that CUDA synchronises",
)
@host_backed
def test_blocks_of_both_sides_take_turns(managed):
    made = dlf.storage(VALUES, device="gpu", managed=managed)
    for _ in range(3):
        with made.host() as array:
            array += 1
        with made.device() as side:
            side[0] = OnDevice(values(side[0]) * 2)
    expected = VALUES.copy()
    for _ in range(3):
        expected += 1
        expected[0] *= 2
    np.testing.assert_array_equal(values(made), expected)


def test_the_state_is_one_of_three_numbers():
    assert (CLEAN, HOST_NEWER, DEVICE_NEWER) == (0, 1, 2)
    state = dlf.SyncState()
    assert (state.state, repr(state)) == (CLEAN, "SyncState(SYNC_CLEAN)")
    for number, name in ((HOST_NEWER, "SYNC_HOST_DIRTY"), (DEVICE_NEWER, "SYNC_DEVICE_DIRTY")):
        state.state = number
        assert (state.state, repr(state)) == (number, f"SyncState({name})")


@pytest.mark.parametrize("wrong", [3, -1, 256, 2**70], ids=repr)
def test_other_numbers_are_refused_as_a_state(wrong):
    made = pair(VALUES, HOST_NEWER)
    with pytest.raises(ValueError, match="state: expected SYNC_CLEAN, SYNC_HOST_DIRTY or"):
        made.sync_state.state = wrong
    assert made.sync_state.state == HOST_NEWER


@pytest.mark.parametrize("wrong", [None, "clean", 1.0, [1]], ids=repr)
def test_a_state_must_be_a_number(wrong):
    with pytest.raises(TypeError):
        dlf.SyncState().state = wrong


@pytest.mark.source(
    "GDP-3", "Sync State", "the `SyncState` is the attribute `sync_state` of a storage"
)
def test_the_state_that_is_set_by_its_object_is_acted_on():
    made = pair(VALUES)
    made.to_numpy()[...] = -VALUES
    made.sync_state.state = HOST_NEWER
    made.synchronize()
    np.testing.assert_array_equal(buffers(made)[1], -VALUES)


@pytest.mark.source(
    "GDP-3", "Sync State", "the `SyncState` is the attribute `sync_state` of a storage"
)
def test_the_state_of_a_pair_cannot_be_replaced_by_another():
    with pytest.raises(AttributeError):
        pair(VALUES).sync_state = dlf.SyncState()


def test_a_state_does_not_hold_its_pair():
    made = pair(VALUES, DEVICE_NEWER)
    state = made.sync_state
    del made
    gc.collect()
    assert state.state == DEVICE_NEWER


def test_a_pair_whose_host_side_is_newer_is_assigned_to_managed_memory_on_the_gpu():
    source, target = dlf.zeros(3, device="gpu"), dlf.zeros(3, device="gpu", managed="cuda")
    source[...] = 2.0
    assert source.sync_state.state == HOST_NEWER
    target[...] = source
    assert source.sync_state.state == CLEAN
    assert target.to_numpy().tolist() == [2, 2, 2]
