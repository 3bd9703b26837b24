"""What a new user tries first: the demo and the README."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.optional import library

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_demo_finds_every_row_right():
    for name in ("torch", "jax", "xarray", "pyarrow", "gt4py"):
        library(name)
    done = run("examples/quickstart.py")
    assert done.returncode == 0, done.stderr
    assert "zero-copy" in done.stdout


def blocks_of(page):
    found = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S)
    return [pytest.param(block, id=f"{page} {number}") for number, block in enumerate(found)]


BLOCKS = {page: blocks_of(page) for page in ("README.md", "docs/index.md", "docs/guide.md")}


def test_the_readme_and_the_first_pages_show_python():
    assert all(BLOCKS.values())


@pytest.mark.parametrize("block", [one for blocks in BLOCKS.values() for one in blocks])
def test_the_python_of_the_readme_and_of_the_first_pages_runs(block, tmp_path):
    for name in re.findall(r"^(?:from|import) (xarray|gt4py|torch)", block, re.M):
        library(name)
    program = tmp_path / "readme.py"  # a stencil is read from its file
    program.write_text(block, "utf-8")
    done = run(str(program))
    assert done.returncode == 0, done.stderr
