"""Data of others that becomes a storage on a GPU: read-only, without elements, with an owner, with
GT4Py's data interface.
"""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import buffers, values
from support.cuda.devices import OnDevice
from support.cuda.kinds import (
    CLASSES,
    DEVICE_NEWER,
    HOST_NEWER,
    every_kind,
    host_backed,
    two_devices,
)
from support.owners import tracked

VALUES = np.arange(6.0).reshape(2, 3)


def read_only():
    array = VALUES.copy()
    array.flags.writeable = False
    return array


def test_a_pair_around_host_memory_that_must_not_be_written_is_read_only():
    array = read_only()
    made = dlf.as_storage(array, device="gpu")
    assert made.readonly
    assert made[1:].T.readonly
    for value in (1, VALUES, OnDevice(VALUES), dlf.GPUStorage(VALUES)):
        for key in (..., (0, 0), [0, 1]):
            with pytest.raises(BufferError, match=r"read-only.*copy\(\)"):
                made[key] = value
    assert not made.to_numpy().flags.writeable
    assert memoryview(made).readonly
    np.testing.assert_array_equal(array, VALUES)


def test_a_pair_around_host_memory_that_must_not_be_written_can_be_read_on_the_gpu():
    made = dlf.as_storage(read_only(), device="gpu")
    made.host_to_device()
    np.testing.assert_array_equal(buffers(made)[1], VALUES)


def test_storage_on_a_gpu_of_a_read_only_cuda_array_is_read_only():
    data = OnDevice(VALUES, readonly=True)
    made = dlf.as_storage(data, managed=None)
    assert made.readonly
    assert made.__cuda_array_interface__["data"] == (data.address, True)
    for key in (..., (0, 0), [0, 1]):
        with pytest.raises(BufferError, match=r"read-only.*copy\(\)"):
            made[key] = 1
    np.testing.assert_array_equal(data.values(), VALUES)


def test_a_pair_around_a_read_only_cuda_array_is_read_only():
    made = dlf.as_storage(OnDevice(VALUES, readonly=True))
    assert made.readonly
    with pytest.raises(BufferError, match="read-only"):
        made[0, 0] = 1


def test_every_door_of_a_read_only_pair_says_so():
    made = dlf.as_storage(read_only(), device="gpu")
    assert made.__cuda_array_interface__["data"][1]
    with made.device() as side:
        assert side.readonly


@every_kind
def test_a_copy_of_read_only_data_can_be_written(managed):
    for data in (read_only(), OnDevice(VALUES, readonly=True), np.broadcast_to(1.0, (2, 3))):
        made = dlf.storage(data, device="gpu", managed=managed)
        made[...] = -1
        assert (values(made) == -1).all()


def test_what_is_repeated_is_shared_read_only_and_copied_once_to_the_gpu():
    made = dlf.as_storage(np.broadcast_to(np.arange(3.0), (2, 3)), device="gpu")
    assert made.readonly
    made.host_to_device()
    np.testing.assert_array_equal(buffers(made)[1], np.broadcast_to(np.arange(3.0), (2, 3)))


SMALL = [
    np.zeros((0,)),
    np.zeros((3, 0, 2), "i4"),
    np.array(2.5),
    np.array(1, "?"),
    np.ones((1, 1)),
]
every_small = pytest.mark.parametrize("array", SMALL, ids=lambda one: f"{one.shape} {one.dtype}")


@every_kind
@every_small
def test_storages_without_elements_or_dimensions_are_copied(array, managed):
    for data in (array.copy(), OnDevice(array), dlf.storage(array, device="gpu")):
        made = dlf.storage(data, device="gpu", managed=managed)
        assert (made.shape, made.nbytes) == (array.shape, array.nbytes)
        np.testing.assert_array_equal(values(made), array, strict=True)


@every_small
def test_storages_without_elements_or_dimensions_are_shared(array):
    for made in (
        dlf.as_storage(array.copy(), device="gpu"),
        dlf.as_storage(OnDevice(array)),
        dlf.as_storage(array.copy(), OnDevice(array)),
    ):
        made.synchronize()
        made.set_device_modified()
        made.synchronize()
        made.set_host_modified()
        made.synchronize()
        assert made.shape == array.shape
        np.testing.assert_array_equal(made.to_numpy(), array, strict=True)
        np.testing.assert_array_equal(buffers(made)[1], array, strict=True)


@host_backed
def test_a_copy_holds_nothing_of_its_data(managed):
    array, watch = tracked(VALUES)
    made = dlf.storage(array, device="gpu", managed=managed)
    del array
    assert watch.freed
    np.testing.assert_array_equal(values(made), VALUES)


def test_a_pair_holds_its_data_until_the_last_view_is_gone():
    array, watch = tracked(VALUES)
    made = dlf.as_storage(array, device="gpu")
    view, exported = made[1:], made.to_numpy()
    del array, made
    assert not watch.freed
    del exported
    np.testing.assert_array_equal(values(view), VALUES[1:])
    del view
    assert watch.freed


class OnGpu:
    """Shows memory of a GPU, and perhaps of the host, by GT4Py's data interface alone."""

    def __init__(self, there, here=None):
        self.there, self.here, self.calls = OnDevice(there), here, []

    @property
    def __gt_data_interface__(self):
        interface = {"gpu": {**self.there.interface, **self._noting("gpu")}}
        if self.here is not None:
            interface[None] = {**self.here.__array_interface__, **self._noting("host")}
        return interface

    def _noting(self, side):
        names = ("acquire", "touch", "release")
        return {name: lambda name=name: self.calls.append(f"{name} {side}") for name in names}


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    'the key "gpu" stands for memory of a GPU',
    "the CUDA array interface of a CuPy array can be passed on unchanged",
)
@pytest.mark.source(
    "Interface note", "`__gt_interface__`", 'the key None is main memory, "gpu" a GPU'
)
@pytest.mark.parametrize(
    "options", [{}, {"device": "gpu"}, {"managed": None}, {"managed": "gt4py"}], ids=repr
)
def test_a_data_interface_with_a_buffer_on_a_gpu_is_shared(options):
    data = OnGpu(VALUES)
    made = dlf.as_storage(data, **options)
    assert type(made) is CLASSES[options.get("managed", "gt4py")]
    assert made.__cuda_array_interface__["data"][0] == data.there.address
    np.testing.assert_array_equal(values(made), VALUES)
    assert data.calls == ["acquire gpu"]
    del made
    assert data.calls == ["acquire gpu", "release gpu"]


@pytest.mark.parametrize(
    "options", [{}, {"device": "cpu"}, {"device": "gpu"}, {"managed": None}], ids=repr
)
def test_a_data_interface_with_a_buffer_on_a_gpu_is_copied(options):
    data = OnGpu(VALUES)
    np.testing.assert_array_equal(values(dlf.storage(data, **options)), VALUES)
    assert data.calls == ["acquire gpu", "release gpu"]


def test_a_data_interface_may_be_the_device_data_of_a_pair():
    data = OnGpu(VALUES)
    made = [dlf.as_storage(VALUES.copy(), data), dlf.as_storage(device_data=data)]
    for one in made:
        assert one.__cuda_array_interface__["data"][0] == data.there.address
    assert data.calls == ["acquire gpu"] * 2
    del made, one
    assert data.calls[2:] == ["release gpu"] * 2


@pytest.mark.source(
    "Interface note", "Examples", "a class with buffers on host and GPU copies when it is told"
)
def test_a_data_interface_with_both_buffers_serves_both_sides_of_a_pair():
    array = -VALUES
    data = OnGpu(VALUES, array)
    made = dlf.as_storage(data, data)
    assert np.shares_memory(made.to_numpy(), array)
    assert made.__cuda_array_interface__["data"][0] == data.there.address
    assert sorted(data.calls) == ["acquire gpu", "acquire host"]
    del made
    assert sorted(data.calls[2:]) == ["release gpu", "release host"]


@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER])
def test_what_a_pair_brings_up_to_date_is_the_buffer_of_the_interface(state):
    array = -VALUES
    data, given = OnGpu(VALUES, array), dlf.SyncState()
    given.state = state
    dlf.as_storage(data, data, sync_state=given).synchronize()
    newer = -VALUES if state == HOST_NEWER else VALUES
    np.testing.assert_array_equal(array, newer)
    np.testing.assert_array_equal(data.there.values(), newer)


@two_devices
@pytest.mark.parametrize("number", [0, 1])
def test_the_buffer_of_the_gpu_with_the_requested_number_is_taken(number):
    parts = [OnDevice(VALUES, device=number) for number in range(2)]

    class OnTwo:
        @property
        def __gt_data_interface__(self):
            return {("gpu", at): part.interface for at, part in enumerate(parts)}

    made = dlf.as_storage(OnTwo(), device=("gpu", number), managed=None)
    assert made.__cuda_array_interface__["data"][0] == parts[number].address
    assert made.device_id == number


@pytest.mark.parametrize("option", ["device", "defaults", "backend"])
def test_the_buffer_of_an_object_is_taken_where_a_preset_computes(option):
    host, device = np.zeros(6), OnDevice(np.zeros(6))

    class OnBoth:
        __gt_data_interface__ = property(
            lambda _self: {None: host.__array_interface__, "gpu": device.interface}
        )

    value = "gpu" if option == "device" else "gt:gpu"
    made = dlf.as_storage(OnBoth(), **{option: value}, managed=None)
    assert made.__cuda_array_interface__["data"][0] == device.address


@pytest.mark.parametrize(("option", "value"), [("dtype", "float32"), ("shape", (7,))])
def test_buffers_that_are_shared_are_neither_converted_nor_reshaped(option, value):
    with pytest.raises(ValueError, match=f"{option}: expected .*, got"):
        dlf.storage(VALUES.copy(), OnDevice(VALUES), copy=False, **{option: value})
