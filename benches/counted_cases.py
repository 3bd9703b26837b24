"""What is counted in instructions, by the libraries that one process has to import.

Importing torch under valgrind takes a minute or two, so that all cases of a library share a
process.
"""

from timing import Comparison, Peer

EMPTY_LOOP = "pass"
"""What the repetition itself takes, which is no part of any count."""

IMPORT = "dlf.as_storage(x)"
NANOBIND = Peer("nanobind_peer.take(x)")
NUMPY = Peer("np.from_dlpack(x)")
TORCH = Peer("torch.from_dlpack(x)")
TVM = Peer("tvm_ffi.from_dlpack(x)")

# The peers get the very memory of the storage, as an ndarray.
BOTH = "s = dlf.zeros(SHAPE); x = s.to_numpy()"
# Memory of their own, for what writes.
APART = "s = dlf.zeros(SHAPE); x = np.zeros(SHAPE)"

CALL = """
from dlfield.annotations import Field
exec("def function({parameters}): pass")
run = dlf.bind(function)
fields = [{make} for _ in range({count})]
"""


def _call(kind: str, count: int, make: str) -> Comparison:
    """Bind a function that does nothing, so that what is left is the call."""
    parameters = ", ".join(f"f{n}: Field[np.float64]" for n in range(count))
    setup = CALL.format(parameters=parameters, make=make, count=count)
    what = f"call with {count} {kind}"
    return Comparison(what, "run(*fields)", [Peer("function(*fields)")], setup)


NEEDS_NUMPY = [
    Comparison("NumPy array", IMPORT, [NANOBIND, NUMPY], "x = np.zeros(SHAPE)"),
    Comparison("storage", IMPORT, [NANOBIND, NUMPY], "x = dlf.zeros(SHAPE)"),
    Comparison(
        "bytearray",
        IMPORT,
        [Peer("memoryview(x)"), Peer("np.frombuffer(x)")],
        "x = bytearray(4096)",
    ),
    Comparison("to NumPy", "np.asarray(s)", [Peer("np.asarray(x)"), NUMPY], BOTH),
    Comparison("to NumPy", "np.from_dlpack(s)", [NUMPY], BOTH),
    Comparison("to NumPy", "s.to_numpy()", [NUMPY], BOTH),
    Comparison("to memoryview", "memoryview(s)", [Peer("memoryview(x)")], BOTH),
    Comparison("to a capsule", "s.__dlpack__()", [Peer("x.__dlpack__()")], BOTH),
    Comparison(
        "to a capsule",
        "s.__dlpack__(max_version=(1, 1))",
        [Peer("x.__dlpack__(max_version=(1, 1))")],
        BOTH,
    ),
    Comparison("to nanobind", "nanobind_peer.take(s)", [NANOBIND], BOTH),
    Comparison("allocation", "dlf.empty(SHAPE)", [Peer("np.empty(SHAPE)")]),
    Comparison("view", "s[1:-1]", [Peer("x[1:-1]")], BOTH),
    Comparison("one item", "s[0, 0, 0] = 1.0", [Peer("x[0, 0, 0] = 1.0")], APART),
    Comparison("one plane", "s[..., 0] = 300.0", [Peer("x[..., 0] = 300.0")], APART),
    *(
        _call(kind, count, make)
        for kind, make in (("NumPy arrays", "np.zeros(SHAPE)"), ("storages", "dlf.zeros(SHAPE)"))
        for count in (3, 10)
    ),
]

NEEDS_TORCH = [
    Comparison(
        "torch tensor",
        IMPORT,
        [TVM, NANOBIND, NUMPY, TORCH],
        "import torch, tvm_ffi; x = torch.zeros(SHAPE, dtype=torch.float64)",
    ),
    Comparison("NumPy array", IMPORT, [TVM, TORCH], "import torch, tvm_ffi; x = np.zeros(SHAPE)"),
    Comparison(
        "to torch", "s.to_torch()", [TORCH, Peer("torch.from_numpy(x)")], f"import torch; {BOTH}"
    ),
    Comparison("to torch", "torch.from_dlpack(s)", [TORCH], f"import torch; {BOTH}"),
    Comparison("to tvm_ffi", "tvm_ffi.from_dlpack(s)", [TVM], f"import tvm_ffi; {BOTH}"),
]

NEEDS_JAX = [
    Comparison(
        "JAX array",
        IMPORT,
        [NUMPY, NANOBIND],
        "import jax; jax.config.update('jax_enable_x64', True)\n"
        "x = jax.device_put(np.zeros(SHAPE), jax.devices('cpu')[0])",
    ),
    Comparison(
        "to JAX",
        "s.to_jax()",
        [Peer("from_dlpack(x)")],
        f"import jax; from jax.dlpack import from_dlpack; jax.devices('cpu'); {BOTH}",
    ),
]

NEEDS_XARRAY = [
    Comparison(
        "DataArray",
        IMPORT,
        [Peer("np.asarray(x)")],
        "import xarray; x = xarray.DataArray(np.zeros(SHAPE), dims=('I', 'J', 'K'))",
    ),
]

NEEDS_PYARROW = [
    Comparison(
        "pyarrow array",
        IMPORT,
        [NUMPY, Peer("np.asarray(x)")],
        "import pyarrow; x = pyarrow.array(np.zeros(512))",
    ),
]

GROUPS = {
    "torch": NEEDS_TORCH,
    "jax": NEEDS_JAX,
    "xarray": NEEDS_XARRAY,
    "numpy": NEEDS_NUMPY,
    "pyarrow": NEEDS_PYARROW,
}
"""The slowest to import first: the others are counted meanwhile."""


def cases(group: str, only: str) -> list[Comparison]:
    """Return the cases of a group whose name or statement contains `only`."""
    return [case for case in GROUPS[group] if only in case.what or only in case.ours]
