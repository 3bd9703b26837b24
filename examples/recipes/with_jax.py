"""A time step of which JAX computes one half and a GT4Py stencil the other.

python with_jax.py
"""

import dlfield as dlf
import jax
import numpy as np
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil

jax.config.update("jax_enable_x64", True)  # or JAX makes float32 of float64

HALO = (1, 1, 0)


@stencil(backend="numpy")
def diffuse(t: Field[np.float64], out: Field[np.float64]) -> None:
    """Make one step of diffusion along I and J."""
    with computation(PARALLEL), interval(...):
        around = t[-1, 0, 0] + t[1, 0, 0] + t[0, -1, 0] + t[0, 1, 0]
        out = t + 0.1 * (around - 4.0 * t)


run = dlf.bind(diffuse)
call = dlf.jax_call(run)  # arrays have the halo that the stencil reads


@jax.jit
def cool(t: jax.Array) -> jax.Array:
    """Relax the temperature, which is counted from 250 K, towards that."""
    return t - t / 40.0


def outside_of_jit(t: dlf.Storage, steps: int) -> dlf.Storage:
    """Take turns. No step copies a field; each makes new ones."""
    for _ in range(steps):
        array = t.to_jax()
        assert array.unsafe_buffer_pointer() == t.ptr  # shared: do not write t any more
        cooled = dlf.as_storage(cool(array), like=t)  # read-only, as it is JAX's
        t = run.functional(cooled)
    return t


@jax.jit
def inside_of_jit(t: jax.Array) -> jax.Array:
    """Make one step in compiled code: XLA calls the stencil with its own buffers."""
    result: jax.Array = call(cool(t))
    return result


def main() -> None:
    """Compare both ways."""
    start = dlf.zeros((10, 12, 5), dims="IJK", halo=HALO)
    start.domain_view[...] = np.random.default_rng(1).random((8, 10, 5))
    outside = outside_of_jit(start, 3)
    inside = start.copy().to_jax()
    for _ in range(3):
        inside = inside_of_jit(inside)
    print(f"dims {outside.dims}, halo {outside.halo}, mean {outside.domain_view.mean():.3f}")
    print(f"the same bits inside of jit: {np.array_equal(outside.to_numpy(), inside)}")


if __name__ == "__main__":
    main()
