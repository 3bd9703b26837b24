"""Two processes with one field: a worker computes in the memory of its parent.

python shared_memory.py
"""

from multiprocessing import get_context
from multiprocessing.shared_memory import SharedMemory

import dlfield as dlf
import numpy as np
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil

SHAPE = (10, 12, 5)
NBYTES = int(np.prod(SHAPE)) * 8


@stencil(backend="numpy")
def warm(t: Field[np.float64], *, by: np.float64) -> None:
    """Warm every point between the halos."""
    with computation(PARALLEL), interval(...):
        t = t + by


def field_in(block: SharedMemory) -> dlf.Storage:
    """Put the block into a storage, which has its memory and keeps it mapped."""
    array = np.ndarray(SHAPE, buffer=block.buf)
    return dlf.as_storage(array, dims="IJK", halo=(1, 1, 0))


def work(name: str) -> None:
    """Open the block by its name, and compute in it."""
    block = SharedMemory(name)
    t = field_in(block)
    dlf.bind(warm)(t, by=np.float64(1.5))
    del t  # a block that is in use cannot be closed
    block.close()


def main() -> None:
    """Make the block, let a worker compute, and look at the result."""
    block = SharedMemory(create=True, size=NBYTES)
    t = field_in(block)
    t[...] = 280.0
    worker = get_context("spawn").Process(target=work, args=(block.name,))
    worker.start()
    worker.join()
    print(f"exit status {worker.exitcode}: {t[1, 1, 0]} in the domain, {t[0, 0, 0]} in the halo")
    del t
    block.close()
    block.unlink()


if __name__ == "__main__":
    main()
