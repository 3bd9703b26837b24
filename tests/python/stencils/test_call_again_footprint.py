"""Calls that come again, whose footprint depends on scalars and connectivities: each yields and
refuses what a stencil does that was bound for it alone."""

from types import SimpleNamespace

import numpy as np
from dlfield import BoundStencil
from dlfield.stencils.declaration import Declaration, DeclaredField, DeclaredScalar
from dlfield.stencils.footprint import CallFootprint, TableRows
from hypothesis import given, settings
from hypothesis import strategies as st

POINTS, FEW = 6, 4


class Notes:
    """Computes nothing, and keeps the arguments of its run."""

    seen = None

    def run(self, *, exec_info, **arguments):
        self.seen = arguments


def find(fields, domain, scalars, connectivities):
    """Read `inp` at the neighbours of the first two rows, and up to `reach` points further."""
    table = connectivities["Next"]
    column = scalars["column"]
    read = table.ndarray[:2] if column is None else table.ndarray[:2, column]
    valid = read[read != -1]
    end = int(valid.max(initial=0)) + 1 + int(scalars["reach"])
    return CallFootprint(
        reads={"inp": ((0, end),)},
        writes={"out": ((0, fields["out"][0][0] - fields["out"][1][0]),)},
        scalars=("reach", "column"),
        rows=(TableRows(table, table.ndarray, 0, 2, column, -1),),
    )


def bound():
    """Bind a stencil whose footprint depends on two of its three scalars and on a table."""
    fields = [
        DeclaredField("inp", ("I",), "float64", "read"),
        DeclaredField("out", ("I",), "float64", "write"),
    ]
    scalars = [
        DeclaredScalar("reach", None),
        DeclaredScalar("column", None, used=False, default=(None,)),
        DeclaredScalar("scale", "float64"),
    ]
    order = [one.name for one in (*fields, *scalars)]
    declared = Declaration(
        "notes", notes := Notes(), fields, scalars, order, 5, axes=("I",), decided_by="stencil",
        footprint=find, connectivities={},
    )  # fmt: skip
    options = {"dims": {}, "copy_device": False, "copy_memory": False, "options": {}}
    return notes, BoundStencil(notes, declared, **options)


def outcome(stencil, arguments, provider, origin):
    """Return what `run` of the stencil was given, or what was raised."""
    notes, run = stencil
    notes.seen = None
    try:
        run(**arguments, offset_provider=provider, origin=origin)
    except (BufferError, ValueError, TypeError) as error:
        return type(error), str(error)
    return {
        name: value.ctypes.data if isinstance(value, np.ndarray) else value
        for name, value in notes.seen.items()
    }


class Passing(dict):
    """A dict that does not tell what it holds."""


def tables():
    """Return two connectivities, one of which has rows that are not read."""
    rows = [[0, 1], [1, -1], [2, 3]], [[3, 1], [0, 2]]
    arrays = np.array(rows[0], np.int32), np.array(rows[1], np.int64)
    return [SimpleNamespace(ndarray=array) for array in arrays]


VALUES = {
    "reach": [0, 1, np.int32(1), 3, np.float32(3), True],
    "column": [None, 0, 1],
    "scale": [0.0, 2.0],
    "inp": [POINTS, FEW, 3],
    "origin": [None, {"inp": (1,)}, {"inp": (2,)}],
    "table": [0, 1],
    "kind": [dict, Passing],
    "index": [(row, column, index) for row in (0, 1) for column in (0, 1) for index in (-1, 5)],
    "array": [(at, index) for at in (0, 1) for index in (0, 5)],
}
CHANGES = st.sampled_from([(what, value) for what, values in VALUES.items() for value in values])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(CHANGES, st.integers(1, 3)), min_size=1, max_size=4))
def test_a_call_yields_and_refuses_what_that_of_a_stencil_bound_anew_does(series):
    known, (stencil, connectivities) = tables(), (bound(), {})
    inp, out = np.zeros(POINTS), np.zeros(3)
    call = {"inp": inp[:FEW], "out": out, "reach": 1, "scale": 1.0, "column": None}
    origin, at, kind = None, 0, dict
    for (what, value), times in [(("nothing", None), 3), *series]:
        if what in ("reach", "column", "scale"):
            call[what] = value
        elif what == "inp":
            call["inp"] = inp[:value]
        elif what == "origin":
            origin = value
        elif what == "table":
            at = value
        elif what == "kind":
            kind = value
        elif what == "index":
            row, column, index = value
            known[at].ndarray[row, column] = index
        elif what == "array":
            known[value[0]].ndarray = np.full((2, 2), value[1], np.int32)
        if type(connectivities) is not kind or connectivities.get("Next") is not known[at]:
            connectivities = kind(Next=known[at])
        for _ in range(times):
            expected = outcome(bound(), call, connectivities, origin)
            assert outcome(stencil, call, connectivities, origin) == expected
