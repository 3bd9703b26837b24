"""The example of chunks that overlap, on a cluster of Dask."""

import subprocess
import sys
from pathlib import Path

from support.optional import library
from support.processes import beside_tests

library("gt4py.cartesian.gtscript")
library("distributed")
PROGRAM = str(Path(__file__).resolve().parent.parent / "examples" / "overlap.py")


def test_chunks_on_two_workers_give_the_bits_of_one_process():
    done = subprocess.run(
        [sys.executable, PROGRAM, "--workers", "2", "--steps", "3"],
        env=beside_tests(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "CPUStorage, dims ('I', 'J', 'K'), 3 steps",
        "the same bits as in one process: True",
    ]
