"""Programs in the style of ICON: the arrays of any library, neighbours, columns, and errors."""

import copy
import functools
from dataclasses import dataclass, field
from typing import Any

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

library("gt4py.next")

from support.stencils import icon_style as icon  # noqa: E402 (after the skip)
from support.stencils.icon_style import connectivities, int32, mesh, on, tables  # noqa: E402
from support.stencils.next_programs import BACKENDS, QUIET  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

LEVELS = 5
CELLS, EDGES = len(mesh().c2e), len(mesh().e2c)

#: Lengths, and names of a user's own.
EXTENTS = {"Cell": CELLS, "Edge": EDGES, "K": LEVELS, "E2C": 2, "C2E": 3, "C2E2CO": 4}
LABELS = {"Cell": "ncells", "Edge": "nedges", "K": "height"}
LABELS |= {"E2C": "side", "C2E": "edge_of_cell", "C2E2CO": "around"}


def spread(low, high, *dims, dtype="f8", seed=0, more_levels=0):
    shape = [EXTENTS[dim] + more_levels * (dim == "K") for dim in dims]
    values = np.random.default_rng([seed, *map(ord, "".join(dims))]).uniform(low, high, shape)
    return dims, values.astype(dtype)


@dataclass(frozen=True)
class Case:
    """A program, what it is called with, and what it computes."""

    name: str
    inputs: dict[str, tuple[tuple[str, ...], np.ndarray]]
    outputs: dict[str, tuple[tuple[str, ...], str]]
    reference: Any
    scalars: dict[str, Any] = field(default_factory=dict)
    vertical_start: int = 0

    def __str__(self):
        return self.name

    def domain(self, **changed):
        """Return the range that a program gets as scalars; the whole mesh unless it is told."""
        horizontal = next(iter(self.outputs.values()))[0][0]
        ends = {"horizontal_start": 0, "horizontal_end": EXTENTS[horizontal]}
        ends |= {"vertical_start": self.vertical_start, "vertical_end": LEVELS, **changed}
        return {name: int32(end) for name, end in ends.items()}

    def expected(self):
        return self.reference(
            **{name: one for name, (_, one) in self.inputs.items()}, **self.scalars
        )


CELL_K = ("Cell", "K")

GRADIENTS = Case(
    "mo_math_gradients_grad_green_gauss_cell_dsl",
    {
        "p_ccpr1": spread(-1, 1, *CELL_K, dtype="f4"),
        "p_ccpr2": spread(-1, 1, *CELL_K, dtype="f4", seed=1),
        "geofac_grg_x": spread(-1, 1, "Cell", "C2E2CO"),
        "geofac_grg_y": spread(-1, 1, "Cell", "C2E2CO", seed=1),
    },
    {f"p_grad_{n}_{wind}": (CELL_K, "f4") for n in (1, 2) for wind in "uv"},
    icon.gradients_reference,
)

PRESSURE = Case(
    "compute_horizontal_gradient_of_exner_pressure_for_nonflat_coordinates",
    {
        "inv_dual_edge_length": (("Edge",), 1e6 / mesh().dual_edge_length),
        "temporal_extrapolation_of_perturbed_exner": spread(-1, 1, *CELL_K, dtype="f4"),
        "ddxn_z_full": spread(-1, 1, "Edge", "K", dtype="f4"),
        "c_lin_e": spread(0, 1, "Edge", "E2C"),
        "ddz_of_temporal_extrapolation_of_perturbed_exner_on_model_levels": spread(
            -1, 1, *CELL_K, dtype="f4", seed=1
        ),
    },
    {"horizontal_pressure_gradient": (("Edge", "K"), "f4")},
    icon.pressure_gradient_reference,
)

NABLA2 = Case(
    "calculate_nabla2_for_theta",
    {
        "theta_v": spread(-1, 1, *CELL_K),
        "inv_dual_edge_length": (("Edge",), 1e6 / mesh().dual_edge_length),
        "geofac_div": spread(-1, 1, "Cell", "C2E"),
    },
    {"z_temp": (CELL_K, "f8")},
    icon.nabla2_reference,
)

SWEEP = Case(
    "solve_tridiagonal_matrix_for_w_forward_sweep",
    {
        "vwind_impl_wgt": spread(0.5, 1.0, "Cell"),
        "theta_v_ic": spread(280, 320, *CELL_K),
        "ddqz_z_half": spread(900, 1100, *CELL_K, dtype="f4"),
        "z_alpha": spread(190, 210, *CELL_K, dtype="f4", more_levels=1),
        "z_beta": spread(0.9e-5, 1.1e-5, *CELL_K, dtype="f4"),
        "z_w_expl": spread(-5, 5, *CELL_K),
        "z_exner_expl": spread(-1e-3, 1e-3, *CELL_K, dtype="f4"),
    },
    {"z_q": (CELL_K, "f4"), "w": (CELL_K, "f8")},
    icon.vertical_wind_reference,
    {"dtime": 10.0, "cpd": 1004.64},
    vertical_start=1,
)

#: Those that are the same on each level.
HORIZONTAL = [GRADIENTS, PRESSURE, NABLA2]


# --- arrays --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """An array of some library, with its address and its values according to that library."""

    array: Any
    address: int
    read: Any


def numpy(dims, values):
    array = values.copy()
    return Held(array, array.ctypes.data, array.copy)


def torch(dims, values):
    tensor = library("torch").tensor(values)
    return Held(tensor, tensor.data_ptr(), lambda: tensor.numpy().copy())


def labelled(dims, values):
    """Return a DataArray with names of its own, and its axes the other way round."""
    array = values.T.copy()
    made = library("xarray").DataArray(array, dims=[LABELS[dim] for dim in reversed(dims)])
    return Held(made, array.ctypes.data, array.T.copy)


def storage(dims, values):
    made = dlf.storage(values.T.copy(), dims=tuple(reversed(dims)))
    return Held(made, made.__array_interface__["data"][0], lambda: made.to_numpy().T.copy())


HOLD = {"numpy": numpy, "torch": torch, "xarray": labelled, "storage": storage}


def untouched(dims, dtype):
    return np.full([EXTENTS[dim] for dim in dims], -1.0, dtype)


def hold_all(case, hold):
    inputs = {name: hold(*given) for name, given in case.inputs.items()}
    outputs = {name: hold(one[0], untouched(*one)) for name, one in case.outputs.items()}
    return inputs, outputs


def arrays(held):
    return {name: one.array for name, one in held.items()}


# --- programs ------------------------------------------------------------------------------------


@functools.cache
def noting(backend, name):
    """Return a program and the addresses of its arguments at its last call."""
    program, seen = on(backend, name), {}

    class Noting(type(program)):
        def __call__(self, *args, **given):
            for one, value in given.items():
                if hasattr(value, "ndarray"):
                    seen[one] = value.ndarray.ctypes.data
            return super().__call__(*args, **given)

    copied = copy.copy(program)
    object.__setattr__(copied, "__class__", Noting)
    return copied, seen


def bound(program, case, provider=None, **options):
    every = [dims for dims, _ in (*case.inputs.values(), *case.outputs.values())]
    names = {LABELS[dim]: dim for dims in every for dim in dims}
    provider = connectivities() if provider is None else provider
    return dlf.bind(program, dims=names, offset_provider=provider, **options)


def call(case, backend="embedded", *, provider=None, domain=None, **changed):
    """Call a program with NumPy's arrays, some of them changed; give its outputs."""
    inputs, outputs = hold_all(case, numpy)
    given = {**arrays(inputs), **arrays(outputs), **case.scalars, **changed}
    run = bound(on(backend, case.name), case, provider)
    try:
        run(**given, **case.domain(**(domain or {})))
    except ValueError:
        assert all((one.read() == -1.0).all() for one in outputs.values())
        raise
    return {name: one.read() for name, one in outputs.items()}


#: Python runs "roundtrip" slowly.
KINDS = [*((backend, kind) for backend in ("embedded", "gtfn_cpu") for kind in HOLD)]
KINDS += [("roundtrip", "xarray")]


@pytest.mark.parametrize(("backend", "kind"), KINDS)
@pytest.mark.parametrize("case", HORIZONTAL, ids=str)
def test_neighbours_are_read_through_tables_from_the_memory_of_every_library(case, backend, kind):
    inputs, outputs = hold_all(case, HOLD[kind])
    program, seen = noting(backend, case.name)
    bound(program, case)(**arrays(inputs), **arrays(outputs), **case.domain())
    for name, expected in case.expected().items():
        np.testing.assert_allclose(outputs[name].read(), expected, atol=2e-6)
    assert seen == {name: one.address for name, one in {**inputs, **outputs}.items()}


@pytest.mark.parametrize(("backend", "kind"), KINDS)
def test_scans_down_and_up_solve_a_column_in_the_memory_of_every_library(backend, kind):
    inputs, outputs = hold_all(SWEEP, HOLD[kind])
    program, seen = noting(backend, SWEEP.name)
    bound(program, SWEEP)(**arrays(inputs), **arrays(outputs), **SWEEP.scalars, **SWEEP.domain())
    assert seen == {name: one.address for name, one in {**inputs, **outputs}.items()}

    name = "solve_tridiagonal_matrix_for_w_back_substitution"
    up, seen = noting(backend, name)
    case = Case(name, {}, SWEEP.outputs, None)
    bound(up, case, {})(**arrays(outputs), **SWEEP.domain())
    assert seen == {name: one.address for name, one in outputs.items()}
    w = outputs["w"].read()
    np.testing.assert_allclose(w[:, 1:], SWEEP.expected()[:, 1:], atol=2e-4)
    assert (w[:, 0] == -1.0).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", HORIZONTAL, ids=str)
def test_nothing_is_written_outside_the_range_that_a_program_is_given(case, backend):
    part = {"horizontal_start": 7, "horizontal_end": 50, "vertical_start": 1, "vertical_end": 4}
    for name, got in call(case, backend, domain=part).items():
        inner = slice(7, 50), slice(1, 4)
        np.testing.assert_allclose(got[inner], case.expected()[name][inner], atol=2e-6)
        got[inner] = -1.0
        assert (got == -1.0).all()


# --- errors --------------------------------------------------------------------------------------


@pytest.fixture(params=("embedded", "gtfn_cpu"))
def backend(request):
    return request.param


def test_a_range_beyond_a_table_is_refused(backend):
    short = connectivities(c2e2co=tables()["C2E2CO"][:-5])
    with refused(ValueError, "offset_provider['C2E2CO']", "0 to 80 along Cell", "got 75 rows"):
        call(GRADIENTS, backend, provider=short)


def test_a_range_within_a_short_table_is_fine():
    short = connectivities(c2e2co=tables()["C2E2CO"][:-5])
    assert call(GRADIENTS, provider=short, domain={"horizontal_end": 75})["p_grad_1_u"][74].any()


@pytest.mark.parametrize("column", [0, 1])
def test_a_neighbour_behind_the_last_cell_is_refused(backend, column):
    table = tables()["E2C"]
    table[3, column] = CELLS
    exner = "argument 'temporal_extrapolation_of_perturbed_exner'"
    with refused(ValueError, exner, "points 0 to 81 along Cell", "got 0 to 80"):
        call(PRESSURE, backend, provider=connectivities(e2c=table))


def test_a_cell_without_the_neighbour_that_a_program_asks_for_by_number_is_refused(backend):
    table = tables()["E2C"]
    table[3, 1] = -1  # an edge at the end of a limited area
    with refused(ValueError, "offset_provider['E2C']", "expected a neighbour 1 of all", "skip"):
        call(PRESSURE, backend, provider=connectivities(e2c=table))


def test_a_range_without_the_edges_at_the_end_of_a_limited_area_is_computed(backend):
    table = tables()["E2C"]
    table[3, 1] = -1
    got = call(
        PRESSURE,
        backend,
        provider=connectivities(e2c=table),
        domain={"horizontal_start": 4},
    )["horizontal_pressure_gradient"]
    expected = PRESSURE.expected()["horizontal_pressure_gradient"]
    np.testing.assert_allclose(got[4:], expected[4:], atol=2e-6)


def test_a_neighbour_that_an_intermediate_result_asks_for_must_exist(backend):
    table = tables()["E2C"]
    table[3, 1] = -1
    far = int(
        np.flatnonzero((mesh().c2e != 3).all(axis=1))[0]
    )  # a cell that does not have the edge
    part = {"horizontal_start": far, "horizontal_end": far + 1}
    with refused(ValueError, "offset_provider['E2C']", "expected a neighbour 1 of all points 0 to"):
        call(NABLA2, backend, provider=connectivities(e2c=table), domain=part)


def test_a_valid_neighbour_in_place_of_a_skipped_one_serves_an_intermediate_result(backend):
    table = tables()["E2C"]
    table[3, 1] = table[3, 0]
    right = (mesh().c2e != 3).all(axis=1)
    got = call(NABLA2, backend, provider=connectivities(e2c=table))["z_temp"]
    np.testing.assert_allclose(got[right], NABLA2.expected()["z_temp"][right], atol=1e-13)


def test_a_level_below_the_last_one_is_refused(backend):
    short = SWEEP.inputs["z_alpha"][1][:, :-1].copy()
    with refused(ValueError, "argument 'z_alpha': expected points 0 to 6 along K", "got 0 to 5"):
        call(SWEEP, backend, z_alpha=short)


def test_a_level_above_the_first_one_is_refused(backend):
    with refused(ValueError, "expected points -1 to", "along K", "got 0 to"):
        call(SWEEP, backend, domain={"vertical_start": 0})


def test_a_range_that_an_output_does_not_have_is_refused(backend):
    name = "horizontal_pressure_gradient"
    short = untouched(("Edge", "K"), "f4")[:100]
    with refused(ValueError, f"argument '{name}': expected points 0 to 120 along Edge", "0 to 100"):
        call(PRESSURE, backend, **{name: short})
    assert (short == -1.0).all()


def test_a_coefficient_for_each_neighbour_is_asked_for(backend):
    short = GRADIENTS.inputs["geofac_grg_y"][1][:, :3].copy()
    with refused(ValueError, "argument 'geofac_grg_y'", "0 to 4 along C2E2CO", "got 0 to 3"):
        call(GRADIENTS, backend, geofac_grg_y=short)


def test_a_field_of_another_precision_is_refused(backend):
    wide = PRESSURE.inputs["ddxn_z_full"][1].astype("f8")
    with refused(ValueError, "argument 'ddxn_z_full': expected dtype float32, got float64"):
        call(PRESSURE, backend, ddxn_z_full=wide)
