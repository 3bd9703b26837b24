"""Stencils that Fortran calls as they are."""

import dlfield as dlf
import gt4py.next as gtx
import numpy as np
from dlfield.annotations import Access, Axes, Field
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval

F64 = gtscript.Field[np.float64]
I, J = (gtx.Dimension(name) for name in "IJ")  # noqa: E741


def scale(inp: F64, out: F64, *, by: np.float64):
    """Scale a field.

    The rest is */ not for C.
    """
    with computation(PARALLEL), interval(...):
        out = by * inp[1, 0, 0]  # noqa: F841


scaled = dlf.fortran.function(halo=(1, 1, 0))(gtscript.stencil(backend="numpy", definition=scale))
bound = dlf.bind(gtscript.stencil(backend="numpy", definition=scale))


@gtx.field_operator
def doubled(inp: gtx.Field[[I, J], gtx.float64]) -> gtx.Field[[I, J], gtx.float64]:
    return 2.0 * inp


@gtx.program
def double(inp: gtx.Field[[I, J], gtx.float64], out: gtx.Field[[I, J], gtx.float64]):
    doubled(inp, out=out)


KEPT = []
SLICE = Field[np.float64, Axes["K", "I"], Access["in"]]


@dlf.fortran.function
def keep_from_stencil(a: Field[np.float64], how: int):
    """Call a stencil many times, then keep the array that it was called with, or nothing."""
    out = np.zeros(a.shape, order="F")
    for _ in range(5):
        bound(a, out, by=2.0, origin=(0, 0, 0), domain=(3, 4, 2))
    if how == 1:
        KEPT.append(a)
    if how == 2:
        KEPT.append(np.asarray(a)[1:])
    if how == 3:
        import torch

        KEPT.append(torch.from_dlpack(a))
    if how == 4:
        KEPT.append(dlf.as_storage(a)[1:])
    if how == 5:
        KEPT.append(a.to_xarray())


@dlf.fortran.function
def total(a: SLICE):
    print("total", float(a.sum()), a.dims)


ALL = ["scaled", "bound", "double", "doubled", "keep_from_stencil", "total"]
