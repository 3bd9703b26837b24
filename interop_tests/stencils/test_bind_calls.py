"""Calls that do not fit the definition of a stencil, and what cannot be bound at all."""

import warnings

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.processes import one_at_a_time
from support.stencils.recorder import Recorder


@pytest.fixture
def mixed(compiled):
    return dlf.bind(compiled("mixed", "numpy"))


GOOD = {"field": (5, 6, 4), "plane": (5, 6), "profile": (4,), "pair": (5, 6, 4, 2)}


def good():
    return {name: np.full(shape, -1.0) for name, shape in GOOD.items()} | {"scale": 1.0}


@pytest.mark.parametrize("name", [*GOOD, "scale"])
def test_a_missing_argument_is_named_and_nothing_is_written(mixed, name):
    given = good()
    missing = given.pop(name)
    with refused(TypeError, f"'{name}'", "got none"):
        mixed(**given)
    assert (missing == -1.0).all() if name != "scale" else (given["field"] == -1.0).all()


WRONG_CALLS = {
    "unexpected": (lambda: ((), good() | {"colour": 1}), "got 'colour'"),
    "twice": (
        lambda: ((np.zeros(GOOD["field"]),), good()),
        "expected one value for 'field', got two",
    ),
    "too many": (lambda: ((None,) * 7, {}), "got 7"),
}


@pytest.mark.parametrize(("make", "text"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_arguments_that_do_not_fit_the_definition_are_refused(mixed, make, text):
    arguments, keywords = make()
    arguments_are = "; the arguments are field, plane, profile, pair, spare, scale"
    with refused(TypeError, "mixed: expected", text, arguments_are):
        mixed(*arguments, **keywords)


@pytest.mark.parametrize("validate_args", [True, False])
def test_validate_args_of_gt4py_changes_nothing(mixed, validate_args):
    mixed(**good(), validate_args=validate_args)
    with refused(ValueError, "argument 'profile': expected a field, got None"):
        mixed(**{**good(), "profile": None}, validate_args=validate_args)


@pytest.mark.parametrize("scale", [2, np.float32(2.0), True, None, "2", np.array(2.0), 1j])
def test_a_scalar_of_another_type_is_refused_and_nothing_is_written(mixed, scale):
    given = good() | {"scale": scale}
    with refused((ValueError, TypeError), "'scale'", "got"):
        mixed(**given)
    assert (given["field"] == -1.0).all()


def test_data_dimensions_of_another_extent_are_refused(mixed):
    given = good() | {"pair": np.zeros((5, 6, 4, 3))}
    with refused(ValueError, "argument 'pair'", "data dimensions of [2], got [3]"):
        mixed(**given)
    assert (given["field"] == -1.0).all()


@pytest.mark.parametrize("what", [len, lambda inp, out: None])
def test_a_callable_without_fields_cannot_be_bound(what):
    with refused(TypeError, "bind: needs a field among the parameters", "dlfield.annotations"):
        dlf.bind(what)


@pytest.mark.parametrize("what", [None, 1, "skewed"])
def test_what_is_no_stencil_cannot_be_bound(what):
    with refused(TypeError, "bind: expected a stencil", "got", "gtscript.stencil"):
        dlf.bind(what)


@pytest.mark.parametrize("what", [Recorder, dict])
def test_a_class_is_no_stencil_but_an_object_of_it_may_be(what):
    with refused(TypeError, "bind: expected a stencil", "the class", "pass an instance"):
        dlf.bind(what)


def test_neither_the_class_of_a_stencil_nor_a_bound_one_can_be_bound(compiled):
    stencil = compiled("split", "numpy")
    with refused(TypeError, "bind: expected a stencil", "pass an instance"):
        dlf.bind(type(stencil))
    with refused(TypeError, "bind: expected a stencil", "bound already"):
        dlf.bind(dlf.bind(stencil))


def test_several_names_of_ones_own_may_stand_for_one_dimension(compiled, xr):
    names = {"lon": "I", "lon_u": "I", "lat": "J", "level": "K"}
    run = dlf.bind(compiled("split", "numpy"), dims=names)
    inp = xr.DataArray(np.arange(24.0).reshape(4, 3, 2), dims=("level", "lat", "lon_u"))
    left, right = (np.zeros((2, 3, 4)) for _ in range(2))
    run(inp, xr.DataArray(left, dims=("lon", "lat", "level")), right)
    assert np.array_equal(left, inp.values.T + 1.0)
    both = xr.DataArray(np.zeros((2, 3, 2)), dims=("lon", "lat", "lon_u"))
    with refused(ValueError, "argument 'inp'", "expected dims", "got"):
        run(both, left, right)


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "the backend decides the device, not an annotation",
)
@pytest.mark.parametrize("backend", ["gt:gpu", "dace:gpu"])
def test_a_stencil_for_a_gpu_takes_no_array_of_the_host(compiled, backend):
    run = dlf.bind(Recorder(compiled("split", "numpy"), backend=backend))
    values = np.zeros((4, 4, 4))
    with refused(BufferError, "expected memory of GPU 0, got cpu"):
        run(*(values.copy() for _ in run.argument_names))


@pytest.mark.parametrize("backend", ["gt:gpu", "dace:gpu"])
def test_copies_for_a_stencil_of_a_gpu_need_cuda(compiled, backend):
    run = dlf.bind(Recorder(compiled("split", "numpy"), backend=backend), on_mismatch="copy")
    values = np.zeros((4, 4, 4))
    with refused(dlf.DeviceUnavailable, "CUDA: expected the driver's library"):
        run(*(values.copy() for _ in run.argument_names))


@pytest.mark.parametrize(
    ("dims", "error"),
    [
        ({"x": "Q"}, ValueError),
        ({"x": "i"}, ValueError),
        ({"I": "J", "J": "I"}, ValueError),
        ({"x": 1}, (TypeError, ValueError)),
        (["x", "y"], TypeError),
        ("IJK", TypeError),
    ],
)
def test_dims_that_map_to_nothing_are_refused_when_the_stencil_is_bound(compiled, dims, error):
    with refused(error, "dims: expected", "got"):
        dlf.bind(compiled("split", "numpy"), dims=dims)


def test_a_wrapper_of_a_stencil_is_bound_as_the_stencil(compiled):
    compiled_stencil = compiled("mixed", "numpy")

    class Wrapper:
        implementation = compiled_stencil

    assert dlf.bind(Wrapper()).stencil is compiled_stencil


def test_binding_a_lazy_stencil_says_once_what_is_compiled(caplog):
    gtscript = library("gt4py.cartesian.gtscript")
    from support.stencils import cartesian

    lazy = gtscript.lazy_stencil(backend="numpy", definition=cartesian.mixed)
    with one_at_a_time("mixed-numpy"), caplog.at_level("INFO", logger="dlfield"):
        dlf.bind(lazy)
        dlf.bind(lazy)
    started, done = (record.getMessage() for record in caplog.records)
    assert started == "compiling mixed for numpy"
    assert done.startswith(started.replace("compiling", "compiled") + " in ")


def test_a_storage_in_place_of_a_scalar_is_not_printed_whole(mixed):
    given = good() | {"scale": dlf.zeros((9, 9))}
    with pytest.raises(ValueError, match="argument 'scale'") as caught:
        mixed(**given)
    assert len(str(caught.value)) < 200


def test_an_array_that_is_read_beside_where_it_is_written_is_refused(compiled):
    run = dlf.bind(compiled("skewed", "gt:cpu_kfirst"))
    values = np.random.default_rng(1).random((8, 8, 4))
    before = values.copy()
    with refused(BufferError, "'inp' and 'out'", "pass a copy"):
        run(values, values, origin=(2, 2, 0), domain=(4, 4, 4))
    np.testing.assert_array_equal(values, before)


def test_gt4py_does_not_check_again_where_times_are_asked_for(compiled):
    times = {}
    arrays = (np.zeros((4, 3, 2), order="F") for _ in range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # GT4Py's check warns of the order
        dlf.bind(compiled("split", "numpy"))(*arrays, exec_info=times)
    assert times["run_end_time"] >= times["run_start_time"]
