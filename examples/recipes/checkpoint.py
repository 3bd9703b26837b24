"""Stop a model in the middle of a run, and continue it from a file with the same bits.

python checkpoint.py
"""

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dlfield as dlf
import numpy as np
import xarray as xr
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil

HALO = (1, 1, 0)
State = dict[str, dlf.Storage]


@stencil(backend="numpy")
def diffuse(t: Field[np.float64], rate: Field[np.float64], out: Field[np.float64]) -> None:
    """Make one step of diffusion along I and J."""
    with computation(PARALLEL), interval(...):
        around = t[-1, 0, 0] + t[1, 0, 0] + t[0, -1, 0] + t[0, 1, 0]
        out = t + rate * (around - 4.0 * t)


def begin() -> State:
    """Return the fields of the model at its start."""
    values = np.random.default_rng(1).random((10, 12, 5))
    t = dlf.storage(values, dims="IJK", halo=HALO)
    return {"t": t, "rate": dlf.full(t.shape, 0.1, dims="IJK", halo=HALO)}


def advance(state: State, steps: int) -> State:
    """Make some steps."""
    run = dlf.bind(diffuse)
    t, out, rate = state["t"], state["t"].copy(), state["rate"]
    for _ in range(steps):
        run(t, rate, out)
        t, out = out, t
    return {"t": t, "rate": rate}


def through_netcdf(state: State, folder: Path) -> State:
    """Write values, names and halos into a netCDF file, and read them."""
    dataset = xr.Dataset({name: field.to_xarray() for name, field in state.items()})
    dataset.to_netcdf(folder / "checkpoint.nc")
    with xr.open_dataset(folder / "checkpoint.nc") as file:
        return {str(name): dlf.from_xarray(array.load()) for name, array in file.items()}


def through_zarr(state: State, folder: Path) -> State:
    """Write values, names and halos into a zarr group, and read them."""
    dataset = xr.Dataset({name: field.to_xarray() for name, field in state.items()})
    dataset.to_zarr(folder / "checkpoint.zarr", consolidated=False)
    with xr.open_zarr(folder / "checkpoint.zarr", consolidated=False) as file:
        return {str(name): dlf.from_xarray(array.load()) for name, array in file.items()}


def through_npz(state: State, folder: Path) -> State:
    """Write values alone; the reader knows the names and the halo."""
    arrays: dict[str, Any] = {name: field.to_numpy() for name, field in state.items()}
    np.savez(folder / "checkpoint.npz", **arrays)
    with np.load(folder / "checkpoint.npz") as file:
        return {n: dlf.as_storage(file[n], dims="IJK", halo=HALO) for n in file.files}


def through_pickle(state: State, folder: Path) -> State:
    """Write everything, the layout in memory included."""
    path = folder / "checkpoint.pickle"
    path.write_bytes(pickle.dumps(state, protocol=5))
    read: State = pickle.loads(path.read_bytes())
    return read


def main() -> None:
    """Compare runs that were stopped with one that was not."""
    whole = advance(begin(), 20)["t"]
    for through in (through_netcdf, through_zarr, through_npz, through_pickle):
        with TemporaryDirectory() as folder:
            read = through(advance(begin(), 10), Path(folder))
        t = advance(read, 10)["t"]
        same = t.to_numpy().tobytes() == whole.to_numpy().tobytes()
        print(f"{through.__name__}: the same bits {same}, dims {t.dims}, halo {t.halo}")


if __name__ == "__main__":
    main()
