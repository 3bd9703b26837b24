"""Batches of copies between storages with buffers on a GPU: which side they use and mark."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import CopyBatch

from support.cuda.buffers import Counted, buffers, pair, values
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER, every_class, every_state

VALUES = np.arange(12.0).reshape(3, 4)


@every_state
def test_pairs_are_copied_on_the_side_with_the_newest_values_which_becomes_newer(state):
    source, target = pair(VALUES, state), pair(-VALUES)
    CopyBatch([source[:, :2], source[:, 2:]], [target[:, 2:], target[:, :2]]).run()
    on_host = state == HOST_NEWER
    assert target.sync_state.state == (HOST_NEWER if on_host else DEVICE_NEWER)
    assert source.sync_state.state == state
    assert np.array_equal(buffers(target)[0 if on_host else 1], np.roll(VALUES, 2, axis=1))
    assert np.array_equal(values(target), np.roll(VALUES, 2, axis=1))


@pytest.mark.stand_in
@pytest.mark.parametrize("state", [CLEAN, DEVICE_NEWER], ids=["clean", "device newer"])
def test_a_pair_into_host_memory_is_brought_to_the_host(state):
    source, target = pair(VALUES, state), dlf.zeros((3, 4))
    with Counted() as copies:
        CopyBatch([source], [target]).run()
    assert copies.to_host == (state == DEVICE_NEWER)
    assert np.array_equal(target, VALUES)


@pytest.mark.parametrize("state", [CLEAN, HOST_NEWER, DEVICE_NEWER])
def test_the_rest_of_a_target_keeps_its_newest_values(state):
    target = pair(VALUES, state)
    CopyBatch([dlf.zeros((3, 1))], [target[:, 1:2]]).run()
    expected = VALUES.copy()
    expected[:, 1] = 0
    assert target.sync_state.state == HOST_NEWER
    assert np.array_equal(values(target), expected)


@every_class
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["same order", "another order"])
def test_every_kind_of_storage_is_copied_to_its_own_kind(name, options, order):
    source = dlf.storage(VALUES, **options)
    target = dlf.zeros((3, 4), layout=order, **options)
    CopyBatch([source[1:], source[:1]], [target[:2], target[2:]]).run()
    assert np.array_equal(values(target), np.roll(VALUES, -1, axis=0))


def test_a_device_alone_and_a_pair_meet_on_the_device():
    source, target = pair(VALUES, HOST_NEWER), dlf.zeros((3, 4), device="gpu", managed=None)
    CopyBatch([source], [target]).run()
    assert np.array_equal(values(target), VALUES)


def test_storages_without_a_common_side_are_refused_by_number():
    host, device = dlf.zeros((3,)), dlf.zeros((3,), device="gpu", managed=None)
    both = pair(np.zeros(3)), pair(np.zeros(3))
    text = "got source 1 on the host alone and target 1 on a GPU alone; assign those one by one"
    with pytest.raises(dlf.GTNoSuchBufferError, match=text):
        CopyBatch([both[0], host], [both[1], device])


def test_parts_that_overlap_on_a_device_are_refused():
    field = dlf.zeros((5,), device="gpu", managed=None)
    with pytest.raises(BufferError, match="got source 0 and target 0 that overlap"):
        CopyBatch([field[:3]], [field[2:]])
