"""Share fields with a Fortran model, both ways.

gfortran -shared -fPIC -o libmodel.so fortran.f90
python fortran.py ./libmodel.so
"""

import ctypes
import sys

import dlfield as dlf
import numpy as np
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval, stencil

SHAPE = (10, 12, 5)


@stencil(backend="gt:cpu_ifirst")
def warm(t: Field[np.float64], *, by: np.float64) -> None:
    """Warm every point between the halos."""
    with computation(PARALLEL), interval(...):
        t = t + by


def load(path: str) -> ctypes.CDLL:
    """Load the model, and say what its functions take and return."""
    model = ctypes.CDLL(path)
    extents = [ctypes.c_int] * 3
    model.model_start.argtypes = extents
    model.model_temperature.restype = ctypes.c_void_p
    model.cool.argtypes = [*extents, ctypes.c_void_p, ctypes.c_double]
    return model


def field_at(address: int) -> dlf.Storage:
    """Put the memory of a Fortran array into a storage. In Fortran, I is contiguous."""
    memory = (ctypes.c_double * int(np.prod(SHAPE))).from_address(address)
    array = np.ctypeslib.as_array(memory).reshape(SHAPE, order="F")
    return dlf.as_storage(array, dims="IJK", halo=(1, 1, 0))


def main(path: str) -> None:
    """Compute on the array of the model, and let Fortran compute on a storage."""
    model = load(path)
    model.model_start(*SHAPE)
    t = field_at(model.model_temperature())
    dlf.bind(warm)(t, by=np.float64(1.5))  # writes the array of the model
    model.cool(*SHAPE, model.model_temperature(), 0.5)
    print(f"of the model: {t[1, 1, 0]} in the domain, {t[0, 0, 0]} in the halo, {t[1, 1, 1]} above")

    own = dlf.full(SHAPE, 300.0, dims="IJK", halo=(1, 1, 0), layout=(2, 1, 0))
    assert own.to_numpy().flags.f_contiguous  # what `cool` asks for
    model.cool(*SHAPE, own.ptr, 0.5)
    print(f"of dlfield: {own[1, 1, 0]} below, {own[1, 1, 1]} above")

    del t  # before the model frees its array
    model.model_end()


if __name__ == "__main__":
    main(sys.argv[1])
