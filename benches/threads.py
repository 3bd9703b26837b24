"""How many threads everybody may use: one setting for all libraries that take part."""

import os
import sys


def cpus() -> int:
    """How many CPUs this process may use: what is meant by all threads."""
    return len(os.sched_getaffinity(0))


def counts() -> list[int]:
    """Thread counts to measure: one, and all there are."""
    return sorted({1, cpus()})


def spell(threads: int) -> str:
    """Spell a number of threads."""
    return "1 thread" if threads == 1 else f"{threads} threads"


def use(threads: int) -> None:
    """Let dlfield, torch and Numba use so many threads, those of them that are imported.

    NumPy copies and fills with one thread; XLA decides for itself, once, when it starts.
    """
    for module in ("dlfield", "torch", "numba"):
        if library := sys.modules.get(module):
            library.set_num_threads(threads)
