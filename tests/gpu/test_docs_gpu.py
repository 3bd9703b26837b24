"""`docs/gpu.md`: its Python runs."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "gpu.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_runs_as_it_stands(number):
    exec(compile(BLOCKS[number], f"gpu.md, block {number}", "exec"), {})
