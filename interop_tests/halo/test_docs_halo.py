"""`docs/halo.md`: its program gives the same on one process and on four ranks."""

import re
from pathlib import Path

import pytest

from support.optional import library
from support.processes import printed_by
from support.ranks import mpi_is_needed, started

library("gt4py.cartesian.gtscript")
TEXT = (Path(__file__).resolve().parents[2] / "docs" / "halo.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
CHANGES = re.search(r"^```diff\n(.*?)^```", TEXT, re.M | re.S)[1].splitlines()
#: Lines that a user changes or adds, at most.
AT_MOST = 8


def on_many_ranks(program):
    """Carry the changes out that the page shows."""
    for line in CHANGES:
        text = line[1:] + "\n"
        if line.startswith("-"):
            assert text in program
            program = program.replace(text, "")
    added = [line[1:] for line in CHANGES if line.startswith("+")]
    first = [line for line in added if line.startswith("from ")]
    block = [line for line in added if line.startswith("block ")]
    last = [line for line in added if line not in first and line not in block]
    program = program.replace("t, new = block", "\n".join([*block, "t, new = block"]), 1)
    return "\n".join([*first, program, *last])


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    file = tmp_path_factory.mktemp("docs") / "model.py"
    file.write_text("\n".join(BLOCKS), "utf-8")
    return printed_by(file, folder=file.parent)


def test_the_program_runs_on_one_process_and_so_do_the_blocks_after_it(one_process):
    assert re.fullmatch(r"mean 0\.\d{12}\n", one_process)


def test_a_few_changed_lines_give_the_same_on_four_ranks(one_process, tmp_path):
    mpi_is_needed()
    file = tmp_path / "model.py"
    file.write_text(on_many_ranks(BLOCKS[0]), "utf-8")
    assert sum(line.startswith("+") for line in CHANGES) <= AT_MOST
    done = started(4, ["-m", "mpi4py", str(file)], timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == one_process
