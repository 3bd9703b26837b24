"""The diffusion of `icosahedral.py` on several MPI ranks, with halos exchanged by GHEX.

Every rank has a block of the cells, and behind them, as its halo, the cells of other ranks beside
them. GHEX reads and writes the storages themselves: nothing is copied for it. Rank 0 compares the
result with that of an undivided run, bit by bit. Needs mpi4py and ghex:

    mpiexec -n 2 python examples/icosahedral_ranks.py
"""

from dataclasses import dataclass

import dlfield as dlf
import numpy as np
from ghex.context import make_context
from ghex.unstructured import (
    DomainDescriptor,
    HaloGenerator,
    make_communication_object,
    make_field_descriptor,
    make_pattern,
)
from gt4py.next import int32
from icosahedral import (
    DIFFUSIVITY,
    LEVELS,
    bind_diffuse,
    check,
    divergence_factors,
    longest_step,
    quiet_advice,
    simulate,
    temperature,
)
from icosahedral_mesh import Mesh, icosahedral_mesh
from mpi4py import MPI

REFINEMENTS, STEPS = 3, 20


@dataclass(frozen=True)
class Part:
    """The cells and edges of one rank; its tables have its own numbers."""

    own: np.ndarray
    """Cells that it computes, by their numbers in the whole mesh."""
    halo: np.ndarray
    """Cells of other ranks that it reads."""
    edges: np.ndarray
    """Edges of its own cells."""
    e2c: np.ndarray
    """For each of `edges`, a position in `own` followed by `halo`."""
    c2e: np.ndarray
    """For each of `own`, positions in `edges`."""


def part_of(mesh: Mesh, own: np.ndarray) -> Part:
    """Cut out cells and what they read."""
    halo = np.setdiff1d(mesh.c2e2c[own], own)
    edges = np.unique(mesh.c2e[own])
    return Part(
        own,
        halo,
        edges,
        e2c=_positions(np.concatenate([own, halo]), mesh.e2c[edges]),
        c2e=_positions(edges, mesh.c2e[own]),
    )


def _positions(numbers: np.ndarray, table: np.ndarray) -> np.ndarray:
    position = np.full(max(numbers.max(), table.max()) + 1, -1, dtype=np.int32)
    position[numbers] = np.arange(len(numbers))
    positions: np.ndarray = position[table]
    return positions


def simulate_part(mesh: Mesh, part: Part, start: np.ndarray, diffusion: float) -> np.ndarray:
    """Diffuse on the cells of this rank, and exchange the halo before each step."""
    cells = np.concatenate([part.own, part.halo])
    context = make_context(MPI.COMM_WORLD)
    domain = DomainDescriptor(context.rank(), cells, np.arange(len(part.own), len(cells)))
    pattern = make_pattern(context, HaloGenerator.from_gids(part.halo), [domain])
    halos = make_communication_object(context)

    run = bind_diffuse("embedded", part.e2c, part.c2e)
    geometry = (1.0 / mesh.dual_edge_length[part.edges], divergence_factors(mesh)[part.own])
    here = (int32(0), int32(len(part.own)), int32(0), int32(LEVELS))
    psi = dlf.full((len(cells), LEVELS), np.nan, dims=("Cell", "K"))
    psi_new = dlf.full_like(psi, np.nan)
    psi[: len(part.own)] = start[part.own]
    for _ in range(STEPS):
        halos.exchange([pattern(make_field_descriptor(domain, psi))]).wait()
        run(psi, *geometry, diffusion, psi_new, *here)
        psi, psi_new = psi_new, psi
    return psi.to_numpy()[: len(part.own)]


def main() -> None:
    """Simulate on all ranks, and compare on the first one."""
    quiet_advice()
    comm = MPI.COMM_WORLD
    mesh = icosahedral_mesh(REFINEMENTS)
    part = part_of(mesh, np.array_split(np.arange(len(mesh.c2e)), comm.size)[comm.rank])
    print(f"rank {comm.rank}: {len(part.own)} cells, {len(part.halo)} in the halo", flush=True)
    start, diffusion = temperature(mesh), 0.5 * longest_step(mesh) * DIFFUSIVITY
    parts = comm.gather(simulate_part(mesh, part, start, diffusion))
    if parts is not None:
        expected = simulate(mesh, "embedded", start, diffusion, STEPS)
        same = np.array_equal(np.concatenate(parts), expected)
        check(f"{comm.size} ranks find the same as one, bit by bit", same)


if __name__ == "__main__":
    main()
