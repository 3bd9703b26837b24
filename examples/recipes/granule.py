"""Any arrays into programs that are set up as icon4py sets them up, with one line more.

python granule.py
"""

import functools
from typing import Any

import dlfield as dlf
import gt4py.next as gtx
import numpy as np
import xarray as xr
from gt4py.next import Dims, Field, float64, int32

CellDim = gtx.Dimension("Cell")
KDim = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
CellKField: Any = Field[Dims[CellDim, KDim], float64]
BACKEND = None  # embedded; or gtx.gtfn_cpu, or icon4py's own for DaCe


@gtx.field_operator  # type: ignore[untyped-decorator]
def _relaxed(theta: CellKField, target: CellKField, rate: float64) -> CellKField:
    return theta + rate * (target - theta)


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)  # type: ignore[untyped-decorator]
def relax(
    theta: CellKField,
    target: CellKField,
    rate: float64,
    out: CellKField,
    cells: int32,
    levels: int32,
) -> None:
    """Move theta towards the target."""
    _relaxed(theta, target, rate, out=out, domain={CellDim: (0, cells), KDim: (0, levels)})


def setup_program(program: Any, constants: dict[str, Any], sizes: dict[str, Any]) -> Any:
    """Stand for the function of icon4py, which gives every granule its programs."""
    ready = program.with_backend(BACKEND)
    return functools.partial(ready, **constants, **sizes, offset_provider={})


class Relaxation:
    """A granule. `bind` is all that is new in it."""

    def __init__(self, target: Any) -> None:
        constants = {"target": target, "rate": 0.5}
        sizes = {"cells": np.int64(6), "levels": np.int64(4)}  # NumPy's ints are taken
        self._relax = dlf.bind(
            setup_program(relax, constants, sizes), dims={"ncells": CellDim, "height": KDim}
        )

    def run(self, theta: Any, out: Any) -> None:
        """Make one step, with fields in any array."""
        self._relax(theta=theta, out=out)


def main() -> None:
    """Relax a DataArray towards an array of NumPy, into a storage."""
    granule = Relaxation(target=np.full((6, 4), 280.0))
    theta = xr.DataArray(np.full((4, 6), 300.0), dims=("height", "ncells"))  # axes K, Cell
    out = granule._relax.zeros((6, 4))
    granule.run(theta, out)
    print(out.dims, out.to_numpy().min(), out.to_numpy().max())
    try:
        granule.run(theta.isel(ncells=slice(5)), out)
    except ValueError as refusal:
        print(str(refusal).partition(";")[0])


if __name__ == "__main__":
    main()
