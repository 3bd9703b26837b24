"""Stencils over the chunks of a DataArray: a column in one go, and neighbours with map_overlap.

python chunked.py
"""

import dlfield as dlf
import numpy as np
import xarray as xr
from gt4py.cartesian.gtscript import FORWARD, PARALLEL, Field, computation, interval, stencil

SHAPE = {"lat": 48, "lon": 96, "level": 20}
CHUNKS = {"lat": 24, "lon": 32}


@stencil(backend="numpy")
def integrate(q: Field[np.float64], path: Field[np.float64]) -> None:
    """Sum from the first level to each other."""
    with computation(FORWARD):
        with interval(0, 1):
            path = q
        with interval(1, None):
            path = path[0, 0, -1] + q


@stencil(backend="numpy")
def smooth(q: Field[np.float64], out: Field[np.float64]) -> None:
    """Take the mean of a point and its four neighbours."""
    with computation(PARALLEL), interval(...):
        out = 0.2 * (q + q[-1, 0, 0] + q[1, 0, 0] + q[0, -1, 0] + q[0, 1, 0])


names = {"lat": "I", "lon": "J", "level": "K"}
run_integrate, run_smooth = dlf.bind(integrate, dims=names), dlf.bind(smooth, dims=names)


def path_of(chunk: np.ndarray) -> np.ndarray:
    """Integrate a chunk. Its last axis is the level: apply_ufunc puts a core dimension there."""
    result: dlf.Storage = run_integrate.functional(dlf.as_storage(chunk, dims=tuple(SHAPE)))
    return result.to_numpy()


def smoothed(chunk: np.ndarray) -> np.ndarray:
    """Smooth a chunk that has a point of its neighbours on each side of lat and lon."""
    field = dlf.as_storage(chunk, dims=tuple(SHAPE), halo={"lat": 1, "lon": 1})
    result = field.copy()
    run_smooth(field, result)
    return result.to_numpy()


def compute(q: xr.DataArray) -> xr.Dataset:
    """Describe the whole computation; nothing is computed yet."""
    path = xr.apply_ufunc(
        path_of,
        q,
        input_core_dims=[["level"]],
        output_core_dims=[["level"]],
        dask="parallelized",
        output_dtypes=[q.dtype],
    )
    depth, boundary = {0: 1, 1: 1}, {0: "nearest", 1: "periodic"}
    for _ in range(5):
        q = q.copy(
            data=q.data.map_overlap(smoothed, depth=depth, boundary=boundary, meta=q.data._meta)
        )
    return xr.Dataset({"path": path, "smooth": q})


def start() -> xr.DataArray:
    """Return random values."""
    values = np.random.default_rng(1).random(tuple(SHAPE.values()))
    return xr.DataArray(values, dims=tuple(SHAPE), name="q")


def main() -> None:
    """Compute in chunks, and compare with the whole array at once."""
    whole = start()
    result = compute(whole.chunk(CHUNKS)).compute()
    at_once = compute(whole.chunk()).compute()
    print(f"{dict(result.sizes)}, the same bits as in one chunk: {result.equals(at_once)}")
    xr.testing.assert_allclose(result["path"], whole.cumsum("level"))


if __name__ == "__main__":
    main()
