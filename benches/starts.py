"""What it matters to a stencil of ten fields where in memory they begin.

A cache looks for a line of memory in a few places only, which the lower part of its address
decides. Where all fields begin at the same place of a page, the lines that a stencil needs together
all want the same places, and ten fields are more than most first caches have of them.
"""

import math
from collections.abc import Iterator

import dlfield as dlf
import numpy as np
from allocation import HUGE_PAGE, huge_pages
from calls import F64, ten
from gt4py import storage as gt4py_storage
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval
from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Peer, compare_all

FIELDS = 10
STEP = 320
"""Bytes between the starts of one field and the next: an odd number of lines, so that 64 fields, as
many as a page has lines, all begin at places of their own."""


def near(
    f0: F64, f1: F64, f2: F64, f3: F64, f4: F64, f5: F64, f6: F64, f7: F64, f8: F64, out: F64
) -> None:
    """Read neighbours of some of nine fields, as a stencil of a model does."""
    with computation(PARALLEL), interval(...):
        out = (  # noqa: F841 (assigning to a parameter writes the field)
            (f0[1, 0, 0] - f0[-1, 0, 0]) * f1
            + (f2[0, 1, 0] - f2[0, -1, 0]) * f3
            + (f4[1, 0, 0] + f4[-1, 0, 0] + f4[0, 1, 0] + f4[0, -1, 0] - 4.0 * f4) * f5
            + (f6[0, 1, 0] - f6[0, -1, 0]) * f7
            + f8
        )


BACKENDS = ("gt:cpu_kfirst", "gt:cpu_ifirst")
SHAPES = ((32, 32, 32), (64, 64, 64), (60, 60, 60), (128, 128, 64), (128, 128, 80), (256, 256, 64))

REMARK = (
    "One call of a bound stencil over ten float64 fields, with one thread: `ten` adds nine fields, "
    "`near` reads neighbours of some. The fields are dlfield's own; NumPy's; GT4Py's; and views of "
    "one large piece of memory: `together`, each beginning at a multiple of 2 MiB; `apart`, each "
    f"{STEP} bytes further from such a multiple than the one before."
)


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure both stencils for all backends and shapes."""
    area = "starts of fields"
    rows = compare_all(area, comparisons(), {})
    return [(table_of(area, rows, REMARK), rows)]


def comparisons() -> Iterator[Comparison]:
    """Compare the kinds of fields with each other; in a hurry only what needs no compiler."""
    backends, shapes = (("numpy",), SHAPES[:1]) if EFFORT.quick else (BACKENDS, SHAPES)
    for backend in backends:
        for definition in (ten, near):
            run = dlf.bind(gtscript.stencil(backend=backend, definition=definition))
            for shape in shapes:
                extents = " x ".join(map(str, shape))
                names = {"run": run, **_fields(shape, backend), **_inside(shape, definition)}
                yield Comparison(
                    f"{backend}, {definition.__name__}, {extents}",
                    _call("of_dlfield"),
                    list(map(Peer, map(_call, ("of_numpy", "of_gt4py", "together", "apart")))),
                    names=names,
                )


def _call(fields: str) -> str:
    return f"run(*{fields}, **inside)"


def _inside(shape: tuple[int, int, int], definition: object) -> dict[str, object]:
    if definition is ten:
        return {"inside": {}}
    i, j, k = shape
    return {"inside": {"origin": (1, 1, 0), "domain": (i - 2, j - 2, k)}}


def _fields(shape: tuple[int, int, int], backend: str) -> dict[str, list[object]]:
    """Make ten fields of every kind, all of them in the order that the backend likes."""
    # Which dimension is the slowest, and so on, to the fastest.
    order = np.argsort(dlf.zeros((2, 2, 2), backend=backend, dims="IJK").layout)
    each = range(FIELDS)
    span = -(-math.prod(shape) * 8 // HUGE_PAGE) * HUGE_PAGE + HUGE_PAGE
    block = huge_pages(FIELDS * span // 8)
    block.fill(1.0)
    return {
        "of_dlfield": [dlf.ones(shape, backend=backend) for _ in each],
        "of_numpy": [_view(np.ones(math.prod(shape)), shape, order) for _ in each],
        "of_gt4py": [gt4py_storage.ones(shape, backend=backend) for _ in each],
        "together": [_view(block[n * span // 8 :], shape, order) for n in each],
        "apart": [_view(block[n * (span + STEP) // 8 :], shape, order) for n in each],
    }


def _view(memory: np.ndarray, shape: tuple[int, ...], order: np.ndarray) -> dlf.Storage:
    """Return a field at the beginning of some memory, in this order of dimensions."""
    field = memory[: math.prod(shape)].reshape([shape[dim] for dim in order])
    return dlf.as_storage(field.transpose(np.argsort(order)))
