"""Sides that the doctor tries and the table of pairs does not have: by their addresses alone."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from dlfield._core import as_storage, zeros
from dlfield.doctor.deviations import Cell
from dlfield.doctor.pairs import REFUSALS, Linked, Pair
from dlfield.doctor.sides import Consumer, Producer
from dlfield.doctor.words import SIZE, STORAGE, Foreign, Library

if TYPE_CHECKING:
    from dlfield._core import Storage

__all__ = ["FURTHER", "Addressed"]


@dataclass(frozen=True)
class Addressed(Pair):
    """A pair that is asked for its addresses alone."""

    constant: bool = False
    """Whether the library has only read-only arrays."""
    gpu: bool = False
    """Whether the memory is that of a GPU."""

    @property
    def expected(self) -> Cell:
        """What the pair is known to do."""
        return Cell.READ_ONLY if self.constant else Cell.SHARED

    def measured(self) -> Cell:
        """Compare the addresses. A storage says if it is read-only, the library is known to be."""
        try:
            linked = Linked(self)
        except REFUSALS:
            return Cell.REFUSED
        given, taken = linked.addresses()
        if given != taken:
            return Cell.COPIES
        into_dlfield = self.consumer.library is STORAGE
        constant = linked.storage.readonly if into_dlfield else self.constant
        return Cell.READ_ONLY if constant else Cell.SHARED


def _gt4py_field() -> Foreign:
    gtx = import_module("gt4py.next")
    return gtx.zeros({gtx.Dimension("I"): SIZE}, dtype=float)


def _from_field(field: Foreign) -> Storage:
    return import_module("dlfield").from_field(field)  # type: ignore[no-any-return]


def _as_field(storage: Storage) -> Foreign:
    gtx = import_module("gt4py.next")
    return import_module("dlfield").as_field(storage, (gtx.Dimension("I"),))


def _numba_cuda(storage: Storage) -> Foreign:
    return import_module("numba.cuda").as_cuda_array(storage)


def _cuda_core(storage: Storage) -> Foreign:
    view = import_module("cuda.core.utils").StridedMemoryView
    return view.from_dlpack(storage, stream_ptr=1)  # the default stream


ARRO3 = Library(  # its own to_numpy() copies
    "arro3",
    lambda held: import_module("pyarrow").array(held).buffers()[1].address,
    modules=("arro3.core", "pyarrow"),
)
NANOARROW = Library("nanoarrow", lambda held: held.buffers[1], modules=("nanoarrow",))
MPI_BUFFER = Library("mpi4py", lambda held: held.address, modules=("mpi4py.MPI",))
GT4PY = Library("gt4py", lambda held: held.ndarray.ctypes.data, modules=("gt4py.next",))
CUPY = Library("CuPy", lambda held: held.data.ptr, modules=("cupy",))
NUMBA_CUDA = Library(
    "numba-cuda", lambda held: held.device_ctypes_pointer.value, modules=("numba.cuda",)
)
CUDA_CORE = Library("cuda-core", lambda held: held.ptr, modules=("cuda.core.utils",))
ON_GPU = Library("Storage", lambda held: held.ptr)

_HOST = Producer(STORAGE, lambda: zeros(SIZE))
_GPU = Producer(ON_GPU, lambda: zeros(SIZE, device="gpu", managed=None))
_TAKEN = Consumer(STORAGE, as_storage, "dlf.as_storage")
_ON_GPU = Consumer(ON_GPU, as_storage, "dlf.as_storage")


def _gpu_storage(array: Foreign) -> Storage:
    return as_storage(array, device="gpu", managed=None)


#: Into dlfield, and out of it.
FURTHER = (
    Addressed(
        Producer(NANOARROW, lambda: import_module("nanoarrow").c_array(zeros(SIZE))),
        _TAKEN,
        constant=True,
    ),
    Addressed(
        _HOST,
        Consumer(NANOARROW, lambda s: import_module("nanoarrow").c_array(s), "na.c_array"),
        constant=True,
    ),
    Addressed(
        Producer(ARRO3, lambda: import_module("arro3.core").Array.from_numpy(np.zeros(SIZE))),
        _TAKEN,
        constant=True,
    ),
    Addressed(
        _HOST,
        Consumer(
            ARRO3,
            lambda s: import_module("arro3.core").Array.from_arrow(s),
            "arro3.core.Array.from_arrow",
        ),
        constant=True,
    ),
    Addressed(
        Producer(MPI_BUFFER, lambda: import_module("mpi4py.MPI").buffer.allocate(8 * SIZE)), _TAKEN
    ),
    Addressed(
        _HOST, Consumer(MPI_BUFFER, lambda s: import_module("mpi4py.MPI").buffer(s), "MPI.buffer")
    ),
    Addressed(Producer(GT4PY, _gt4py_field, _from_field), _TAKEN),
    Addressed(_HOST, Consumer(GT4PY, _as_field, "dlf.as_field")),
    Addressed(
        Producer(CUPY, lambda: import_module("cupy").empty((SIZE,)), _gpu_storage),
        _ON_GPU,
        gpu=True,
    ),
    Addressed(_GPU, Consumer(CUPY, lambda s: s.to_cupy(), "storage.to_cupy"), gpu=True),
    Addressed(
        Producer(NUMBA_CUDA, lambda: import_module("numba.cuda").device_array(SIZE), _gpu_storage),
        _ON_GPU,
        gpu=True,
    ),
    Addressed(_GPU, Consumer(NUMBA_CUDA, _numba_cuda, "numba.cuda.as_cuda_array"), gpu=True),
    Addressed(_GPU, Consumer(CUDA_CORE, _cuda_core, "StridedMemoryView.from_dlpack"), gpu=True),
)
