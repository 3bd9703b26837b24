"""Bound programs of gt4py.next that are compiled for values of arguments, or ahead of time."""

import dlfield as dlf
import numpy as np
import pytest

from support.stencils.next_programs import QUIET, I, float64, gtx, int32

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

Line = gtx.Field[gtx.Dims[I], float64]


@gtx.field_operator
def up_or_down(inp: Line, up: bool) -> Line:  # noqa: FBT001
    return inp + 1.0 if up else inp - 1.0


@gtx.program
def moved(inp: Line, up: bool, ni: int32, out: Line):  # noqa: FBT001
    up_or_down(inp, up, out=out, domain={I: (0, ni)})


@gtx.program
def moved_everywhere(inp: Line, up: bool, out: Line):  # noqa: FBT001
    up_or_down(inp, up, out=out)


def test_each_value_of_a_static_argument_has_its_own_code():
    inp, out = np.arange(5.0), np.zeros(5)
    program = moved.with_backend(gtx.gtfn_cpu).with_compilation_options(static_params=("up",))
    run = dlf.bind(program)
    run(inp, up=True, ni=5, out=out)
    assert np.array_equal(out, inp + 1.0)
    run(inp, up=False, ni=5, out=out)
    assert np.array_equal(out, inp - 1.0)


def test_the_first_call_says_what_is_compiled_and_the_next_nothing(caplog):
    inp, out = np.arange(5.0), np.zeros(5)
    run = dlf.bind(moved.with_backend(gtx.gtfn_cpu))
    with caplog.at_level("INFO", logger="dlfield"):
        run(inp, up=True, ni=5, out=out)
        run(inp, up=True, ni=5, out=out)
    said = [record.getMessage() for record in caplog.records]
    assert said == ["compiling moved for run_gtfn_cpu"]


def test_a_program_may_be_compiled_after_it_was_bound():
    inp, out = np.arange(5.0), np.zeros(5)
    program = moved.with_backend(gtx.gtfn_cpu).with_compilation_options(enable_jit=False)
    run = dlf.bind(program)
    program.compile(up=[True], offset_provider={})
    run(inp, up=True, ni=5, out=out)
    assert np.array_equal(out, inp + 1.0)
    with pytest.raises(RuntimeError, match="No program compiled"):
        run(inp, up=False, ni=5, out=out)


def test_a_program_that_is_compiled_for_domains_takes_others_later():
    program = moved_everywhere.with_backend(gtx.gtfn_cpu)
    run = dlf.bind(program.with_compilation_options(static_domains=True))
    for points in (5, 7):
        inp, out = np.arange(float(points)), np.zeros(points)
        run(inp, up=True, out=out)
        assert np.array_equal(out, inp + 1.0)
