"""Programs in the idioms of icon4py compute the same bound as by GT4Py alone, bit for bit."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.next")

from support.stencils import idioms_icon as icon  # noqa: E402 (after the skip)
from support.stencils.idioms import (  # noqa: E402
    HELD,
    Call,
    check_same,
    empty,
    field_of,
    origins,
    spread,
)
from support.stencils.idioms_icon import int32, on, provider  # noqa: E402
from support.stencils.next_programs import QUIET  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

#: "fields" are those of gt4py.next, as its authors have them.
of_field = field_of(icon.DIMENSIONS)
HOLD = {"fields": of_field, **HELD}
CELLS, EDGES, LEVELS = 6, 13, 5

CELL_K = ("Cell", "K")


def on_cells(levels=LEVELS, first=(), **options):
    return spread(CELLS, levels, dims=CELL_K, first=first, **options)


def new(levels=LEVELS, first=()):
    return empty(CELLS, levels, dims=CELL_K, first=first)


def whole(**changed):
    """Return the scalars of a range; the whole mesh unless it is told."""
    ends = {"horizontal_start": 0, "horizontal_end": CELLS}
    ends |= {"vertical_start": 0, "vertical_end": LEVELS, **changed}
    return {name: int32(end) for name, end in ends.items()}


def diffusion():
    return {
        "theta": on_cells(),
        "coefficients": spread(CELLS, 2, dims=("Cell", "C2E2C")),
        "flux": spread(EDGES, LEVELS, dims=("Edge", "K")),
        "geofac_div": spread(CELLS, 3, dims=("Cell", "C2E")),
        "area": spread(CELLS, dims=("Cell",), low=1.0, high=2.0),
        "theta_new": new(),
        "divergence": new(),
    }


def precipitation():
    return {
        "content": icon.Precipitation(on_cells(low=0.0), on_cells(low=0.5)),
        "melting": on_cells(),
        "fallen": icon.Precipitation(new(), new()),
    }


def columns():
    found = {name: on_cells(low=low, high=low + 1) for low, name in enumerate("adcb")}
    return found | {"c_new": new(), "d_new": new(), "w": new()}


def half_levels():
    """The fields on full levels lack the level that the surface has."""
    return {
        "full": on_cells(),
        "weight": on_cells(low=0.0),
        "boundary": on_cells(LEVELS + 1),
        "half": new(LEVELS + 1),
    }


CASES = {
    "diffuse_cells": (diffusion, whole()),
    "precipitate": (precipitation, whole()),
    "solve_columns": (
        columns,
        {"horizontal_end": int32(CELLS), "vertical_end": int32(LEVELS)},
    ),
    "to_half_levels": (half_levels, whole(vertical_end=LEVELS + 1) | {"nlev": int32(LEVELS)}),
}
#: A compiler takes long: of one program.
ON = [(name, backend) for name in CASES for backend in ("embedded", "roundtrip")]
ON += [("diffuse_cells", "gtfn_cpu")]


def compare(name, backend, hold, *, arguments=None, scalars=None):
    make, ends = CASES.get(name, (None, None))
    arguments = make() if arguments is None else arguments
    program = on(backend, name)
    located = {} if hold is of_field else origins(arguments)
    scalars = ends if scalars is None else scalars

    def own(**given):
        program(**given, **scalars, offset_provider=provider())

    def bound(**given):
        dlf.bind(program, offset_provider=provider())(**given, **scalars, **located)

    check_same(own, bound, arguments, of_field, hold)


@pytest.mark.parametrize("kind", HOLD)
@pytest.mark.parametrize(("name", "backend"), ON)
def test_a_program_computes_what_it_computes_without_being_bound(name, backend, kind):
    compare(name, backend, HOLD[kind])


@pytest.mark.parametrize("kind", HOLD)
@pytest.mark.parametrize("backend", ["embedded", "gtfn_cpu"])
def test_a_part_of_the_mesh_is_computed_alone(backend, kind):
    part = whole(horizontal_start=1, horizontal_end=4, vertical_start=2, vertical_end=3)
    compare("diffuse_cells", backend, HOLD[kind], scalars=part)


@pytest.mark.parametrize("backend", ["embedded", "roundtrip"])
@pytest.mark.parametrize("first", [-1, 2, 39])
@pytest.mark.parametrize("kind", HOLD)
def test_fields_that_begin_elsewhere_keep_their_levels(kind, first, backend):
    arguments = {
        "w": on_cells(LEVELS + 1, first=(0, first - 1)),
        "depth": spread(LEVELS, dims=("K",), first=(first,)),
        "w_new": new(first=(0, first)),
    }
    scalars = whole(vertical_start=first, vertical_end=first + LEVELS) | {"limit": -0.5}
    compare("damp", backend, HOLD[kind], arguments=arguments, scalars=scalars)


@pytest.mark.parametrize("kind", HOLD)
def test_arguments_that_a_program_has_bound_itself_are_kept(kind):
    ends = whole()
    program = on("gtfn_cpu", "diffuse_cells").with_bound_args(
        horizontal_start=ends.pop("horizontal_start"), vertical_start=ends.pop("vertical_start")
    )

    def own(**given):
        program(**given, **ends, offset_provider=provider())

    def bound(**given):
        dlf.bind(program, offset_provider=provider())(**given, **ends)

    check_same(own, bound, diffusion(), of_field, HOLD[kind])


@pytest.mark.parametrize("kind", HOLD)
def test_a_program_that_is_compiled_ahead_for_static_arguments_is_called_as_it_is(kind):
    ends = whole()
    program = on("gtfn_cpu", "diffuse_cells").with_compilation_options(enable_jit=False)
    static = {name: [end] for name, end in ends.items() if name.startswith("vertical")}
    program.compile(**static, offset_provider=provider())

    def own(**given):
        program(**given, **ends, offset_provider=provider())

    def bound(**given):
        dlf.bind(program, offset_provider=provider())(**given, **ends)

    check_same(own, bound, diffusion(), of_field, HOLD[kind])


@pytest.mark.parametrize("kind", HOLD)
def test_a_range_that_leaves_the_mesh_is_refused_whoever_holds_the_fields(kind):
    call = Call(diffusion(), HOLD[kind])
    before = call.results()
    run = dlf.bind(on("embedded", "diffuse_cells"), offset_provider=provider())
    with refused(ValueError, "expected", "along Cell"):
        run(**call.arguments, **whole(horizontal_end=CELLS + 1))
    for name, one in call.results().items():
        np.testing.assert_array_equal(one, before[name])


def test_numbers_of_numpy_are_the_ends_of_a_range():
    ends = {name: np.int32(end) for name, end in whole().items()}
    compare("diffuse_cells", "embedded", HOLD["numpy"], scalars=ends)
