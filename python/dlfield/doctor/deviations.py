"""The pairs of producer and consumer that do not simply share writable memory, and why.

This is the only list of them. The tests assert that each still behaves as described here, and
`table.py` makes the notes of docs/protocols.md of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["DEVIATIONS", "Cell", "Deviation", "deviation"]


class Cell(StrEnum):
    """What a pair of producer and consumer does."""

    SHARED = "shared"
    READ_ONLY = "shared, read-only"
    UNGUARDED = "shared, unguarded"
    COPIES = "copies"
    REFUSED = "refused"


ARROW = frozenset({"pyarrow.Array", "pyarrow.Tensor", "pyarrow.FixedShapeTensorArray", "polars"})
#: Libraries that write none of the memory of their own arrays.
IMMUTABLE = ARROW | {"JAX"}
#: Libraries over whose arrays a storage is read-only; PIL writes its images all the same.
CONSTANT = IMMUTABLE | {"PIL"}


@dataclass(frozen=True)
class Deviation:
    """Why pairs of these producers and these consumers do something else than share."""

    cell: Cell
    reason: str
    link: str
    producers: frozenset[str] | None = None
    """Their libraries; None for every producer."""
    consumers: frozenset[str] | None = None
    """Their entries; None for every consumer."""
    says: str = ""
    """What the error says where the pair is refused."""

    def concerns(self, producer: str, consumer: str) -> bool:
        """Tell whether a library and an entry are among its pairs."""
        if self.producers is not None and producer not in self.producers:
            return False
        return self.consumers is None or consumer in self.consumers


#: The later entry holds where two concern a pair.
DEVIATIONS = (
    Deviation(
        Cell.READ_ONLY,
        "JAX arrays are constant. JAX's own exports do not say so by DLPack; dlfield knows it, and "
        "a storage over a JAX array is read-only whatever door it came through.",
        "https://github.com/jax-ml/jax/issues/40789",
        producers=frozenset({"JAX"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "Arrow data is immutable: values are selected, never assigned. A storage over it is "
        "read-only, also where a buffer calls itself mutable. A polars series that is assigned to "
        "gets memory of its own, which the storage does not see.",
        "https://arrow.apache.org/docs/python/data.html",
        producers=ARROW,
    ),
    Deviation(
        Cell.READ_ONLY,
        "What comes by Arrow is constant, so a storage over `pa.array(image)` is read-only; later "
        "writes to the image are seen in it. `dlf.as_storage(image)` is a copy: the pixels that an "
        "image shows by `__array_interface__` are bytes made for the occasion. Before Pillow 13 "
        "the Arrow export of an image over the memory of others ends the process.",
        "https://github.com/python-pillow/Pillow/issues/9896",
        producers=frozenset({"PIL"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "JAX cannot write what it shares. A later write to the storage is seen by JAX on the CPU "
        "today, but JAX takes its arrays for constant and calls the result undefined: do not "
        "write the storage any more. Memory is shared only from a boundary of 64 bytes, which "
        "storages keep; elsewhere `to_jax()` raises.",
        "https://docs.jax.dev/en/latest/_autosummary/jax.dlpack.from_dlpack.html",
        consumers=frozenset({"storage.to_jax"}),
    ),
    Deviation(
        Cell.COPIES,
        "`array.array` always owns its memory: what it is made from is appended to it. Share the "
        "other way round, a storage over an array.",
        "https://docs.python.org/3/library/array.html#array.array",
        consumers=frozenset({"array.array"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "Arrow arrays have no words for a write. Later writes to the storage are seen in them, "
        "though Arrow takes its data for constant: do not write the storage any more.",
        "https://arrow.apache.org/docs/format/CDataInterface.html#mutability",
        consumers=frozenset({"pa.array", "storage.to_arrow"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "polars takes its data for constant, too, and its NumPy views are read-only. "
        "`series[i] = value` gives the series memory of its own.",
        "https://docs.pola.rs/api/python/stable/reference/series/api/polars.Series.to_numpy.html",
        consumers=frozenset({"pl.Series"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "An image over the memory of others is read-only: the pixels that `load()` gives refuse "
        "writes, and `putpixel()`, `paste()` and drawing give the image memory of its own first.",
        "https://github.com/python-pillow/Pillow/issues/6768",
        consumers=frozenset({"Image.frombuffer", "Image.fromarrow"}),
    ),
    Deviation(
        Cell.COPIES,
        "Dask copies what `from_array` is given, so that no later write changes its tasks. "
        "`da.from_delayed(dask.delayed(storage, traverse=False), ...)` keeps the storage itself.",
        "https://github.com/dask/dask/pull/11524",
        consumers=frozenset({"da.from_array"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "The elements are constant for C++, and code that writes one does not compile.",
        "https://nanobind.readthedocs.io/en/latest/ndarray.html#ndarray-constraints-1",
        consumers=frozenset({"nb::ndarray<const double>"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "The buffer is not mutable, and its memoryview refuses writes. `pa.output_stream` over "
        "such a buffer does not raise but ends the process.",
        "https://github.com/apache/arrow/issues/50831",
        producers=CONSTANT,
        consumers=frozenset({"pa.py_buffer"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "Compiled code that assigns to an element is refused at compile time, since Numba looks at "
        "the flag. It does not for `array.flat[i] = value`, which writes the memory all the same.",
        "https://github.com/numba/numba/issues/1229",
        producers=CONSTANT,
        consumers=frozenset({"numba.njit"}),
    ),
    Deviation(
        Cell.UNGUARDED,
        "torch has no read-only tensors and ignores the flag that dlfield sets: the tensor writes "
        "into the constant array. Do not write it.",
        "https://github.com/data-apis/array-api/issues/191",
        producers=CONSTANT,
        consumers=frozenset({"torch.from_dlpack"}),
    ),
    Deviation(
        Cell.UNGUARDED,
        "tvm-ffi takes a tensor whose flag says read-only and never looks at the flag. Hand over "
        "a copy, `dlf.storage(array)`, to what may write.",
        "https://github.com/apache/tvm-ffi/blob/main/python/tvm_ffi/cython/tensor.pxi",
        producers=CONSTANT,
        consumers=frozenset({"tvm_ffi.from_dlpack"}),
    ),
    Deviation(
        Cell.REFUSED,
        "`from_buffer` takes writable memory only; `from_buffer_copy` copies.",
        "https://docs.python.org/3/library/ctypes.html#ctypes._CData.from_buffer",
        producers=CONSTANT,
        consumers=frozenset({"ctypes from_buffer"}),
        says="not writable",
    ),
    Deviation(
        Cell.REFUSED,
        "nanobind looks at the flag: an argument that may be written takes no read-only array, "
        "`ndarray<const double>` does.",
        "https://nanobind.readthedocs.io/en/latest/ndarray.html#ndarray-constraints-1",
        producers=CONSTANT,
        consumers=frozenset({"nb::ndarray<double>"}),
        says="incompatible function arguments",
    ),
)


def deviation(producer: str, consumer: str) -> Deviation | None:
    """Find the reason why a library and an entry do not simply share, or None where they do."""
    found = [known for known in DEVIATIONS if known.concerns(producer, consumer)]
    return found[-1] if found else None
