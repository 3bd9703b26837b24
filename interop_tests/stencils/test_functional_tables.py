"""`run.functional` where the tables of neighbours alone tell how many points an output has."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.next")

import gt4py.next as gtx  # noqa: E402 (after the skip)

from support.stencils import next_programs  # noqa: E402
from support.stencils.next_programs import QUIET, TABLE, connectivities  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(one) for one in QUIET]

CELLS = np.arange(6.0).reshape(3, 2)
ON_EDGES = CELLS[TABLE].sum(axis=1)
NAMES = ["to_edges", "sum_over_cells"]


def bound(name="to_edges", **options):
    return dlf.bind(next_programs.on("embedded", name), **options)


def table_of(rows):
    domain = {next_programs.Edge: len(rows), next_programs.E2CDim: 2}
    return gtx.as_connectivity(domain, codomain=next_programs.Cell, data=rows)


@pytest.mark.parametrize("name", NAMES)
def test_an_output_has_a_point_for_each_row_of_the_table(name):
    run = bound(name, offset_provider=connectivities())
    np.testing.assert_allclose(run.functional(CELLS), ON_EDGES)
    assert run.functional(CELLS, domain=(3, 2, 2)).shape == (2, 2)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_a_call_counts_each_time(name):
    run = bound(name)
    for rows in (TABLE, TABLE[:3], TABLE):
        found = run.functional(CELLS, offset_provider={"E2C": table_of(rows)})
        np.testing.assert_allclose(found, CELLS[rows].sum(axis=1))


def test_another_table_in_the_same_mapping_counts():
    provider = {"E2C": table_of(TABLE)}
    run = bound(offset_provider=provider)
    assert run.functional(CELLS).shape == (4, 2)
    provider["E2C"] = table_of(TABLE[:2])
    assert run.functional(CELLS).shape == (2, 2)


def test_a_plan_of_such_a_call_has_the_points_of_the_table():
    run = bound(offset_provider=connectivities())
    found = dlf.explain(run, CELLS, functional=True)
    assert dict(zip(found.plan.axes, found.plan.domain, strict=True))["Edge"] == len(TABLE)


def test_tables_that_differ_leave_it_to_the_domain():
    provider = {"E2C": table_of(TABLE), "another": table_of(TABLE[:3])}
    run = bound(offset_provider=provider)
    with refused(ValueError, "domain: needs a field that has Edge", "pass domain="):
        run.functional(CELLS)
    np.testing.assert_allclose(run.functional(CELLS, domain=(3, 4, 2)), ON_EDGES)
