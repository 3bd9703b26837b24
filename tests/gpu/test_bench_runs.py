"""The benchmark of `make gpu-bench` runs through. Only on a real GPU its figures mean something."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cuda.driver import REAL, library_path

BENCHES = Path(__file__).parents[2] / "benches"
# torch and CuPy find no device on the stand-in, and need long to notice.
RUN = """
import runpy, sys
if {hidden}:
    sys.modules.update(torch=None, cupy=None)
sys.path.insert(0, {folder!r})
runpy.run_path({script!r}, run_name="__main__")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return what the benchmark has printed, and the rows that it has kept."""
    folder = tmp_path_factory.mktemp("gpu")
    environment = {**os.environ}
    if not REAL:
        (folder / "libcuda.so.1").symlink_to(library_path().resolve())
        found = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, found))
    script = RUN.format(hidden=not REAL, folder=str(BENCHES), script=str(BENCHES / "gpu.py"))
    options = ["--mib", "1", "--rounds", "2", "--csv", str(folder / "gpu.csv")]
    done = subprocess.run(
        [sys.executable, "-c", script, *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with (folder / "gpu.csv").open(newline="") as file:
        return done.stdout, list(csv.DictReader(file))


AREAS = {
    "layout-changing copies of 1 MiB": 12,
    "copies of a domain, 1 MiB": 3,
    "between host and device, 1 MiB": 4,
    "device array -> Storage": 4,
    "Storage -> device array": 6,
}


def test_every_area_is_a_table_and_in_the_file(run):
    printed, rows = run
    compared = {}
    for row in rows:
        compared.setdefault(row["area"], set()).add((row["what"], row["dlfield"]))
    assert {area: len(what) for area, what in compared.items()} == AREAS
    assert all(area in printed for area in AREAS)


def test_every_copy_of_dlfield_is_measured_beside_the_drivers(run):
    copies = [row for row in run[1] if row["peer"].startswith("cuMemcpy(")]
    assert len(copies) >= 16
    assert all(float(row["ratio"]) > 0 for row in copies)


def test_all_that_is_not_measured_is_a_library_that_is_missing(run):
    unmeasured = [row for row in run[1] if not row["ratio"]]
    reasons = {row["note"] for row in unmeasured}
    assert all(reason.endswith(("is missing", "sees no device")) for reason in reasons), reasons


def test_the_gpu_and_the_libraries_are_named(run):
    first = run[0].splitlines()[0]
    assert "driver for CUDA" in first
    assert "dlfield" in first
