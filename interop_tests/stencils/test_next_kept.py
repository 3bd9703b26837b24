"""A footprint that is kept from the last call holds only as long as all that it depends on."""

import types

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.next")

from support.stencils.next_programs import (  # noqa: E402 (after the skip)
    E2C,
    QUIET,
    Cell,
    Dims,
    E2CDim,
    Edge,
    Field,
    I,
    float64,
    gtx,
    int32,
    neighbor_sum,
    on,
)

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

Line = Field[Dims[I], float64]
Weights = Field[Dims[Edge, E2CDim], float64]
Cells, Edges = Field[Dims[Cell], float64], Field[Dims[Edge], float64]


@gtx.field_operator
def sums(cells: Cells) -> Edges:
    return neighbor_sum(cells(E2C), axis=E2CDim)


@gtx.field_operator
def weighted(weights: Weights, cells: Cells) -> Edges:
    return neighbor_sum(weights * cells(E2C), axis=E2CDim)


@gtx.field_operator
def same(inp: Line) -> Line:
    return inp


@gtx.program
def copied(inp: Line, out: Line):
    same(inp, out=out)


@gtx.program
def from_remainder(inp: Line, out: Line, n: int32):
    same(inp, out=out, domain={I: (n % 2, 4)})


@gtx.program
def up_to_quotient(inp: Line, out: Line, n: int32, m: int32):
    same(inp, out=out, domain={I: (0, n // m)})


def table(rows, where=(Edge, E2CDim)):
    return gtx.as_connectivity(where, codomain=Cell, data=np.array(rows, dtype=np.int32))


def called(run, **options):
    """Call three times, so that the call is known."""
    edges = np.full(2, -1.0)
    for _ in range(3):
        run(np.ones(4), out=edges, **options)
    edges[...] = -1.0
    return edges


@pytest.fixture
def run():
    return dlf.bind(sums)


def test_a_table_that_is_written_is_read_again(run):
    neighbours = table([[0, 1], [1, 2]])
    edges = called(run, offset_provider={"E2C": neighbours})
    neighbours.ndarray[1, 1] = 7
    with refused(ValueError, "argument 'cells': expected points 0 to 8 along Cell", "got 0 to 4"):
        run(np.ones(4), out=edges, offset_provider={"E2C": neighbours})
    assert (edges == -1.0).all()


def test_a_table_that_has_another_array_is_read_again(run):
    neighbours = table([[0, 1], [1, 2]])
    edges = called(run, offset_provider={"E2C": neighbours})
    object.__setattr__(neighbours, "_ndarray", np.array([[0, 1], [1, 7]], dtype=np.int32))
    with refused(ValueError, "argument 'cells': expected points 0 to 8 along Cell", "got 0 to 4"):
        run(np.ones(4), out=edges, offset_provider={"E2C": neighbours})
    assert (edges == -1.0).all()


class Passing(dict):
    """A dict that passes every question on."""

    def __init__(self, real):
        super().__init__(real)
        self.real = real

    def __getitem__(self, name):
        return self.real[name]

    def items(self):
        return self.real.items()

    def values(self):
        return self.real.values()


def test_a_dict_that_answers_otherwise_than_it_holds_is_asked_at_each_call(run):
    provider = Passing({"E2C": table([[0, 1], [1, 2]])})
    edges = called(run, offset_provider=provider)
    provider.real["E2C"] = table([[0, 1], [1, 7]])
    with refused(ValueError, "argument 'cells': expected points 0 to 8 along Cell", "got 0 to 4"):
        run(np.ones(4), out=edges, offset_provider=provider)
    assert (edges == -1.0).all()


class Equal(int):
    """A number that calls itself equal to everything."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def test_a_scalar_that_calls_itself_equal_is_compared_by_its_value():
    advance, out = dlf.bind(on("embedded", "laplacian")), np.full((4, 5, 3), -1.0)
    inp, sizes = np.ones((6, 7, 3)), {"nj": np.int32(5), "nk": np.int32(3)}
    for _ in range(3):
        advance(inp, out, ni=4, **sizes, origin={"inp": (1, 1, 0)})
    out[...] = -1.0
    with refused(ValueError, "expected points", "along I"):
        advance(inp, out, ni=Equal(9), **sizes, origin={"inp": (1, 1, 0)})
    assert (out == -1.0).all()


@pytest.mark.parametrize("other", ["before", "behind"])
def test_the_width_of_a_local_dimension_is_that_of_the_table_of_its_name(other):
    wide, narrow = table([[0, 1], [1, 2]]), table([[0], [1]])
    provider = {"Other": narrow, "E2C": wide}
    provider = provider if other == "before" else dict(reversed(provider.items()))
    edges = np.full(2, -1.0)
    with refused(ValueError, "argument 'weights': expected points 0 to 2 along E2C", "got 0 to 1"):
        dlf.bind(weighted)(np.ones((2, 1)), np.ones(3), out=edges, offset_provider=provider)
    assert (edges == -1.0).all()


@pytest.mark.parametrize("backend", ["embedded", "gtfn_cpu"])
def test_a_remainder_of_a_negative_number_is_not_taken_for_pythons(backend):
    kinds = {"embedded": None, "gtfn_cpu": gtx.gtfn_cpu}
    run, whole = dlf.bind(from_remainder.with_backend(kinds[backend])), np.full(12, -1.0)
    run(np.ones(4), whole[4:8], np.int32(3))
    np.testing.assert_array_equal(whole[4:8], [-1.0, 1.0, 1.0, 1.0])
    whole[...] = -1.0
    if backend == "gtfn_cpu":
        with refused(ValueError, "from_remainder: expected a program that dlfield understands"):
            run(np.ones(4), whole[4:8], np.int32(-3))
        assert (whole == -1.0).all()
    else:
        with pytest.warns(UserWarning, match="a division of -3 by 2 in a domain"):
            run(np.ones(4), whole[4:8], np.int32(-3))
        assert (whole[:4] == -1.0).all()


@pytest.mark.parametrize("divisor", [0, -2])
def test_a_domain_by_a_quotient_that_cpp_does_not_have_is_refused_by_its_numbers(divisor):
    out = np.full(4, -1.0)
    with refused(ValueError, f"a division of 4 by {divisor} in a domain"):
        dlf.bind(up_to_quotient.with_backend(gtx.gtfn_cpu))(
            np.ones(4), out, np.int32(4), np.int32(divisor)
        )
    assert (out == -1.0).all()


def test_an_unchecked_operator_computes_nothing_outside_of_its_output():
    run, out = dlf.bind(same, unchecked=True), np.full(10, -1.0)
    with refused(ValueError, "argument 'out': expected points 0 to 11 along I", "got 3 to 13"):
        run(np.ones(20), out=out, domain=(11,), origin={"inp": (0,), "out": (-3,)})
    assert (out == -1.0).all()


def test_an_unchecked_program_takes_an_input_that_overlaps_its_output():
    whole = np.arange(9.0)
    run = dlf.bind(copied, unchecked=True)
    run(whole[:8], whole[1:9])
    np.testing.assert_array_equal(whole[1:], np.arange(8.0))


def test_exec_info_may_be_any_mapping_that_takes_items():
    class Times:
        def __init__(self):
            self.told = {}

        def __setitem__(self, name, seconds):
            self.told[name] = seconds

    times = Times()
    dlf.bind(on("embedded", "lift"))(np.ones((2, 2, 2)), np.zeros((2, 2, 2)), exec_info=times)
    assert times.told.keys() == {"call_run_start_time", "call_run_end_time"}


def test_a_footprint_of_another_mapping_than_a_dict_is_not_kept_for_a_dict():
    run = dlf.bind(sums)
    edges = np.full(2, -1.0)
    run(np.ones(3), out=edges, offset_provider=types.MappingProxyType({"E2C": table([[0, 1]] * 2)}))
    with refused(ValueError, "E2C"):
        run(np.ones(3), out=edges, offset_provider={})


def test_a_table_of_one_dimension_that_nothing_uses_does_no_harm():
    line = gtx.as_connectivity((Edge,), codomain=Cell, data=np.zeros(2, dtype=np.int32))
    edges = np.full(2, -1.0)
    provider = {"E2C": table([[0, 1], [1, 2]]), "Line": line}
    dlf.bind(sums)(np.ones(3), out=edges, offset_provider=provider)
    np.testing.assert_array_equal(edges, [2.0, 2.0])


@gtx.program
def with_an_option(inp: Line, origin: Line):
    same(inp, out=origin)


def test_an_argument_with_the_name_of_an_option_is_refused_by_its_name():
    with refused(ValueError, "expected arguments without the names of options, got 'origin'"):
        dlf.bind(with_an_option)


def test_a_range_is_no_number_of_points():
    from gt4py.next.common import UnitRange

    with refused(TypeError, "domain: expected numbers of points, a dict of ranges or a gtx.Domain"):
        dlf.bind(same)(np.ones(4), out=np.zeros(4), domain=UnitRange(0, 2))
