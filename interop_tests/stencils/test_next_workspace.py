"""Workspaces of the caller for GT4Py's dace backend, in memory of dlfield."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import gt4py, library
from support.owners import Watch
from support.stencils.next_programs import QUIET, Dims, Field, I, K, float64, gtx, int32

gt4py(since=(1, 2))
dace = library("gt4py.next.program_processors.runners.dace")

#: dace loads the library of one program several times, each time from a copy.
AGAIN = "ignore:Library .* already loaded:UserWarning"
pytestmark = [pytest.mark.filterwarnings(line) for line in (*QUIET, AGAIN)]

Plane = Field[Dims[I, K], float64]
CPU = gtx.DeviceType.CPU
LEVELS = 5


@gtx.scan_operator(axis=K, forward=True, init=0.0)
def summed(carry: float64, value: float64) -> float64:
    return carry + value


@gtx.field_operator
def slope_of_sums(inp: Plane) -> Plane:
    sums = summed(inp)  # in the workspace
    return sums(I + 1) - sums


@gtx.program
def slope(inp: Plane, out: Plane, count: int32, levels: int32):
    slope_of_sums(inp, out=out, domain={I: (0, count), K: (0, levels)})


def bytes_of(count):
    return dlf.zeros((count,), dtype=np.uint8)


def bound(workspace):
    """Bind the program for a backend with this workspace; its code is compiled once and cached."""
    config = dace.DaCeConfig(external_workspace=workspace)
    return dlf.bind(slope.with_backend(dace.make_dace_toolchain(config, name_postfix="_workspace")))


def computes(run, count):
    inp, out = np.random.default_rng(count).random((count + 1, LEVELS)), np.zeros((count, LEVELS))
    run(inp, out, count, LEVELS)
    np.testing.assert_allclose(out, np.diff(np.cumsum(inp, axis=1), axis=0))
    return True


def test_a_storage_is_a_workspace():
    workspace = bytes_of(100_000)
    assert computes(bound({CPU: workspace}), 50)
    assert workspace.to_numpy().any()


def test_one_workspace_serves_several_programs():
    workspace = {CPU: bytes_of(100_000)}
    first, second = bound(workspace), bound(workspace)
    assert computes(first, 50)
    assert computes(second, 90)
    assert computes(first, 50)


def test_gt4py_says_how_large_a_workspace_has_to_be():
    workspace = {CPU: bytes_of(8)}
    run = bound(workspace)
    needed = 51 * LEVELS * 8
    with refused(ValueError, "External workspace buffer is 8 bytes", f"at least {needed} bytes"):
        computes(run, 50)
    workspace[CPU] = bytes_of(needed)
    assert computes(run, 50)


def test_more_points_than_at_first_are_refused_as_they_would_leave_the_workspace():
    run = bound({CPU: bytes_of(51 * LEVELS * 8)})
    assert computes(run, 50)
    with refused(ValueError, "'slope': expected at most 50 points of 'out' along I", "got 400"):
        computes(run, 400)
    assert computes(run, 20)
    assert computes(run, 50)


def test_the_first_call_counts_even_if_its_workspace_is_too_small():
    workspace = {CPU: bytes_of(8)}
    run = bound(workspace)
    with refused(ValueError, "External workspace buffer is 8 bytes"):
        computes(run, 50)
    workspace[CPU] = bytes_of(51 * LEVELS * 8)  # GT4Py would take it for 400 points, too
    with refused(ValueError, "expected at most 50 points", "got 400"):
        computes(run, 400)
    assert computes(run, 50)


def test_the_memory_stays_as_long_as_the_program_that_writes_to_it():
    workspace = {CPU: np.zeros(100_000, np.uint8)}
    watch = Watch(workspace[CPU])
    run = bound(workspace)
    assert computes(run, 50)
    workspace[CPU] = bytes_of(100_000)
    assert not watch.freed
    assert computes(run, 50)
