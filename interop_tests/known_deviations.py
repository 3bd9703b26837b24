"""The pairs of producer and consumer that do not simply share writable memory, and why.

This is the only list of them. The tests assert that each still behaves as it says here, and
`table_of_pairs.py` makes the notes of docs/protocols.md of it.
"""

from dataclasses import dataclass
from enum import StrEnum


class Cell(StrEnum):
    """What a pair of producer and consumer does."""

    SHARED = "shared"
    READ_ONLY = "shared, read-only"
    UNGUARDED = "shared, unguarded"
    COPIES = "copies"
    REFUSED = "refused"


#: Libraries whose arrays nobody may change.
IMMUTABLE = frozenset({"JAX", "pyarrow"})


@dataclass(frozen=True)
class Deviation:
    """Why pairs of these producers and this consumer do something else than share."""

    cell: Cell
    reason: str
    link: str
    producers: frozenset[str] | None = None
    """None for every producer."""
    consumer: str | None = None
    """None for every consumer."""
    says: str = ""
    """What the error says where the pair is refused."""

    def concerns(self, producer, consumer):
        if self.producers is not None and producer not in self.producers:
            return False
        return self.consumer in (None, consumer)


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
        "read-only, also where a buffer calls itself mutable.",
        "https://arrow.apache.org/docs/python/data.html",
        producers=frozenset({"pyarrow"}),
    ),
    Deviation(
        Cell.READ_ONLY,
        "JAX cannot write what it shares. A later write to the storage is seen by JAX on the CPU "
        "today, but JAX takes its arrays for constant and calls the result undefined: do not "
        "write the storage any more. Memory is shared only from a boundary of 64 bytes, which "
        "storages keep; elsewhere `to_jax()` raises.",
        "https://docs.jax.dev/en/latest/_autosummary/jax.dlpack.from_dlpack.html",
        consumer="JAX",
    ),
    Deviation(
        Cell.COPIES,
        "`array.array` always owns its memory: what it is made from is appended to it. Share the "
        "other way round, a storage over an array.",
        "https://docs.python.org/3/library/array.html#array.array",
        consumer="array",
    ),
    Deviation(
        Cell.READ_ONLY,
        "The buffer is not mutable, and its memoryview refuses writes. `pa.output_stream` over "
        "such a buffer does not raise but ends the process.",
        "https://github.com/apache/arrow/issues/50831",
        producers=IMMUTABLE,
        consumer="pyarrow",
    ),
    Deviation(
        Cell.READ_ONLY,
        "Compiled code that assigns to an element is refused at compile time, since Numba looks at "
        "the flag. It does not for `array.flat[i] = value`, which writes the memory all the same.",
        "https://github.com/numba/numba/issues/1229",
        producers=IMMUTABLE,
        consumer="numba",
    ),
    Deviation(
        Cell.UNGUARDED,
        "torch has no read-only tensors and ignores the flag that dlfield sets: the tensor writes "
        "into the constant array. Do not write it.",
        "https://github.com/data-apis/array-api/issues/191",
        producers=IMMUTABLE,
        consumer="torch",
    ),
    Deviation(
        Cell.UNGUARDED,
        "tvm-ffi takes a tensor whose flag says read-only and never looks at the flag. Hand over "
        "a copy, `dlf.storage(array)`, to what may write.",
        "https://github.com/apache/tvm-ffi/blob/main/python/tvm_ffi/cython/tensor.pxi",
        producers=IMMUTABLE,
        consumer="tvm-ffi",
    ),
    Deviation(
        Cell.REFUSED,
        "`from_buffer` takes writable memory only; `from_buffer_copy` copies.",
        "https://docs.python.org/3/library/ctypes.html#ctypes._CData.from_buffer",
        producers=IMMUTABLE,
        consumer="ctypes",
        says="not writable",
    ),
)


def deviation(producer, consumer):
    """Find the reason why a pair of libraries does not simply share, or None where it does."""
    found = [known for known in DEVIATIONS if known.concerns(producer, consumer)]
    return found[-1] if found else None
