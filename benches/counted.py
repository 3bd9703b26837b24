"""Count the cases of one group of libraries: `instructions.py` runs this under callgrind.

    counted.py GROUP ONLY FOLDER REQUESTS NANOBIND_PEER ROLLS FEW MANY

Each statement is counted with few and with many repetitions. The difference is free of what both
have in common, the start of the loop and the dump. callgrind writes each count under the name it is
given; `problems.json` in the folder says what did not run.

The same code takes up to a few per cent more instructions if its objects lie elsewhere in memory,
as they do after any change of the extension. `_settle` removes what is known to cause it. What is
left to chance is rolled several times for each statement, and the smallest count is the result.
"""

import ctypes
import json
import sys
import timeit
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import dlfield as dlf
import numpy as np
from counted_cases import EMPTY_LOOP, cases
from exchange import import_from
from timing import Missing, Samples, sample

WARM = 100
"""Repetitions after which CPython has specialised its instructions again."""
POOL = 16 * 1024
LARGEST_IN_POOL = 512
"""CPython's allocator serves objects of up to 512 bytes from pools of 16 KiB."""
BYTES_HEADER = sys.getsizeof(b"")
KEPT: list[object] = []
"""Objects that stay in memory until the process ends."""


@dataclass(frozen=True)
class Counter:
    """Counts statements with callgrind."""

    requests: ctypes.CDLL
    rolls: int
    few: int
    many: int

    def count(self, case: int, statements: Sequence[str], names: dict[str, object]) -> Samples:
        """Let callgrind write down the counts of a case; the times are left empty."""
        self.requests.start()
        for statement in (EMPTY_LOOP, *statements):
            timer = timeit.Timer(statement, globals=names)
            for _ in range(self.rolls):
                self._roll(json.dumps([case, statement]), timer)
        self.requests.stop()
        return {}

    def _roll(self, name: str, timer: timeit.Timer) -> None:
        _settle()
        timer.timeit(WARM)
        self.requests.write_down(b"")
        for repetitions in (self.few, self.many):
            timer.timeit(repetitions)
            self.requests.write_down(f"{name} {repetitions}".encode())


def main() -> None:
    """Count every case, and write down what did not run."""
    group, only, folder, requests, nanobind, *numbers = sys.argv[1:]
    counter = Counter(ctypes.CDLL(requests), *map(int, numbers))
    names = {"dlf": dlf, "np": np, "SHAPE": (8, 8, 8), "nanobind_peer": _peer(nanobind)}
    problems = []
    for number, case in enumerate(cases(group, only)):
        asked = replace(case, names=names)
        problems.append(sample(asked, partial(counter.count, number))[1])
    Path(folder, "problems.json").write_text(json.dumps(problems), "utf-8")


def _settle() -> None:
    """Roll the places in CPython's cache of attributes, and keep away from the edges of its pools.

    Two attributes that share a place in the cache are looked up in vain each time; an object alone
    in its pool has the pool made and given back each time.
    """
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(object))
    for size in range(48, LARGEST_IN_POOL + 1, 16):
        blocks = [bytes(size - BYTES_HEADER) for _ in range(2 * POOL // size)]
        KEPT.append(blocks[::2])


def _peer(library: str) -> object:
    """Import nanobind's peer, or stand for it with the reason why it is missing."""
    return import_from(Path(library)) if Path(library).is_absolute() else Missing("", library)


if __name__ == "__main__":
    main()
