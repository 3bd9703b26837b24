"""Three ways to offer GT4Py's data interface, each with a stencil that uses it.

1. A class with a buffer in main memory and one on a GPU. It copies between them when a computation
   begins (acquire) and notes what was written (touch).
2. A wrapper that adds names of dimensions to a storage.
3. An accessor that adds it to every ``xarray.DataArray``.

Run it with ``python examples/data_interface.py``. Without CuPy the "GPU" of the first example is a
NumPy array: a stencil on the CPU treats such an object in the same way.
"""

from __future__ import annotations

import dlfield as dlf
import numpy as np
import numpy.typing as npt
import xarray as xr
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval

try:
    import cupy as gpu_arrays
except ImportError:
    gpu_arrays = np


def copy_field(in_field: Field[np.float64], out_field: Field[np.float64]) -> None:
    """Copy a field: GT4Py reads this source, it is never called from Python."""
    with computation(PARALLEL), interval(...):
        out_field = in_field  # noqa: F841 - a stencil writes its parameters


copy_stencil = gtscript.stencil(backend="numpy", definition=copy_field)


class SynchronisedPair:
    """One field in two memories. A computation acquires the newer values and touches its output."""

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> None:
        self.host = np.zeros(shape, dtype)
        self.device = gpu_arrays.zeros(shape, dtype)
        self.newer = "both"

    def set_device(self, values: object) -> None:
        """Compute something on the GPU."""
        self.device[...] = gpu_arrays.asarray(values)
        self.newer = "device"

    def _acquire_host(self) -> None:
        if self.newer == "device":
            self.host[...] = self.device if gpu_arrays is np else self.device.get()
            self.newer = "both"

    def _acquire_device(self) -> None:
        if self.newer == "host":
            self.device[...] = gpu_arrays.asarray(self.host)
            self.newer = "both"

    def _touch_host(self) -> None:
        self.newer = "host"

    def _touch_device(self) -> None:
        self.newer = "device"

    @property
    def __gt_interface__(self) -> dict[str | None, dict[str, object]]:
        host = self.host.__array_interface__
        on_gpu = "__array_interface__" if gpu_arrays is np else "__cuda_array_interface__"
        device = getattr(self.device, on_gpu)
        return {
            None: {**host, "acquire": self._acquire_host, "touch": self._touch_host},
            "gpu": {**device, "acquire": self._acquire_device, "touch": self._touch_device},
        }


class StorageWrapper:
    """Any storage, with names for its dimensions."""

    def __init__(self, storage: dlf.Storage, dims: str = "IJK") -> None:
        self._storage = storage
        self._dims = tuple(dims)

    @property
    def __gt_interface__(self) -> dict[str | None, dict[str, object]]:
        devices = self._storage.__gt_data_interface__
        return {device: {**entry, "dims": self._dims} for device, entry in devices.items()}


def named_interface(array: xr.DataArray) -> dict[str | None, dict[str, object]]:
    """Describe the data of a DataArray, with its dims. dlfield's own accessor does the same."""
    if hasattr(array.data, "__gt_interface__"):
        devices = array.data.__gt_interface__
    else:
        devices = {"cpu": array.data.__array_interface__}
    return {device: {**entry, "dims": array.dims} for device, entry in devices.items()}


def synchronised_pair() -> SynchronisedPair:
    """Compute on the "GPU", copy on the CPU: new values come in, and the output is touched."""
    source, target = SynchronisedPair((2, 2, 2)), SynchronisedPair((2, 2, 2))
    source.set_device(np.arange(8.0).reshape(2, 2, 2))
    dlf.bind(copy_stencil)(source, target)
    assert source.newer == "both"
    assert target.newer == "host"
    return target


def storage_wrapper() -> np.ndarray:
    """Copy a storage whose axes are K, J, I into an array whose axes are I, J, K."""
    source = dlf.storage(np.arange(24.0).reshape(4, 3, 2))
    target = np.zeros((2, 3, 4))
    dlf.bind(copy_stencil)(StorageWrapper(source, dims="KJI"), target)
    return target


def xarray_accessor() -> xr.DataArray:
    """Copy an array into a DataArray whose axes are J, I, K."""
    xr.register_dataarray_accessor("__gt_interface__")(named_interface)
    source = np.arange(1.0, 9.0).reshape(2, 2, 2)
    target = xr.DataArray(np.zeros((2, 2, 2)), dims=("J", "I", "K"))
    dlf.bind(copy_stencil)(source, target)
    return target.transpose("I", "J", "K")


if __name__ == "__main__":
    pair = synchronised_pair()
    print("a pair of buffers, written by a stencil:", pair.host.ravel(), "newer:", pair.newer)
    print("a wrapped storage K, J, I as I, J, K:", storage_wrapper().shape)
    print("a DataArray J, I, K, back in the order I, J, K:", xarray_accessor().values.ravel())
