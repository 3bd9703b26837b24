"""A model of three stencils that was written for gt4py.storage, in two steps of its migration.

python migrated.py
"""

import dlfield as dlf
import numpy as np
from dlfield import gt4py_storage as storage  # was: from gt4py import storage
from gt4py.cartesian.gtscript import FORWARD, PARALLEL, Field, K, computation, interval, stencil

BACKEND = "numpy"
NI, NJ, NK = 12, 14, 6
STEPS = 10


@stencil(backend=BACKEND)
def laplacian(t: Field[np.float64], lap: Field[np.float64]) -> None:
    """Compute the curvature along I and J."""
    with computation(PARALLEL), interval(...):
        lap = t[-1, 0, 0] + t[1, 0, 0] + t[0, -1, 0] + t[0, 1, 0] - 4.0 * t


@stencil(backend=BACKEND)
def diffuse(t: Field[np.float64], lap: Field[np.float64], rate: Field[K, np.float64]) -> None:
    """Diffuse each level at its own rate."""
    with computation(PARALLEL), interval(...):
        t = t + rate * lap


@stencil(backend=BACKEND)
def mix(t: Field[np.float64], *, part: np.float64) -> None:
    """Mix each level with the one below."""
    with computation(FORWARD), interval(1, None):
        t = t + part * (t[0, 0, -1] - t)


def start() -> np.ndarray:
    """Return the temperature at the start."""
    return 280.0 + np.random.default_rng(1).random((NI, NJ, NK))


def with_another_import() -> np.ndarray:
    """Run the model as it was: all that has changed is the import above."""
    t = storage.from_array(start(), backend=BACKEND, aligned_index=(1, 1, 0))
    lap = storage.zeros((NI, NJ, NK), backend=BACKEND, aligned_index=(1, 1, 0))
    rate = storage.from_array(np.linspace(0.05, 0.2, NK), backend=BACKEND, dimensions="K")

    where = {"origin": (1, 1, 0), "domain": (NI - 2, NJ - 2, NK)}
    for _ in range(STEPS):
        laplacian(t, lap, **where)
        diffuse(t, lap, rate, origin={"_all_": (1, 1, 0), "rate": (0,)}, domain=where["domain"])
        mix(t, part=np.float64(0.1), **where)
    return np.asarray(t)


def with_names_and_halos() -> np.ndarray:
    """Run the model with bound stencils, which find origin and domain from the halo."""
    t = dlf.storage(start(), dims="IJK", halo=(1, 1, 0), backend=BACKEND)
    lap = dlf.zeros_like(t)
    rate = dlf.storage(np.linspace(0.05, 0.2, NK), dims="K")

    run_laplacian, run_diffuse, run_mix = (dlf.bind(one) for one in (laplacian, diffuse, mix))
    for _ in range(STEPS):
        run_laplacian(t, lap)
        run_diffuse(t, lap, rate)
        run_mix(t, part=np.float64(0.1))
    return t.to_numpy()


def main() -> None:
    """Compare both steps."""
    first, second = with_another_import(), with_names_and_halos()
    print(f"mean {first.mean():.12f}, the same bits after the second step: ", end="")
    print(first.tobytes() == second.tobytes())


if __name__ == "__main__":
    main()
