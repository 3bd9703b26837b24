"""`docs/periodic.md`: its model gives the same on one rank, on four, and by NumPy's `roll`."""

import re
from pathlib import Path

import numpy as np
import pytest

from support.optional import library
from support.pages import python_blocks
from support.processes import printed_by
from support.ranks import mpi_is_needed, started

library("gt4py.cartesian.gtscript")
TEXT = (Path(__file__).resolve().parents[2] / "docs" / "periodic.md").read_text("utf-8")
PROGRAM = "\n".join(python_blocks(TEXT))
PRINTED = re.search(r"^```text\n(.*?)^```", TEXT, re.M | re.S)[1]
CHANGES = re.search(r"^```diff\n(.*?)^```", TEXT, re.M | re.S)[1].splitlines(keepends=True)


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one_rank")
    (folder / "model.py").write_text(PROGRAM, "utf-8")
    return printed_by("model.py", folder=folder), folder


def fields(folder):
    with np.load(folder / "after100.npz") as file:
        return dict(file)


def by_roll(steps):
    """Compute the waves with NumPy alone."""
    i, j = np.ogrid[:24, :20]
    h = np.exp(-0.1 * ((i - 2) ** 2 + (j - 3) ** 2))
    u, v = np.zeros_like(h), np.zeros_like(h)
    for _ in range(steps):
        u = u - 0.3 * (h - np.roll(h, 1, 0))
        v = v - 0.3 * (h - np.roll(h, 1, 1))
        h = h - 0.3 * (np.roll(u, -1, 0) - u + np.roll(v, -1, 1) - v)
    return h


def test_the_periodic_model_prints_what_its_page_shows(one_rank):
    assert one_rank[0] == PRINTED


def test_the_periodic_model_computes_what_numpy_does_with_roll(one_rank):
    np.testing.assert_allclose(fields(one_rank[1])["h"][..., 0], by_roll(100), atol=1e-13)


def test_two_changed_lines_give_the_same_files_on_four_ranks(one_rank, tmp_path, monkeypatch):
    mpi_is_needed()
    removed = "".join(line[1:] for line in CHANGES if line.startswith("-"))
    added = "".join(line[1:] for line in CHANGES if line.startswith("+"))
    assert PROGRAM.count(removed) == 1
    (tmp_path / "model.py").write_text(PROGRAM.replace(removed, added), "utf-8")
    monkeypatch.chdir(tmp_path)
    done = started(4, ["-m", "mpi4py", "model.py"], timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == PRINTED
    alone, together = fields(one_rank[1]), fields(tmp_path)
    assert all(alone[name].tobytes() == together[name].tobytes() for name in alone)
