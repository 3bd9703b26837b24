"""Learn the coefficient of an advection from what it has done, through a stencil and its adjoint.

A tracer moves along I, by a part of a cell in each step, which differs from point to point. Given
the tracer after each step, the parts are found by gradients: in a loop of torch, and in JAX.

python learn.py
"""

import dlfield as dlf
import jax
import jax.numpy as jnp
import numpy as np
import torch
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil

jax.config.update("jax_enable_x64", True)  # or JAX makes float32 of float64

SHAPE, STEPS = (13, 6, 4), 5
"""The tracer, with one point in front of the domain along I, and the steps that are seen."""


@stencil(backend="numpy")
def advect(q: Field[np.float64], c: Field[np.float64], out: Field[np.float64]) -> None:
    """Make one step upwind."""
    with computation(PARALLEL), interval(...):
        out = q - c * (q - q[-1, 0, 0])


@stencil(backend="numpy")
def advect_adjoint(
    out_bar: Field[np.float64],
    q: Field[np.float64],
    c: Field[np.float64],
    q_bar: Field[np.float64],
    c_bar: Field[np.float64],
) -> None:
    """Transpose it, by hand: what a point gave to its neighbour comes back from there."""
    with computation(PARALLEL), interval(...):
        q_bar = (1.0 - c) * out_bar + c[1, 0, 0] * out_bar[1, 0, 0]
        c_bar = -out_bar * (q - q[-1, 0, 0])


run, adjoint = dlf.bind(advect), dlf.bind(advect_adjoint)
RANDOM = np.random.default_rng(0)
START, KNOWN = RANDOM.random(SHAPE), 0.1 + 0.8 * RANDOM.random(SHAPE)


def learn_in_torch() -> np.ndarray:
    """Return the coefficient that the tracer shows."""
    step = dlf.torch_op(run, "recipes::advect", adjoint=adjoint)

    def seen(c: torch.Tensor) -> torch.Tensor:
        q, states = torch.from_numpy(START), []
        for _ in range(STEPS):
            q = step(q, c)
            states.append(q)
        return torch.stack(states)

    with torch.no_grad():
        goal = seen(torch.from_numpy(KNOWN))
    c = torch.full(SHAPE, 0.5, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [c], max_iter=300, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = ((seen(c) - goal) ** 2).sum()
        value.backward()
        return value

    optimizer.step(loss)
    learnt: np.ndarray = c.detach().numpy()
    return learnt


def learn_in_jax() -> np.ndarray:
    """Return the coefficient: forward, backward and all steps are one compiled program."""
    step = dlf.jax_call(run, adjoint=adjoint)

    def seen(c: jax.Array) -> jax.Array:
        def one(q: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            q = step(q, c)
            return q, q

        return jax.lax.scan(one, jnp.asarray(START), None, STEPS)[1]

    goal = seen(jnp.asarray(KNOWN))

    def loss(c: jax.Array) -> jax.Array:
        return ((seen(c) - goal) ** 2).sum()

    def adam(round_: int, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        c, mean, square = state
        gradient = jax.grad(loss)(c)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        unbiased = mean / (1 - 0.9 ** (round_ + 1)), square / (1 - 0.99 ** (round_ + 1))
        rate = 0.05 * 0.99**round_
        return c - rate * unbiased[0] / (jnp.sqrt(unbiased[1]) + 1e-12), mean, square

    start = jnp.full(SHAPE, 0.5)
    zeros = jnp.zeros(SHAPE)
    return np.asarray(jax.lax.fori_loop(0, 1000, adam, (start, zeros, zeros))[0])


def main() -> None:
    """Learn twice, and compare with what is known."""
    values = {"q": START, "c": KNOWN}
    dlf.testing.check_adjoint(run, adjoint, values)
    # Nothing moves before the first point of the domain: c is not seen there.
    for framework, learnt in (("torch", learn_in_torch()), ("JAX", learn_in_jax())):
        error = np.abs(learnt - KNOWN)[1:].max()
        print(f"{framework}: largest error of the coefficient {error:.1e}")


if __name__ == "__main__":
    main()
