"""A table of right and wrong calls: each is decided alike on every backend.

A refused call writes nothing, a taken one computes what a reference computes point by point.
"""

import dlfield as dlf
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.cartesian")
library("gt4py.next")

from support.stencils import decided_cartesian, decided_next  # noqa: E402 (after the skip)
from support.stencils.decided_calls import (  # noqa: E402
    TAKEN,
    apart_from,
    check_same,
    copies,
    expected_of,
)
from support.stencils.next_programs import QUIET  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]


def every(table):
    """Give each row with each of its backends."""
    return [
        pytest.param(row, backend, id=f"{row}-{backend}")
        for row in table.ROWS
        for backend in table.backends(row)
    ]


def check(row, run, reference):
    """Make the call of a row, and check what became of it."""
    arguments = row.arguments()
    before = copies(arguments)
    if row.decision != TAKEN:
        with refused(row.decision.error, *row.decision.texts):
            run(**arguments, **row.options)
        check_same(arguments, before, before)
        return
    expected = expected_of(row, arguments, reference)
    written = [name for name in before if (before[name] != expected[name]).any()]
    run(**arguments, **row.options)
    check_same(arguments, expected, written)
    check_same(arguments, before, apart_from(written, arguments))


@pytest.mark.parametrize(("row", "backend"), every(decided_cartesian))
def test_a_cartesian_call_is_decided_as_the_table_says(row, backend, compiled):
    run = dlf.bind(compiled(row.stencil, backend))
    check(row, run, decided_cartesian.REFERENCES[row.stencil])


@pytest.mark.parametrize(("row", "backend"), every(decided_next))
def test_a_call_of_next_is_decided_as_the_table_says(row, backend):
    run = dlf.bind(decided_next.on(backend, row.stencil))
    check(row, run, decided_next.REFERENCES[row.stencil])


@pytest.mark.parametrize("table", [decided_cartesian, decided_next], ids=lambda one: one.__name__)
def test_no_two_rows_have_one_name_and_every_stencil_has_a_row(table):
    names = [row.name for row in table.ROWS]
    assert len(names) == len(set(names)) > 30
    assert {row.stencil for row in table.ROWS} == set(table.REFERENCES)
