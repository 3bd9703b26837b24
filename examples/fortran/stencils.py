"""The stencils of a shallow-water model whose time loop is `shallow.F90`, or `shallow.py`.

`MODEL_BACKEND` in the environment is GT4Py's backend.
"""

import os
from typing import Any

import dlfield as dlf
import numpy as np
from dlfield.annotations import Field
from dlfield.fortran import Communicator
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval
from gt4py.cartesian.gtscript import Field as GTField

BACKEND = os.environ.get("MODEL_BACKEND", "gt:cpu_ifirst")
HALO = (1, 1, 0)
"""Points of the arrays outside of the domain, along I, J and K."""


def momentum(
    h: GTField[np.float64], u: GTField[np.float64], v: GTField[np.float64], *, pull: np.float64
) -> None:
    """Accelerate the water: it flows to where it is low. u and v are at faces below a point."""
    with computation(PARALLEL), interval(...):
        u = u - pull * (h - h[-1, 0, 0])
        v = v - pull * (h - h[0, -1, 0])


def continuity(
    u: GTField[np.float64], v: GTField[np.float64], h: GTField[np.float64], *, depth: np.float64
) -> None:
    """Raise the water where more flows in than out."""
    with computation(PARALLEL), interval(...):
        h = h - depth * (u[1, 0, 0] - u + v[0, 1, 0] - v)


def transport(
    u: GTField[np.float64],
    v: GTField[np.float64],
    dye: GTField[np.float64],
    out: GTField[np.float64],
    *,
    dt: np.float64,
) -> None:
    """Carry a dye with the water, by upwind differences."""
    with computation(PARALLEL), interval(...):
        along_i = max(u, 0.0) * (dye - dye[-1, 0, 0]) + min(u, 0.0) * (dye[1, 0, 0] - dye)
        along_j = max(v, 0.0) * (dye - dye[0, -1, 0]) + min(v, 0.0) * (dye[0, 1, 0] - dye)
        out = dye - dt * (along_i + along_j)  # noqa: F841


def compiled(definition: Any) -> Any:
    """Compile a stencil, and declare it for Fortran."""
    declare: Any = dlf.fortran.function(halo=HALO)
    return declare(gtscript.stencil(backend=BACKEND, definition=definition))


accelerate, rise, carry = map(compiled, (momentum, continuity, transport))

PLANS: dict[str, Any] = {}


@dlf.fortran.function(halo=HALO, persistent=("h", "u", "v", "dye", "out"))
def start(
    h: Field[np.float64],
    u: Field[np.float64],
    v: Field[np.float64],
    dye: Field[np.float64],
    out: Field[np.float64],
    comm: Communicator = None,
) -> None:
    """Plan the exchange of halos. Without a communicator, one rank is periodic."""
    options: dict[str, Any] = {"comm": comm, "dims": "IJ"}
    PLANS["height"] = dlf.halo_exchange({"h": h}, **options)
    PLANS["wind"] = dlf.halo_exchange({"u": u, "v": v}, **options)
    PLANS["dye"] = dlf.halo_exchange({"dye": dye}, **options)
    PLANS["out"] = dlf.halo_exchange({"out": out}, **options)


@dlf.fortran.function
def exchange(what: str) -> None:
    """Fill the halos of "height", "wind", "dye" or "out"."""
    PLANS[what].exchange()


@dlf.fortran.function
def finish() -> None:
    """Let go of the arrays."""
    while PLANS:
        PLANS.popitem()[1].free()
