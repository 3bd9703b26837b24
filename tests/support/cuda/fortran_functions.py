"""Functions that a program calls with arrays on a GPU."""

import dlfield as dlf
import numpy as np
from dlfield.annotations import IJ, Access, Field

READ = Access["in"]
SEEN = []


@dlf.fortran.function(halo=(1, 1), device="gpu")
def on_gpu(a: Field[np.float64, IJ], b: Field[np.float64, IJ, READ] = None):
    """Note what came."""
    SEEN.append((type(a).__name__, a.ptr, a.shape, a.strides, a.halo, b is None))
    if b is not None:
        a[...] = b


@dlf.fortran.function(device="gpu")
def kept(a: Field[np.float64, IJ]):
    """Keep the array."""
    SEEN.append(a[1:])
