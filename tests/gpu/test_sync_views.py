"""Views of a pair share its state: what one of them brings up to date is the whole pair."""

import copy
import gc
import pickle

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import buffers, pair
from support.cuda.devices import OnDevice
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER
from support.errors import refused

VALUES = np.arange(6.0).reshape(2, 3)

VIEWS = {
    "part": lambda s: s[1:, ::2],
    "row": lambda s: s[0],
    "nothing": lambda s: s[:0],
    "reversed": lambda s: s[::-1, ::-1],
    "new axis": lambda s: s[None],
    "transposed": lambda s: s.T,
    "by name": lambda s: s.transpose("J", "I"),
    "by NumPy": np.transpose,
    "domain": lambda s: s.domain_view,
    "once more": dlf.as_storage,
    "renamed": lambda s: dlf.as_storage(s, halo=(0, 0)),
    "a view of a view": lambda s: s.T[1:].T[..., ::-1],
}
every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def named(state):
    return pair(VALUES, state, dims="IJ", halo=(0, (1, 0)))


@pytest.mark.source("GDP-3", "Sync State", "all views of one pair of buffers share one `SyncState`")
@every_view
def test_a_view_shares_the_state_of_its_storage(view):
    made = named(CLEAN)
    assert view(made).sync_state is made.sync_state
    view(made).set_host_modified()
    assert made.sync_state.state == HOST_NEWER
    made.sync_state.state = DEVICE_NEWER
    assert view(made).sync_state.state == DEVICE_NEWER


@pytest.mark.source(
    "GDP-3", "Methods", "`synchronize` copies the newer buffer, and both count as equal"
)
@pytest.mark.source("GDP-3 draft", "Methods", "`synchronize` copies the newer buffer")
@every_view
@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER], ids=["host newer", "device newer"])
def test_a_view_brings_the_whole_pair_up_to_date(view, state):
    made = named(state)
    view(made).synchronize()
    np.testing.assert_array_equal(buffers(made), [VALUES, VALUES])
    assert made.sync_state.state == CLEAN


@every_view
def test_what_is_written_in_a_view_is_in_the_storage_on_both_sides(view):
    made, expected = named(CLEAN), VALUES.copy()
    seen = view(dlf.as_storage(expected, dims="IJ", halo=(0, (1, 0)))).to_numpy()
    view(made)[...] = -1
    seen[...] = -1
    made.synchronize()
    np.testing.assert_array_equal(buffers(made), [expected, expected])
    view(made)[...] = OnDevice(np.full(seen.shape, -2.0))
    seen[...] = -2
    made.synchronize()
    np.testing.assert_array_equal(buffers(made), [expected, expected])


@every_view
def test_a_view_brings_both_sides_in_step_when_its_storage_is_gone(view):
    made = named(DEVICE_NEWER)
    view, expected = view(made), view(dlf.as_storage(VALUES, dims="IJ", halo=(0, (1, 0))))
    del made
    gc.collect()
    np.testing.assert_array_equal(view.to_numpy(), expected.to_numpy())
    view.to_numpy()[...] = -1
    view.set_host_modified()
    view.host_to_device()
    assert (buffers(view)[1] == -1).all()


COPIES = {
    "copy": lambda s: s.copy(),
    "deepcopy": copy.deepcopy,
    "storage": dlf.storage,
    "pickle": lambda s: pickle.loads(pickle.dumps(s)),
    "like": dlf.zeros_like,
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_a_copy_has_a_state_of_its_own(make):
    made = pair(VALUES)
    assert make(made).sync_state is not made.sync_state
    make(made).set_host_modified()
    assert made.sync_state.state == CLEAN


@pytest.mark.source("GDP-3", "Methods", "`copy.deepcopy` works")
def test_a_pair_and_its_view_are_two_pairs_after_a_deep_copy_as_they_are_two_arrays_in_numpy():
    whole, part = copy.deepcopy([VALUES, VALUES[1:]])
    assert not np.shares_memory(whole, part)
    made = named(HOST_NEWER)
    whole, part = copy.deepcopy([made, made[1:]])
    part[...] = -1.0  # on the host
    whole[...] = OnDevice(np.full((2, 3), -2.0))
    assert (whole.sync_state.state, part.sync_state.state) == (DEVICE_NEWER, HOST_NEWER)
    for copied, value in (
        (whole, -2),
        (part, -1),
    ):  # one state would bring old values to one of them
        copied.synchronize()
        np.testing.assert_array_equal(buffers(copied), np.full((2, *copied.shape), value))
    np.testing.assert_array_equal(made.to_numpy(), VALUES)


def test_a_copied_state_belongs_to_no_copied_pair():
    made = named(HOST_NEWER)
    for given in ([made, made.sync_state], [made.sync_state, made]):
        copies = {type(one): one for one in copy.deepcopy(given)}
        field, state = copies[type(made)], copies[dlf.SyncState]
        assert field.sync_state is not state
        with refused(ValueError, "sync_state: "):
            dlf.as_storage(field, sync_state=state)


def test_one_side_of_a_pair_is_a_storage_of_its_own_after_a_deep_copy():
    made = named(DEVICE_NEWER)
    sides = [dlf.as_storage(made, device="cpu"), dlf.as_storage(made, managed=None)]
    for side in copy.deepcopy(sides):
        assert not hasattr(side, "sync_state")
        np.testing.assert_array_equal(dlf.storage(side, device=None).to_numpy(), VALUES)
