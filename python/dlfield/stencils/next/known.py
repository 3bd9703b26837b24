# ruff: noqa: D103, ANN201 - definitions as GT4Py reads them
# mypy: ignore-errors
"""Programs whose footprints are known, for `trial`. Importing this imports gt4py.next."""

from dataclasses import dataclass, field
from typing import Any

import gt4py.next as gtx
import numpy as np
from gt4py.next import Dims, Field, float64, int32, neighbor_sum

I = gtx.Dimension("I")  # noqa: E741
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Edge, Cell = gtx.Dimension("Edge"), gtx.Dimension("Cell")
E2CDim = gtx.Dimension("E2C", kind=gtx.DimensionKind.LOCAL)
E2C = gtx.FieldOffset("E2C", source=Cell, target=(Edge, E2CDim))


@gtx.field_operator
def _ahead(inp: Field[Dims[I, K], float64], factor: float64) -> Field[Dims[I, K], float64]:
    return factor * (inp(I + 2) - inp(I - 1))


@gtx.program
def ahead(
    inp: Field[Dims[I, K], float64],
    out: Field[Dims[I, K], float64],
    factor: float64,
    end: int32,
    levels: int32,
):
    _ahead(inp, factor, out=out, domain={I: (1, end), K: (0, levels - 1)})


@gtx.scan_operator(axis=K, forward=True, init=0.0)
def _sums(state: float64, value: float64) -> float64:
    return state + value


@gtx.program
def sums(inp: Field[Dims[I, K], float64], out: Field[Dims[I, K], float64]):
    _sums(inp, out=out)


@gtx.field_operator
def to_edges(cells: Field[Dims[Cell], float64]) -> Field[Dims[Edge], float64]:
    return neighbor_sum(cells(E2C), axis=E2CDim) - cells(E2C[1])


@dataclass
class Case:
    """A stencil, a call of it, and what is known of that."""

    stencil: Any
    access: dict[str, str]
    fields: dict[str, Any]
    reads: dict[str, Any]
    writes: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict)
    domain: tuple[Any, ...] = ()
    connectivities: dict[str, Any] = field(default_factory=dict)
    scalars: tuple[str, ...] = ()
    rows: list[Any] = field(default_factory=list)


def cases() -> list[Case]:
    table = np.array([[3, 4], [-1, 6], [5, 2]], dtype=np.int32)
    table = gtx.as_connectivity((Edge, E2CDim), Cell, table, skip_value=-1)
    return [
        Case(
            ahead,
            {"inp": "read", "out": "write", "factor": "read", "end": "read", "levels": "read"},
            {"inp": ((9, 5), (1, 0)), "out": ((9, 5), (1, 0))},
            {"inp": ((0, 7), (0, 3))},
            {"out": ((1, 5), (0, 3))},
            given={"factor": 2.0, "end": 5, "levels": 4},
            scalars=("end", "levels"),
        ),
        Case(
            sums,
            {"inp": "read", "out": "write"},
            {"inp": ((6, 5), (0, 0)), "out": ((4, 5), (1, 0))},
            {"inp": ((-1, 3), (0, 5))},
            {"out": ((-1, 3), (0, 5))},
        ),
        Case(
            to_edges,
            {"cells": "read", "out": "write"},
            {"cells": ((9,), (0,)), "out": ((3,), (0,))},
            {"cells": ((2, 7),)},
            {"out": ((0, 3),)},
            domain=((0, 0), (0, 3)),
            connectivities={"E2C": table},
            rows=[(0, 3, None, -1), (0, 3, 1, -1)],
        ),
    ]
