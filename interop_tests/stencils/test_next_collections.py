"""Arguments of gt4py.next that are tuples or named collections, and several outputs."""

from dataclasses import dataclass
from typing import NamedTuple

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.next_programs import (
    BACKENDS,
    IJK,
    QUIET,
    I,
    J,
    K,
    blown,
    float64,
    gtx,
    int32,
    sums_to_edges,
)

SLOW_SCAN = "ignore:Calling generic programs:UserWarning"
pytestmark = [pytest.mark.filterwarnings(line) for line in (*QUIET, SLOW_SCAN)]

SHAPE = (5, 4, 3)


class Wind(NamedTuple):
    east: IJK
    north: IJK


@dataclass
class State:
    wind: Wind
    density: IJK


@gtx.field_operator
def turned(wind: tuple[IJK, IJK]) -> tuple[IJK, IJK]:
    return wind[1], wind[0](I + 1)


@gtx.field_operator
def momentum(state: State, factor: float64) -> Wind:
    return Wind(state.wind.east * state.density * factor, state.wind.north * state.density * factor)


class Named(NamedTuple):
    count: IJK
    index: IJK


@gtx.field_operator
def difference(named: Named) -> IJK:
    return named.count - named.index


@gtx.field_operator
def nested(one: IJK, scaled: tuple[IJK, float64]) -> tuple[IJK, tuple[IJK, IJK]]:
    return one, (scaled[0] * scaled[1], one + scaled[0])


@gtx.field_operator
def weighted(mixed: tuple[float64, tuple[float64, IJK]]) -> IJK:
    return mixed[0] * 2.0 + mixed[1][0] + mixed[1][1]


@gtx.program
def momenta(state: State, factor: float64, out: Wind, ni: int32):
    momentum(state, factor, out=out, domain={I: (0, ni), J: (0, 4), K: (0, 3)})


@gtx.scan_operator(axis=K, forward=True, init=(0.0, 1.0))
def sum_and_product(carried: tuple[float64, float64], value: float64) -> tuple[float64, float64]:
    return carried[0] + value, carried[1] * value


@pytest.fixture(params=BACKENDS)
def bound(request):
    return lambda stencil, **options: dlf.bind(
        stencil.with_backend(BACKENDS[request.param]), **options
    )


def fields(count):
    return tuple(np.random.default_rng(seed).random(SHAPE) for seed in range(count))


def untouched(extent=SHAPE[0]):
    return np.full((extent, *SHAPE[1:]), -1.0)


def test_the_parts_of_a_tuple_are_read_and_written_in_place(bound):
    (east, north), outs = fields(2), (untouched(4), untouched(4))
    bound(turned)((east, north), out=outs)
    assert np.array_equal(outs[0], north[:4])
    assert np.array_equal(outs[1], east[1:])


def test_parts_come_from_different_frameworks(bound):
    torch, xr = library("torch"), library("xarray")
    (east, north), outs = fields(2), (untouched(4), torch.full((4, *SHAPE[1:]), -1.0).double())
    labelled = xr.DataArray(north.transpose(2, 1, 0), dims=("K", "J", "I"))
    bound(turned)([torch.from_numpy(east), labelled], out=outs)
    assert np.array_equal(outs[0], north[:4])
    assert np.array_equal(outs[1].numpy(), east[1:])


def test_named_collections_hold_arrays(bound):
    (east, north, density), out = fields(3), Wind(untouched(), untouched())
    bound(momentum)(State(Wind(east, north), density), 2.0, out=out)
    np.testing.assert_array_equal(out.east, east * density * 2.0)
    np.testing.assert_array_equal(out.north, north * density * 2.0)


def test_a_program_takes_collections_and_writes_its_own_domain(bound):
    (east, north, density), out = fields(3), Wind(untouched(), untouched())
    run = bound(momenta)
    for _ in range(3):  # the third call is the short way
        run(State(Wind(east, north), density), 2.0, out, np.int32(4))
    np.testing.assert_array_equal(out.north[:4], (north * density * 2.0)[:4])
    assert (out.north[4] == -1.0).all()


def test_scalars_may_be_parts(bound):
    (one, other), out = fields(2), (untouched(), (untouched(), untouched()))
    bound(nested)(one, (other, 3.0), out=out)
    assert np.array_equal(out[0], one)
    assert np.array_equal(out[1][0], other * 3.0)
    assert np.array_equal(out[1][1], one + other)


def test_scalars_that_are_added_leave_the_footprint_of_a_field_beside_them_complete(bound):
    (one,) = fields(1)
    call = str(dlf.explain(bound(weighted), (1.0, (2.0, one)), out=untouched()))
    assert "mixed[1][1]" in call
    assert "footprint incomplete" not in call


def test_functional_gives_collections_back_as_they_are_declared(bound):
    one, other, density = fields(3)
    _first, (second, _third) = bound(nested).functional(one, (other, 3.0))
    assert np.array_equal(second, other * 3.0)
    made = bound(momentum).functional(State(Wind(one, other), density), 1.0)
    assert isinstance(made, Wind)
    assert np.array_equal(made.north, other * density)


def test_a_part_that_is_too_short_is_refused_under_its_own_name(bound):
    (east, north), outs = fields(2), (untouched(), untouched())
    with refused(ValueError, "argument 'wind[0]': expected points 1 to 6 along I, which 'turned'"):
        bound(turned)((east, north), out=outs)
    assert all((one == -1.0).all() for one in outs)


def test_the_domain_of_a_program_is_checked_against_every_part_of_its_output(bound):
    (east, north, density), out = fields(3), Wind(untouched(), untouched(3))
    with refused(ValueError, "argument 'out.north': expected points 0 to 4 along I", "got 0 to 3"):
        bound(momenta)(State(Wind(east, north), density), 2.0, out, np.int32(4))
    assert (out.east == -1.0).all()


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (lambda east, north: east, "an object of type 'ndarray'"),
        (lambda east, north: (east,), "1 items"),
        (lambda east, north: (east, north, east), "3 items"),
    ],
)
def test_anything_but_a_tuple_of_all_parts_is_refused(given, got):
    with refused(TypeError, "argument 'wind': expected a tuple of 2", f"got {got}"):
        dlf.bind(turned)(given(*fields(2)), out=(untouched(4), untouched(4)))


def test_a_collection_without_an_attribute_is_refused():
    with refused(TypeError, "argument 'state': expected a collection of wind, density"):
        dlf.bind(momentum)(fields(1)[0], 2.0, out=Wind(untouched(), untouched()))


def test_a_tuple_is_taken_by_position_whatever_methods_it_has(bound):
    one, other = fields(2)
    out = untouched()
    bound(difference)((one, other), out=out)
    assert np.array_equal(out, one - other)


def test_a_collection_of_a_class_that_no_module_has_is_refused_with_the_way_out():
    class Local(NamedTuple):
        one: IJK

    @gtx.field_operator
    def same(given: Local) -> IJK:
        return given.one

    with refused(TypeError, "given: expected a class at the top of a module", "Local", "move it"):
        dlf.bind(same)


def test_a_part_that_is_given_twice_is_refused():
    one, other = fields(2)
    with refused(TypeError, "expected one value for 'wind[0]', got two"):
        dlf.bind(turned)((one, other), **{"wind[0]": one}, out=(untouched(4), untouched(4)))


def test_outputs_that_are_one_memory_are_refused():
    out = untouched(4)
    with refused(
        BufferError, "arguments 'out[0]' and 'out[1]': expected outputs at different points"
    ):
        dlf.bind(turned)(fields(2), out=(out, out))


def test_a_scan_operator_is_bound_with_the_types_of_its_fields(bound):
    (values,), (sums, products) = fields(1), (untouched(), untouched())
    run = bound(sum_and_product, fields={"value": IJK, "out": IJK})
    run(values, out=(sums, products))
    np.testing.assert_allclose(sums, np.cumsum(values, axis=2))
    np.testing.assert_allclose(products, np.cumprod(values, axis=2))


def test_the_points_that_a_scan_operator_reads_are_checked(bound):
    (values,), outs = fields(1), (untouched(6), untouched(6))
    run = bound(sum_and_product, fields={"value": IJK, "out": IJK})
    with refused(ValueError, "argument 'value': expected points 0 to 6 along I", "got 0 to 5"):
        run(values, out=outs)
    assert "footprint incomplete" not in str(
        dlf.explain(run, values, out=(untouched(), untouched()))
    )


def test_types_of_a_scan_operator_without_its_output_are_refused_with_the_way_out():
    with refused(ValueError, "fields: needs 'out' of 'sum_and_product'", "gtx.Field[...]"):
        dlf.bind(sum_and_product, fields={"value": IJK})


def test_types_of_fields_are_refused_for_an_operator_that_has_them():
    with refused(TypeError, "fields: expected it for a scan operator only"):
        dlf.bind(turned, fields={"wind": IJK})


def test_an_origin_for_a_whole_collection_is_refused_with_the_names_of_its_parts():
    with refused(ValueError, "origin: expected one for each part of 'wind', wind[0], wind[1]"):
        dlf.bind(turned)(fields(2), out=fields(2), origin={"wind": (0, 0, 0)})


def test_parts_that_are_given_one_by_one_are_refused_with_what_belongs_together():
    text = "at most 1 argument without a name, got 2", "'wind' is a tuple of 2"
    with refused(TypeError, *text):
        dlf.bind(turned)(*fields(2), out=fields(2))


def test_a_dict_for_a_named_collection_is_refused_with_the_way_out():
    text = "argument 'named': expected a collection of count, index", "type 'dict'"
    with refused(TypeError, *text, "pass an object with these attributes, or a tuple"):
        dlf.bind(difference)(dict(zip(Named._fields, fields(2), strict=True)), out=untouched())


def test_a_number_that_its_type_does_not_hold_is_refused_with_a_way_out_that_works():
    with refused(ValueError, "argument 'count'", "int32", str(2**40), "declare a wider type"):
        dlf.bind(sums_to_edges)(np.ones((3, 2)), np.ones((4, 2)), 2**40, 2)


@pytest.mark.parametrize("definition", [turned, blown, sums_to_edges], ids=lambda one: one.__name__)
def test_a_definition_without_its_decorator_is_refused_with_the_way_out(definition):
    undecorated = definition.definition_stage.definition
    text = "bind: expected a definition with its decorator", f"got '{undecorated.__name__}'"
    with refused(TypeError, *text, "@gtx.program or @gtx.field_operator"):
        dlf.bind(undecorated)
