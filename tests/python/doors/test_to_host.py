"""device="cpu": memory of a device is asked for on the host, which no machine without one needs."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.dlpack_structs import DLDevice, Producer
from support.no_driver import no_driver, without_driver


class OnDevice(Producer):
    """Announces a device, and exports host memory on request."""

    def __init__(self, *arguments, device=(2, 0), **keywords):
        super().__init__(*arguments, **keywords)
        self.device = device

    def __dlpack_device__(self):
        return self.device


HOST = pytest.mark.parametrize("device", [None, "cpu"])


@HOST
def test_shared_memory_is_asked_for_on_the_host_without_a_copy(device):
    producer = OnDevice()
    storage = dlf.as_storage(producer, device=device)
    (asked,) = producer.calls
    assert asked == {"max_version": (1, 3), "dl_device": (1, 0), "copy": False}
    assert address_of(storage) == producer.managed.dl_tensor.data


@without_driver
@HOST
def test_a_copy_may_be_made_by_the_producer(device):
    producer = OnDevice()
    storage = dlf.storage(producer, device=device)
    assert producer.calls == [{"max_version": (1, 3), "dl_device": (1, 0)}]
    assert (storage.to_numpy()[2, 3], producer.freed) == (11, 1)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`storage(copy=False)` does what `as_storage` does"
)
def test_storage_without_a_copy_asks_as_as_storage_does():
    producer = OnDevice()
    dlf.storage(producer, copy=False, device="cpu")
    assert producer.calls[0]["copy"] is False


@without_driver
@pytest.mark.parametrize("take", [dlf.as_storage, dlf.storage])
@pytest.mark.parametrize("number", [0, 1])
def test_without_being_asked_nothing_leaves_its_device(take, number):
    producer = OnDevice(device=(2, number))
    with no_driver(f"memory on cuda:{number}: "):
        take(producer)
    assert producer.calls == []


def test_without_being_asked_no_memory_of_rocm_is_copied_and_it_is_given_back():
    producer = OnDevice(device=(10, 1))
    producer.managed.dl_tensor.device = DLDevice(10, 1)
    with pytest.raises((dlf.DeviceUnavailable, BufferError)):
        dlf.storage(producer)
    assert (producer.calls, producer.freed) == ([{"max_version": (1, 3), "copy": False}], 1)


@without_driver  # where there is one, it is the device's
@pytest.mark.parametrize("options", [{}, {"device": "cpu"}])
def test_memory_that_a_device_may_be_writing_is_asked_for_on_the_host(options):
    producer = OnDevice(device=(13, 0))
    dlf.as_storage(producer, **options)
    assert producer.calls == [{"max_version": (1, 3), "dl_device": (1, 0), "copy": False}]


def test_pinned_memory_is_host_memory_as_it_is():
    producer = OnDevice(device=(3, 0))
    dlf.as_storage(producer)
    assert producer.calls == [{"max_version": (1, 3), "copy": False}]


@without_driver
def test_a_signature_that_cannot_be_asked_is_not_asked_for_less():
    class Old(OnDevice):
        def __dlpack__(self, *, stream=None, max_version=None):
            raise AssertionError("never entered")

    with pytest.raises(dlf.DeviceUnavailable, match="copy the array to the host first"):
        dlf.storage(Old(), device="cpu")


def test_what_the_producer_answers_passes_unchanged():
    class Refusing(OnDevice):
        def __dlpack__(self, **_keywords):
            raise BufferError("not without a copy")

    with pytest.raises(BufferError, match=r"^not without a copy$"):
        dlf.as_storage(Refusing(), device="cpu")


@without_driver
def test_a_producer_that_leaves_the_memory_where_it_is_is_refused_and_released():
    producer = OnDevice()
    producer.managed.dl_tensor.device.device_type = 2
    with no_driver("memory on cuda:0: "):
        dlf.as_storage(producer, device="cpu")
    assert producer.freed == 1


def test_an_unknown_device_is_refused_before_the_producer_is_asked():
    producer = OnDevice()
    with pytest.raises(ValueError, match="device: expected"):
        dlf.as_storage(producer, device="tpu")
    assert producer.calls == []


def test_host_memory_is_taken_as_ever():
    array = np.zeros(3)
    assert address_of(dlf.as_storage(array, device="cpu")) == array.ctypes.data


@without_driver
@pytest.mark.parametrize("take", [dlf.as_numpy, lambda data: dlf.storage(data, dtype="float32")])
def test_a_capsule_of_a_device_is_never_shown_to_numpy(take):
    producer = Producer()
    producer.managed.dl_tensor.device.device_type = 2
    with no_driver("memory on cuda:0: "):
        take(producer)
    assert producer.freed == 1
