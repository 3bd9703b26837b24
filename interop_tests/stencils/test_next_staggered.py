"""Staggered dimensions of gt4py.next: index i of ``flip_staggered(I)`` lies at i - 1/2 of I.

GT4Py's own fields say where they begin, and are the reference here. A plain array begins at its
index 0, as along any other dimension: edge 0 is the one below cell 0.
"""

import dlfield as dlf
import numpy as np
import pytest
from gt4py.next.experimental import concat_where

from support.errors import refused
from support.optional import gt4py, library
from support.stencils.next_programs import (
    BACKENDS,
    QUIET,
    Dims,
    Field,
    I,
    J,
    K,
    float64,
    gtx,
    int32,
)

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

gt4py(since=(1, 2))
IEdge, KEdge = gtx.flip_staggered(I), gtx.flip_staggered(K)

Cells, Edges = Field[Dims[I, J, K], float64], Field[Dims[IEdge, J, K], float64]
Levels = Field[Dims[I, J, KEdge], float64]
NAMES = {"x": I, "y": J, "z": K, "x_edge": IEdge}


@gtx.field_operator
def slope_of(inp: Cells) -> Edges:
    return inp(IEdge + 0.5) - inp(IEdge - 0.5)


@gtx.field_operator
def change_of(flux: Edges) -> Cells:
    return flux(I + 0.5) - 3.0 * flux(I - 0.5)


@gtx.field_operator
def shear_of(inp: Cells) -> Levels:
    return inp(KEdge + 0.5) - inp(KEdge - 0.5)


@gtx.field_operator
def second_of(inp: Cells) -> Cells:
    flux = inp(IEdge + 0.5) - inp(IEdge - 0.5)
    return flux(I + 0.5) - flux(I - 0.5)


@gtx.field_operator
def advanced_of(inp: Edges) -> Edges:
    return inp(IEdge + 1) - inp(J + 1)


@gtx.field_operator
def bounded_slope_of(inp: Cells, outer: Edges) -> Edges:
    inner = inp(IEdge + 0.5) - inp(IEdge - 0.5)
    return concat_where((IEdge > 0) & (IEdge < 6), inner, outer)


@gtx.program
def slope(inp: Cells, out: Edges, first: int32, end: int32):
    slope_of(inp, out=out, domain={IEdge: (first, end), J: (0, 4), K: (0, 3)})


@pytest.fixture(params=BACKENDS)
def bound(request):
    def bound(stencil, **options):
        return dlf.bind(stencil.with_backend(BACKENDS[request.param]), **options)

    return bound


def counted(*shape):
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape) ** 2


def field_of(begins, array):
    """Return a field of GT4Py's own that begins at these indices."""
    ends = zip(begins.items(), array.shape, strict=True)
    return gtx.as_field({dim: (at, at + extent) for (dim, at), extent in ends}, array)


CELLS = counted(6, 4, 3)
SLOPE = CELLS[1:] - CELLS[:-1]  # at the edges 1 to 5


# --- fields of gt4py ---------------------------------------------------------------------------


def test_a_field_of_gt4py_keeps_its_own_indices(bound):
    out = gtx.zeros({IEdge: (1, 6), J: (0, 4), K: (0, 3)})
    bound(slope_of)(field_of({I: 0, J: 0, K: 0}, CELLS), out=out)
    np.testing.assert_array_equal(out.asnumpy(), SLOPE)


def test_cells_that_begin_below_zero_have_edges_that_do(bound):
    out = gtx.zeros({IEdge: (-1, 4), J: (0, 4), K: (0, 3)})
    bound(slope_of)(field_of({I: -2, J: 0, K: 0}, CELLS), out=out)
    np.testing.assert_array_equal(out.asnumpy(), SLOPE)


def test_bind_computes_what_gt4py_does():
    own, ours = (gtx.zeros({I: (0, 5), J: (0, 4), K: (0, 3)}) for _ in range(2))
    flux = field_of({IEdge: 0, J: 0, K: 0}, CELLS)
    change_of(flux, out=own, offset_provider={})
    dlf.bind(change_of)(flux, out=ours)
    np.testing.assert_array_equal(ours.asnumpy(), own.asnumpy())
    assert ours.asnumpy().any()


# --- plain arrays ------------------------------------------------------------------------------


def test_edge_0_of_a_plain_array_is_below_cell_0(bound):
    out = np.zeros((5, 4, 3))
    bound(change_of)(CELLS, out=out)
    np.testing.assert_array_equal(out, CELLS[1:] - 3.0 * CELLS[:-1])


def test_the_edges_between_cells_begin_at_1(bound):
    out = np.zeros((7, 4, 3))
    bound(slope_of)(CELLS, out=out, domain={IEdge: (1, 6), J: 4, K: 3})
    np.testing.assert_array_equal(out[1:-1], SLOPE)
    assert not out[[0, -1]].any()


def test_a_program_begins_where_its_scalars_say(bound):
    out = np.zeros((7, 4, 3))
    bound(slope)(CELLS, out, 1, 6)
    np.testing.assert_array_equal(out[1:-1], SLOPE)


def test_an_array_of_inner_edges_begins_at_1_by_its_origin(bound):
    out = np.zeros((5, 4, 3))
    bound(slope)(CELLS, out, 1, 6, origin={"out": (-1, 0, 0)})
    np.testing.assert_array_equal(out, SLOPE)
    other = np.zeros((5, 4, 3))
    place = {"origin": {"out": (-1, 0, 0)}, "domain": {IEdge: (1, 6), J: 4, K: 3}}
    bound(slope_of)(CELLS, out=other, **place)
    np.testing.assert_array_equal(other, SLOPE)


def test_an_outer_edge_is_refused_as_it_lacks_a_cell(bound):
    texts = ("argument 'inp': expected points -1 to 7 along I", "got 0 to 6")
    with refused(ValueError, *texts):
        bound(slope_of)(CELLS, out=np.ones((7, 4, 3)))
    with refused(ValueError, *texts):
        bound(slope)(CELLS, np.ones((7, 4, 3)), 0, 7)


def test_too_few_edges_are_refused(bound):
    with refused(ValueError, "argument 'flux': expected points 0 to 7 along _StaggeredI"):
        bound(change_of)(CELLS, out=np.ones((6, 4, 3)))


def test_a_halo_counts_edges_as_it_counts_cells(bound):
    inp = dlf.as_storage(CELLS, halo=((1, 1), (0, 0), (0, 0)))
    out = dlf.zeros((5, 4, 3), halo=((0, 0), (0, 0), (0, 0)))
    wide = dlf.zeros((7, 4, 3), halo=((1, 1), (0, 0), (0, 0)))
    bound(slope_of)(inp, out=out)  # the edges 0 to 4 of four cells
    bound(slope)(inp, wide, 0, 5)
    np.testing.assert_array_equal(out.to_numpy(), SLOPE)
    np.testing.assert_array_equal(wide.domain_view.to_numpy(), SLOPE)


def test_both_kinds_of_shifts_in_one_operator(bound):
    out, expected = np.zeros((4, 4, 3)), SLOPE[1:] - SLOPE[:-1]
    bound(second_of)(CELLS, out=out, origin={"inp": (1, 0, 0), "out": (0, 0, 0)}, domain=(4, 4, 3))
    np.testing.assert_array_equal(out, expected)
    with refused(ValueError, "argument 'inp': expected points -1 to 5 along I"):
        bound(second_of)(CELLS, out=np.zeros((4, 4, 3)))


def test_whole_shifts_stay_on_the_edges(bound):
    out = np.zeros((5, 3, 3))
    bound(advanced_of)(CELLS, out=out)
    np.testing.assert_array_equal(out, CELLS[1:, :-1] - CELLS[:-1, 1:])


def test_a_condition_on_edges_tells_which_cells_are_read(bound):
    out, outer = np.ones((7, 4, 3)), np.zeros((7, 4, 3))
    bound(bounded_slope_of)(CELLS, outer, out=out)
    np.testing.assert_array_equal(out[1:-1], SLOPE)
    assert not out[[0, -1]].any()
    with refused(ValueError, "argument 'inp': expected points 0 to 6 along I"):
        bound(bounded_slope_of)(CELLS[:5], outer, out=out)


def test_a_vertical_dimension_is_staggered_as_a_horizontal_one(bound):
    out = np.zeros((6, 4, 4))
    bound(shear_of)(CELLS, out=out, domain={I: 6, J: 4, KEdge: (1, 3)})
    np.testing.assert_array_equal(out[..., 1:3], CELLS[..., 1:] - CELLS[..., :-1])
    assert not out[..., [0, 3]].any()


def test_an_operator_makes_its_edges(bound):
    made = bound(slope_of).functional(CELLS, domain={IEdge: (1, 6), J: 4, K: 3})
    np.testing.assert_array_equal(made, SLOPE)


# --- names -------------------------------------------------------------------------------------


def test_the_dims_of_data_arrays_are_mapped_to_staggered_dimensions(bound):
    xr = library("xarray")
    inp = xr.DataArray(CELLS, dims=("x", "y", "z")).transpose("z", "x", "y")
    out = xr.DataArray(np.zeros((4, 3, 7)), dims=("y", "z", "x_edge"))
    bound(slope_of, dims=NAMES)(inp, out=out, domain={"x_edge": (1, 6), "y": 4, "z": 3})
    inner = out.transpose("x_edge", "y", "z").values[1:-1]
    np.testing.assert_array_equal(inner, SLOPE)


def test_cells_are_not_taken_for_edges():
    cells = dlf.as_storage(CELLS, dims=("I", "J", "K"))
    with refused(ValueError, "argument 'flux': expected dims ('_StaggeredI', 'J', 'K')"):
        dlf.bind(change_of)(cells, out=np.zeros((5, 4, 3)))


def test_a_name_of_cells_cannot_mean_edges():
    with refused(ValueError, "dims: expected names of your own, as 'I' is one of the stencil's"):
        dlf.bind(slope_of, dims={"I": IEdge})


# --- fields and storages -----------------------------------------------------------------------


def test_a_field_has_a_staggered_axis_where_its_counterpart_would_be():
    field = dlf.as_field(counted(4, 7, 3), dims=(J, IEdge, K))
    assert field.domain.dims == (IEdge, J, K)
    assert field.domain == gtx.domain({IEdge: (0, 7), J: (0, 4), K: (0, 3)})
    out = gtx.zeros({I: (0, 6), J: (0, 4), K: (0, 3)})
    change_of(field, out=out, offset_provider={})  # GT4Py takes it


def test_a_field_of_gt4py_becomes_a_storage_and_is_the_same_again():
    field = gtx.zeros({IEdge: (1, 6), J: (-1, 3), KEdge: (0, 4)})
    made = dlf.from_field(field)
    assert made.dims == ("_StaggeredI", "J", "_StaggeredK")
    assert dlf.as_field(made).domain == field.domain


def test_the_staggered_vertical_dimension_is_vertical():
    assert dlf.as_field(dlf.zeros((3,), dims=("_StaggeredK",))).domain.dims == (KEdge,)
    field = gtx.zeros({J: (0, 4), KEdge: (0, 3)}, allocator=dlf.field_allocator("gt:cpu_ifirst"))
    model = gtx.zeros({J: (0, 4), K: (0, 3)}, allocator=dlf.field_allocator("gt:cpu_ifirst"))
    assert field.ndarray.strides == model.ndarray.strides


def test_a_dimension_and_its_counterpart_do_not_go_into_one_field():
    with refused(ValueError, "dims: expected a different one for each axis, got ('I', '_Stagg"):
        dlf.as_field(np.zeros((3, 4)), dims=(I, IEdge))
