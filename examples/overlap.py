"""A GT4Py stencil over the chunks of a Dask array, on the workers of a cluster on this machine.

Dask gives each chunk the points of its neighbours; the grid is periodic. The result is compared,
bit by bit, with a run over the whole grid in this process.

    python examples/overlap.py --workers 2 --steps 5
"""

import argparse

import dask.array as da
import dlfield as dlf
import numpy as np
from distributed import Client, LocalCluster
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil

SHAPE = (96, 64, 20)


def diffusion(inp: Field[np.float64], out: Field[np.float64]) -> None:
    """Diffuse along I and J."""
    with computation(PARALLEL), interval(...):
        around = inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 1, 0]
        out = inp + 0.1 * (around - 4.0 * inp)  # noqa: F841


#: It goes to the workers with `step`: each compiles it once, or takes it from GT4Py's cache.
diffuse = dlf.bind(stencil(backend="numpy", definition=diffusion))


def step(block: np.ndarray) -> dlf.Storage:
    """Diffuse a chunk that has a point of its neighbours on each side along I and J."""
    field = dlf.as_storage(block, dims="IJK", halo=(1, 1, 0))
    result = field.copy()
    diffuse(field, result)
    return result


def on_cluster(values: np.ndarray, steps: int, workers: int) -> dlf.Storage:
    """Compute in chunks, each on one of the workers."""
    ni, nj, nk = values.shape
    whole = da.from_array(dlf.storage(values, dims="IJK"), chunks=(ni // 4, nj // 2, nk))
    options = {"depth": {0: 1, 1: 1}, "boundary": {0: "periodic", 1: "periodic"}}
    for _ in range(steps):
        whole = whole.map_overlap(step, **options, meta=whole._meta)
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster):
        result: dlf.Storage = whole.compute()
    return result


def in_this_process(values: np.ndarray, steps: int) -> np.ndarray:
    """Compute the whole grid at once."""
    for _ in range(steps):
        wrapped = np.pad(values, ((1, 1), (1, 1), (0, 0)), mode="wrap")
        values = step(wrapped).to_numpy()[1:-1, 1:-1]
    return values


def main() -> None:
    """Compare the two."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--steps", type=int, default=5)
    given = options.parse_args()
    values = np.random.default_rng(1).random(SHAPE)
    result = on_cluster(values, given.steps, given.workers)
    same = np.array_equal(result.to_numpy(), in_this_process(values, given.steps))
    print(f"{type(result).__name__}, dims {result.dims}, {given.steps} steps")
    print(f"the same bits as in one process: {same}")


if __name__ == "__main__":
    main()
