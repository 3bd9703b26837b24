"""The libraries that the doctor looks for."""

from __future__ import annotations

import importlib.util
import platform
from dataclasses import dataclass
from importlib import metadata

__all__ = ["LIBRARIES", "Known", "chosen"]


@dataclass(frozen=True)
class Known:
    """A library by its name, module and distribution."""

    name: str
    module: str
    distribution: str

    def installed(self) -> str | None:
        """Return the version that is installed, without an import; None if there is none."""
        if not self.distribution:
            return platform.python_version()
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return self._found()

    def _found(self) -> str | None:
        """Look for the module: CuPy has a distribution for each CUDA, for example."""
        try:
            spec = importlib.util.find_spec(self.module.split(".")[0])
            if spec is not None and spec.origin is None:  # a namespace of several distributions
                spec = importlib.util.find_spec(self.module)
            return None if spec is None else "unknown"
        except ValueError:  # of a module in sys.modules without a spec
            return "unknown"


LIBRARIES = (
    Known("Python", "array", ""),
    Known("NumPy", "numpy", "numpy"),
    Known("torch", "torch", "torch"),
    Known("JAX", "jax", "jax"),
    Known("CuPy", "cupy", "cupy"),
    Known("xarray", "xarray", "xarray"),
    Known("Dask", "dask.array", "dask"),
    Known("distributed", "distributed", "distributed"),
    Known("pyarrow", "pyarrow", "pyarrow"),
    Known("polars", "polars", "polars"),
    Known("nanoarrow", "nanoarrow", "nanoarrow"),
    Known("arro3", "arro3.core", "arro3-core"),
    Known("PIL", "PIL.Image", "pillow"),
    Known("tvm-ffi", "tvm_ffi", "apache-tvm-ffi"),
    Known("numba", "numba", "numba"),
    Known("numba-cuda", "numba_cuda", "numba-cuda"),
    Known("cuda-core", "cuda.core", "cuda-core"),
    Known("nanobind", "nanobind", "nanobind"),
    Known("ml_dtypes", "ml_dtypes", "ml_dtypes"),
    Known("gt4py", "gt4py.next", "gt4py"),
    Known("dace", "dace", "dace"),
    Known("mpi4py", "mpi4py", "mpi4py"),
    Known("GHEX", "ghex", "ghex"),
    Known("zarr", "zarr", "zarr"),
    Known("netCDF4", "netCDF4", "netCDF4"),
    Known("h5netcdf", "h5netcdf", "h5netcdf"),
    Known("h5py", "h5py", "h5py"),
    Known("matplotlib", "matplotlib", "matplotlib"),
)


def chosen(names: tuple[str, ...]) -> tuple[Known, ...]:
    """Return the libraries of these names, whatever their case; all of them for no name."""
    by_name = {known.name.lower(): known for known in LIBRARIES}
    for name in names:
        if name.lower() not in by_name:
            listed = ", ".join(known.name for known in LIBRARIES)
            raise ValueError(
                f"argument 'only': expected names of {listed}, got {name!r}; pip tells about others"
            )
    return tuple(by_name[name.lower()] for name in names) or LIBRARIES
