"""Which buffer of a pair is newer: before an access its side is brought up to date, by one copy."""

import pickle

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import Counted, buffers, pair, values
from support.cuda.devices import LEGACY, delay, read
from support.cuda.kinds import CLEAN, DEVICE_NEWER, HOST_NEWER, KINDS, every_class, every_state

VALUES = np.arange(6.0).reshape(2, 3)

#: Accesses to the host.
ON_HOST = {
    "to_numpy": lambda s: s.to_numpy(),
    "asarray": np.asarray,
    "array": np.array,
    "another dtype": lambda s: np.asarray(s, "int8"),
    "memoryview": memoryview,
    "data": lambda s: s.data,
    "array interface": lambda s: s.__array_interface__,
    "DLPack on the host": lambda s: s.__dlpack__(dl_device=(1, 0)),
    "copy by DLPack": lambda s: s.__dlpack__(dl_device=(1, 0), copy=True),
    "number": lambda s: s[1, 2],
    "advanced key": lambda s: s[[1, 0]],
    "mask": lambda s: s[VALUES > 2],
    "item": lambda s: s.item(3),
    "float": lambda s: float(s[0, :1]),
    "repr": repr,
    "pickle": pickle.dumps,
    "pickle out of band": lambda s: pickle.dumps(s, 5, buffer_callback=lambda buffer: None),
    "as_storage": lambda s: dlf.as_storage(s, device="cpu"),
    "as_numpy": dlf.as_numpy,
    "storage": lambda s: dlf.storage(s, device="cpu"),
    "device_to_host": lambda s: s.device_to_host(),
    "synchronize": lambda s: s.synchronize(),
    "a view": lambda s: s.T[1:].to_numpy(),
    "an element of a view": lambda s: s[1][0],
}
#: Accesses to the device.
ON_DEVICE = {
    "CUDA array interface": lambda s: s.__cuda_array_interface__,
    "DLPack on the device": lambda s: s.__dlpack__(dl_device=(2, 0)),
    "copy by DLPack": lambda s: s.__dlpack__(dl_device=(2, 0), copy=True),
    "host_to_device": lambda s: s.host_to_device(),
    "synchronize": lambda s: s.synchronize(),
    "a view": lambda s: s[::-1].__cuda_array_interface__,
    "device side": lambda s: s._device_side(),
}
#: What needs no value, or takes the newer side as it is.
NEITHER = {
    name: lambda s, name=name: getattr(s, name)
    for name in (
        *("shape", "strides", "dtype", "ndim", "size", "nbytes", "itemsize", "dims", "halo", "T"),
        *("layout", "aligned_index", "alignment_size", "readonly", "device", "device_id", "door"),
        *("domain_view", "sync_state", "__gt_data_interface__", "__dlpack_c_exchange_api__"),
    )
} | {
    "len": len,
    "view": lambda s: s[1:, ::-1],
    "transpose": np.transpose,
    "DLPack's device": lambda s: s.__dlpack_device__(),
    "like": dlf.zeros_like,
    "as_storage": dlf.as_storage,
    "the device's name": lambda s: str(s.device),
    "the block of the host, not entered": lambda s: s.host(),
    "the block of the device, not entered": lambda s: s.device(),
}


@pytest.mark.source(
    "GDP-3", "Methods", "after `set_device_modified`, the next access on the host copies first"
)
@pytest.mark.parametrize("access", ON_HOST.values(), ids=ON_HOST)
def test_an_access_on_the_host_finds_the_newer_values_there(access):
    made = pair(VALUES, DEVICE_NEWER)
    access(made)
    np.testing.assert_array_equal(buffers(made)[0], VALUES)
    assert made.sync_state.state == CLEAN


@pytest.mark.source(
    "GDP-3", "Methods", "after `set_host_modified`, the next access on the device copies first"
)
@pytest.mark.parametrize("access", ON_DEVICE.values(), ids=ON_DEVICE)
def test_an_access_on_the_device_finds_the_newer_values_there(access):
    made = pair(VALUES, HOST_NEWER)
    access(made)
    np.testing.assert_array_equal(buffers(made)[1], VALUES)
    assert made.sync_state.state == CLEAN


@pytest.mark.stand_in
@pytest.mark.parametrize("access", ON_HOST.values(), ids=ON_HOST)
def test_the_first_access_on_the_host_makes_one_copy_and_the_next_none(access):
    made = pair(VALUES, DEVICE_NEWER)
    with Counted() as copies:
        access(made)
    assert (copies.to_host, copies.to_device) == (1, 0)
    with Counted() as copies:
        access(made)
        made.to_numpy()
    assert copies.made == 0


@pytest.mark.stand_in
@pytest.mark.parametrize("access", ON_DEVICE.values(), ids=ON_DEVICE)
def test_the_first_access_on_the_device_makes_one_copy_and_the_next_none(access):
    made = pair(VALUES, HOST_NEWER)
    with Counted() as copies:
        access(made)
    assert (copies.to_host, copies.to_device) == (0, 1)
    with Counted() as copies:
        access(made)
    assert (copies.to_host, copies.to_device) == (0, 0)


@pytest.mark.stand_in
@pytest.mark.parametrize("access", ON_HOST.values(), ids=ON_HOST)
def test_an_access_on_the_host_copies_nothing_where_the_host_is_newer(access):
    made = pair(VALUES, HOST_NEWER)
    with Counted() as copies:
        access(made)
    assert copies.made == (access is ON_HOST["synchronize"])


@pytest.mark.stand_in
@pytest.mark.parametrize("access", NEITHER.values(), ids=NEITHER)
@every_state
def test_what_is_known_without_values_copies_nothing(access, state):
    made = pair(VALUES, state)
    with Counted() as copies:
        access(made)
    assert (copies.made, made.sync_state.state) == (0, state)


@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER], ids=["host newer", "device newer"])
def test_explaining_a_pair_leaves_it_as_it_is(state):
    made = pair(VALUES, state)
    before = buffers(made)
    dlf.explain(made)
    assert made.sync_state.state == state
    np.testing.assert_array_equal(buffers(made), before)


@pytest.mark.stand_in
@pytest.mark.parametrize(
    "access",
    [name for name in ON_DEVICE if name not in ("host_to_device", "synchronize")],
)
def test_an_access_on_the_device_does_not_wait_for_the_copy(access):
    made = dlf.storage(VALUES, device="gpu")
    assert made.sync_state.state == HOST_NEWER
    with Counted() as copies:
        found = ON_DEVICE[access](made)
    assert (copies.to_device, copies.waits) == (1, 0)
    del found


def test_a_view_of_the_host_may_be_written_as_soon_as_its_values_are_on_their_way():
    made = dlf.storage(VALUES, device="gpu")
    array = made.to_numpy()
    made.set_host_modified()
    delay(LEGACY)  # dlfield's stream keeps order with this one
    interface = made.__cuda_array_interface__
    array[...] = -1
    there = read(interface["data"][0], VALUES.shape, VALUES.dtype)
    np.testing.assert_array_equal(there, VALUES)


@pytest.mark.stand_in
@pytest.mark.parametrize("method", ["host_to_device", "synchronize"])
def test_a_consumer_without_a_stream_waits_for_the_work(method):
    made = pair(VALUES, HOST_NEWER)
    with Counted() as copies:
        getattr(made, method)()
    assert copies.to_device == 1
    assert copies.waits > 0


@pytest.mark.source(
    "GDP-3",
    "Methods",
    "`device_to_host` copies if the device is modified, or with `force=True`",
    "`host_to_device` copies if the host is modified, or with `force=True`",
    "after `device_to_host` or `host_to_device`, both buffers count as equal",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Methods",
    "`host_to_device` and `device_to_host` copy if needed, or with `force=True`",
    "after `host_to_device` or `device_to_host`, both buffers count as equal",
)
@every_state
def test_force_copies_whatever_the_state_is(state):
    made = pair(VALUES, state)
    host, device = buffers(made)
    made.device_to_host(force=True)
    assert made.sync_state.state == CLEAN
    np.testing.assert_array_equal(buffers(made), [device, device])
    made.to_numpy()[...] = host
    made.sync_state.state = state
    made.host_to_device(force=True)
    assert made.sync_state.state == CLEAN
    np.testing.assert_array_equal(buffers(made), [host, host])


@pytest.mark.parametrize("wrong", [(True,), ("force",)], ids=repr)
def test_force_is_given_by_name(wrong):
    made = pair(VALUES)
    for method in (made.device_to_host, made.host_to_device):
        with pytest.raises(TypeError):
            method(*wrong)


@pytest.mark.source("GDP-3", "Methods", "`set_synchronized` marks both buffers as equal")
@pytest.mark.parametrize(("state", "older"), [(HOST_NEWER, 1), (DEVICE_NEWER, 0)])
def test_buffers_marked_as_equal_are_not_copied(state, older):
    made = pair(VALUES, state)
    made.set_synchronized()
    assert made.sync_state.state == CLEAN
    assert (buffers(made)[older] == -77).all()


METHODS = ("device_to_host", "host_to_device", "set_device_modified", "set_host_modified")
METHODS += ("set_synchronized", "synchronize")


@every_class
def test_every_class_has_the_methods_of_gdp_3_and_keeps_its_values(name, options):
    made = dlf.storage(VALUES, **options)
    made.synchronize()
    for method in METHODS:
        assert getattr(made, method)() is None
        np.testing.assert_array_equal(values(made), VALUES)
    made.device_to_host(force=True)
    made.host_to_device(force=True)
    np.testing.assert_array_equal(values(made), VALUES)


@pytest.mark.source(
    "GDP-3",
    "Methods",
    "every storage has the six synchronisation methods, which do nothing with one buffer",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Methods",
    "every storage has the synchronisation methods, which do nothing with one buffer",
)
@pytest.mark.stand_in
@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"SoftwareManagedGPUStorage"}))
def test_where_there_is_one_buffer_the_methods_copy_nothing(name):
    made = dlf.storage(VALUES, **KINDS[name])
    with Counted() as copies:
        for method in METHODS:
            getattr(made, method)()
        made.device_to_host(force=True)
        made.host_to_device(force=True)
    assert copies.made == 0
