"""Couple a torch network to a stencil: first train through the stencil, then run in place.

The truth is a column that relaxes towards a profile while it is diffused along I and J. The network
has to learn the relaxation from the temperature alone.

python emulator.py
"""

import dlfield as dlf
import numpy as np
import torch
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil
from torch import Tensor

NI, NJ, NK, STEPS = 8, 10, 5, 4
PROFILE = torch.linspace(1.0, -1.0, NK, dtype=torch.float64)
"""What the truth relaxes towards: the difference from 255 K, in 10 K, from the ground up."""


@stencil(backend="numpy")
def diffuse(t: Field[np.float64], out: Field[np.float64]) -> None:
    """Make one step of diffusion along I and J."""
    with computation(PARALLEL), interval(...):
        around = t[-1, 0, 0] + t[1, 0, 0] + t[0, -1, 0] + t[0, 1, 0]
        out = t + 0.1 * (around - 4.0 * t)


run = dlf.bind(diffuse)
# The stencil is symmetric, and so its own adjoint: it reads the cotangent as `t`.
op = dlf.torch_op(run, "recipes::diffuse", adjoint=run, names={"out": "t", "t": "out"})


def diffused(t: Tensor) -> Tensor:
    """Diffuse a tensor of the domain; beyond its edges everything is 0."""
    result: Tensor = op(torch.nn.functional.pad(t, (0, 0, 1, 1, 1, 1)))[1:-1, 1:-1]
    return result


def start() -> Tensor:
    """Return a random temperature."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(NI, NJ, NK, generator=generator, dtype=torch.float64)


def truth() -> Tensor:
    """Return the temperature after some steps of relaxation and diffusion."""
    t = start()
    for _ in range(STEPS):
        t = diffused(t + 0.2 * (PROFILE - t))
    return t


def train(network: torch.nn.Module) -> list[float]:
    """Fit the network to the truth after some steps, and return the loss of each round."""
    optimizer, goal, losses = torch.optim.Adam(network.parameters(), lr=0.05), truth(), []
    for _ in range(200):
        t = start()
        for _ in range(STEPS):
            t = diffused(t + network(t))
        loss = torch.nn.functional.mse_loss(t, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def coupled(network: torch.nn.Module) -> dlf.Storage:
    """Run network and stencil in the fields of a model. No step copies anything."""
    t, out = (dlf.zeros((NI + 2, NJ + 2, NK), dims="IJK", halo=(1, 1, 0)) for _ in range(2))
    t.domain_view[...] = start()
    for _ in range(STEPS):
        columns = t.domain_view.to_torch()
        assert columns.data_ptr() == t.domain_view.ptr  # the memory of the model
        with torch.no_grad():
            columns += network(columns)
        run(t, out)
        t, out = out, t  # and with it `columns`, which is made again
    return t


def main() -> None:
    """Check the gradient, train, and run."""
    torch.manual_seed(0)
    exact = torch.autograd.gradcheck(diffused, start()[:3, :3].requires_grad_())
    network = torch.nn.Linear(NK, NK, dtype=torch.float64)
    losses = train(network)
    result = coupled(network)
    error = float(np.abs(result.domain_view.to_numpy() - truth().numpy()).max())
    print(f"the gradient is right: {exact}")
    print(f"loss {losses[0]:.2g} before, {losses[-1]:.2g} after; largest error {error:.2g}")
    try:
        run(start().requires_grad_(), start())
    except BufferError as refusal:
        print(refusal)


if __name__ == "__main__":
    main()
