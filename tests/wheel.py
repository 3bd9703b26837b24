"""Use an installed dlfield with NumPy alone: `make wheel` and `make sdist-test` run this file."""

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import dlfield as dlf
import numpy as np
from dlfield.annotations import Access, Field

Input: Any = Field[np.float64, Access["in"]]
Output: Any = Field[np.float64, Access["out"]]


def doubled(inp: Input, out: Output):
    out[...] = 2 * inp


def main():
    assert Path(sys.prefix) in Path(dlf.__file__).parents, f"dlfield is {dlf.__file__}"
    assert dlf.__version__ == importlib.metadata.version("dlfield")

    array = np.arange(24.0).reshape(2, 3, 4)
    shared = dlf.as_storage(array)
    shared[0, 0, 0] = 7.0
    assert array[0, 0, 0] == 7.0, "a storage of an array is a copy"

    field = dlf.zeros((2, 3, 4), dims="IJK", backend="gt:cpu_ifirst")
    dlf.bind(doubled)(array, field)
    assert np.array_equal(field, 2 * array), "a bound function computed something else"
    assert np.shares_memory(np.from_dlpack(field), np.asarray(field)), "DLPack made a copy"
    print(f"dlfield {dlf.__version__} with NumPy {np.__version__}: {dlf.__file__}")


main()
