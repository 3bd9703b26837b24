"""Find an array whose layout is slow for a stencil, look at it, and mend it.

python layout.py    # writes slow.svg and fast.svg
"""

import warnings

import dlfield as dlf
import numpy as np
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil

BACKEND = "numpy"


@stencil(backend=BACKEND)
def diffuse(t: Field[np.float64], out: Field[np.float64]) -> None:
    """Make one step of diffusion along I and J."""
    with computation(PARALLEL), interval(...):
        around = t[-1, 0, 0] + t[1, 0, 0] + t[0, -1, 0] + t[0, 1, 0]
        out = t + 0.1 * (around - 4.0 * t)


def find(run: dlf.BoundStencil, t: dlf.Storage, out: dlf.Storage) -> None:
    """Let the stencil raise where it would warn. Nothing is computed then."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", dlf.LayoutWarning)
        try:
            run(t, out)
        except dlf.LayoutWarning as warning:
            print(f"{warning}\n")


def main() -> None:
    """Find, look, and mend."""
    array = np.zeros((40, 48, 12), order="F")  # as from Fortran: I is contiguous
    slow = dlf.as_storage(array, dims="IJK", halo=(2, 2, 0))
    out = dlf.zeros(array.shape, dims="IJK", halo=(2, 2, 0), backend=BACKEND)
    run = dlf.bind(diffuse)
    find(run, slow, out)
    print(f"{dlf.explain(array, backend=BACKEND)}\n")

    fast = dlf.storage(slow, backend=BACKEND)  # one copy, before the time loop
    find(run, fast, out)  # prints nothing
    print(f"strides {slow.strides} before, {fast.strides} after; halo {fast.halo}")
    slow.plot_layout().save("slow.svg")
    fast.plot_layout().save("fast.svg")


if __name__ == "__main__":
    main()
