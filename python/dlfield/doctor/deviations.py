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
        "JAX arrays are immutable, although JAX exports them through DLPack as writable. "
        "dlfield makes every storage over a JAX array read-only.",
        "https://github.com/jax-ml/jax/issues/40789",
        producers=frozenset({"JAX"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "Arrow data is immutable, so a storage over it is read-only even if its buffer claims "
        "to be mutable. Assigning to a polars series gives the series new memory, which the "
        "storage does not see.",
        "https://arrow.apache.org/docs/python/data.html",
        producers=ARROW,
    ),
    Deviation(
        Cell.READ_ONLY,
        "Arrow data is immutable, so a storage over `pa.array(image)` is read-only; it sees "
        "later writes to the image. `dlf.as_storage(image)` holds a copy, since "
        "`__array_interface__` of an image exports a temporary copy of the pixels. Before "
        "Pillow 13, the Arrow export of an image over foreign memory crashes the process.",
        "https://github.com/python-pillow/Pillow/issues/9896",
        producers=frozenset({"PIL"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "JAX arrays are immutable. Do not write to the storage after the exchange: the result "
        "is undefined, although JAX on the CPU currently sees the write. Memory must be aligned "
        "to 64 bytes, as that of storages is; otherwise `to_jax()` raises.",
        "https://docs.jax.dev/en/latest/_autosummary/jax.dlpack.from_dlpack.html",
        consumers=frozenset({"storage.to_jax"}),
    ),
    Deviation(
        Cell.COPIES,
        "`array.array` always owns its memory and copies its input. To share, make a storage "
        "over an `array.array`.",
        "https://docs.python.org/3/library/array.html#array.array",
        consumers=frozenset({"array.array"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "Arrow data is immutable. Do not write to the storage after the exchange, although the "
        "Arrow array sees the write.",
        "https://arrow.apache.org/docs/format/CDataInterface.html#mutability",
        consumers=frozenset({"pa.array", "storage.to_arrow"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "polars data is immutable, and its NumPy views are read-only. `series[i] = value` gives "
        "the series new memory.",
        "https://docs.pola.rs/api/python/stable/reference/series/api/polars.Series.to_numpy.html",
        consumers=frozenset({"pl.Series"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "An image over foreign memory is read-only: the pixels from `load()` refuse writes, and "
        "`putpixel()`, `paste()` and drawing copy the image first.",
        "https://github.com/python-pillow/Pillow/issues/6768",
        consumers=frozenset({"Image.frombuffer", "Image.fromarrow"}),
    ),
    Deviation(
        Cell.COPIES,
        "`from_array` copies its input, so that later writes do not change a task. "
        "`da.from_delayed(dask.delayed(storage, traverse=False), ...)` shares the storage.",
        "https://github.com/dask/dask/pull/11524",
        consumers=frozenset({"da.from_array"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "The elements are constant in C++. Code that writes to them does not compile.",
        "https://nanobind.readthedocs.io/en/latest/ndarray.html#ndarray-constraints-1",
        consumers=frozenset({"nb::ndarray<const double>"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "The buffer is not mutable, and its memoryview refuses writes. Writing to it with "
        "`pa.output_stream` crashes the process.",
        "https://github.com/apache/arrow/issues/50831",
        producers=CONSTANT,
        consumers=frozenset({"pa.py_buffer"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "Numba refuses to compile an assignment to an element of a read-only array. It does not "
        "check `array.flat[i] = value`, which writes to the memory.",
        "https://github.com/numba/numba/issues/1229",
        producers=CONSTANT,
        consumers=frozenset({"numba.njit"}),
    ),
    Deviation(
        Cell.UNGUARDED,
        "torch has no read-only tensors and ignores the read-only flag. Do not write to the "
        "tensor.",
        "https://github.com/data-apis/array-api/issues/191",
        producers=CONSTANT,
        consumers=frozenset({"torch.from_dlpack"}),
    ),
    Deviation(
        Cell.UNGUARDED,
        "tvm-ffi ignores the read-only flag. Pass a copy, `dlf.storage(array)`, to code that "
        "writes.",
        "https://github.com/apache/tvm-ffi/blob/main/python/tvm_ffi/cython/tensor.pxi",
        producers=CONSTANT,
        consumers=frozenset({"tvm_ffi.from_dlpack"}),
    ),
    Deviation(
        Cell.REFUSED,
        "`from_buffer` accepts writable memory only. `from_buffer_copy` copies.",
        "https://docs.python.org/3/library/ctypes.html#ctypes._CData.from_buffer",
        producers=CONSTANT,
        consumers=frozenset({"ctypes from_buffer"}),
        says="not writable",
    ),
    Deviation(
        Cell.REFUSED,
        "nanobind checks the read-only flag: `ndarray<double>` refuses a read-only array, "
        "`ndarray<const double>` accepts it.",
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
