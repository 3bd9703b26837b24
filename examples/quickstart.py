"""Any array goes into a GT4Py stencil and its result goes anywhere, without a copy.

Run it with `make demo`. It prints a table with a row per producer of the input, then one with a row
per consumer of the result, and exits with an error that names the rows where something is wrong.
A backend that does not compile on this machine is a column without results.
"""

import os
import statistics
import sys
import textwrap
import timeit
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

# One thread per stencil: the fields are tiny, and waiting threads would disturb the times below.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import dlfield as dlf
import numpy as np
import torch
import xarray as xr
from gt4py.cartesian import gtscript
from gt4py.cartesian.stencil_object import StencilObject
from hdiff import HALO, hdiff, reference
from producers import Producer, all_producers

BACKENDS = ("numpy", "gt:cpu_kfirst", "gt:cpu_ifirst")
SHAPE = (32, 32, 10)
INTERIOR = tuple(size - 2 * width for size, width in zip(SHAPE, HALO, strict=True))


@dataclass
class Import:
    """One row of the first table: an array on its way in."""

    producer: Producer
    door: str | None
    zero_copy: bool
    readonly: bool
    nanoseconds: float
    equal: dict[str, bool] = field(default_factory=dict)
    """Per backend that compiles: did the stencil compute the reference from this input?"""
    slow: list[str] = field(default_factory=list)
    """The backends that read this order of memory more slowly than another."""

    def is_right(self) -> bool:
        """Return whether the row shows what dlfield promises."""
        as_given = self.zero_copy and self.readonly == self.producer.readonly
        return as_given and all(self.equal.values())

    def cells(self) -> list[str]:
        """Spell the row for the table."""
        facts = [self.producer.name, self.door or "-", yes(self.zero_copy), yes(self.readonly)]
        results = {name: yes(equal) for name, equal in self.equal.items()}
        columns = [results.get(name, "not compiled") for name in BACKENDS]
        return [*facts, f"{self.nanoseconds:6.0f}", *columns, ", ".join(self.slow) or "-"]


@dataclass
class Export:
    """One row of the second table: the result on its way out."""

    consumer: str
    zero_copy: bool
    nanoseconds: float
    equal: bool

    def is_right(self) -> bool:
        """Return whether the row shows what dlfield promises."""
        return self.zero_copy and self.equal

    def cells(self) -> list[str]:
        """Spell the row for the table."""
        return [self.consumer, yes(self.zero_copy), f"{self.nanoseconds:6.0f}", yes(self.equal)]


def main() -> None:
    """Send one field through every producer, every backend and every consumer."""
    warnings.simplefilter("ignore", dlf.LayoutWarning)  # a column shows what it would say
    phi, coeff = make_values()
    expected = reference(phi, coeff)
    imports = [import_row(producer) for producer in all_producers(phi)]
    failures: dict[str, str] = {}
    for backend in BACKENDS:
        try:
            # Compiles at the first run and is read from GT4Py's cache afterwards.
            stencil = gtscript.stencil(backend=backend, definition=hdiff)
        except (Exception, SystemExit) as error:  # setuptools exits if the compiler fails
            if backend == "numpy":  # compiles nothing
                raise
            failures[backend] = textwrap.shorten(f"{type(error).__name__}: {error}", 200)
            continue
        for row in imports:
            result = diffuse(stencil, row, coeff)
            row.equal[backend] = np.array_equal(result.to_numpy(), expected)
    exports = export_rows(result, expected)
    headings = ["producer", "door", "zero-copy", "read-only", "    ns", *BACKENDS, "slow order"]
    print_table(headings, [row.cells() for row in imports])
    print_table(["consumer", "zero-copy", "    ns", "equal"], [row.cells() for row in exports])
    for backend, reason in failures.items():
        print(f"{backend} does not compile on this machine: {reason}")
    if failures:
        print("`python -m dlfield` names known traps and the ways out.")
    wrong = [row.producer.name for row in imports if not row.is_right()]
    wrong += [row.consumer for row in exports if not row.is_right()]
    sys.exit(f"wrong: {'; '.join(wrong)}" if wrong else 0)


def make_values() -> tuple[np.ndarray, np.ndarray]:
    """Make the field with its halo, and the coefficient on the interior.

    Whole numbers and a coefficient in 64ths keep every operation of the stencil exact, so the
    results can be compared bit by bit, however a compiler orders them.
    """
    random = np.random.default_rng(seed=0)
    phi = random.integers(0, 1000, SHAPE).astype(np.float64)
    return phi, random.integers(1, 9, INTERIOR) / 64.0


def import_row(producer: Producer) -> Import:
    """Import one array and compare the address dlfield has with the producer's own."""
    with named(producer.name):
        # `as_storage` never copies. An array that cannot be shared raises an error.
        storage = dlf.as_storage(producer.array)
        address = storage.to_numpy().ctypes.data
        nanoseconds = time_statement("as_storage(x)", as_storage=dlf.as_storage, x=producer.array)
    zero_copy = address == producer.address
    return Import(producer, storage.door, zero_copy, storage.readonly, nanoseconds)


def diffuse(stencil: StencilObject, row: Import, coeff: np.ndarray) -> dlf.Storage:
    """Run the stencil on an array of any library and return a new field with the result."""
    # The halo of `out` says where the computation starts and how far it goes. `phi` has the shape
    # of `out`, so it is read with the same halo; `coeff` has the shape of the interior, so it
    # starts at its first element. Names and shapes decide: there is no origin to get wrong.
    out = dlf.zeros(SHAPE, halo=HALO, dims=("I", "J", "K"), backend=stencil.backend)
    fields: dict[str, Any] = {"phi": row.producer.array, "out": out, "coeff": coeff}
    with named(row.producer.name):
        run = dlf.bind(stencil, dims=row.producer.dims)
        # `dlf.explain(run, **fields)` prints the plan. A call that is slow warns, too.
        reasons = run.plan(**fields).slow
        if any(reason.startswith("argument 'phi'") for reason in reasons):
            row.slow.append(stencil.backend)
        run(**fields)
    return out


def export_rows(storage: dlf.Storage, expected: np.ndarray) -> list[Export]:
    """Hand the result to every consumer and compare the addresses."""
    ways: dict[str, tuple[Callable[[], Any], Callable[[Any], int]]] = {
        "numpy": (storage.to_numpy, lambda a: a.ctypes.data),
        "torch": (lambda: torch.from_dlpack(storage), lambda t: t.data_ptr()),
        # JAX takes its arrays for constant: do not write the storage from here on.
        "jax": (storage.to_jax, lambda a: a.unsafe_buffer_pointer()),
        "xarray": (
            lambda: xr.DataArray(storage.to_numpy(), dims=storage.dims),
            lambda da: da.data.ctypes.data,
        ),
    }
    here = storage.to_numpy().ctypes.data
    rows = []
    for consumer, (take, address_of) in ways.items():
        with named(consumer):
            taken = take()
            zero_copy = address_of(taken) == here
            equal = np.array_equal(np.asarray(taken), expected)
            rows.append(Export(consumer, zero_copy, time_statement("take()", take=take), equal))
    return rows


def time_statement(statement: str, **names: object) -> float:
    """Return the time of the statement in nanoseconds, the median of several series."""
    series = timeit.repeat(statement, repeat=9, number=500, globals=names)
    return statistics.median(series) / 500 * 1e9


@contextmanager
def named(row: str) -> Iterator[None]:
    """Add the name of the row to any error raised inside."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the row {row!r}")
        raise


def yes(fact: bool) -> str:  # noqa: FBT001 (the fact is the only argument there is)
    """Spell a truth value."""
    return "yes" if fact else "no"


def print_table(headings: list[str], rows: list[list[str]]) -> None:
    """Print the rows below their headings, each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for line in (headings, ["-" * width for width in widths], *rows):
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())
    print()


if __name__ == "__main__":
    main()
