"""One probe for each library: it takes a storage, and shares its memory or copies it.

A probe is the function that the library's own documentation names for arrays of other libraries.
The page on sharing between libraries has all other functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dlfield._core import as_storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlfield._core import Storage

__all__ = ["PROBES", "Probe"]

#: An array of any library.
Foreign: TypeAlias = Any


def _address(array: Foreign) -> int:
    """Return the address that dlfield finds in an array."""
    return as_storage(array).ptr


def _address_on_gpu(array: Foreign) -> int:
    return as_storage(array, device="gpu", managed=None).ptr


@dataclass(frozen=True)
class Probe:
    """How a library takes a storage, and how the address of its array is read."""

    entry: str
    """The name of the function that takes the storage."""
    take: Callable[[Storage], Foreign]
    address: Callable[[Foreign], int] = _address
    needs: tuple[str, ...] = ()
    """Modules that the probe needs besides that of the library."""
    gpu: bool = False
    """True if the memory is on a GPU."""

    def shares(self, storage: Storage) -> bool:
        """Return True if the library's array has the memory of the storage."""
        return self.address(self.take(storage)) == storage.ptr


def _dask(storage: Storage) -> Foreign:
    """Return the only chunk of a Dask array over a storage; `compute()` of the array copies."""
    later = import_module("dask").delayed(storage, traverse=False)
    array = import_module("dask.array").from_delayed(later, storage.shape, storage.dtype)
    return array.to_delayed().item().compute(scheduler="synchronous")


def _image(storage: Storage) -> Foreign:
    pixels = memoryview(storage).cast("B")  # type: ignore[arg-type]  # it exports a buffer
    size = (len(pixels), 1)
    return import_module("PIL.Image").frombuffer("L", size, pixels, "raw", "L", 0, 1)


def _address_of_image(image: Foreign) -> int:
    """Return the address of the pixels; an image tells it by Arrow alone, which pyarrow reads."""
    return int(import_module("pyarrow").array(image).buffers()[1].address)


def _numba(storage: Storage) -> Foreign:
    return import_module("numba").njit(lambda array: array)(storage.to_numpy())


def _field(storage: Storage) -> Foreign:
    gtx = import_module("gt4py.next")
    return import_module("dlfield").as_field(storage, (gtx.Dimension("I"),))


def _view_of_cuda(storage: Storage) -> Foreign:
    view = import_module("cuda.core.utils").StridedMemoryView
    return view.from_dlpack(storage, stream_ptr=1)  # the default stream


def _called(module: str, name: str) -> Callable[[Storage], Foreign]:
    """Return a function that calls one of a module, which is imported only then."""
    return lambda storage: getattr(import_module(module), name)(storage)


#: By the name of the library.
PROBES = {
    "Python": Probe("memoryview", memoryview),  # type: ignore[arg-type]  # it exports a buffer
    "NumPy": Probe("np.asarray", np.asarray),
    "torch": Probe("torch.from_dlpack", _called("torch", "from_dlpack")),
    "JAX": Probe("storage.to_jax", lambda storage: storage.to_jax()),
    "CuPy": Probe("storage.to_cupy", lambda storage: storage.to_cupy(), _address_on_gpu, gpu=True),
    "xarray": Probe("xr.DataArray", _called("xarray", "DataArray")),
    "Dask": Probe("da.from_delayed", _dask),
    "pyarrow": Probe("storage.to_arrow", lambda storage: storage.to_arrow()),
    "polars": Probe("pl.Series", _called("polars", "Series")),
    "nanoarrow": Probe("na.c_array", _called("nanoarrow", "c_array")),
    "arro3": Probe(
        "arro3.core.Array.from_arrow", lambda s: import_module("arro3.core").Array.from_arrow(s)
    ),
    "PIL": Probe("Image.frombuffer", _image, _address_of_image, needs=("pyarrow",)),
    "tvm-ffi": Probe("tvm_ffi.from_dlpack", _called("tvm_ffi", "from_dlpack")),
    "numba": Probe("numba.njit", _numba),
    "numba-cuda": Probe(
        "numba.cuda.as_cuda_array",
        _called("numba.cuda", "as_cuda_array"),
        _address_on_gpu,
        gpu=True,
    ),
    "cuda-core": Probe(
        "StridedMemoryView.from_dlpack", _view_of_cuda, lambda view: view.ptr, gpu=True
    ),
    "gt4py": Probe("dlf.as_field", _field, lambda field: field.ndarray.ctypes.data),
    "mpi4py": Probe("MPI.buffer", _called("mpi4py.MPI", "buffer"), needs=("mpi4py.MPI",)),
}
