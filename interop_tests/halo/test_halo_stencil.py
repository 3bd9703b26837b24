"""A bound stencil of GT4Py on several ranks gives bit for bit what one rank gives."""

import os
import sys

import dlfield as dlf
import numpy as np

from support.halo import ORDERS
from support.optional import library
from support.processes import one_at_a_time
from support.ranks import mpi_is_needed, on_ranks

mpi_is_needed()
gtscript = library("gt4py.cartesian.gtscript")
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval  # noqa: E402

os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

SHAPE, STEPS = (14, 15, 3), 25
REACH = {"I": 1, "J": 1}


# GT4Py reads the source of this function and compiles it: it is never called from Python.
def diffusion(inp: Field[np.float64], out: Field[np.float64], *, nu: np.float64):
    with computation(PARALLEL), interval(...):
        out = (  # noqa: F841 (writes the field)
            inp
            + nu
            * (inp[-1, 0, 0] + 0.7 * inp[1, 0, 0] + inp[0, -1, 0] + 0.9 * inp[0, 1, 0] - 3.6 * inp)
            + 0.1 * nu * inp[-1, 1, 0]
        )


def run_of(backend):
    with one_at_a_time(f"diffusion-{backend}".replace(":", "-")):
        return dlf.bind(gtscript.stencil(backend=backend, definition=diffusion))


def first_values():
    return np.random.default_rng(3).random(SHAPE)


def steps(run, block, layout, *, overlapped):
    """Compute on one block; physical edges keep a halo of zeros."""
    order = tuple(layout.index(dim) for dim in "IJK")
    old, new = (block.zeros(layout=order) for _ in range(2))
    region = tuple(block.region.get(dim, slice(None)) for dim in "IJK")
    old.domain_view.to_numpy()[...] = first_values()[region]
    with dlf.halo_exchange({"t": old}, block.cart, dims=block.divided) as plan:
        for _ in range(STEPS):
            if overlapped:
                inside, rest = plan.interior(REACH), plan.edges(REACH)
                with plan.overlap(old):
                    compute(run, old, new, [inside])
                compute(run, old, new, rest)
            else:
                plan.exchange(old)
                run(old, new, nu=0.1)
            old, new = new, old
    return old.domain_view.to_numpy().copy()


def compute(run, old, new, parts):
    for origin, domain in parts:
        run(old, new, nu=0.1, origin=origin, domain=domain)


def assert_equal_to_the_undivided_run(comm, backend, periodic, *, overlapped):
    run = run_of(backend)
    alone = dlf.halo.decompose(SHAPE, None, "IJK", {"I": 1, "J": 1}, periodic)
    expected = steps(run, alone, "IJK", overlapped=False)
    block = dlf.halo.decompose(SHAPE, comm, "IJK", {"I": 1, "J": 1}, periodic)
    for turn in range(2):
        layout = ORDERS[(comm.rank + turn) % len(ORDERS)]
        found = steps(run, block, layout, overlapped=overlapped)
        region = tuple(block.region[dim] for dim in "IJ")
        assert found.tobytes() == expected[region].tobytes()
    block.free()


@on_ranks(1, 2, 4)
def test_a_periodic_run_equals_the_undivided_one(comm):
    assert_equal_to_the_undivided_run(comm, "gt:cpu_ifirst", (True, True), overlapped=False)


@on_ranks(1, 2, 4)
def test_a_run_with_physical_edges_equals_the_undivided_one(comm):
    for periodic in [(False, True), (False, False)]:
        assert_equal_to_the_undivided_run(comm, "gt:cpu_ifirst", periodic, overlapped=False)


@on_ranks(1, 2, 4)
def test_a_run_that_computes_the_interior_while_messages_travel_equals_the_undivided_one(comm):
    for periodic in [(True, True), (True, False)]:
        assert_equal_to_the_undivided_run(comm, "numpy", periodic, overlapped=True)
