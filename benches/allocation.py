"""What allocating a field costs beside NumPy, GT4Py's storages and the kernel's own speed."""

import math
import mmap

import numpy as np
from timing import Comparison, Peer, Row, compare_all, load

HUGE_PAGE = 2 << 20

LAZY = 0.1
"""Lazy memory is not touched: it takes a small part of what touching every page takes."""

COMPARISONS = [
    Comparison(
        "8 x 8 x 8",
        "dlf.empty(small)",
        [Peer("np.empty(small)", limit=3.0), Peer("gt4py_storage.empty(small, backend=kfirst)")],
    ),
    Comparison(
        "8 x 8 x 8",
        "dlf.zeros(small)",
        [Peer("np.zeros(small)"), Peer("gt4py_storage.zeros(small, backend=kfirst)")],
    ),
    Comparison(
        "8 x 8 x 8",
        "dlf.full(small, 1.0)",
        [Peer("np.full(small, 1.0)"), Peer("gt4py_storage.full(small, 1.0, backend=kfirst)")],
    ),
    Comparison(
        "256 x 256 x 80",
        "dlf.empty(large)",
        [Peer("np.empty(large)"), Peer("gt4py_storage.empty(large, backend=kfirst)")],
    ),
    Comparison(
        "256 x 256 x 80",
        "dlf.zeros(large)",
        [
            Peer("touch_huge_pages(large)", limit=LAZY),
            Peer("np.zeros(large)"),
            Peer("gt4py_storage.zeros(large, backend=kfirst)"),
        ],
    ),
    Comparison(
        "256 x 256 x 80",
        "dlf.full(large, 1.0)",
        [
            Peer("touch_huge_pages(large)", limit=1.1),
            Peer("np.full(large, 1.0)"),
            Peer("gt4py_storage.full(large, 1.0, backend=kfirst)"),
        ],
    ),
]


def rows(area: str) -> list[Row]:
    """Measure allocation, filling and release together."""
    names = {
        "dlf": load("dlfield"),
        "np": np,
        "gt4py_storage": load("gt4py.storage"),
        "touch_huge_pages": touch_huge_pages,
        "kfirst": "gt:cpu_kfirst",  # the backend whose layout is NumPy's
        "small": (8, 8, 8),
        "large": (256, 256, 80),
    }
    return compare_all(area, COMPARISONS, names)


def touch_huge_pages(shape: tuple[int, ...]) -> np.ndarray:
    """Fill fresh memory that the kernel backs with huge pages: the limit for any `full`.

    Where the platform has no advice to give for huge pages, its ordinary pages are the limit.
    """
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.full(shape, 1.0)
    size = math.prod(shape)
    # Shared mappings, the default, get no huge pages; nor does memory off their boundaries.
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    block = mmap.mmap(-1, size * 8 + HUGE_PAGE, flags=private)
    block.madvise(mmap.MADV_HUGEPAGE)
    start = -np.frombuffer(block, np.uint8).ctypes.data % HUGE_PAGE
    field = np.frombuffer(block, np.float64, size, start)
    field.fill(1.0)
    return field.reshape(shape)
