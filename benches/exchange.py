"""What an exchange costs beside its peers.

Arrays are small: nothing is copied, so their size does not matter, as `sizes.py` shows.
"""

import importlib.util
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from building import compiled
from tables import Row, Table, table_of
from timing import Comparison, Missing, Peer, compare_all, load

IMPORT = "dlf.as_storage(x)"
NANOBIND = "nanobind_peer.take(x)"
NUMPY = "np.from_dlpack(x)"
TORCH = "torch.from_dlpack(x)"
TVM = "tvm_ffi.from_dlpack(x)"
CUDA_DLPACK = "StridedMemoryView.from_dlpack(x, stream_ptr=-1)"
CUDA_ANY = "StridedMemoryView.from_any_interface(x, stream_ptr=-1)"
NUMBA = "numba_peer(x)"
GT4PY = "gt4py_utils.asarray(x, device='cpu')"
REST = [Peer(CUDA_DLPACK), Peer(CUDA_ANY), Peer(GT4PY)]

REMARK = (
    "`nanobind_peer.take` is a function with an `ndarray<>` argument, `numba_peer` a jitted "
    "function that returns the size of its argument: theirs is the time of a whole call. All "
    "arrays are 8 x 8 x 8 float64."
)

TO_STORAGE = [
    Comparison(
        "NumPy array",
        IMPORT,
        [Peer(NUMPY, limit=1.0), Peer(NANOBIND), Peer(TORCH), Peer(TVM), Peer(NUMBA), *REST],
        setup="x = values.copy()",
    ),
    Comparison(
        "torch tensor",
        IMPORT,
        [Peer(TVM, limit=1.5), Peer(NANOBIND), Peer(NUMPY), Peer(TORCH), *REST],
        setup="x = torch.tensor(values)",
    ),
    Comparison(
        "JAX array",
        IMPORT,
        [Peer(NUMPY, limit=0.25), Peer(NANOBIND), Peer(TORCH), Peer(TVM), *REST],
        setup="jax.config.update('jax_enable_x64', True)\n"
        "x = jax.device_put(values.copy(), jax.devices('cpu')[0])",
    ),
    Comparison(
        "DataArray",
        IMPORT,
        [Peer("np.asarray(x)", limit=0.12), Peer(GT4PY)],
        setup="x = xr.DataArray(values.copy(), dims=('I', 'J', 'K'))",
    ),
]

# The peers get the very memory of the storage, as an ndarray: aligned alike, so taken alike.
BOTH = "s = dlf.zeros((8, 8, 8)); x = s.to_numpy()"

FROM_STORAGE = [
    Comparison("NumPy", "np.from_dlpack(s)", [Peer(NUMPY, limit=1.2)], setup=BOTH),
    Comparison("NumPy", "np.asarray(s)", [Peer(NUMPY, limit=1.2)], setup=BOTH),
    Comparison("NumPy", "s.to_numpy()", [Peer(NUMPY, limit=1.2)], setup=BOTH),
    Comparison("memoryview", "memoryview(s)", [Peer("memoryview(x)")], setup=BOTH),
    Comparison(
        "torch",
        "torch.from_dlpack(s)",
        [Peer(TORCH, limit=1.1), Peer("torch.from_numpy(x)")],
        setup=BOTH,
    ),
    Comparison(
        "torch",
        "s.to_torch()",
        [Peer(TORCH, limit=0.25), Peer("torch.from_numpy(x)")],
        setup=BOTH,
    ),
    Comparison("tvm_ffi", "tvm_ffi.from_dlpack(s)", [Peer(TVM)], setup=BOTH),
    Comparison(
        "cuda.core",
        "StridedMemoryView.from_dlpack(s, stream_ptr=-1)",
        [Peer(CUDA_DLPACK)],
        setup=BOTH,
    ),
    Comparison("nanobind", "nanobind_peer.take(s)", [Peer(NANOBIND)], setup=BOTH),
    Comparison(
        "JAX",
        "s.to_jax()",
        [Peer("jax_dlpack.from_dlpack(x)")],
        setup=f"{BOTH}; jax.devices('cpu')",  # starts JAX, or says that it is missing
    ),
]

ITEMS = [
    Comparison("one item", "s[0, 0, 0] = 1.0", [Peer("x[0, 0, 0] = 1.0")], setup=BOTH),
    Comparison("one plane", "s[..., 0] = 300.0", [Peer("x[..., 0] = 300.0")], setup=BOTH),
    Comparison("view", "s[1:-1]", [Peer("x[1:-1]")], setup=BOTH),
]


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure both directions, and parts."""
    names = _names()
    return [
        _table("array -> Storage", TO_STORAGE, names, REMARK),
        _table("Storage -> array", FROM_STORAGE, names, "The peers are given the same memory."),
        _table("parts of a Storage", ITEMS, names, "The peers are given the same memory."),
    ]


def _table(
    area: str, comparisons: list[Comparison], names: dict[str, object], remark: str
) -> tuple[Table, list[Row]]:
    rows = compare_all(area, comparisons, names)
    return table_of(area, rows, remark), rows


def _names() -> dict[str, object]:
    return {
        "dlf": load("dlfield"),
        "np": np,
        "torch": load("torch"),
        "jax": load("jax"),
        "jax_dlpack": load("jax.dlpack"),
        "xr": load("xarray"),
        "tvm_ffi": load("tvm_ffi"),
        "StridedMemoryView": load("cuda.core.utils", "StridedMemoryView"),
        "gt4py_utils": load("gt4py.storage.cartesian.utils"),
        "numba_peer": _numba_peer(),
        "nanobind_peer": _nanobind_peer(),
        "values": np.zeros((8, 8, 8)),
    }


def _numba_peer() -> object:
    numba = load("numba")
    if isinstance(numba, Missing):
        return numba

    @numba.njit
    def numba_peer(array: object) -> int:
        return array.size

    return numba_peer


def _nanobind_peer() -> object:
    """Compile and import the module that is written with nanobind."""
    try:
        return import_from(nanobind_library())
    except ModuleNotFoundError as missing:
        return Missing("nanobind_peer", str(missing))


def nanobind_library(more_flags: Sequence[str] = ()) -> Path:
    """Compile the module that is written with nanobind."""
    nanobind = load("nanobind")
    sources = Path(nanobind.source_dir())
    includes = (
        nanobind.include_dir(),
        sources.parent / "ext" / "robin_map" / "include",
        sysconfig.get_path("include"),
    )
    flags = ["-std=c++17", "-fvisibility=hidden", "-fno-strict-aliasing", *more_flags]
    flags += [f"-I{folder}" for folder in includes]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return compiled("nanobind_peer.cpp", suffix, flags, [sources / "nb_combined.cpp"])


def import_from(library: Path) -> object:
    """Import an extension module from its file."""
    name = library.name.partition(".")[0]
    spec = importlib.util.spec_from_file_location(name, library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
