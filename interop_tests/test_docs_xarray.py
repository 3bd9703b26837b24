"""`docs/xarray.md`: its Python prints what is shown, and its table lists all functions."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
from dlfield._array_functions import _FUNCTIONS, _LIKE
from dlfield._elementwise_functions import FUNCTIONS as ELEMENTWISE
from dlfield._reductions import FUNCTIONS

from support.optional import library

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "xarray.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


def pattern(expected):
    """Make a pattern of a line in which three dots stand for anything."""
    return ".*".join(re.escape(part) for part in expected.split("..."))


def test_every_block_of_the_xarray_page_prints_what_it_says():
    library("dask.array")
    names = {}
    for block in BLOCKS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, "xarray.md", "exec"), names)
        expected = re.findall(r"^# -> (.*)$", block, re.M)
        assert re.fullmatch("\n".join(map(pattern, expected)), printed.getvalue().strip())


def test_the_table_lists_every_function_that_there_is():
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.M)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == {
        function.__name__ for function in (*_FUNCTIONS, *_LIKE, *FUNCTIONS, *ELEMENTWISE)
    }
    assert all(hasattr(np, name) for name in listed - {"astype", "matrix_transpose"})
