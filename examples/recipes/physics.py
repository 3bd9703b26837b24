"""Any arrays into a component that calls its stencil as those of ifs-physics-common do.

python physics.py
"""

from typing import Any

import dlfield as dlf
import numpy as np
import xarray as xr
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import FORWARD, PARALLEL, Field, K, computation, interval


def saturated(
    in_q: Field["float"],
    in_limit: Field[K, "float"],
    out_rain: Field["float"],
) -> None:
    """Let the water above a limit fall."""
    with computation(PARALLEL), interval(...):
        excess = in_q - in_limit if in_q > in_limit else 0.0
    with computation(FORWARD):
        with interval(0, 1):
            out_rain = excess
        with interval(1, None):
            out_rain = out_rain[0, 0, -1] + excess


def compile_stencil(backend: str) -> Any:
    """Stand for the function of ifs-physics-common that compiles a stencil of its collection."""
    return gtscript.stencil(backend, saturated, name="saturated", dtypes={"float": np.float64})


class Saturation:
    """A component. `bind` is all that is new in it."""

    def __init__(self, backend: str = "numpy") -> None:
        self.saturated = dlf.bind(
            compile_stencil(backend), dims={"column": "I", "level": "K", "level_of_limit": "K"}
        )

    def array_call(self, state: dict[str, Any], out: dict[str, Any], columns: int) -> None:
        """Call the stencil with every option that the framework passes."""
        self.saturated(
            in_q=state["q"],
            in_limit=state["limit"],
            out_rain=out["rain"],
            origin=(0, 0, 0),
            domain=(columns, 1, 5),
            validate_args=False,
            exec_info={},
        )


def main() -> None:
    """Compute with a DataArray, an array of NumPy and a storage."""
    component, columns = Saturation(), 8
    q = xr.DataArray(np.full((5, columns, 1), 1.5), dims=("level", "column", "J"))
    out = component.saturated.zeros((columns, 1, 5))
    component.array_call({"q": q, "limit": np.ones(5)}, {"rain": out}, columns)
    print(out.dims, out.to_numpy()[0, 0])
    try:
        component.array_call({"q": q, "limit": np.ones(5)}, {"rain": out}, columns + 1)
    except ValueError as refusal:
        print(str(refusal).partition(" (")[0])


if __name__ == "__main__":
    main()
