"""What an exchange costs beside its peers: `make bench`.

Arrays are small, because nothing is copied and so their size does not matter; only the allocations
have a large case. Prints a table per area and writes `benches/results/exchange.csv`.

NumPy and GT4Py are needed. Any other library that is missing is named where it would be a peer.
"""

import os
import platform
from importlib import metadata
from pathlib import Path

# The fields are tiny, so a second thread would only be waited for. OpenMP reads this as it loads.
os.environ["OMP_NUM_THREADS"] = "1"

import allocation
import calls
import numpy as np
import startup
from timing import Comparison, Missing, Peer, compare_all, load, print_rows, write_csv

RESULTS = Path(__file__).parent / "results" / "exchange.csv"
LIBRARIES = ("dlfield", "numpy", "torch", "jax", "xarray", "gt4py", "apache-tvm-ffi")

NAMES = {
    "dlf": load("dlfield"),
    "np": np,
    "torch": load("torch"),
    "jax": load("jax"),
    "jax_dlpack": load("jax.dlpack"),
    "xr": load("xarray"),
    "tvm_ffi": load("tvm_ffi"),
    "gt4py_utils": load("gt4py.storage.cartesian.utils"),
    # Needs a module of its own, compiled with nanobind: a function that takes an ndarray argument.
    "nanobind_peer": Missing("a module compiled with nanobind"),
    "values": np.zeros((8, 8, 8)),
}

IMPORT = "dlf.as_storage(x)"
NANOBIND = "nanobind_peer.take(x)"
NUMPY = "np.from_dlpack(x)"
TORCH = "torch.from_dlpack(x)"
TVM = "tvm_ffi.from_dlpack(x)"
GT4PY = "gt4py_utils.asarray(x, device='cpu')"

TO_STORAGE = [
    Comparison(
        "NumPy array",
        IMPORT,
        [Peer(NANOBIND, limit=1.2), Peer(NUMPY), Peer(TORCH), Peer(TVM), Peer(GT4PY)],
        setup="x = values.copy()",
    ),
    Comparison(
        "torch tensor",
        IMPORT,
        [Peer(TVM, limit=1.0), Peer(NANOBIND), Peer(NUMPY), Peer(TORCH), Peer(GT4PY)],
        setup="x = torch.tensor(values)",
    ),
    Comparison(
        "JAX array",
        IMPORT,
        [Peer(NUMPY, limit=0.5), Peer(NANOBIND), Peer(TORCH), Peer(TVM), Peer(GT4PY)],
        setup="jax.config.update('jax_enable_x64', True)\n"
        "x = jax.device_put(values.copy(), jax.devices('cpu')[0])",
    ),
    Comparison(
        "DataArray",
        IMPORT,
        [Peer("np.asarray(x)", limit=0.2), Peer(GT4PY)],
        setup="x = xr.DataArray(values.copy(), dims=('I', 'J', 'K'))",
    ),
]

# The peers get the very memory of the storage, as an ndarray: aligned alike, so taken alike.
BOTH = "s = dlf.zeros((8, 8, 8)); x = s.to_numpy()"

FROM_STORAGE = [
    Comparison("NumPy", "np.from_dlpack(s)", [Peer(NUMPY, limit=1.1)], setup=BOTH),
    Comparison("NumPy", "np.asarray(s)", [Peer(NUMPY, limit=1.5)], setup=BOTH),
    Comparison("NumPy", "s.to_numpy()", [Peer(NUMPY)], setup=BOTH),
    Comparison("memoryview", "memoryview(s)", [Peer("memoryview(x)")], setup=BOTH),
    Comparison(
        "torch",
        "torch.from_dlpack(s)",
        [Peer(TORCH, limit=1 / 3), Peer("torch.from_numpy(x)")],
        setup=BOTH,
    ),
    Comparison("JAX", "s.to_jax()", [Peer("jax_dlpack.from_dlpack(x)")], setup=BOTH),
]


def main() -> None:
    """Measure every area, print its table, and keep all rows."""
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {versions()}")
    areas = {
        "array -> Storage": lambda area: compare_all(area, TO_STORAGE, NAMES),
        "Storage -> array": lambda area: compare_all(area, FROM_STORAGE, NAMES),
        "stencil call": calls.rows,
        "allocation": allocation.rows,
        "import": startup.rows,
    }
    kept = []
    for area, measure_area in areas.items():
        rows = measure_area(area)
        print_rows(rows)
        kept += rows
    write_csv(RESULTS, kept)
    print(f"\nalso written to {os.path.relpath(RESULTS)}")


def versions() -> str:
    """Name the libraries that take part, with their versions."""
    found = []
    for library in LIBRARIES:
        try:
            found.append(f"{library} {metadata.version(library)}")
        except metadata.PackageNotFoundError:
            found.append(f"{library} missing")
    return ", ".join(found)


if __name__ == "__main__":
    main()
