"""Programs of gt4py.next whose domains GT4Py compiles in, with values in between."""

import functools

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.next")

from gt4py.next.program_processors.runners import gtfn, roundtrip  # noqa: E402 (after the skip)

from support.stencils.next_programs import (  # noqa: E402
    E2C,
    QUIET,
    Cell,
    E2CDim,
    Edge,
    K,
    OnCells,
    OnEdges,
    gtx,
    neighbor_sum,
    sums_over_cells,
    sums_to_edges,
)

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]


@gtx.field_operator
def sums_over_doubled(cells: OnCells) -> OnEdges:
    return neighbor_sum((2.0 * cells)(E2C), axis=E2CDim)


@gtx.program
def sums_to_two_edges(cells: OnCells, edges: OnEdges):
    """As `sums_to_edges`, with a domain that GT4Py compiles in."""
    sums_over_cells(cells, out=edges, domain={Edge: (0, 2), K: (0, 2)})


@gtx.program
def sums_to_all_edges(cells: OnCells, edges: OnEdges):
    sums_over_cells(cells, out=edges)


@gtx.program
def doubled_to_two_edges(cells: OnCells, edges: OnEdges):
    sums_over_doubled(cells, out=edges, domain={Edge: (0, 2), K: (0, 2)})


#: Programs on two edges, whose domains are compiled in, and their scalars.
STATIC = {
    "literals": (sums_to_two_edges, ()),
    "static_params": (
        sums_to_edges.with_compilation_options(static_params=("count", "levels")),
        (2, 2),
    ),
    "static_domains": (sums_to_all_edges.with_compilation_options(static_domains=True), ()),
}


@pytest.fixture(params=STATIC)
def static_sums(request):
    program, scalars = STATIC[request.param]
    run = dlf.bind(program.with_backend(gtx.itir_python))

    def call(cells, edges, table):
        # "roundtrip" takes a program for other tables as the same.
        roundtrip._SOURCE_CACHE.clear()
        run(cells, edges, *scalars, offset_provider={"E2C": table})

    return call


@pytest.fixture
def sums():
    return dlf.bind(sums_to_edges.with_backend(gtx.itir_python))


def connectivity(rows, **options):
    data = np.asarray(rows, "i4")
    return gtx.as_connectivity((Edge, E2CDim), codomain=Cell, data=data, **options)


def test_rows_that_skip_a_neighbour_are_refused_where_gt4py_compiles_the_domain_in(static_sums):
    table, edges = connectivity([[0, 1], [1, -1]], skip_value=-1), np.full((2, 2), -1.0)
    with refused(ValueError, "offset_provider['E2C']", "0 to 2 along Edge", "got the skip value"):
        static_sums(np.ones((2, 2)), edges, table)
    assert (edges == -1.0).all()


def test_rows_may_skip_a_neighbour_where_the_domain_is_given_by_scalars(sums):
    table, edges = connectivity([[0, 1], [1, -1]], skip_value=-1), np.zeros((2, 2))
    sums(np.ones((2, 2)), edges, 2, 2, offset_provider={"E2C": table})
    np.testing.assert_array_equal(edges, [[2.0, 4.0], [1.0, 2.0]])


def test_a_value_that_is_computed_where_it_is_read_may_be_skipped_on_any_domain():
    table, edges = connectivity([[0, 1], [1, -1]], skip_value=-1), np.zeros((2, 2))
    run = dlf.bind(doubled_to_two_edges.with_backend(gtx.itir_python))
    run(np.ones((2, 2)), edges, offset_provider={"E2C": table})
    np.testing.assert_array_equal(edges, [[4.0, 4.0], [2.0, 2.0]])


def test_a_domain_that_is_compiled_in_asks_for_the_points_that_its_rows_lead_to(static_sums):
    table, edges = connectivity([[0, 1], [1, 2], [6, 7]]), np.zeros((2, 2))
    static_sums(np.ones((3, 2)), edges, table)
    np.testing.assert_array_equal(edges, [[2.0, 4.0], [2.0, 4.0]])
    with refused(ValueError, "argument 'cells': expected points 0 to 3 along Cell", "got 0 to 2"):
        static_sums(np.ones((2, 2)), edges, table)


def test_indices_outside_of_those_that_a_domain_was_compiled_in_with_are_refused(static_sums):
    table = connectivity([[1, 2], [2, 3], [0, 7]])
    cells, edges = np.arange(16.0).reshape(8, 2), np.zeros((2, 2))
    static_sums(cells, edges, table)
    for index in (0, 7):
        table.ndarray[0, 0] = index
        text = "offset_provider['E2C']: expected indices from 1 to below 4", "as_connectivity"
        with refused(ValueError, *text):
            static_sums(cells, edges, table)
    static_sums(cells, edges, connectivity(table.ndarray))
    np.testing.assert_array_equal(edges[0], [cells[[7, 2], 0].sum(), cells[[7, 2]].sum()])


def test_a_table_that_was_written_smaller_asks_for_the_points_that_are_compiled_in(static_sums):
    table, edges = connectivity([[0, 7], [1, 2]]), np.zeros((2, 2))
    static_sums(np.ones((8, 2)), edges, table)
    table.ndarray[0, 1] = 2
    with refused(ValueError, "argument 'cells': expected points 0 to 8 along Cell", "got 0 to 3"):
        static_sums(np.ones((3, 2)), edges, table)
    static_sums(np.ones((8, 2)), edges, table)
    np.testing.assert_array_equal(edges, [[2.0, 4.0], [2.0, 4.0]])


def test_a_program_that_is_compiled_ahead_for_its_domain_refuses_what_it_skips():
    program = sums_to_edges.with_backend(gtx.itir_python)
    table = connectivity([[0, 1], [1, 2]])
    run = dlf.bind(program, offset_provider={"E2C": table})
    ends = {name: [np.int32(2)] for name in ("count", "levels")}
    program.compile(offset_provider={"E2C": table}, **ends)
    run(np.ones((3, 2)), edges := np.zeros((2, 2)), 2, 2)
    np.testing.assert_array_equal(edges, [[2.0, 4.0], [2.0, 4.0]])
    table.ndarray[1, 1] = 3
    with refused(ValueError, "expected indices from 0 to below 3"):
        run(np.ones((4, 2)), edges, 2, 2)


def takes_all_points():
    """Return a backend that takes all points of the mesh; GT4Py 1.2 makes it in another way."""
    name = "use_max_domain_range_on_unstructured_shift"
    if hasattr(gtfn, "GTFNBackendFactory"):
        return gtfn.GTFNBackendFactory(**{f"otf_workflow__bare_translation__{name}": True})
    translation = functools.partial(gtfn.make_gtfn_translation, **{name: True})
    return gtfn.make_gtfn_toolchain(name_postfix="_all_points", translation=translation)


def test_a_backend_that_takes_all_points_of_the_mesh_asks_for_them():
    run = dlf.bind(sums_to_two_edges.with_backend(takes_all_points()))
    provider = {"E2C": connectivity([[0, 1], [1, 2], [6, 7]])}
    with refused(ValueError, "argument 'cells': expected points 0 to 8 along Cell", "got 0 to 3"):
        run(np.ones((3, 2)), np.zeros((2, 2)), offset_provider=provider)
