"""What a new user tries first: the demo and the README."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.optional import library

ROOT = Path(__file__).resolve().parents[2]
STRICT = ("-W", "error::UserWarning")  # dlfield's warnings are of this kind


def run(*arguments, **variables):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@functools.cache
def demo(*options, **variables):
    for name in ("torch", "jax", "xarray", "pyarrow", "gt4py"):
        library(name)
    return run(*options, "examples/quickstart.py", **variables)


def test_the_demo_finds_every_row_right_and_warns_of_nothing():
    done = demo(*STRICT)
    assert done.returncode == 0, done.stderr
    assert "zero-copy" in done.stdout
    assert "not compiled" not in done.stdout
    assert "Warning" not in done.stderr


def test_the_demo_shows_where_the_order_of_memory_is_slow():
    lines = {line.partition("  ")[0]: line for line in demo(*STRICT).stdout.splitlines()}
    assert lines["numpy, C order"].endswith("  gt:cpu_ifirst")
    assert lines["numpy, Fortran order"].endswith("  numpy, gt:cpu_kfirst")


def test_a_backend_that_does_not_compile_is_not_the_end_of_the_demo(tmp_path):
    done = demo(CXX="false", GT_CACHE_ROOT=str(tmp_path))
    assert done.returncode == 0, done.stderr
    for backend in ("gt:cpu_kfirst", "gt:cpu_ifirst"):
        assert f"{backend} does not compile on this machine: " in done.stdout
    [line] = [line for line in done.stdout.splitlines() if line.startswith("numpy, padded")]
    assert line.split()[-5:] == ["not", "compiled", "not", "compiled", "-"]


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
    done = run(*STRICT, str(program))
    assert done.returncode == 0, done.stderr


def test_the_first_page_shows_what_its_program_prints(tmp_path):
    for name in ("xarray", "gt4py", "torch"):
        library(name)
    text = (ROOT / "docs" / "index.md").read_text("utf-8")
    pattern = r"^```python\n(.*?)^```\s+^```text\n(.*?)^```"
    block, printed = re.search(pattern, text, re.M | re.S).groups()
    program = tmp_path / "first.py"
    program.write_text(block, "utf-8")
    assert run(str(program)).stdout == printed
