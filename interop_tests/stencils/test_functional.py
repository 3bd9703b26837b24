"""`run.functional` of GT4Py's stencils, with arrays of every framework in and out."""

import gc
import weakref

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations
from dlfield.annotations import IJ, Access, Field

from support.errors import refused
from support.optional import library
from support.processes import end_of, expect_success
from support.stencils.cartesian import SKEWED_HALO, mixed_reference, skewed_reference

SHAPE = (5, 6, 4)
VALUES = np.random.default_rng(0).random(SHAPE)
WRITTEN = Field[np.float64, Access["out"]]
ON_PLANE = Field[IJ, np.float64, Access["in"]]
NAMES = {"lon": "I", "lat": "J", "level": "K"}

#: Where `skewed` computes on a field of SHAPE, and what it gives there.
PLACE = {"origin": (0, 2, 0), "domain": (4, 4, 4)}
INSIDE = skewed_reference(VALUES)[:-1, 2:]


def extruded(plane: ON_PLANE, out: WRITTEN, *, origin, domain):
    out[...] = plane[..., np.newaxis]


def torch_of(array):
    return library("torch").from_numpy(array)


def jax_of(array):
    return library("jax.numpy").asarray(array)


def xarray_of(array):
    return library("xarray").DataArray(array, dims=("I", "J", "K"))


def storage_of(array):
    return dlf.storage(array, dims="IJK")


def class_of(framework):
    return {
        "jax": lambda: library("jax").Array,
        "numpy": lambda: np.ndarray,
        "storage": lambda: dlf.Storage,
        "torch": lambda: library("torch").Tensor,
        "xarray": lambda: library("xarray").DataArray,
    }[framework]()


MAKERS = {
    "jax": jax_of,
    "numpy": np.copy,
    "storage": storage_of,
    "torch": torch_of,
    "xarray": xarray_of,
}
FRAMEWORKS = pytest.mark.parametrize("framework", MAKERS)


@pytest.fixture
def skewed(compiled, backend):
    return dlf.bind(compiled("skewed", backend))


@pytest.fixture
def scaled(compiled, backend):
    return dlf.bind(compiled("scaled", backend))


def earth(values=VALUES):
    """Return a field as a model has it: K, J, I with names of its own and coordinates."""
    return library("xarray").DataArray(
        np.ascontiguousarray(values.T),
        dims=("level", "lat", "lon"),
        coords={
            "level": [10, 20, 30, 40],
            "lat": np.arange(6.0) * 2.0,
            "lon": np.arange(5.0),
            "land": (("lat", "lon"), np.arange(30.0).reshape(6, 5)),
            "time": 7,
        },
        name="temperature",
        attrs={"units": "K"},
    )


# --- frameworks --------------------------------------------------------------------------------


@FRAMEWORKS
def test_the_result_is_of_the_framework_of_the_first_field(framework, skewed):
    result = skewed.functional(MAKERS[framework](VALUES), **PLACE)
    assert isinstance(result, class_of(framework))
    np.testing.assert_allclose(np.asarray(result), INSIDE)


@FRAMEWORKS
def test_the_result_is_of_the_framework_that_is_asked_for_by_name(framework, skewed):
    library("jax" if framework == "jax" else "numpy")
    result = skewed.functional(VALUES, like=framework, **PLACE)
    assert isinstance(result, class_of(framework))
    np.testing.assert_allclose(np.asarray(result), INSIDE)


@FRAMEWORKS
def test_the_result_is_of_the_framework_of_an_array_that_is_asked_for(framework, skewed):
    result = skewed.functional(VALUES, like=MAKERS[framework](np.zeros((1, 1, 1))), **PLACE)
    assert isinstance(result, class_of(framework))


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_the_result_is_memory_of_its_own_on_every_framework(framework, skewed):
    given = MAKERS[framework](VALUES.copy())
    first, second = (skewed.functional(given, **PLACE) for _ in range(2))
    assert not np.shares_memory(np.asarray(first), np.asarray(second))
    assert not np.shares_memory(np.asarray(first), np.asarray(given))


@FRAMEWORKS
def test_nothing_is_alive_after_the_result_is_dropped(framework, skewed):
    before = live_allocations()
    result = skewed.functional(MAKERS[framework](VALUES), like="numpy", **PLACE)
    assert live_allocations() == before + 1
    del result
    gc.collect()
    assert live_allocations() == before


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_the_memory_of_a_result_is_freed_with_it(framework, skewed):
    given = MAKERS[framework](VALUES)
    before = live_allocations()
    result = skewed.functional(given, **PLACE)
    assert live_allocations() == before + 1
    del result
    gc.collect()
    assert live_allocations() == before


def test_a_result_of_torch_may_be_written(skewed):
    result = skewed.functional(torch_of(VALUES.copy()), **PLACE)
    result[...] = 1.0
    assert float(result.sum()) == result.numel()


def test_a_result_of_jax_is_computed_with_as_any_other(skewed):
    result = skewed.functional(jax_of(VALUES), **PLACE)
    np.testing.assert_allclose(np.asarray(result * 2.0), INSIDE * 2.0)


@pytest.mark.parametrize("backend", ["gtmc", "gt:cpu_ifirst", "F"])
def test_a_result_of_jax_has_no_gaps_also_where_rows_would_be_padded(backend):
    def copy_of(inp, out):
        out[...] = inp

    fields = {
        "inp": Field[np.float64, Access["in"]],
        "out": Field[np.float64, Access["out"]],
    }
    run = dlf.bind(copy_of, fields=fields, backend=backend)
    result = run.functional(VALUES, like=jax_of(np.zeros(1)))
    np.testing.assert_array_equal(np.asarray(result), VALUES)


def test_gt4py_refuses_cupy_for_a_result_in_host_memory(skewed):
    with refused(dlf.GTNoSuchBufferError, "to_cupy", "one in host memory; make it on the GPU"):
        skewed.functional(VALUES, like="cupy", **PLACE)


def test_gt4py_gives_numpy_for_an_array_of_an_unknown_library(skewed):
    array = library("pyarrow").Tensor.from_numpy(VALUES)
    assert type(skewed.functional(array, **PLACE)) is np.ndarray


# --- halos and dimensions ----------------------------------------------------------------------


def test_the_result_has_the_halo_of_the_input_and_zeros_in_it(skewed):
    field = dlf.as_storage(VALUES, dims="IJK", halo=SKEWED_HALO)
    result = skewed.functional(field)
    assert (result.halo, result.dims) == (((0, 1), (2, 0), (0, 0)), ("I", "J", "K"))
    np.testing.assert_allclose(result.domain_view.to_numpy(), INSIDE)
    values = result.to_numpy()
    assert not values[-1:].any()
    assert not values[:, :2].any()


def test_the_result_has_the_layout_that_suits_the_backend(skewed, backend):
    strides = skewed.functional(VALUES, **PLACE).strides
    assert (strides[0] == min(strides)) == (backend == "gt:cpu_ifirst")


def test_fields_of_fewer_dimensions_and_data_dimensions_take_part(compiled, backend):
    run = dlf.bind(compiled("mixed", backend))
    plane, profile, pair = np.ones((5, 6)), np.arange(4.0), np.ones((5, 6, 4, 2))
    pair[..., 1] = 3.0
    result = run.functional(VALUES, plane, profile, pair, scale=2.0)
    np.testing.assert_allclose(result, mixed_reference(VALUES, plane, profile, pair, 2.0))


# --- names and coordinates ---------------------------------------------------------------------


def test_a_data_array_gives_one_with_its_own_names_in_its_own_order(compiled):
    run = dlf.bind(compiled("skewed", "numpy"), dims=NAMES)
    result = run.functional(earth(), **PLACE)
    assert result.dims == ("level", "lat", "lon")
    np.testing.assert_allclose(result.values, INSIDE.T)


def test_the_coordinates_are_those_of_the_points_that_were_computed(compiled):
    run = dlf.bind(compiled("skewed", "numpy"), dims=NAMES)
    field = earth()
    result = run.functional(field, **PLACE)
    window = field.isel(lon=slice(0, 4), lat=slice(2, 6))
    assert set(result.coords) == {"level", "lat", "lon", "land", "time"}
    for name in result.coords:
        np.testing.assert_array_equal(result.coords[name], window.coords[name])


def test_coordinates_that_do_not_reach_around_an_output_are_left_out(compiled):
    run = dlf.bind(compiled("split", "numpy"), dims=NAMES)
    right = dlf.zeros((7, 8, 4), dims="IJK", halo=(1, 1, 0))
    left, _ = run.functional(earth(), right=right)
    assert left.sizes == {"level": 4, "lat": 8, "lon": 7}
    assert set(left.coords) == {"level", "time"}


def test_a_data_array_that_is_read_and_written_keeps_name_attributes_and_coordinates(compiled):
    run = dlf.bind(compiled("scaled", "numpy"), dims=NAMES)
    field = earth()
    result = run.functional(field, scale=3.0)
    np.testing.assert_allclose(result.values, 3.0 * field.values)
    assert (result.name, result.attrs) == ("temperature", {"units": "K"})
    assert result.coords.equals(field.coords)


def test_an_array_without_names_beside_a_data_array_gets_its_names(compiled):
    xr = library("xarray")
    steps = xr.DataArray(np.ones(SHAPE, "i4"), dims=("lon", "lat", "level"))
    steps = steps.assign_coords(lon=np.arange(5.0))
    run = dlf.bind(compiled("choose", "numpy"), dims=NAMES)
    out = np.zeros(SHAPE, "f4")
    result = run.functional(steps, np.ones(SHAPE, bool), out, more=2)
    assert result.dims == ("lon", "lat", "level")
    assert (result == 3.0).all()
    np.testing.assert_array_equal(result.lon, np.arange(5.0))


def test_a_dimension_that_the_first_field_lacks_has_the_name_that_bind_maps(compiled):
    xr = library("xarray")
    run = dlf.bind(extruded, dims={"lon": "I", "lat": "J", "level": "K"})
    plane = xr.DataArray(np.ones((2, 3)), dims=("lat", "lon"))
    assert run.functional(plane, domain=(3, 2, 4)).dims == ("lon", "lat", "level")


def test_a_data_array_of_what_has_no_names_has_those_of_the_stencil(compiled):
    result = dlf.bind(compiled("scaled", "numpy")).functional(VALUES, like="xarray")
    assert result.dims == ("I", "J", "K")


def test_other_results_than_data_arrays_have_the_order_of_the_first_field(compiled):
    run = dlf.bind(compiled("skewed", "numpy"), dims=NAMES)
    result = run.functional(earth(), like="numpy", **PLACE)
    np.testing.assert_allclose(result, INSIDE.T)
    assert run.functional(earth(), like="storage", **PLACE).dims == ("K", "J", "I")


# --- what was given stays ----------------------------------------------------------------------


@pytest.mark.parametrize("framework", ["numpy", "storage", "torch", "xarray"])
def test_a_field_that_is_read_and_written_is_copied_and_stays(framework, scaled):
    given = MAKERS[framework](VALUES.copy())
    result = scaled.functional(given, scale=3.0)
    assert isinstance(result, class_of(framework))
    np.testing.assert_allclose(np.asarray(result), 3.0 * VALUES)
    np.testing.assert_array_equal(np.asarray(given), VALUES)


def test_a_jax_array_that_is_read_and_written_is_copied_and_stays(scaled):
    given = jax_of(VALUES)
    result = scaled.functional(given, scale=3.0)
    np.testing.assert_allclose(np.asarray(result), 3.0 * VALUES)
    np.testing.assert_array_equal(np.asarray(given), VALUES)


def test_several_results_come_in_the_order_of_the_definition(compiled, backend):
    left, right = dlf.bind(compiled("split", backend)).functional(VALUES)
    np.testing.assert_allclose(left, VALUES + 1.0)
    np.testing.assert_allclose(right, VALUES - 1.0)


def test_an_output_that_is_given_is_copied_and_counts_for_the_domain(compiled, backend):
    given = dlf.full(SHAPE, -1.0, dims="IJK", halo=(1, 1, 0))
    run = dlf.bind(compiled("split", backend))
    left, right = run.functional(VALUES, left=given, like="storage")
    assert (given.to_numpy() == -1.0).all()
    assert left.halo == right.halo == given.halo
    np.testing.assert_allclose(left.domain_view.to_numpy(), VALUES[1:-1, 1:-1] + 1.0)
    assert (left.to_numpy()[0] == -1.0).all()


def test_the_default_of_a_scalar_counts(scaled):
    np.testing.assert_allclose(scaled.functional(VALUES), 2.0 * VALUES)


def test_the_arguments_are_let_go(skewed):
    given = torch_of(VALUES.copy())
    watched = weakref.ref(given)
    result = skewed.functional(given, **PLACE)
    del given
    gc.collect()
    assert watched() is None
    np.testing.assert_allclose(np.asarray(result), INSIDE)


def test_a_domain_that_does_not_fit_is_refused(skewed):
    with refused(ValueError, "argument 'inp'", "expected points -2 to"):
        skewed.functional(VALUES)


# --- gt4py.next --------------------------------------------------------------------------------


@pytest.fixture
def bound_next():
    """Bind a program or operator that Python runs, by its name in `next_programs`."""
    library("gt4py.next")
    from support.stencils import next_programs

    def bound_next(name, **options):
        return dlf.bind(next_programs.on("embedded", name), **options)

    return bound_next


QUIET = pytest.mark.filterwarnings("ignore:Field View Program:UserWarning")


def laplacian_of(values):
    from support.stencils.next_programs import laplacian_reference

    return laplacian_reference(values)


@QUIET
def test_a_field_operator_gives_back_its_only_output(bound_next):
    result = bound_next("laplacian_of").functional(storage_of(VALUES), like="numpy", **CENTRE)
    np.testing.assert_allclose(result, laplacian_of(VALUES))


CENTRE = {"origin": (1, 1, 0), "domain": (3, 4, 4)}


@QUIET
def test_a_field_operator_computes_inside_the_halo_of_its_input(bound_next):
    result = bound_next("laplacian_of").functional(
        dlf.as_storage(VALUES, dims="IJK", halo=(1, 1, 0))
    )
    assert result.halo == ((1, 1), (1, 1), (0, 0))
    np.testing.assert_allclose(result.domain_view.to_numpy(), laplacian_of(VALUES))


@QUIET
def test_a_program_gets_outputs_with_the_points_of_its_inputs_and_no_halo(bound_next):
    field = dlf.as_storage(VALUES, dims="IJK", halo=(1, 1, 0))
    sizes = {"ni": np.int32(3), "nj": np.int32(4), "nk": np.int32(4)}
    result = bound_next("laplacian").functional(field, **sizes)
    assert (result.shape, result.halo) == ((3, 4, 4), ((0, 0), (0, 0), (0, 0)))
    np.testing.assert_allclose(result.to_numpy(), laplacian_of(VALUES))


@QUIET
def test_a_program_that_writes_a_part_leaves_zeros_in_the_rest(bound_next):
    result = bound_next("lift").functional(jax_of(VALUES))
    np.testing.assert_array_equal(np.asarray(result)[..., :-1], VALUES[..., 1:])
    assert not np.asarray(result)[..., -1].any()


def test_a_number_before_the_fields_does_not_tell_the_framework_of_results():
    def times(factor: np.float32, inp: Field[np.float64], out: WRITTEN):
        out[...] = factor * inp

    torch, run = library("torch"), dlf.bind(times)
    for options in ({}, {"halo": 0}):
        _, result = run.functional(np.float32(2), torch_of(VALUES), **options)
        assert isinstance(result, torch.Tensor)


def test_a_result_of_jax_is_on_the_device_of_the_first_field():
    library("jax")
    code = """
import dlfield as dlf, jax
from dlfield.annotations import Access, Field
jax.config.update("jax_enable_x64", True)

def doubled(inp, out):
    out[...] = 2 * inp

inp, out = Field["I", float, Access["in"]], Field["I", float, Access["out"]]
run = dlf.bind(doubled, fields={"inp": inp, "out": out})
third = jax.device_put(jax.numpy.ones(3), jax.devices()[3])
assert run.functional(third).devices() == third.devices()
assert run.functional(dlf.ones(3), like=third).devices() == third.devices()
for halo in (0, {}):
    assert run.functional(third, halo=halo).devices() == third.devices()
    assert run.functional(dlf.ones(3), like=third, halo=halo).devices() == third.devices()
"""
    expect_success(end_of(code, XLA_FLAGS="--xla_force_host_platform_device_count=4"), code)


def test_a_data_array_keeps_its_labels_beside_a_halo(compiled):
    xr = library("xarray")
    run = dlf.bind(compiled("skewed", "numpy"))
    array = xr.DataArray(VALUES, dims=("I", "J", "K"), coords={"I": np.arange(5) * 10.0})
    for scale in (1.0, 2.0):
        given = array.assign_coords(I=array.I * scale)
        made = run.functional(given, halo=SKEWED_HALO)
        xr.testing.assert_equal(made.I, given.I)
    assert "I" not in run.functional(VALUES, halo=SKEWED_HALO, like="xarray").coords


def test_an_output_of_none_is_made_beside_a_halo(compiled):
    run = dlf.bind(compiled("skewed", "numpy"))
    made = run.functional(VALUES, out=None, halo=SKEWED_HALO)
    np.testing.assert_array_equal(made[:-1, 2:], INSIDE)
