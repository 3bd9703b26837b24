"""Derivatives of random stencils. DLFIELD_TEST_EXAMPLES=100 makes a hundred times as many.

Compiled ones take half a minute each: there is one for ten others.
"""

import json
import os

import pytest

from support.optional import library
from support.processes import end_of_module

library("gt4py.cartesian")

TIMES = int(os.environ.get("DLFIELD_TEST_EXAMPLES", "1"))
SEED = os.environ.get("DLFIELD_TEST_SEED", "1")


#: How many of each backend.
NUMBERS = {"numpy": 5 * TIMES, "gt:cpu_kfirst": TIMES // 2}


@pytest.mark.parametrize("backend", [backend for backend in NUMBERS if NUMBERS[backend]])
def test_derivatives_of_random_stencils_equal_those_of_dual_numbers(backend, tmp_path):
    number = NUMBERS[backend]
    arguments = map(str, (backend, SEED, 0, number, tmp_path))
    done = end_of_module("support.derived", *arguments, timeout=900 * TIMES)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    right = found.pop("right", 0)
    refusals = ("no output depends on", "is read where it has no value")
    assert all(any(text in one for text in refusals) for one in found), found
    assert right >= 0.7 * number, found
