"""`docs/migration.md`: its program runs, and it tells of every function that the drop-in has."""

import re
from pathlib import Path

import dlfield as dlf
from dlfield import gt4py_storage

from support.optional import library

library("gt4py.storage")
TEXT = (Path(__file__).resolve().parent.parent / "docs" / "migration.md").read_text("utf-8")
PROGRAM = re.search(r"^```python\n(.*?)^```", TEXT, re.M | re.S)[1]


def test_the_program_runs_with_storages_and_with_arrays_of_gt4py():
    ours, theirs = {}, {}
    exec(PROGRAM, ours)
    exec(PROGRAM.replace("from dlfield import gt4py_storage as", "from gt4py import"), theirs)
    for name in ("t", "dt", "wind"):
        assert isinstance(ours[name], dlf.Storage)
        assert ours[name].strides == theirs[name].strides
        assert (ours[name].to_numpy() == theirs[name]).all()


def test_functions_are_five():
    assert f"has the {len(gt4py_storage.__all__)} functions".replace("5", "five") in TEXT
