"""`docs/xarray.md`: its Python prints what is shown."""

import contextlib
import io
import re
from pathlib import Path

from support.optional import library

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "xarray.md").read_text("utf-8")
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
