"""What allocating a field costs beside NumPy, torch, GT4Py and the kernel's own speed."""

import math
import mmap
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numpy as np
import threads
from tables import Row, Table, table_of
from timing import Comparison, Missing, Peer, compare_all, load

HUGE_PAGE = 2 << 20

SHAPES = {"small": "8 x 8 x 8", "large": "256 x 256 x 80"}

LAZY = 0.1
"""Lazy memory is not touched: it takes a small part of what touching every page takes."""
TOUCHES = {"empty": LAZY, "zeros": LAZY, "full": 1.1, "ones": 1.1}
"""Per function, which part of the time of a first touch is good enough."""

# Memory that was in use before is touched already: nothing is left but to write it.
POOL_ON = "dlf.set_pool_limit(1 << 30); touched = np.zeros(large); touched.fill(1.0)"
POOL_OFF = "dlf.set_pool_limit(0); dlf.free_pool()"

REMARK = (
    "`touch` fills fresh memory that is advised to be huge pages, with as many threads: the limit "
    "of all that write. Fields are float64, the large one has 42 MB. NumPy and GT4Py use one "
    "thread. Times include giving the memory back; where it is pooled, dlfield keeps it for the "
    "next field."
)


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure allocation, filling and release together."""
    torch = load("torch")
    names = {
        "dlf": load("dlfield"),
        "np": np,
        "torch": torch,
        "f64": None if isinstance(torch, Missing) else torch.float64,
        "gt4py_storage": load("gt4py.storage"),
        "kfirst": "gt:cpu_kfirst",  # the backend whose layout is NumPy's
        "small": (8, 8, 8),
        "large": (256, 256, 80),
    }
    rows = []
    for count in threads.counts():
        threads.use(count)
        names["touch"] = partial(touch, count=count)
        rows += compare_all("allocation", comparisons(count), names)
    return [(table_of("allocation", rows, REMARK), rows)]


def comparisons(count: int) -> list[Comparison]:
    """List what is compared with so many threads: they make no difference to small fields."""
    small = [_allocating(name, "small", count) for name in TOUCHES] if count == 1 else []
    large = [_allocating(name, "large", count) for name in TOUCHES]
    pooled = [_pooled(name, count) for name in ("empty", "full")]
    return [*small, *large, *pooled]


def _allocating(name: str, size: str, count: int) -> Comparison:
    """Compare one function, named alike everywhere, with its peers."""
    values = f"{size}, 1.0" if name == "full" else size
    peers = [
        # The one target of small fields: `empty` within twice of NumPy's.
        Peer(f"np.{name}({values})", limit=2.0 if (name, size) == ("empty", "small") else None),
        Peer(f"torch.{name}({values}, dtype=f64)"),
        Peer(f"gt4py_storage.{name}({values}, backend=kfirst)"),
    ]
    if size == "large":
        peers.insert(0, Peer("touch(large)", limit=TOUCHES[name]))
    return Comparison(_spell(SHAPES[size], count), f"dlf.{name}({values})", peers)


def _pooled(name: str, count: int) -> Comparison:
    """Compare memory that is used again with filling what is touched already."""
    peers = [Peer("touched.fill(1.0)"), Peer("touch(large)")]
    values = "large, 1.0" if name == "full" else "large"
    what = _spell(f"{SHAPES['large']}, pooled", count)
    return Comparison(what, f"dlf.{name}({values})", peers, setup=POOL_ON, teardown=POOL_OFF)


def _spell(what: str, count: int) -> str:
    return f"{what}, {threads.spell(count)}"


def touch(shape: tuple[int, ...], count: int) -> np.ndarray:
    """Fill fresh memory that the kernel backs with huge pages: the limit for any `full`."""
    field = huge_pages(math.prod(shape))
    fill(field, count)
    return field.reshape(shape)


def huge_pages(size: int) -> np.ndarray:
    """Give so many float64 from a multiple of 2 MiB on, in memory that was never touched.

    Where the platform has no advice to give for huge pages, these are ordinary ones.
    """
    # Shared mappings, the default, get no huge pages; nor does memory off their boundaries.
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    block = mmap.mmap(-1, size * 8 + HUGE_PAGE, flags=private)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        block.madvise(mmap.MADV_HUGEPAGE)
    start = -np.frombuffer(block, np.uint8).ctypes.data % HUGE_PAGE
    return np.frombuffer(block, np.float64, size, start)


def fill(field: np.ndarray, count: int) -> None:
    """Fill an array by so many threads; NumPy gives up the interpreter meanwhile."""
    first, *others = np.array_split(field, count)
    started = [_team(count).submit(part.fill, 1.0) for part in others]
    first.fill(1.0)
    for future in started:
        future.result()


@cache
def _team(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count)
