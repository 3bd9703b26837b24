"""The example of chunks that overlap, on a cluster of Dask."""

from pathlib import Path

from support.optional import library
from support.processes import printed_by

library("gt4py.cartesian.gtscript")
library("distributed")
PROGRAM = str(Path(__file__).resolve().parents[2] / "examples" / "overlap.py")


def test_chunks_on_two_workers_give_the_bits_of_one_process():
    printed = printed_by(PROGRAM, "--workers", 2, "--steps", 3)
    assert printed.splitlines() == [
        "CPUStorage, dims ('I', 'J', 'K'), 3 steps",
        "the same bits as in one process: True",
    ]
