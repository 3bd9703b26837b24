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


BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)


def test_the_readme_shows_python():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_python_of_the_readme_runs(block, tmp_path):
    for name in re.findall(r"^(?:from|import) (xarray|gt4py|torch)", block, re.M):
        library(name)
    program = tmp_path / "readme.py"  # a stencil is read from its file
    program.write_text(block, "utf-8")
    done = run(str(program))
    assert done.returncode == 0, done.stderr
