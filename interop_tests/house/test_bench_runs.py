"""The benchmark of `make bench` runs; its results do not matter here."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
# nanobind and Numba would have to compile, the others are slow to import; and so it is seen what
# becomes of peers that are missing.
RUN = """
import runpy, sys
sys.modules.update(dict.fromkeys({hidden!r}))
sys.path.insert(0, {folder!r})
runpy.run_path({script!r}, run_name="__main__")
"""
HIDDEN = ("nanobind", "jax", "numba", "gt4py")
AREAS = ("exchange", "allocation", "copies", "batch", "memory", "startup")
TABLES = (
    "array -> Storage",
    "Storage -> array",
    "allocation",
    "copies",
    "batch",
    "memory of a copy",
    "import",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return what the benchmark has printed, and the folder that it has written to."""
    folder = tmp_path_factory.mktemp("bench")
    script = RUN.format(hidden=HIDDEN, folder=str(BENCHES), script=str(BENCHES / "run.py"))
    options = [*AREAS, "--quick", "--out", str(folder)]
    done = subprocess.run(
        [sys.executable, "-c", script, *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


def rows_of(folder, area):
    with (folder / f"{area}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_area_is_printed_and_a_table_of_the_page(run):
    printed, folder = run
    page = (folder / "tables.md").read_text("utf-8")
    assert [title for title in TABLES if f"\n{title}\n" not in printed] == []
    assert [title for title in TABLES if f"## {title}\n" not in page] == []


def test_every_row_of_a_table_of_the_page_has_all_columns(run):
    page = (run[1] / "tables.md").read_text("utf-8")
    for table in page.split("## ")[1:]:
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len(rows) > 2
        assert len({line.count("|") for line in rows}) == 1


@pytest.mark.parametrize("area", AREAS)
def test_every_area_has_a_file_in_which_dlfield_is_measured(run, area):
    rows = rows_of(run[1], area)
    assert rows
    assert all(row["value"] or row["note"].endswith("is missing") for row in rows)


def test_instructions_are_counted_where_valgrind_is_installed(tmp_path):
    options = ["instructions", "--only", "np.asarray(s)", "--quick", "--out", str(tmp_path)]
    command = [sys.executable, str(BENCHES / "run.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    if shutil.which("valgrind") and shutil.which("setarch"):
        assert all(float(row["value"]) > 100 for row in rows_of(tmp_path, "instructions"))
    else:
        assert "instructions: not measured, " in done.stdout


def test_a_missing_peer_is_named(run):
    notes = {
        row["peer"]: row["note"] for area in ("exchange", "copies") for row in rows_of(run[1], area)
    }
    assert notes["nanobind_peer.take(x)"] == "nanobind is missing"
    assert notes["jax_copy(jax_source)"] == "jax is missing"
    assert "nanobind is missing" in run[0]


def test_every_copy_is_measured_beside_numpy_with_every_number_of_threads(run):
    copies = [row for row in rows_of(run[1], "copies") if row["peer"].startswith("np.copyto")]
    threads = {row["what"].rpartition(", ")[2] for row in copies}
    assert "1 thread" in threads
    assert len(copies) == 8 * len(threads)
    assert all(float(row["ratio"]) > 0 for row in copies)


def test_the_machine_and_the_command_are_named_but_no_path(run):
    page = (run[1] / "tables.md").read_text("utf-8")
    facts = page.partition("## ")[0]
    for fact in ("CPU", "memory", "transparent huge pages", "Python", "numpy", "make bench"):
        assert fact in facts
    assert str(run[1]) not in page
    assert str(BENCHES.parent) not in page
