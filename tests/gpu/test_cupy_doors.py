"""`to_cupy`, `to_ndarray`, `device_data` and advanced keys: CuPy gets the side of the device.

CuPy itself is not needed: a module of its name notes what it is given.
"""

import inspect
import sys
import types

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import pair, values
from support.cuda.devices import OnDevice
from support.cuda.kinds import HOST_NEWER, every_kind, every_state

VALUES = np.arange(6.0).reshape(2, 3)


class Array:
    """Stands for an array of CuPy."""

    def __init__(self, source):
        self.source, self.data = source, object()

    def __getitem__(self, key):
        return self.source, key


@pytest.fixture
def cupy(monkeypatch):
    """A module that makes arrays of any argument."""
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(from_dlpack=Array))


@pytest.fixture
def without_cupy(monkeypatch):
    """Importing CuPy fails, whether it is installed or not."""
    monkeypatch.setitem(sys.modules, "cupy", None)


NEED_CUPY = {
    "to_cupy": lambda storage: storage.to_cupy(),
    "to_ndarray": lambda storage: storage.to_ndarray(),
    "device_data": lambda storage: storage.device_data,
}
every_need = pytest.mark.parametrize("need", NEED_CUPY)


@pytest.mark.source(
    "GDP-3",
    "Methods",
    "`to_cupy()` is a view of the device buffer",
    "`to_ndarray()` is a view of the device buffer if there is one",
)
@pytest.mark.usefixtures("cupy")
@every_kind
@every_need
def test_cupy_is_given_the_side_of_the_device(need, managed):
    made = dlf.storage(VALUES, device="gpu", managed=managed)
    for storage in (made, made[1:, ::2]):
        found = NEED_CUPY[need](storage)
        if need == "device_data":
            assert type(found) is object  # the array's own `data`
            continue
        assert type(found.source) is dlf.GPUStorage
        assert found.source.__dlpack_device__() == (2, 0)
        there = [s.__cuda_array_interface__["data"] for s in (found.source, storage)]
        assert there[0] == there[1]
        np.testing.assert_array_equal(values(found.source), values(storage))


@pytest.mark.usefixtures("cupy")
@every_need
@every_state
def test_the_side_of_the_device_is_up_to_date_for_cupy(need, state):
    made = pair(VALUES, state)
    NEED_CUPY[need](made)
    assert made.sync_state.state == (state if state != HOST_NEWER else 0)
    np.testing.assert_array_equal(values(made.to_cupy().source), VALUES)


@pytest.mark.source(
    "GDP-3", "Functionality", "advanced indexing of device memory follows CuPy's rules"
)
@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("key", [[1, 0], VALUES > 2, (0, [2])], ids=["list", "mask", "both"])
def test_cupy_selects_by_advanced_keys_if_there_is_no_host_buffer(key):
    made = dlf.storage(VALUES, device="gpu", managed=None)
    source, given = made[key]
    assert type(source) is dlf.GPUStorage
    assert given is key or repr(given) == repr(key)


@pytest.mark.usefixtures("without_cupy")
@every_kind
@every_need
def test_without_cupy_an_error_names_it(need, managed):
    made = dlf.storage(VALUES, device="gpu", managed=managed)
    kind = AttributeError if need == "device_data" else ImportError
    with pytest.raises(kind, match=f"{need}: expected CuPy.*install cupy"):
        NEED_CUPY[need](made)


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@every_kind
def test_without_cupy_there_is_no_device_data_and_members_can_be_listed(managed, dtype):
    made = dlf.storage(VALUES.astype(dtype), device="gpu", managed=managed)
    assert not hasattr(made, "device_data")
    assert "device_id" in dict(inspect.getmembers(made))


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize("key", [[1, 0], VALUES > 2, (0, [2]), True], ids=repr)
def test_without_cupy_an_advanced_key_of_a_gpu_alone_is_an_error_that_names_it(key):
    with pytest.raises(ImportError, match="advanced indexing: expected CuPy"):
        dlf.storage(VALUES, device="gpu", managed=None)[key]


@pytest.mark.usefixtures("cupy")
@every_need
def test_what_must_not_be_written_is_not_given_to_cupy(need):
    made = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=None)
    kind = AttributeError if need == "device_data" else BufferError
    with pytest.raises(kind, match=r"read-only.*copy\(\)"):
        NEED_CUPY[need](made)
    assert made.copy().to_cupy() is not None


@pytest.mark.usefixtures("without_cupy")
def test_memory_of_the_host_needs_no_cupy():
    made = dlf.storage(VALUES)
    assert made.device_data is None
    assert type(made.to_ndarray()) is np.ndarray
    with pytest.raises(dlf.GTNoSuchBufferError, match="to_cupy"):
        made.to_cupy()
