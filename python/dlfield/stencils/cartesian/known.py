"""Definitions with known footprints and expressions, which `trial` compares with what it reads.

GT4Py reads the sources of these definitions; they are never called. It takes no annotations that
are strings, so this file does not postpone them. Only `trial` imports this file, for the first
stencil of ``gt4py.cartesian``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gt4py.cartesian.gtscript import (
    FORWARD,
    PARALLEL,
    Field,
    I,
    J,
    computation,
    horizontal,
    interval,
    region,
)

from dlfield.stencils.cartesian.nodes import Access, Constant, Expression, Operation
from dlfield.stencils.footprint import AffineFootprint, FieldFootprint, Span

__all__ = ["KNOWN", "Known"]


def sideways(inp: Field[np.float64], out: Field[np.float64]) -> None:
    with computation(PARALLEL), interval(...):
        half = inp - 2.0 * inp[1, -2, 0]
        with horizontal(region[I[0] - 1 : I[0] + 5, J[-1] :]):
            half = inp[4, -2, 0]
    with computation(PARALLEL), interval(...):
        out = half[3, 0, 0] + half[0, -1, 0]  # noqa: F841 - writes the field


def upwards(inp: Field[np.float64], out: Field[np.float64]) -> None:
    with computation(FORWARD):
        with interval(0, 1):
            out = inp[0, 0, 5]
        with interval(1, -2):
            out = out[0, 0, -1] + inp
        with interval(-2, None):
            out = inp[0, 0, -4]


def at_run_time(
    inp: Field[np.float64],
    shift: Field[np.int32],
    pair: Field[(np.float64, (2,))],
    out: Field[np.float64],
    limit: np.float64,
) -> None:
    with computation(PARALLEL), interval(...):
        if shift > 0:  # noqa: SIM108 - another node
            out = inp[0, 0, shift]
        else:
            out = pair[0, 0, 0][1]
        while out < limit:
            out = out + 1.0


@dataclass(frozen=True)
class Known:
    """A definition, with the footprint that it has for "numpy" and one of its expressions."""

    definition: Callable[..., None]
    footprint: AffineFootprint
    expression: Expression


def _field(
    *spans: Span,
    complete: bool = True,
    pointwise: bool = False,
    overtaken_by: tuple[str, ...] = (),
    covered: bool = False,
) -> FieldFootprint:
    return FieldFootprint(spans, None, complete, pointwise, overtaken_by, covered)


def _of(name: str, i: int = 0, j: int = 0, k: int = 0) -> Access:
    return Access(name, (i, j, k))


_HERE = (Span(), Span(), Span())

KNOWN = (
    Known(
        sideways,
        AffineFootprint(
            {
                "inp": _field(
                    Span(above_start=9, most_above=7), Span(below_end=3, most_below=3), Span()
                ),
                "out": _field(*_HERE, pointwise=True, covered=True),
            },
            smallest=(2, 1, 1),
            reason="as many as a region needs on the backend 'numpy'",
        ),
        Operation(
            "-",
            (_of("inp"), Operation("*", (Constant("2.0", "float64"), _of("inp", 1, -2)))),
        ),
    ),
    Known(
        upwards,
        AffineFootprint(
            {
                "inp": _field(
                    Span(),
                    Span(),
                    Span(below_end=6, most_below=4, above_start=6, most_above=5),
                    overtaken_by=("out",),  # in a domain of two levels, whose intervals overlap
                ),
                "out": _field(Span(), Span(), Span(below_end=2, above_start=1), covered=True),
            },
            smallest=(1, 1, 1),
        ),
        Operation("+", (_of("out", k=-1), _of("inp"))),
    ),
    Known(
        at_run_time,
        AffineFootprint(
            {
                "inp": _field(*_HERE, complete=False),
                "shift": _field(*_HERE, pointwise=True),
                "pair": _field(*_HERE, pointwise=True),
                "out": _field(*_HERE, pointwise=True),
            },
            smallest=(1, 1, 1),
        ),
        Operation("+", (_of("out"), Constant("1.0", "float64"))),
    ),
)
