"""The Python of pages that need NumPy alone prints what is shown."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


def pattern(expected):
    """Make a pattern of a line in which three dots stand for anything."""
    return ".*".join(re.escape(part) for part in expected.split("..."))


@pytest.mark.parametrize("page", ["arithmetic.md", "functions.md"])
def test_every_block_of_a_page_prints_what_it_says(page):
    names = {}
    for block in re.findall(
        r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.M | re.S
    ):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), names)
        expected = re.findall(r"^# -> (.*)$", block, re.M)
        assert re.fullmatch("\n".join(map(pattern, expected)), printed.getvalue().strip())
