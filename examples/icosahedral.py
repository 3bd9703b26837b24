"""Diffusion on a triangle mesh of the sphere, written in gt4py.next as icon4py writes it.

A temperature with waves and noise on 5120 cells and 6 levels is diffused until the noise is gone.
One program gets a torch tensor, a DataArray, NumPy arrays and a storage, all of them without a
copy. The script checks what it computes: the mean stays, waves decay as fast as the equation says,
and NumPy finds the same. It ends with an error if one of these is not so.

    python examples/icosahedral.py                       # GT4Py runs it in Python
    python examples/icosahedral.py --backend gtfn_cpu    # compiled; needs cmake and a C++ compiler
    python examples/icosahedral.py --plot docs/icosahedral.png    # needs matplotlib
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import dlfield as dlf
import gt4py.next as gtx
import numpy as np
import torch
import xarray as xr
from gt4py.next import Dims, float64, int32, neighbor_sum
from icosahedral_mesh import EARTH_RADIUS, SKIP, Mesh, icosahedral_mesh

CellDim, EdgeDim, VertexDim = (gtx.Dimension(name) for name in ("Cell", "Edge", "Vertex"))
KDim = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)

E2CDim = gtx.Dimension("E2C", kind=gtx.DimensionKind.LOCAL)
C2EDim = gtx.Dimension("C2E", kind=gtx.DimensionKind.LOCAL)
V2CDim = gtx.Dimension("V2C", kind=gtx.DimensionKind.LOCAL)
E2C = gtx.FieldOffset("E2C", source=CellDim, target=(EdgeDim, E2CDim))
C2E = gtx.FieldOffset("C2E", source=EdgeDim, target=(CellDim, C2EDim))
V2C = gtx.FieldOffset("V2C", source=CellDim, target=(VertexDim, V2CDim))

LEVELS = 6
DIFFUSIVITY = 1.0e6
"""In square metres per second."""
SHOWN = 3
"""The level in the picture."""

BACKENDS = {"embedded": None, "gtfn_cpu": gtx.gtfn_cpu}


@gtx.field_operator
def _normal_gradient(
    psi: gtx.Field[Dims[CellDim, KDim], float64],
    inv_dual_edge_length: gtx.Field[Dims[EdgeDim], float64],
) -> gtx.Field[Dims[EdgeDim, KDim], float64]:
    return (psi(E2C[1]) - psi(E2C[0])) * inv_dual_edge_length


@gtx.field_operator
def _diffuse(
    psi: gtx.Field[Dims[CellDim, KDim], float64],
    inv_dual_edge_length: gtx.Field[Dims[EdgeDim], float64],
    geofac_div: gtx.Field[Dims[CellDim, C2EDim], float64],
    diffusion: float64,
) -> gtx.Field[Dims[CellDim, KDim], float64]:
    gradient = _normal_gradient(psi, inv_dual_edge_length)
    return psi + diffusion * neighbor_sum(gradient(C2E) * geofac_div, axis=C2EDim)


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)
def diffuse(
    psi: gtx.Field[Dims[CellDim, KDim], float64],
    inv_dual_edge_length: gtx.Field[Dims[EdgeDim], float64],
    geofac_div: gtx.Field[Dims[CellDim, C2EDim], float64],
    diffusion: float64,
    psi_new: gtx.Field[Dims[CellDim, KDim], float64],
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
) -> None:
    """Make one step; `diffusion` is the diffusivity times the length of the step."""
    _diffuse(
        psi,
        inv_dual_edge_length,
        geofac_div,
        diffusion,
        out=psi_new,
        domain={
            CellDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


@gtx.field_operator
def _cells_to_vertices(
    psi: gtx.Field[Dims[CellDim, KDim], float64],
    weight: gtx.Field[Dims[VertexDim, V2CDim], float64],
) -> gtx.Field[Dims[VertexDim, KDim], float64]:
    return neighbor_sum(psi(V2C) * weight, axis=V2CDim)


@gtx.program(grid_type=gtx.GridType.UNSTRUCTURED)
def cells_to_vertices(
    psi: gtx.Field[Dims[CellDim, KDim], float64],
    weight: gtx.Field[Dims[VertexDim, V2CDim], float64],
    psi_v: gtx.Field[Dims[VertexDim, KDim], float64],
    horizontal_start: int32,
    horizontal_end: int32,
    vertical_start: int32,
    vertical_end: int32,
) -> None:
    """Take the mean of the cells at a vertex: six, or five."""
    _cells_to_vertices(
        psi,
        weight,
        out=psi_v,
        domain={
            VertexDim: (horizontal_start, horizontal_end),
            KDim: (vertical_start, vertical_end),
        },
    )


def bind_diffuse(backend: str, e2c: np.ndarray, c2e: np.ndarray) -> dlf.BoundStencil:
    """Bind `diffuse` to two tables, which GT4Py copies, and to names of dimensions."""
    return dlf.bind(
        diffuse.with_backend(BACKENDS[backend]),
        dims={"cell": CellDim, "level": KDim},
        offset_provider={
            "E2C": gtx.as_connectivity([EdgeDim, E2CDim], CellDim, e2c),
            "C2E": gtx.as_connectivity([CellDim, C2EDim], EdgeDim, c2e),
        },
    )


def divergence_factors(mesh: Mesh) -> np.ndarray:
    """Return what a flux through an edge of a cell counts for its divergence, in 1/m."""
    length = mesh.orientation * mesh.edge_length[mesh.c2e]
    factors: np.ndarray = length / mesh.cell_area[:, np.newaxis]
    return factors


def longest_step(mesh: Mesh) -> float:
    """Return the longest stable step in seconds."""
    slope = (mesh.edge_length / mesh.dual_edge_length)[mesh.c2e].sum(axis=1)
    return float((mesh.cell_area / slope).min() / DIFFUSIVITY)


def wave(mesh: Mesh) -> np.ndarray:
    """Return for each level n a spherical harmonic of degree n + 1, (cells, levels)."""
    x, y, _ = mesh.cell_center.T
    degree = np.arange(1, LEVELS + 1)
    harmonic: np.ndarray = ((x + 1j * y)[:, np.newaxis] ** degree).real
    return harmonic


def temperature(mesh: Mesh) -> np.ndarray:
    """Return waves and noise about 288 K, (cells, levels)."""
    noise = np.random.default_rng(0).normal(scale=3.0, size=(len(mesh.cell_area), LEVELS))
    return 288.0 + 10.0 * wave(mesh) + noise


def simulate(
    mesh: Mesh, backend: str, start: np.ndarray, diffusion: float, steps: int
) -> np.ndarray:
    """Diffuse a DataArray of xarray and a tensor of torch into each other, `steps` times."""
    run = bind_diffuse(backend, mesh.e2c, mesh.c2e)
    psi: Any = xr.DataArray(start.T.copy(), dims=("level", "cell"))
    psi_new: Any = torch.zeros(start.shape, dtype=torch.float64)
    factors = dlf.as_storage(divergence_factors(mesh), dims=("Cell", "C2E"))
    geometry = (1.0 / mesh.dual_edge_length, factors, diffusion)
    domain = {
        "horizontal_start": int32(0),
        "horizontal_end": int32(len(mesh.c2e)),
        "vertical_start": int32(0),
        "vertical_end": int32(LEVELS),
    }
    fields = run.plan(psi, *geometry, psi_new, **domain).fields.values()
    check("nothing is copied", all(one.given and one.given.copy is None for one in fields))
    for _ in range(steps):
        run(psi, *geometry, psi_new, **domain)
        psi, psi_new = psi_new, psi
    return np.asarray(psi.transpose("cell", "level") if isinstance(psi, xr.DataArray) else psi)


def reference(mesh: Mesh, psi: np.ndarray, diffusion: float, steps: int) -> np.ndarray:
    """Compute the same with NumPy."""
    factors = divergence_factors(mesh)[..., np.newaxis]
    for _ in range(steps):
        gradient = np.diff(psi[mesh.e2c], axis=1)[:, 0] / mesh.dual_edge_length[:, np.newaxis]
        psi = psi + diffusion * (gradient[mesh.c2e] * factors).sum(axis=1)
    return psi


def at_vertices(mesh: Mesh, backend: str, psi: np.ndarray) -> np.ndarray:
    """Return the mean of the cells at each vertex, (vertices, levels)."""
    there = mesh.v2c != SKIP
    weight = there / there.sum(axis=1, keepdims=True)
    v2c = gtx.as_connectivity([VertexDim, V2CDim], CellDim, mesh.v2c, skip_value=SKIP)
    program = cells_to_vertices.with_backend(BACKENDS[backend])
    psi_v = np.empty((len(weight), LEVELS))
    run = dlf.bind(program, offset_provider={"V2C": v2c})
    run(psi, weight, psi_v, int32(0), int32(len(weight)), int32(0), int32(LEVELS))
    expected = (psi[mesh.v2c] * weight[..., np.newaxis]).sum(axis=1)
    check("a vertex has the mean of its five or six cells", np.allclose(psi_v, expected))
    return psi_v


def mean(mesh: Mesh, psi: np.ndarray) -> np.ndarray:
    """Return the mean of each level over the sphere."""
    average: np.ndarray = np.average(psi, axis=0, weights=mesh.cell_area)
    return average


def check(what: str, holds: bool) -> None:  # noqa: FBT001 (it reads well at every call)
    """End the program unless a statement about its result holds."""
    if not holds:
        raise SystemExit(f"wrong: expected that {what}")
    print(f"checked: {what}")


def check_result(mesh: Mesh, start: np.ndarray, end: np.ndarray, seconds: float) -> None:
    """Compare with what the diffusion equation says."""
    check("the mean stays", np.allclose(mean(mesh, end), mean(mesh, start), rtol=1e-13))
    extremes = start.min() < end.min() and end.max() < start.max()
    check("no cell becomes colder or warmer than all were", bool(extremes))
    left = amplitude(mesh, end) / amplitude(mesh, start)
    degree = np.arange(1, LEVELS + 1)
    rate = DIFFUSIVITY * degree * (degree + 1) / EARTH_RADIUS**2
    check("waves decay as they should", np.allclose(left, np.exp(-rate * seconds), rtol=0.01))


def amplitude(mesh: Mesh, psi: np.ndarray) -> np.ndarray:
    """Return how much of its wave each level has."""
    return mean(mesh, (psi - mean(mesh, psi)) * wave(mesh))


def main() -> None:
    """Diffuse, check, and draw if that is asked for."""
    parser = argparse.ArgumentParser(description="Diffusion on an icosahedral mesh of the sphere.")
    parser.add_argument("--backend", choices=BACKENDS, default="embedded")
    parser.add_argument("--refinements", type=int, default=4, help="of the icosahedron (4)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--plot", type=Path, help="a file for the picture")
    options = parser.parse_args()
    quiet_advice()
    mesh = icosahedral_mesh(options.refinements)
    step = 0.5 * longest_step(mesh)
    days = options.steps * step / 86400
    print(
        f"{len(mesh.c2e)} cells, {len(mesh.e2c)} edges, {len(mesh.v2c)} vertices, {days:.1f} days"
    )
    start = temperature(mesh)
    end = simulate(mesh, options.backend, start, DIFFUSIVITY * step, options.steps)
    expected = reference(mesh, start, DIFFUSIVITY * step, options.steps)
    check("NumPy finds the same", np.allclose(end, expected, rtol=1e-13))
    check_result(mesh, start, end, options.steps * step)
    psi_v = at_vertices(mesh, options.backend, end)
    if options.plot:
        from icosahedral_plot import plot

        plot(options.plot, mesh, start[:, SHOWN], end[:, SHOWN], psi_v[:, SHOWN], days)


def quiet_advice() -> None:
    """Silence advice about speed: that Python computes, and without ``-O``."""
    for message in ("Field View Program", "Python is not running in optimized mode"):
        warnings.filterwarnings("ignore", message=message)


if __name__ == "__main__":
    main()
