"""What a call from Fortran takes beside the same call in Python: `benches/peers/fortran_calls.*`.

A program in Fortran takes turns: it calls the function, calls one that copies its arrays, calls one
that is written by hand with ctypes, and has Python call the stencil with the same arrays.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Peer, Samples, summarise

PEERS = Path(__file__).parent / "peers"
FUNCTIONS = (
    "run", "fortran_call", "copying", "python_call", "run_many", "many_python", "by_hand_at",
)  # fmt: skip
REMARK = (
    "Called in a loop of Fortran; in_python: the same call in a loop of Python. `run` is a bound "
    "stencil of ten fields, gt:cpu_ifirst, `fortran_call` a function that calls it, `copying` one "
    "that copies the arrays, `by_hand` one of ctypes that makes NumPy's arrays and calls it. "
    "`run_many` has a hundred fields and does nothing, with every check."
)


def tables() -> list[tuple[Table, list[Row]]]:
    """Build the program, run it for small and large fields, and read its times."""
    if shutil.which("gfortran") is None:
        rows = [Row("fortran", "needs gfortran", "run", None, "in_python", None, None)]
        return [(table_of("calls from Fortran", rows, REMARK), rows)]
    with tempfile.TemporaryDirectory() as folder:
        _build(Path(folder))
        small, large = (_samples(Path(folder), size) for size in ("small", "large"))
    rows = []
    for what, samples in (("8 x 8 x 8", small), ("256 x 256 x 80", large)):
        for ours in ("run", "fortran_call"):
            peers = [Peer("in_python"), Peer("copying"), Peer("by_hand")]
            rows += _rows(what, ours, peers, samples)
    rows += _rows("100 fields of 8 x 8 x 8", "run_many", [Peer("many_in_python", 1.3)], small)
    return [(table_of("calls from Fortran", rows, REMARK), rows)]


def _rows(what: str, ours: str, peers: list[Peer], samples: Samples) -> list[Row]:
    comparison = Comparison(what, ours, peers)
    return [summarise("fortran", comparison, peer, samples, {}) for peer in peers]


def _build(folder: Path) -> None:
    targets = ",".join(f"fortran_calls:{name}" for name in FUNCTIONS)
    command = [sys.executable, "-m", "dlfield", "fortran", targets, "--library", "bench"]
    quiet = {"check": True, "env": _environment(), "stdout": subprocess.DEVNULL}
    subprocess.run([*command, "--out", folder], **quiet)
    subprocess.run(["sh", folder / "build.sh"], **quiet)
    link = [f"-I{folder}", f"-L{folder}", "-lbench", f"-Wl,-rpath,{folder}"]
    source = PEERS / "fortran_calls.f90"
    options = ["-O2", source, *link, "-o", folder / "program"]
    subprocess.run(["gfortran", *options], cwd=folder, **quiet)


def _environment() -> dict[str, str]:
    path = [str(PEERS), str(PEERS.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def _samples(folder: Path, size: str) -> Samples:
    rounds = "3" if EFFORT.quick else "15"
    command = [folder / "program", size, rounds]
    done = subprocess.run(command, check=True, env=_environment(), capture_output=True, text=True)
    samples = defaultdict(list)
    for name, nanoseconds in map(str.split, done.stdout.splitlines()):
        samples[name].append(float(nanoseconds))
    return {name: times[1:] for name, times in samples.items()}  # without the first round
