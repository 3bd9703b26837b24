"""What arithmetic of storages costs beside NumPy on the same memory, and xarray."""

from tables import Row, Table, table_of
from timing import Comparison, Missing, Peer, compare_all, load

REMARK = (
    "NumPy computes on arrays over the memory of the storages, xarray on DataArrays around these. "
    "Fields are float64 with dims I, J, K, padded to 64 bytes; the profile has K alone. What is "
    "pooled is computed into memory that was in use before, as NumPy's allocator reuses small "
    "blocks."
)
SHAPES = {"8 x 8 x 8": (8, 8, 8), "256 x 256 x 80": (256, 256, 80)}
LAYOUTS = {"C": (0, 1, 2), "Fortran": (2, 1, 0), "K outermost": (1, 2, 0)}
#: What is computed, for storages, for NumPy, and for xarray.
STATEMENTS = (
    ("a + b", "A + B", "x + y"),
    ("a.__iadd__(b)", "A.__iadd__(B)", "x.__iadd__(y)"),
    ("np.sqrt(a)", "np.sqrt(A)", "np.sqrt(x)"),
    ("a.sum('K')", "A.sum(2)", "x.sum('K')"),
    ("a + k", "A + K", "x + z"),
    ("a > 2", "A > 2", "x > 2"),
)
POOL_ON = "dlf.set_pool_limit(1 << 30)"
POOL_OFF = "dlf.set_pool_limit(0); dlf.free_pool()"


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure operators, a universal function, a reduction and a broadcast."""
    rows: list[Row] = []
    for size, shape in SHAPES.items():
        for layout, ranks in LAYOUTS.items():
            names = operands(shape, ranks)
            rows += compare_all("arithmetic", list(comparisons(size, layout)), names)
    return [(table_of("arithmetic", rows, REMARK), rows)]


def operands(shape: tuple[int, ...], ranks: tuple[int, ...]) -> dict[str, object]:
    """Make two fields and a profile, each for dlfield, NumPy and xarray."""
    import dlfield as dlf
    import numpy as np

    options = {"dims": "IJK", "layout": ranks, "alignment_size": 64}
    a, b = dlf.full(shape, 1.5, **options), dlf.full(shape, 2.5, **options)
    k = dlf.full(shape[2:], 0.5, dims="K")
    names: dict[str, object] = {"dlf": dlf, "np": np, "a": a, "b": b, "k": k}
    for name, storage in {"A": a, "B": b, "K": k}.items():
        names[name] = storage.to_numpy()
    xr = load("xarray")
    for name, storage in {"x": a, "y": b, "z": k}.items():
        missing = isinstance(xr, Missing)
        names[name] = xr if missing else xr.DataArray(storage.to_numpy(), dims=storage.dims)
    return names


def comparisons(size: str, layout: str) -> list[Comparison]:
    """List what is compared in one layout; small fields need no pool."""
    pool = {"setup": POOL_ON, "teardown": POOL_OFF} if size != "8 x 8 x 8" else {}
    what = f"{size}, {layout}" + (", pooled" if pool else "")
    limit = 1.05 if pool else None
    return [
        Comparison(what, ours, [Peer(numpy, limit=limit), Peer(xarray, limit=1.0)], **pool)
        for ours, numpy, xarray in STATEMENTS
    ]
