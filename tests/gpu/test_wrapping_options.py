"""Options and names of storages around two buffers, and which of the two is copied."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import in_state, values
from support.cuda.devices import OnDevice
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER, every_kind

VALUES = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "options",
    [{"layout": (1, 0)}, {"alignment_size": 4096}, {"dims": "I"}, {"halo": (1,)}, {"halo": (2, 0)}],
    ids=repr,
)
def test_options_that_do_not_hold_for_a_buffer_are_refused(options):
    array, data = VALUES.copy(), OnDevice(VALUES[:, ::-1])
    data.interface["data"] = (data.address + 8, False)  # off any boundary
    data.interface["shape"], array = (2, 2), array[:, 1:]
    for arguments in ((array, data), (None, data), (dlf.as_storage(array, data),)):
        with pytest.raises(ValueError, match=next(iter(options))):
            dlf.as_storage(*arguments, **options)


def test_options_have_to_hold_for_both_buffers():
    turned = dlf.zeros((3, 3), layout=(1, 0), device="gpu", managed=None)
    for data, layout in (
        ((np.zeros((3, 3)), turned), (0, 1)),
        ((np.zeros((3, 3)), turned), (1, 0)),
    ):
        with pytest.raises(ValueError, match="layout"):
            dlf.as_storage(*data, layout=layout)


def test_what_is_known_comes_from_the_data_and_the_options():
    known = dlf.storage(VALUES, dims="IJ", halo=(1, 1))
    made = dlf.as_storage(known, OnDevice(VALUES))
    assert (made.dims, made.halo) == (("I", "J"), ((1, 1), (1, 1)))
    made = dlf.as_storage(VALUES.copy(), OnDevice(VALUES), dims="IJ", halo=(0, (1, 0)))
    assert (made.dims, made.halo) == (("I", "J"), ((0, 0), (1, 0)))


def test_buffers_whose_names_contradict_each_other_are_refused():
    options = {"device": "gpu", "managed": None}
    with pytest.raises(ValueError, match="dims"):
        dlf.as_storage(dlf.zeros((2, 2), dims="IJ"), dlf.zeros((2, 2), dims="JI", **options))


@pytest.mark.source("GDP-3", "Storage Creation", "`storage(device_data=…)` copies a device buffer")
@pytest.mark.parametrize(
    ("state", "sign"), [(None, -1), (CLEAN, -1), (HOST_NEWER, 1), (DEVICE_NEWER, -1)]
)
def test_of_two_buffers_the_newer_one_is_copied(state, sign):
    given = None if state is None else in_state(state)
    array, data = VALUES.copy(), OnDevice(-VALUES)
    for options in ({}, {"device": "cpu"}, {"device": "gpu", "managed": None}):
        made = dlf.storage(array, data, sync_state=given, **options)
        np.testing.assert_array_equal(values(made), sign * VALUES)
    assert given is None or given.state == state


@every_kind
def test_options_have_to_hold_for_one_buffer_too(managed):
    made = dlf.zeros((4, 5), layout=(1, 0), device="gpu", managed=managed)
    for options in ({"layout": (0, 1)}, {"alignment_size": 2**16}, {"halo": (5, 0)}, {"dims": "I"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            dlf.as_storage(made[1:], **options)
    assert dlf.as_storage(made, layout=(1, 0), alignment_size=8).alignment_size == 8


@every_kind
def test_labels_for_shared_memory_belong_to_the_new_storage_only(managed):
    made = dlf.storage(VALUES, device="gpu", managed=managed)
    shared = dlf.as_storage(made, dims="IJ", halo=(0, (1, 0)))
    assert (shared.dims, shared.halo) == (("I", "J"), ((0, 0), (1, 0)))
    assert (made.dims, made.halo) == (None, ((0, 0), (0, 0)))
    shared.domain_view[...] = -1
    assert values(made).tolist() == [[0, -1, -1], [3, -1, -1]]
