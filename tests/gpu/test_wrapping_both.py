"""`as_storage` around two buffers: their state, their layouts, and what has to agree."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import Counted, buffers, in_state, pair, values
from support.cuda.devices import OnDevice
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER, every_state, two_devices
from support.parameters import readable
from support.stencils.stand_ins import Told

VALUES = np.arange(6.0).reshape(2, 3)
SyncState = dlf.SyncState


@pytest.mark.source(
    "GDP-3",
    "Storage Creation",
    "`as_storage(device_data=…)` takes a device buffer, alone or beside a host buffer",
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`device_data` is the buffer of the device"
)
@pytest.mark.parametrize("make", [dlf.as_storage, lambda *a, **k: dlf.storage(*a, copy=False, **k)])
def test_two_buffers_become_a_pair_over_both(make):
    array, data = VALUES.copy(), OnDevice(VALUES)
    for options in ({}, {"managed": "gt4py"}, {"device": "gpu"}, {"device": ("gpu", 0)}):
        made = make(array, data, **options)
        assert type(made) is dlf.SoftwareManagedGPUStorage
        assert np.shares_memory(made.to_numpy(), array)
        assert made.__cuda_array_interface__["data"][0] == data.address


def test_nothing_is_acquired_for_two_buffers_that_are_refused():
    told = Told(log := [], "host", VALUES.copy())
    with pytest.raises(ValueError, match="expected no buffer of the host beside"):
        dlf.as_storage(told, OnDevice(VALUES), managed="cuda")
    assert log == []
    made = dlf.as_storage(told, OnDevice(VALUES))
    assert log == ["acquire host"]
    del made
    assert log == ["acquire host", "release host"]


def test_without_a_state_two_buffers_count_as_equal():
    made = dlf.as_storage(VALUES.copy(), OnDevice(-VALUES))
    assert made.sync_state.state == CLEAN
    np.testing.assert_array_equal(made.to_numpy(), VALUES)
    np.testing.assert_array_equal(buffers(made)[1], -VALUES)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`sync_state` says which of two buffers is up to date"
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`sync_state` says which buffer is up to date"
)
@every_state
def test_the_state_that_is_given_says_which_buffer_is_newer(state):
    given, array, data = in_state(state), VALUES.copy(), OnDevice(-VALUES)
    made = dlf.as_storage(array, data, sync_state=given)
    assert made.sync_state is given
    assert given.state == state
    made.synchronize()
    expected = {CLEAN: (1, -1), HOST_NEWER: (1, 1), DEVICE_NEWER: (-1, -1)}[state]
    np.testing.assert_array_equal(array, expected[0] * VALUES)
    np.testing.assert_array_equal(data.values(), expected[1] * VALUES)


@pytest.mark.stand_in
@every_state
def test_putting_two_buffers_together_copies_and_allocates_nothing(state):
    array, data, given = VALUES.copy(), OnDevice(-VALUES), in_state(state)
    with Counted() as counted:
        dlf.as_storage(array, data, sync_state=given)
    assert (counted.made, counted.allocated) == (0, 0)


@every_state
def test_of_one_buffer_the_state_is_that_it_is_newer(state):
    given = in_state(state)
    made = dlf.as_storage(VALUES.copy(), device="gpu", sync_state=given)
    assert made.sync_state is given
    assert given.state == HOST_NEWER
    given = in_state(state)
    for options in ({"data": OnDevice(VALUES)}, {"device_data": OnDevice(VALUES)}):
        made = dlf.as_storage(**options, sync_state=given)
        assert made.sync_state is given
        assert given.state == DEVICE_NEWER
        del made


@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", '`sync_state` affects only `managed="gt4py"`'
)
@every_state
def test_a_state_has_no_effect_where_there_is_one_buffer(state):
    given = in_state(state)
    managed = dlf.CUDAManagedGPUStorage(VALUES)
    made = [
        dlf.as_storage(VALUES.copy(), sync_state=given),
        dlf.as_storage(OnDevice(VALUES), managed=None, sync_state=given),
        dlf.as_storage(managed, managed="cuda", sync_state=given),
    ]
    assert [type(one) for one in made] == [dlf.CPUStorage, dlf.GPUStorage, type(managed)]
    assert given.state == state


def parts_of(storage, part):
    """Return the same part of both buffers of a pair."""
    with storage.device() as side:
        there = side[part]
    return storage.to_numpy()[part], there


@pytest.mark.source(
    "GDP-3",
    "Storage Creation",
    "two buffers taken from a storage are wrapped with its `SyncState`",
)
@pytest.mark.parametrize(
    "part", [..., np.s_[1:], np.s_[:, ::2], np.s_[::-1, 1], np.s_[:0]], ids=repr
)
def test_parts_of_a_pair_share_its_state_and_its_memory(part):
    whole = pair(VALUES)
    made = dlf.as_storage(*parts_of(whole, part), sync_state=whole.sync_state)
    assert made.sync_state is whole.sync_state
    whole[...] = -VALUES
    np.testing.assert_array_equal(values(made), -VALUES[part])


def test_a_part_brings_the_whole_pair_up_to_date():
    whole = pair(VALUES)
    made = dlf.as_storage(*parts_of(whole, np.s_[1:]), sync_state=whole.sync_state)
    whole.to_numpy()[...] = -VALUES
    made.set_host_modified()
    made.host_to_device()
    np.testing.assert_array_equal(buffers(whole)[1], -VALUES)


def test_a_pair_is_put_together_again_from_the_storage_itself():
    whole = pair(VALUES, DEVICE_NEWER)
    made = dlf.as_storage(whole, whole, sync_state=whole.sync_state)
    assert made.sync_state is whole.sync_state
    np.testing.assert_array_equal(made.to_numpy(), VALUES)
    assert np.shares_memory(made.to_numpy(), whole.to_numpy())


@every_state
def test_the_state_of_a_pair_may_be_given_beside_it(state):
    whole = pair(VALUES, state)
    made = dlf.as_storage(whole, sync_state=whole.sync_state)
    assert made.sync_state is whole.sync_state
    np.testing.assert_array_equal(made.to_numpy(), VALUES)


@pytest.mark.source("GDP-3", "Sync State", "all views of one pair of buffers share one `SyncState`")
@pytest.mark.source(
    "GDP-3", "Storage Creation", "two buffers taken from a storage are wrapped with its `SyncState`"
)
@every_state
def test_buffers_that_are_taken_from_a_storage_bring_its_state(state):
    whole = pair(VALUES, state)
    made = dlf.as_storage(whole, whole)
    assert made.sync_state is whole.sync_state
    made[...] = -VALUES
    np.testing.assert_array_equal(values(whole), -VALUES)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "two buffers taken from a storage are wrapped with its `SyncState`"
)
def test_one_buffer_of_a_storage_brings_its_state_to_the_other():
    whole = pair(VALUES, DEVICE_NEWER)
    made = dlf.as_storage(whole.to_numpy(), whole)
    assert made.sync_state is whole.sync_state


@pytest.mark.source(
    "GDP-3", "Storage Creation", "two buffers taken from a storage are wrapped with its `SyncState`"
)
@pytest.mark.parametrize("times", [1, 2], ids=["as data", "as data and device_data"])
def test_another_state_for_the_buffers_of_a_storage_is_refused(times):
    whole = pair(VALUES, DEVICE_NEWER)
    with pytest.raises(ValueError, match="sync_state: expected the buffers of one pair"):
        dlf.as_storage(*[whole] * times, sync_state=SyncState())
    np.testing.assert_array_equal(values(whole), VALUES)


STRANGERS = {
    "other rows": lambda whole: (whole[0:1], whole[1:2]),
    "halves of two pairs": lambda whole: (whole, pair(-VALUES)),
    "a foreign buffer on the GPU": lambda whole: (whole, OnDevice(-VALUES)),
    "a foreign buffer on the host": lambda whole: (-VALUES, whole),
}


@pytest.mark.source(
    "GDP-3", "Storage Creation", "two buffers taken from a storage are wrapped with its `SyncState`"
)
@every_state
@pytest.mark.parametrize("strangers", STRANGERS.values(), ids=STRANGERS)
def test_a_buffer_of_a_storage_is_not_paired_with_one_that_is_no_sibling(strangers, state):
    whole = pair(VALUES, state)
    with pytest.raises(ValueError, match="sync_state: expected the buffers of one pair"):
        dlf.as_storage(*strangers(whole))
    np.testing.assert_array_equal(values(whole), VALUES)


def of_others(array, data):
    """Ways to give the state of a pair beside buffers that are not its own."""
    return {
        "host": lambda state: dlf.as_storage(array, device="gpu", sync_state=state),
        "device": lambda state: dlf.as_storage(data, sync_state=state),
        "both": lambda state: dlf.as_storage(array, data, sync_state=state),
    }


@pytest.mark.source(
    "GDP-3",
    "Storage Creation",
    "two buffers taken from a storage are wrapped with its `SyncState`",
)
@pytest.mark.parametrize("way", ["host", "device", "both"])
def test_the_state_of_a_pair_cannot_be_that_of_other_buffers(way):
    whole = pair(VALUES)
    make = of_others(VALUES.copy(), OnDevice(VALUES))[way]
    with pytest.raises(ValueError, match="sync_state: expected the buffers of one pair"):
        make(whole.sync_state)


@pytest.mark.parametrize(
    ("way", "state"),
    [
        ("host", DEVICE_NEWER),
        ("device", HOST_NEWER),
        ("both", HOST_NEWER),
        ("both", DEVICE_NEWER),
    ],
)
def test_what_is_refused_leaves_the_state_of_the_pair_and_so_its_values(way, state):
    whole = pair(VALUES, state)
    make = of_others(VALUES.copy(), OnDevice(VALUES))[way]
    with pytest.raises(ValueError, match="sync_state"):
        make(whole.sync_state)
    assert whole.sync_state.state == state
    np.testing.assert_array_equal(values(whole), VALUES)


def test_the_state_of_a_pair_that_is_gone_may_be_given_to_another():
    whole = pair(VALUES, DEVICE_NEWER)
    state = whole.sync_state
    del whole
    made = dlf.as_storage(VALUES.copy(), OnDevice(-VALUES), sync_state=state)
    assert made.sync_state is state
    np.testing.assert_array_equal(made.to_numpy(), -VALUES)


@pytest.mark.parametrize("state", [1, True, "clean", SyncState, object()], ids=readable)
def test_a_sync_state_must_be_a_sync_state(state):
    for make in (dlf.as_storage, dlf.storage):
        with pytest.raises(TypeError, match="sync_state: expected a SyncState or None, got"):
            make(VALUES, OnDevice(VALUES), sync_state=state)


@pytest.mark.parametrize(
    "other",
    [
        np.zeros((3, 2)),
        np.zeros((2, 3), "f4"),
        np.zeros((2, 3), "i8"),
        np.zeros(6),
    ],
    ids=lambda one: f"{one.shape} {one.dtype}",
)
def test_two_buffers_of_other_shapes_or_types_are_refused(other):
    for make in (dlf.as_storage, lambda *data: dlf.storage(*data, copy=False)):
        with pytest.raises(ValueError, match=r"device_data: expected float64 of shape \[2, 3\]"):
            make(VALUES, OnDevice(other))


def test_buffers_of_the_wrong_side_are_refused():
    with pytest.raises(BufferError, match=r"device_data: expected memory on a GPU.*cpu"):
        dlf.as_storage(VALUES, VALUES)
    with pytest.raises(dlf.DeviceUnavailable, match=r"that the host can reach, got cuda:0"):
        dlf.as_storage(OnDevice(VALUES), OnDevice(VALUES))
    with pytest.raises(dlf.DeviceUnavailable, match="that the host can reach"):
        dlf.as_storage(device_data=OnDevice(VALUES), device="cpu")


@pytest.mark.parametrize("managed", [None, "cuda"])
def test_two_buffers_are_kept_in_step_by_dlfield_alone(managed):
    with pytest.raises(ValueError, match="data: expected no buffer of the host beside one"):
        dlf.as_storage(VALUES.copy(), OnDevice(VALUES), managed=managed)


@two_devices
def test_the_buffer_on_a_gpu_says_which_one_it_is():
    data = OnDevice(VALUES, device=1)
    for options in ({}, {"device": "gpu"}, {"device": ("gpu", 1)}):
        made = dlf.as_storage(VALUES.copy(), data, **options)
        assert (made.device_id, made.__dlpack_device__()) == (1, (2, 1))
    with pytest.raises(
        dlf.DeviceUnavailable, match="expected memory on GPU 0, got memory on GPU 1"
    ):
        dlf.as_storage(VALUES.copy(), data, device=("gpu", 0))


@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER], ids=["to device", "to host"])
@pytest.mark.parametrize(
    "there", [np.s_[...], np.s_[::-1], np.s_[:, ::2], np.s_[..., 1:3]], ids=repr
)
def test_buffers_in_different_layouts_are_kept_in_step(there, state):
    array, whole = np.zeros((5, 7, 4)).T, dlf.zeros((5, 7, 4), device="gpu", managed=None)
    side, array = whole[there], array.transpose()[there].swapaxes(0, 1).copy().swapaxes(0, 1)
    numbers = np.arange(array.size).reshape(array.shape) + 1.0
    made = dlf.as_storage(array, side, sync_state=in_state(state))
    if state == HOST_NEWER:
        array[...] = numbers
    else:
        side[...] = numbers
    made.synchronize()
    np.testing.assert_array_equal(array, numbers)
    np.testing.assert_array_equal(values(side), numbers)
    assert values(whole).sum() == numbers.sum()  # nothing beside the view is written


class Raw:
    """The buffer of a pair on the GPU, as an array that says no more than where it is."""

    def __init__(self, storage):
        self.side = storage._device_side()
        self.__cuda_array_interface__ = self.side.__cuda_array_interface__


def test_two_raw_buffers_of_a_pair_bring_its_state():
    first = dlf.zeros(3, device="gpu")
    again = dlf.as_storage(first.to_numpy(), Raw(first))
    assert again.sync_state is first.sync_state


def test_another_state_for_two_raw_buffers_of_a_pair_is_refused():
    first = dlf.zeros(3, device="gpu")
    with pytest.raises(ValueError, match="sync_state: expected the buffers of one pair"):
        dlf.as_storage(first.to_numpy(), Raw(first), sync_state=dlf.SyncState())
