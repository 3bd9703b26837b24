"""A program of gt4py.next with its adjoint, written by hand."""

import dlfield as dlf

from support.optional import library

gtx = library("gt4py.next")

IDim, JDim = gtx.Dimension("I"), gtx.Dimension("J")
KDim = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Cells = gtx.Field[gtx.Dims[IDim, JDim, KDim], gtx.float64]

#: Points that it reads around the domain.
HALO = {"I": (0, 1)}


@gtx.field_operator
def moved_of(inp: Cells, c: Cells) -> Cells:
    return inp + c * (inp(IDim + 1) - inp)


@gtx.program
def moved(inp: Cells, c: Cells, out: Cells):
    moved_of(inp, c, out=out)


@gtx.field_operator
def back_to_inp(out_bar: Cells, c: Cells) -> Cells:
    return (1.0 - c) * out_bar + c(IDim - 1) * out_bar(IDim - 1)


@gtx.field_operator
def back_to_c(out_bar: Cells, inp: Cells) -> Cells:
    return out_bar * (inp(IDim + 1) - inp)


@gtx.program
def moved_adjoint(out_bar: Cells, inp: Cells, c: Cells, inp_bar: Cells, c_bar: Cells):
    back_to_inp(out_bar, c, out=inp_bar)
    back_to_c(out_bar, inp, out=c_bar)


def bound(name, backend=None):
    """Bind a program of this file; embedded without a backend."""
    return dlf.bind(globals()[name].with_backend(backend), offset_provider={})
