"""Random stencils: a call that is taken never leaves an array, one that is refused would have.

The arrays lie between pages that end the process when they are touched, so the calls are made in
processes of their own. What a stencil touches is seen where GT4Py computes point by point, in
Python: in its backends "debug" and "roundtrip".
DLFIELD_TEST_EXAMPLES=20 makes twenty times as many, DLFIELD_TEST_SEED=7 others.
"""

import json
import os

import pytest

from support.optional import library
from support.processes import end_of_module

library("gt4py.cartesian")
library("gt4py.next")

TIMES = int(os.environ.get("DLFIELD_TEST_EXAMPLES", "1"))
SEED = os.environ.get("DLFIELD_TEST_SEED", "1")


def outcomes(kind, backend, subjects, calls, folder):
    """Make so many calls of each of so many random stencils; count what became of them."""
    arguments = [kind, backend, SEED, subjects * TIMES, calls, folder]
    done = end_of_module("support.reach.batch", *map(str, arguments), timeout=600 * TIMES)
    if done.returncode != 0:
        example = folder / "example.py"
        script = example.read_text(encoding="utf-8") if example.exists() else "no call was made"
        pytest.fail(
            f"exit status {done.returncode}\n{done.stderr}\n# with tests/ in PYTHONPATH:\n{script}"
        )
    return json.loads(done.stdout.splitlines()[-1])


def expect_both(found):
    """A run in which no call is taken, or none is refused, shows nothing."""
    assert min(found["taken"], found["refused"]) >= sum(found.values()) // 10, found
    return found


def test_a_cartesian_call_is_taken_if_and_only_if_it_stays_inside(tmp_path):
    expect_both(outcomes("cartesian", "numpy", 20, 15, tmp_path))


@pytest.mark.parametrize("backend", ["gt:cpu_kfirst", "gt:cpu_ifirst"])
def test_a_compiled_cartesian_call_that_is_taken_touches_no_guard_page(tmp_path, backend):
    expect_both(outcomes("cartesian", backend, 1, 150, tmp_path))


def test_a_call_of_next_is_taken_if_and_only_if_it_stays_inside(tmp_path):
    found = expect_both(outcomes("next", "roundtrip", 12, 20, tmp_path))
    assert found.get("in memory", 0) <= sum(found.values()) // 4, found


def test_a_compiled_call_of_next_that_is_taken_touches_no_guard_page(tmp_path):
    expect_both(outcomes("next", "gtfn_cpu", 3, 40, tmp_path))
