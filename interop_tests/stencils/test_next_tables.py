"""Connectivities of gt4py.next: what may be given as one, and what becomes of it between calls."""

import gc
import weakref

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.next")

from gt4py.next.program_processors.runners import roundtrip  # noqa: E402 (after the skip)

from support.stencils.next_programs import (  # noqa: E402 (after the skip)
    BACKENDS,
    QUIET,
    TABLE,
    Cell,
    E2CDim,
    Edge,
    connectivities,
    gtx,
    on,
)

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]


@pytest.fixture(params=BACKENDS)
def to_edges(request):
    return lambda table: dlf.bind(on(request.param, "to_edges"), offset_provider={"E2C": table})


@pytest.fixture(params=["embedded", "roundtrip"])
def sums(request):
    run = dlf.bind(on(request.param, "sums_to_edges"))

    def call(*args, **options):
        # "roundtrip" takes a program for tables of other sizes as the same.
        roundtrip._SOURCE_CACHE.clear()
        return run(*args, **options)

    return call


def connectivity(rows, where=(Edge, E2CDim), **options):
    return gtx.as_connectivity(where, codomain=Cell, data=np.asarray(rows, "i4"), **options)


@pytest.mark.parametrize(
    ("given", "got"),
    [([connectivity(TABLE)], "'list'"), ("E2C", "'str'"), (connectivity(TABLE), "Field'")],
    ids=["list", "name", "connectivity"],
)
def test_connectivities_without_names_are_refused_by_bind_and_by_a_call(given, got):
    text = "offset_provider: expected a mapping of names to connectivities", got, "{'E2C':"
    with refused(TypeError, *text):
        dlf.bind(on("embedded", "to_edges"), offset_provider=given)
    with refused(TypeError, *text):
        dlf.bind(on("embedded", "to_edges"))(
            np.ones((3, 2)), np.zeros((4, 2)), offset_provider=given
        )


def test_a_table_with_rows_along_another_dimension_is_refused(to_edges):
    table = gtx.as_connectivity([Cell, E2CDim], Edge, TABLE)
    text = "offset_provider['E2C']: expected rows along Edge or K, got rows along Cell"
    with refused(ValueError, text, "gtx.as_connectivity"):
        to_edges(table)(np.ones((3, 2)), np.zeros((4, 2)))


@pytest.mark.parametrize(
    ("table", "got"),
    [
        (TABLE, "'ndarray'"),
        (gtx.as_field([Edge, E2CDim], TABLE), "'NumPyArrayField'"),
        (None, "'NoneType'"),
    ],
)
def test_a_table_that_is_no_connectivity_is_refused_with_the_way_out(to_edges, table, got):
    text = "offset_provider['E2C']: expected a connectivity", f"type {got}", "gtx.as_connectivity"
    with refused(TypeError, *text):
        to_edges(table)(np.ones((3, 2)), np.zeros((4, 2)))


def test_a_skip_value_that_gt4py_does_not_know_is_refused(to_edges):
    table = connectivity([[0, 1], [2, -2]], skip_value=-2)
    with refused(ValueError, "offset_provider['E2C']: expected the skip value -1", "got -2"):
        to_edges(table)(np.ones((3, 2)), np.zeros((2, 2)))


def test_a_table_whose_rows_begin_elsewhere_is_refused(to_edges):
    where = gtx.domain({Edge: (3, 7), E2CDim: (0, 2)})
    with refused(ValueError, "offset_provider['E2C']: expected rows from point 0", "3 to 7"):
        to_edges(connectivity(TABLE, where))(np.ones((3, 2)), np.zeros((4, 2)))


def test_a_table_lives_as_long_as_the_program_that_was_compiled_for_it():
    program = on("roundtrip", "sums_to_edges")
    known = [dlf.bind(program), dlf.bind(program)]
    seen = []
    for _ in range(5):
        provider = connectivities()
        known[0](np.ones((3, 2)), np.zeros((4, 2)), 4, 2, offset_provider=provider)
        seen.append(weakref.ref(provider["E2C"]))
    del provider, known[0]
    gc.collect()
    assert None not in [table() for table in seen]


def test_a_table_that_was_written_smaller_still_asks_for_the_points_it_was_compiled_for(sums):
    table = connectivity([[0, 7], [1, 2]])
    sums(np.ones((8, 2)), np.zeros((2, 2)), 2, 2, offset_provider={"E2C": table})
    table.ndarray[0, 1] = 2
    with refused(ValueError, "argument 'cells': expected points 0 to 8 along Cell", "got 0 to 3"):
        sums(np.ones((3, 2)), np.zeros((2, 2)), 2, 2, offset_provider={"E2C": table})


def test_a_table_that_was_written_larger_is_refused_for_intermediate_results(sums):
    table = connectivity([[0, 1], [1, 2]])
    cells, edges = np.ones((8, 2)), np.zeros((2, 2))
    sums(cells, edges, 2, 2, offset_provider={"E2C": table})
    table.ndarray[0, 1] = 7
    text = "offset_provider['E2C']: expected indices below 3", "got 7", "as_connectivity"
    with refused(ValueError, *text):
        sums(cells, edges, 2, 2, offset_provider={"E2C": table})


def test_a_new_connectivity_of_a_table_that_was_written_larger_is_taken():
    sums = dlf.bind(on("embedded", "sums_to_edges"))  # "roundtrip" takes it for the old one
    table = connectivity([[0, 1], [1, 2]])
    cells, edges = np.ones((8, 2)), np.zeros((2, 2))
    sums(cells, edges, 2, 2, offset_provider={"E2C": table})
    table.ndarray[0, 1] = 7
    sums(cells, edges, 2, 2, offset_provider={"E2C": connectivity(table.ndarray)})
    np.testing.assert_array_equal(edges, [[2.0, 4.0], [2.0, 4.0]])
