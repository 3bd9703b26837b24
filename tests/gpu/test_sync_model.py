"""Random operations on a pair, against two arrays and a state: what is copied, and what is not."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cuda.buffers import Counted, buffers
from support.cuda.devices import OnDevice, write
from support.cuda.driver import REAL
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER
from support.view_model import basic_keys


class Model:
    """A pair, a view of it, and what both of its buffers and the state have to be."""

    def __init__(self, storage, key):
        self.storage, self.key = storage, key
        self.view = storage[key]
        storage[...] = 0
        storage.synchronize()
        self.memory = storage.to_numpy()  # to write behind dlfield's back
        self.host, self.device, self.state = np.zeros(storage.shape), np.zeros(storage.shape), CLEAN
        self.number, self.copied = 0.0, [0, 0]

    def next(self):
        """A number that was nowhere before."""
        self.number += 1
        return self.number

    def to_host(self, *, force=False):
        if self.state == DEVICE_NEWER or force:
            self.host, self.state = self.device.copy(), CLEAN
            self.copied[1] += 1

    def to_device(self, *, force=False):
        if self.state == HOST_NEWER or force:
            self.device, self.state = self.host.copy(), CLEAN
            self.copied[0] += 1

    def check(self):
        host, device = buffers(self.storage)
        np.testing.assert_array_equal(host, self.host)
        np.testing.assert_array_equal(device, self.device)
        assert self.storage.sync_state.state == self.state


OPERATIONS = {}


def operation(function):
    OPERATIONS[function.__name__] = function
    return function


@operation
def write_to_the_host(model, whom):
    number = model.next()
    model.memory[...] = model.host[...] = number


@operation
def write_to_the_device(model, whom):
    model.device[...] = model.next()
    start = model.storage.__gt_data_interface__["gpu"]["data"][0]
    strides = model.storage.strides
    for index in np.ndindex(model.device.shape):  # padding stays as it is
        step = sum(i * stride for i, stride in zip(index, strides, strict=True))
        write(start + step, model.device[index])


@operation
def set_host_modified(model, whom):
    whom.set_host_modified()
    model.state = HOST_NEWER


@operation
def set_device_modified(model, whom):
    whom.set_device_modified()
    model.state = DEVICE_NEWER


@operation
def set_synchronized(model, whom):
    whom.set_synchronized()
    model.state = CLEAN


@operation
def device_to_host(model, whom):
    whom.device_to_host()
    model.to_host()


@operation
def device_to_host_by_force(model, whom):
    whom.device_to_host(force=True)
    model.to_host(force=True)


@operation
def host_to_device(model, whom):
    whom.host_to_device()
    model.to_device()


@operation
def host_to_device_by_force(model, whom):
    whom.host_to_device(force=True)
    model.to_device(force=True)


@operation
def synchronize(model, whom):
    whom.synchronize()
    model.to_host()
    model.to_device()


@operation
def read_on_the_host(model, whom):
    found = np.array(whom)
    model.to_host()
    expected = model.host if whom is model.storage else model.host[model.key]
    np.testing.assert_array_equal(found, expected)


@operation
def read_on_the_device(model, whom):
    assert "data" in whom.__cuda_array_interface__
    model.to_device()


@operation
def look_at_the_interface(model, whom):
    assert set(whom.__gt_data_interface__) == {None, "gpu"}


def part(model, whom):
    return ... if whom is model.storage else model.key


@operation
def write_in_the_block_of_the_host(model, whom):
    number = model.next()
    with whom.host() as array:
        array[...] = number
    model.to_host()
    model.host[part(model, whom)] = number
    model.state = HOST_NEWER


@operation
def touch_in_the_block_of_the_device(model, whom):
    with whom.device():
        pass
    model.to_device()
    model.state = DEVICE_NEWER


@operation
def assign_a_number(model, whom):
    number = model.next()
    whom[...] = number
    model.to_host()
    model.host[part(model, whom)] = number
    model.state = HOST_NEWER


@operation
def assign_what_is_on_a_device(model, whom):
    number = model.next()
    whom[...] = OnDevice(np.full(whom.shape, number))
    model.to_device()
    model.device[part(model, whom)] = number
    model.state = DEVICE_NEWER


#: What copies by itself: its copies are not counted.
UNCOUNTED = {"write_to_the_device", "assign_what_is_on_a_device"}


@st.composite
def pairs(draw):
    """A pair in any layout, with padding or without, and a key of a view."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    storage = dlf.empty(
        shape,
        layout=draw(st.permutations(range(len(shape)))),
        alignment_size=draw(st.sampled_from([1, 1, 64])),
        halo=[draw(st.integers(0, extent // 2)) for extent in shape],
        device="gpu",
    )
    key = draw(basic_keys(shape).filter(lambda key: isinstance(storage[key], dlf.Storage)))
    return Model(storage, key)


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "a pair of buffers tracks which one has changed"
)
@pytest.mark.source(
    "GDP-3",
    "Storage Types",
    "`SoftwareManagedGPUStorage` has a host and a device buffer, kept equal by the library",
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Types", "`SoftwareManagedGPUStorage` has a host and a device buffer"
)
@given(pairs(), st.data())
@settings(max_examples=60)
def test_a_pair_and_its_views_are_what_their_buffers_and_their_state_say(model, data):
    dense = model.storage.alignment_size == 1
    for _ in range(data.draw(st.integers(1, 12), "length")):
        name = data.draw(st.sampled_from(sorted(OPERATIONS)))
        whom = data.draw(st.sampled_from([model.storage, model.view]))
        model.copied = [0, 0]
        if REAL or name in UNCOUNTED:
            OPERATIONS[name](model, whom)
        else:
            with Counted() as copies:
                OPERATIONS[name](model, whom)
            counted = [copies.to_device, copies.to_host]
            if dense:  # in one go
                assert counted == model.copied
            else:
                assert [count > 0 for count in counted] == [count > 0 for count in model.copied]
        model.check()


@pytest.mark.source(
    "GDP-3",
    "Methods",
    "`device_to_host` copies if the device is modified, or with `force=True`",
    "`host_to_device` copies if the host is modified, or with `force=True`",
    "after `device_to_host` or `host_to_device`, both buffers count as equal",
    "after `set_device_modified`, the next access on the host copies first",
    "after `set_host_modified`, the next access on the device copies first",
    "`synchronize` copies the newer buffer, and both count as equal",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Methods",
    "`set_device_modified` and `set_host_modified` mark a buffer",
    "`host_to_device` and `device_to_host` copy if needed, or with `force=True`",
    "after `host_to_device` or `device_to_host`, both buffers count as equal",
    "`synchronize` copies the newer buffer",
)
@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.parametrize("state", [CLEAN, HOST_NEWER, DEVICE_NEWER])
def test_every_operation_does_in_every_state_what_the_model_says(name, state):
    for key in (..., np.s_[1:, ::-1]):
        model = Model(dlf.empty((3, 2), device="gpu", layout=(1, 0)), key)
        write_to_the_host(model, model.view)
        write_to_the_device(model, model.view)
        model.view.sync_state.state = model.state = state
        OPERATIONS[name](model, model.view)
        model.check()
