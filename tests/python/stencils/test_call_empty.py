"""Calls without a point to compute, as on an MPI rank that has none: checked, and not computed."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import IJ, Field

from support.errors import refused
from support.stencils.stand_ins import SHAPE, StandIn, Told, field

COPY = {"inp": field("READ"), "out": field("WRITE")}
EMPTY = [(0, 4, 5), (3, 0, 5), (3, 4, 0), (0, 0, 0)]


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "a call without points is checked, acquires and touches, and computes nothing",
)
@pytest.mark.parametrize("shape", EMPTY)
def test_fields_without_elements_are_acquired_and_touched_and_no_stencil_runs(shape):
    log = []
    told = {name: Told(log, name, np.zeros(shape)) for name in COPY}
    dlf.bind(StandIn(log, **COPY))(**told)
    assert log == [
        "acquire inp",
        "acquire out",
        "touch out",
        "release inp",
        "release out",
    ]


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "a call without points is checked, acquires and touches, and computes nothing",
)
def test_a_domain_without_points_writes_nothing():
    log, out = [], np.zeros(SHAPE)
    dlf.bind(StandIn(log, **COPY))(np.ones(SHAPE), out, domain=(3, 0, 5))
    assert log == []


def test_a_domain_of_which_the_halo_leaves_nothing_is_empty():
    log = []
    inp, out = (dlf.zeros((2, 4, 5), dims="IJK", halo=(1, 1, 0)) for _ in COPY)
    dlf.bind(StandIn(log, **COPY))(inp, out)
    assert log == []


@pytest.mark.parametrize(
    ("above", "text"),
    [
        (3, "expected at least 1 point along I, got 0 in [0, 4, 5]; pass larger fields"),
        (4, "expected at least 1 point along I, got -1 in [-1, 4, 5]; pass larger fields"),
    ],
)
def test_fields_that_the_reach_of_the_stencil_fills_are_refused(above, text):
    reaching = {**COPY, "inp": field("READ", boundary=((0, above), (0, 0), (0, 0)))}
    with refused(ValueError, text):
        dlf.bind(StandIn(**reaching))(*(np.zeros((3, 4, 5)) for _ in COPY))


def test_one_field_without_elements_beside_others_is_refused():
    with refused(ValueError, "expected at least 1 point along J, got 0"):
        dlf.bind(StandIn(**COPY))(np.zeros((3, 0, 5)), np.zeros(SHAPE))


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "a call without points is checked, acquires and touches, and computes nothing",
)
def test_arguments_of_an_empty_call_are_checked():
    log, run = [], dlf.bind(StandIn(**COPY))
    with refused(ValueError, "argument 'out': expected dtype float64, got float32"):
        run(np.zeros((0, 4, 5)), np.zeros((0, 4, 5), np.float32))
    readonly = np.broadcast_to(0.0, (0, 4, 5))
    with refused(BufferError, "argument 'out': expected a writable output"):
        run(np.zeros((0, 4, 5)), readonly)
    assert log == []


def test_fewer_levels_than_the_stencil_treats_by_themselves_are_refused():
    stencil = StandIn(**COPY)
    stencil.domain_info.min_sequential_axis_size = 3
    arrays = [np.zeros((3, 4, 2)) for _ in COPY]
    with refused(ValueError, "expected at least 3 points along K, got 2"):
        dlf.bind(stencil)(*arrays)


def test_times_are_empty_where_nothing_runs():
    times = {}
    dlf.bind(StandIn(**COPY))(*(np.zeros((0, 4, 5)) for _ in COPY), exec_info=times)
    assert times == {}


def test_a_callable_is_called_with_empty_arrays_since_it_may_do_more_than_compute():
    seen = []

    def exchange(inp: Field[np.float64], out: Field[IJ, np.float64]):
        seen.append((inp.shape, out.shape))

    dlf.bind(exchange)(np.zeros((0, 4, 5)), np.zeros((0, 4)))
    assert seen == [((0, 4, 5), (0, 4))]


def test_a_functional_call_returns_an_empty_output():
    made = dlf.bind(StandIn(**COPY)).functional(np.zeros((0, 4, 5)))
    assert made.shape == (0, 4, 5)
