"""Find the state that a model began with, from observations of what came of it.

A tracer is carried by a wind and spreads, for 100 steps. It is seen every 20 steps at every third
point. The state that it began with is found by gradients through all steps, in torch and in JAX.
The adjoint of the model is derived.

python assimilate.py
"""

import dlfield as dlf
import jax
import jax.numpy as jnp
import numpy as np
import torch
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil
from jax.scipy.sparse.linalg import cg

jax.config.update("jax_enable_x64", True)  # or JAX makes float32 of float64

SHAPE, STEPS, EVERY = (26, 22, 4), 100, 20
"""The tracer, with one point around the domain in which it stays zero; steps, and those seen."""


@stencil(backend="numpy")
def carry(
    q: Field[np.float64], u: Field[np.float64], v: Field[np.float64], out: Field[np.float64]
) -> None:
    """Make one step: upwind along I and J, with diffusion."""
    with computation(PARALLEL), interval(...):
        along_i = u * (q - q[-1, 0, 0]) if u > 0.0 else u * (q[1, 0, 0] - q)
        along_j = v * (q - q[0, -1, 0]) if v > 0.0 else v * (q[0, 1, 0] - q)
        around = q[1, 0, 0] + q[-1, 0, 0] + q[0, 1, 0] + q[0, -1, 0]
        out = q - along_i - along_j + 0.02 * (around - 4.0 * q)


run = dlf.bind(carry)
WIND = {"u": None, "v": None}
"""Constants: no gradient is computed for them."""


def fields() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the state that is to be found, and a wind that turns."""
    i, j, k = np.meshgrid(*(np.linspace(-1, 1, n) for n in SHAPE), indexing="ij")
    start = np.exp(-12 * ((i - 0.3) ** 2 + (j + 0.2 * k) ** 2))
    start += 0.7 * np.exp(-20 * ((i + 0.4) ** 2 + (j - 0.3) ** 2))
    start[[0, -1]] = start[:, [0, -1]] = 0.0
    return start, -0.1 * j, 0.1 * i


KNOWN, U, V = fields()
SEEN = (slice(1, -1, 3), slice(1, -1, 3))


def find_in_torch() -> np.ndarray:
    """Return the state that torch finds."""
    step = dlf.torch_op(run, "recipes::carry", adjoint="derive", names=WIND)
    u, v = torch.from_numpy(U), torch.from_numpy(V)

    def seen(q: torch.Tensor) -> torch.Tensor:
        states = []
        for number in range(1, STEPS + 1):
            q = step(q, u, v)
            if number % EVERY == 0:
                states.append(q[SEEN])
        return torch.stack(states)

    with torch.no_grad():
        observed = seen(torch.from_numpy(KNOWN))
    q = torch.zeros(SHAPE, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([q], max_iter=40, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = ((seen(q) - observed) ** 2).sum() + 1e-6 * (q**2).sum()
        value.backward()
        return value

    optimizer.step(loss)
    found: np.ndarray = q.detach().numpy()
    return found


def find_in_jax() -> np.ndarray:
    """Return the state that JAX finds: the loss is quadratic, so that conjugate gradients do."""
    step = dlf.jax_call(run, adjoint="derive", names=WIND)
    u, v = jnp.asarray(U), jnp.asarray(V)

    def seen(q: jax.Array) -> jax.Array:
        def some(q: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            q = jax.lax.fori_loop(0, EVERY, lambda _, q: step(q, u, v), q)
            return q, q[SEEN]

        return jax.lax.scan(some, q, None, STEPS // EVERY)[1]

    observed = seen(jnp.asarray(KNOWN))
    gradient = jax.jit(jax.grad(lambda q: ((seen(q) - observed) ** 2).sum() + 1e-6 * (q**2).sum()))
    at_zero = gradient(jnp.zeros(SHAPE))
    return np.asarray(cg(lambda q: gradient(q) - at_zero, -at_zero, maxiter=40)[0])


def main() -> None:
    """Find it twice, and compare with what is known."""
    inside = (slice(1, -1), slice(1, -1))
    for framework, found in (("torch", find_in_torch()), ("JAX", find_in_jax())):
        error = np.sqrt(np.mean((found - KNOWN)[inside] ** 2) / np.mean(KNOWN[inside] ** 2))
        print(f"{framework}: relative error of the state {error:.3f}")


if __name__ == "__main__":
    main()
