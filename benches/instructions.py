"""How many instructions dlfield and its peers execute per operation, counted by callgrind.

Counts repeat where times wander, also while the machine has other work: a change of one per cent is
seen in one run. They say nothing of what an instruction waits for. `counted.py` is the process that
is counted, one per group of `counted_cases.py`.
"""

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from building import compiled
from counted_cases import EMPTY_LOOP, GROUPS, cases
from exchange import nanobind_library
from tables import Row, Table, table_of
from threads import cpus
from timing import EFFORT, Comparison, Samples, summarise

COUNTED = Path(__file__).parent / "counted.py"
TOOLS = ("valgrind", "setarch")
THOROUGH = (3, 50, 550)
"""Rolls, and few and many repetitions."""
QUICK = (1, 10, 20)
QUICK_GROUPS = ("numpy",)
"""What needs none of the libraries that take a minute to import."""
SECONDS = 1800
INHERITED = ("PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH")
FIXED = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    # No memory is given back to the system between two repetitions.
    "GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1073741824",
}
# callgrind knows no AVX-512.
WITHOUT_AVX512 = ["-mno-avx512f"] if platform.machine() == "x86_64" else []

REMARK = (
    "Instructions of one repetition, without those of the loop: the smallest of several counts. "
    "`function` does nothing. All arrays are 8 x 8 x 8 float64."
)


def tables() -> list[tuple[Table, list[Row]]]:
    """Count every case beside its peers.

    Raises
    ------
    ModuleNotFoundError
        If valgrind, or something else without which nothing is counted, is missing.
    """
    for tool in TOOLS:
        if not shutil.which(tool):
            raise ModuleNotFoundError(f"{tool} is missing")
    requests = compiled("counting.cpp")
    groups = [group for group in GROUPS if cases(group, EFFORT.only)]
    if EFFORT.quick:
        groups = [group for group in groups if group in QUICK_GROUPS]
    nanobind = _nanobind()
    with ThreadPoolExecutor(cpus()) as pool:
        found = pool.map(lambda group: _rows(group, requests, nanobind), groups)
    rows = [row for group in found for row in group]
    return [(table_of("instructions", rows, REMARK), rows)]


def _nanobind() -> str:
    """Return the path of nanobind's peer, or the reason why it is missing."""
    try:
        return str(nanobind_library(WITHOUT_AVX512))
    except ModuleNotFoundError as missing:
        return str(missing)


def _rows(group: str, requests: Path, nanobind: str) -> list[Row]:
    """Count the cases of one group in a process of its own."""
    asked = cases(group, EFFORT.only)
    with tempfile.TemporaryDirectory() as folder:
        failure = _run(group, folder, str(requests), nanobind)
        problems = [dict.fromkeys(_statements(case), failure) for case in asked]
        if not failure:
            problems = json.loads(Path(folder, "problems.json").read_text("utf-8"))
        counts = _counts(folder)
    return [
        replace(
            summarise("instructions", case, peer, counts.get(number, {}), problems[number]),
            unit="instructions",
        )
        for number, case in enumerate(asked)
        for peer in case.peers
    ]


def _statements(case: Comparison) -> list[str]:
    return [case.ours, *(peer.statement for peer in case.peers)]


def _run(group: str, folder: str, requests: str, nanobind: str) -> str:
    """Run one group under callgrind; give the reason if that fails."""
    numbers = map(str, QUICK if EFFORT.quick else THOROUGH)
    tool = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts"]
    counted = [sys.executable, str(COUNTED), group, EFFORT.only, folder, requests, nanobind]
    done = subprocess.run(
        ["setarch", "-R", "valgrind", "-q", *tool, *counted, *numbers],
        env={name: os.environ[name] for name in INHERITED if name in os.environ} | FIXED,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def _counts(folder: str) -> dict[int, Samples]:
    """Return the smallest count per repetition, by case and statement."""
    counts: dict[int, Samples] = {}
    for case, statement, count in _per_roll(folder):
        counts.setdefault(case, {}).setdefault(statement, []).append(count)
    return {case: _without_loop(of_case) for case, of_case in counts.items()}


def _without_loop(of_case: Samples) -> Samples:
    """Return the smallest count of each statement, less what the loop takes."""
    loop = statistics.median(of_case.pop(EMPTY_LOOP))
    return {statement: [min(counts) - loop] for statement, counts in of_case.items()}


def _per_roll(folder: str) -> Iterator[tuple[int, str, float]]:
    """Return the count of each roll: what many repetitions took more than few."""
    few: tuple[int, int] | None = None
    for path in sorted(Path(folder).glob("counts.*"), key=lambda path: int(path.suffix[1:])):
        text = path.read_text("utf-8")
        name = re.search(r"^desc: Trigger: Client Request: (.+) (\d+)$", text, re.MULTILINE)
        if not name:
            continue
        total = int(re.search(r"^totals: (\d+)", text, re.MULTILINE)[1])
        if few is None:
            few = int(name[2]), total
            continue
        case, statement = json.loads(name[1])
        yield case, statement, (total - few[1]) / (int(name[2]) - few[0])
        few = None
