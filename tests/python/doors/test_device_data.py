"""`device_data=` without a driver: memory that claims to be on a GPU is refused."""

import re
from functools import partial

import dlfield as dlf
import numpy as np
import pytest

from support.dlpack_structs import DLDevice, Producer
from support.no_driver import NO_DRIVER, without_driver
from support.parameters import readable
from support.stencils.stand_ins import OnDevice

#: What takes a buffer of a device, alone or beside one of the host.
TAKERS = {
    "as_storage": dlf.as_storage,
    "storage": dlf.storage,
    "storage without a copy": partial(dlf.storage, copy=False),
}
every_taker = pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
every_data = pytest.mark.parametrize("data", [None, np.zeros(2)], ids=["alone", "beside data"])


class OnCuda(Producer):
    """Announces a CUDA device, and hands out a capsule there."""

    def __init__(self):
        super().__init__((2,))
        self.managed.dl_tensor.device = DLDevice(2, 0)

    def __dlpack_device__(self):
        return (2, 0)


class Described:
    """Memory of the host that claims to be on a GPU, as memory of CuPy does."""

    def __init__(self):
        self.array = np.ones(2)
        self.__cuda_array_interface__ = self.array.__array_interface__


ON_A_GPU = {
    "DLPack": OnCuda,
    "CUDA array interface": Described,
    "data interface": lambda: OnDevice(np.ones(2)),
}
every_door = pytest.mark.parametrize("make", ON_A_GPU.values(), ids=ON_A_GPU)


@every_taker
@every_data
def test_host_memory_is_refused_as_a_device_buffer(take, data):
    with pytest.raises(
        BufferError,
        match="device_data: expected memory on a GPU, got memory on cpu; pass it as data",
    ):
        take(data, np.ones(2))


@without_driver
@every_taker
@every_door
@pytest.mark.parametrize(
    ("data", "managed"), [(None, None), (None, "gt4py"), (np.zeros(2), "gt4py")], ids=readable
)
def test_without_a_driver_no_buffer_of_a_device_is_taken(take, make, data, managed):
    with pytest.raises(dlf.DeviceUnavailable, match=re.escape(NO_DRIVER)):
        take(data, make(), managed=managed)


@without_driver
@every_taker
def test_a_capsule_that_is_refused_as_device_data_is_not_asked_for(take):
    producer = OnCuda()
    with pytest.raises(dlf.DeviceUnavailable):
        take(np.zeros(2), producer)
    assert producer.calls == []
