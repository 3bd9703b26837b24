"""A tracer that wind carries around the world and that spreads out, on as many ranks as there are.

One rank, without MPI: `python examples/tracer.py`. Four ranks:
`mpiexec -n 4 python -m mpi4py examples/tracer.py`. Each rank computes the interior of its block
while the halos travel, and writes its region into one zarr array. Rank 0 draws the lowest level
at the start and at the end, and who computed what. Every number of ranks gives the same bits.
"""

import argparse
import math
import os
from pathlib import Path
from typing import Any

import dlfield as dlf
import numpy as np
import zarr
from dlfield.halo import Block, HaloExchange, decompose
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil
from PIL import Image

SHAPE = (96, 64, 4)
"""Points in I, around the world, in J, from wall to wall, and in K."""
REACH = {"I": (2, 1), "J": 1}
"""Points that a step reads below and above."""


# GT4Py reads the source of this function and compiles it: it is never called from Python.
def step(
    tracer: Field[np.float64],
    out: Field[np.float64],
    *,
    wind: np.float64,
    spread: np.float64,
) -> None:
    """Move the tracer along I by upwind differences of second order, and diffuse it."""
    with computation(PARALLEL), interval(...):
        slope = 1.5 * tracer - 2.0 * tracer[-1, 0, 0] + 0.5 * tracer[-2, 0, 0]
        around = tracer[-1, 0, 0] + tracer[1, 0, 0] + tracer[0, -1, 0] + tracer[0, 1, 0]
        out = tracer - wind * slope + spread * (around - 4.0 * tracer)  # noqa: F841


def first_values(block: Block) -> np.ndarray:
    """Return a blob of tracer on every level, for the points of a block."""
    i, j, k = np.ogrid[*(block.region.get(dim, slice(SHAPE[2])) for dim in block.dims)]
    values: np.ndarray = np.exp(-(((i - 24) / 8) ** 2) - ((j - 32) / 6) ** 2) * (1 + k)
    return values


def set_walls(field: dlf.Storage, block: Block) -> None:
    """Set the halo beyond both walls to the value beside it: nothing flows through them."""
    values, rows = field.to_numpy(), block.region["J"]
    if rows.start == 0:
        values[:, 0] = values[:, 1]
    if rows.stop == SHAPE[1]:
        values[:, -1] = values[:, -2]


def run(block: Block, steps: int, backend: str) -> dlf.Storage:
    """Compute the steps of one block, and return its last field."""
    compute = dlf.bind(stencil(backend=backend, definition=step, rebuild=False))
    tracer, out = block.zeros(), block.zeros()
    tracer.domain_view.to_numpy()[...] = first_values(block)
    with dlf.halo_exchange({"tracer": tracer}, block.cart, dims=block.divided) as plan:
        for _ in range(steps):
            advance(compute, plan, block, tracer, out)
            tracer, out = out, tracer
    return tracer


def advance(
    compute: Any,
    plan: HaloExchange,
    block: Block,
    tracer: dlf.Storage,
    out: dlf.Storage,
) -> None:
    """Compute one step: the interior while messages travel, then the edges."""
    numbers = {"wind": 0.2, "spread": 0.05}
    origin, domain = plan.interior(REACH)
    with plan.overlap(tracer):
        compute(tracer, out, origin=origin, domain=domain, **numbers)
    set_walls(tracer, block)
    for origin, domain in plan.edges(REACH):
        compute(tracer, out, origin=origin, domain=domain, **numbers)


def write(path: Path, tracer: dlf.Storage, block: Block, comm: Any) -> None:
    """Write the regions of all ranks into one array, in which no chunk belongs to two ranks."""
    starts = [[part.start for part in block.region.values()]]
    starts = starts if comm is None else comm.allgather(starts[0])
    chunks = [
        math.gcd(extent, *own)
        for extent, own in zip(SHAPE, zip(*starts, strict=True), strict=False)
    ]
    if comm is None or comm.rank == 0:
        made = zarr.create_array(
            path, shape=SHAPE, chunks=(*chunks, SHAPE[2]), dtype="float64", overwrite=True
        )
        made.attrs["dims"] = "IJK"
    if comm is not None:
        comm.Barrier()
    zarr.open_array(path, mode="r+")[*block.region.values()] = tracer.domain_view.to_numpy()
    if comm is not None:
        comm.Barrier()


COLOURS = np.array([[179, 205, 227], [251, 180, 174], [204, 235, 197], [254, 217, 166]])


def draw(path: Path, fields: list[np.ndarray], regions: list[dict[str, slice]]) -> None:
    """Draw the lowest level of some fields, dark on the blocks, each in a colour of its own."""
    owners, gap = np.empty((SHAPE[1], SHAPE[0], 3)), np.full((SHAPE[1], 2, 3), 255.0)
    for rank, region in enumerate(regions):
        owners[region["J"], region["I"]] = COLOURS[rank % len(COLOURS)]
    panels = []
    for values in fields:
        level = values[:, :, 0].T.clip(0)  # upwind differences go below 0
        panels += [gap, owners * (1 - level / level.max())[:, :, None]]
    picture = np.concatenate(panels[1:], axis=1)[::-1].astype(np.uint8)
    Image.fromarray(picture.repeat(4, 0).repeat(4, 1)).save(path)


def communicator() -> Any:
    """Return the communicator of all ranks if a launcher of MPI started this program."""
    if not {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"} & set(os.environ):
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


def main() -> None:
    """Run the model, write the field and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--out", type=Path, default=Path("tracer"))
    options = parser.parse_args()
    comm = communicator()
    halo = {"I": (2, 1), "J": (1, 1)}
    block = decompose(SHAPE, comm, "IJK", halo, {"I": True})
    tracer = run(block, options.steps, options.backend)
    options.out.mkdir(parents=True, exist_ok=True)
    write(options.out / "tracer.zarr", tracer, block, comm)
    regions = [block.region] if comm is None else comm.gather(block.region)
    if regions is not None:
        values = np.asarray(zarr.open_array(options.out / "tracer.zarr", mode="r")[...])
        whole = decompose(SHAPE, None, "IJK", halo, {"I": True})
        draw(options.out / "tracer.png", [first_values(whole), values], regions)
        print(f"{len(regions)} ranks, {options.steps} steps, sum {values.sum():.12f}")
    block.free()


if __name__ == "__main__":
    main()
