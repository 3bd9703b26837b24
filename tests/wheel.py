"""Use an installed dlfield with NumPy alone: `make wheel` and `make sdist-test` run this file."""

import importlib.metadata
import subprocess
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


#: A thread that is inside of dlfield, and inside of Python below it, while Python ends.
AT_THE_END = """
import threading, time
import dlfield as dlf

class Extent:
    def __index__(self):
        for _ in range(3000):
            pass
        return 3

def forever():
    while True:
        dlf.zeros(Extent())

threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
"""


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
    for _ in range(5):
        subprocess.run([sys.executable, "-I", "-c", AT_THE_END], check=True)
    print(f"dlfield {dlf.__version__} with NumPy {np.__version__}: {dlf.__file__}")


main()
