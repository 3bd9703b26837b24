"""`SyncState` as a value: its second name, and its copies."""

import copy
import pickle

import dlfield as dlf
import pytest

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda state, protocol=protocol: pickle.loads(
            pickle.dumps(state, protocol)
        )
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.source("GDP-3", "Sync State", "the class of `sync_state` is `Storage.SyncState`")
def test_the_class_has_the_name_that_gdp_3_gives():
    assert dlf.Storage.SyncState is dlf.SyncState
    assert dlf.CPUStorage.SyncState is dlf.SyncState


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("value", [0, 1, 2])
def test_a_copy_is_a_state_of_its_own_with_the_same_value(make, value):
    state = dlf.SyncState()
    state.state = value
    made = make(state)
    assert type(made) is dlf.SyncState
    assert (made is state, made.state) == (False, value)
    made.state = (value + 1) % 3
    assert state.state == value


def test_an_object_that_holds_a_state_can_be_copied():
    state = dlf.SyncState()
    made = copy.deepcopy({"one": state, "again": state})
    assert made["one"] is made["again"] is not state
