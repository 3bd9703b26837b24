"""Draw the pictures of docs/gallery.md that need matplotlib, from what the other programs compute.

python gallery.py FOLDER
"""

import sys
from pathlib import Path

import assimilate
import chunked
import emulator
import learn
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def figure_of_two(height: float) -> tuple[Figure, Axes, Axes]:
    """Make a figure with two plots beside each other."""
    figure = Figure(figsize=(7.6, height), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    return figure, left, right


def draw_emulator(path: Path) -> None:
    """Draw the loss, and the mean temperature on each level beside the truth."""
    torch.manual_seed(0)
    network = torch.nn.Linear(emulator.NK, emulator.NK, dtype=torch.float64)
    losses = emulator.train(network)
    truth, result = emulator.truth().numpy(), emulator.coupled(network).domain_view.to_numpy()
    figure, left, right = figure_of_two(3.2)
    left.semilogy(losses)
    left.set(title="training through the stencil", xlabel="round", ylabel="loss")
    levels = np.arange(emulator.NK)
    right.plot(truth.mean(axis=(0, 1)), levels, "o", ms=9, fillstyle="none", label="truth")
    right.plot(result.mean(axis=(0, 1)), levels, "x", label="network and stencil")
    right.set(title=f"after {emulator.STEPS} steps", yticks=levels)
    right.set(xlabel="mean temperature", ylabel="level")
    right.legend()
    figure.savefig(path, dpi=100)


def draw_chunks(path: Path) -> None:
    """Draw the lowest level before and after, and the edges of the chunks."""
    before = chunked.start()
    after = chunked.compute(before.chunk(chunked.CHUNKS))["smooth"].compute()
    figure, left, right = figure_of_two(2.4)
    for axes, array, title in ((left, before, "before"), (right, after, "after 5 steps")):
        shown = axes.pcolormesh(array.isel(level=0), cmap="viridis", vmin=0.3, vmax=0.7)
        axes.set(title=title, xlabel="lon", ylabel="lat", aspect="equal")
        for edge in range(chunked.CHUNKS["lon"], chunked.SHAPE["lon"], chunked.CHUNKS["lon"]):
            axes.axvline(edge, color="white", linewidth=0.8)
        for edge in range(chunked.CHUNKS["lat"], chunked.SHAPE["lat"], chunked.CHUNKS["lat"]):
            axes.axhline(edge, color="white", linewidth=0.8)
    figure.colorbar(shown, ax=figure.axes, extend="both")
    figure.savefig(path, dpi=100)


def draw_learn(path: Path) -> None:
    """Draw one level of the coefficient: known, learnt twice, and the difference of these."""
    figure = Figure(figsize=(7.6, 2.6), layout="constrained", facecolor="white")
    learnt = learn.learn_in_torch(), learn.learn_in_jax()
    fields = {"known": learn.KNOWN, "learnt by torch": learnt[0], "learnt by JAX": learnt[1]}
    fields["JAX - known"] = learnt[1] - learn.KNOWN
    for axes, (title, field) in zip(figure.subplots(1, 4), fields.items(), strict=True):
        shown = axes.imshow(field[1:, :, 0], vmin=0.0, vmax=0.9)
        axes.set(title=title, xlabel="J", xticks=(), yticks=())
    figure.axes[0].set(ylabel="I")
    figure.colorbar(shown, ax=figure.axes)
    figure.savefig(path, dpi=100)


def draw_assimilate(path: Path) -> None:
    """Draw one level of the state: known, where it is seen, and found twice."""
    figure = Figure(figsize=(7.6, 2.6), layout="constrained", facecolor="white")
    fields = {
        "known": assimilate.KNOWN,
        "found by torch": assimilate.find_in_torch(),
        "found by JAX": assimilate.find_in_jax(),
    }
    for axes, (title, field) in zip(figure.subplots(1, 3), fields.items(), strict=True):
        shown = axes.imshow(field[1:-1, 1:-1, 1], vmin=0.0, vmax=1.0)
        axes.set(title=title, xlabel="J", xticks=(), yticks=())
    i, j = np.meshgrid(*(np.arange(0, n - 2, 3) for n in field.shape[:2]), indexing="ij")
    figure.axes[0].plot(j, i, ".", color="white", markersize=3)
    figure.axes[0].set(ylabel="I")
    figure.colorbar(shown, ax=figure.axes)
    figure.savefig(path, dpi=100)


def main(folder: Path) -> None:
    """Draw all."""
    draw_emulator(folder / "emulator.png")
    draw_chunks(folder / "chunked.png")
    draw_learn(folder / "learn.png")
    draw_assimilate(folder / "assimilate.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
