"""Horizontal diffusion: the stencil that `quickstart.py` runs, and its NumPy reference.

Every weather model has a version of it. A Laplacian finds the small-scale noise, the gradient of
that Laplacian is the flux that smooths it, a limiter switches the flux off where it would amplify
a gradient instead, and the divergence of the rest, times a coefficient, updates the field.
"""

import numpy as np
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval

HALO = (3, 3, 0)
"""Points per side in I, J and K that the update leaves alone. It reads two of the three."""


# GT4Py reads the source of this function and compiles it: it is never called from Python.
def hdiff(phi: Field[np.float64], out: Field[np.float64], coeff: Field[np.float64]) -> None:
    """Diffuse `phi` horizontally into `out`."""
    with computation(PARALLEL), interval(...):
        lap = 4.0 * phi - (phi[1, 0, 0] + phi[-1, 0, 0] + phi[0, 1, 0] + phi[0, -1, 0])
        flux_i = lap[1, 0, 0] - lap
        flux_i = 0.0 if flux_i * (phi[1, 0, 0] - phi) > 0.0 else flux_i
        flux_j = lap[0, 1, 0] - lap
        flux_j = 0.0 if flux_j * (phi[0, 1, 0] - phi) > 0.0 else flux_j
        # Offsets of a temporary mean something to GT4Py, not to a type checker.
        divergence = flux_i - flux_i[-1, 0, 0] + flux_j - flux_j[0, -1, 0]  # type: ignore[index]
        out = phi - coeff * divergence  # noqa: F841 (assigning to a parameter writes the field)


def reference(phi: np.ndarray, coeff: np.ndarray) -> np.ndarray:
    """Compute the same with whole-array NumPy; points in the halo are zero.

    Parameters
    ----------
    phi
        The field with its halo, axes I, J, K.
    coeff
        The coefficient on the interior only.
    """
    lap = np.zeros_like(phi)
    lap[1:-1, 1:-1] = 4.0 * phi[1:-1, 1:-1] - (
        phi[2:, 1:-1] + phi[:-2, 1:-1] + phi[1:-1, 2:] + phi[1:-1, :-2]
    )
    out = np.zeros_like(phi)
    inside = tuple(slice(width, size - width) for width, size in zip(HALO, phi.shape, strict=True))
    divergence = _limited_divergence(lap, phi, axis=0) + _limited_divergence(lap, phi, axis=1)
    out[inside] = phi[inside] - coeff * divergence[inside]
    return out


def _limited_divergence(lap: np.ndarray, phi: np.ndarray, axis: int) -> np.ndarray:
    """Return how much more limited flux leaves each point along `axis` than enters it."""
    flux = np.diff(lap, axis=axis)
    flux[flux * np.diff(phi, axis=axis) > 0.0] = 0.0
    edges = [(1, 1) if a == axis else (0, 0) for a in range(phi.ndim)]
    return np.diff(np.pad(flux, edges), axis=axis)
