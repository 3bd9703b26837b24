"""That handing over a field costs the same whatever its size: nothing of it is read or copied.

A large field stands where dlfield stands elsewhere, and a small one where its peer does.
"""

from collections.abc import Iterator

from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Peer, compare_all, load

AREA = "size of the field"
SMALL, LARGE = (8, 8, 8), (512, 512, 128)
ALIKE = 1.1
"""About the same, given the noise of a run."""

MODULES = {"dlf": "dlfield", "np": "numpy", "torch": "torch", "xr": "xarray"}

IMPORTED = {
    "NumPy array": "np.zeros({shape})",
    "torch tensor": "torch.zeros({shape}, dtype=torch.float64)",
    "DataArray": "xr.DataArray(np.zeros({shape}), dims=('I', 'J', 'K'))",
}
EXPORTED = {
    "NumPy": "np.from_dlpack({field})",
    "torch": "torch.from_dlpack({field})",
}

CALL = """
from calls import bound
run = bound({backend!r})
large, small = [dlf.zeros({large}) for _ in range(3)], [dlf.zeros({small}) for _ in range(3)]
"""

REMARK = (
    "`large` is 512 x 512 x 128, `small` 8 x 8 x 8. The call computes one point: what is left is "
    "the call itself, with all its checks. A ratio of 1 says that the size does not matter."
)


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure imports, exports and a call with both sizes."""
    names = {name: load(module) for name, module in MODULES.items()}
    rows = compare_all(AREA, comparisons(), names)
    return [(table_of(AREA, rows, REMARK), rows)]


def comparisons() -> Iterator[Comparison]:
    """Compare every way in, two ways out, and a call."""
    for kind, make in IMPORTED.items():
        both = f"large = {make.format(shape=LARGE)}; small = {make.format(shape=SMALL)}"
        yield _alike(f"{kind} -> Storage", "dlf.as_storage({field})", both)
    both = f"large = dlf.zeros({LARGE}); small = dlf.zeros({SMALL})"
    for kind, statement in EXPORTED.items():
        yield _alike(f"Storage -> {kind}", statement, both)
    # In a hurry only what needs no compiler.
    backend = "numpy" if EFFORT.quick else "gt:cpu_kfirst"
    setup = CALL.format(backend=backend, large=LARGE, small=SMALL)
    yield _alike(f"bound call, {backend}", "run(*{field}, domain=(1, 1, 1))", setup)


def _alike(what: str, statement: str, setup: str) -> Comparison:
    large, small = (statement.format(field=name) for name in ("large", "small"))
    return Comparison(what, large, [Peer(small, limit=ALIKE)], setup)
