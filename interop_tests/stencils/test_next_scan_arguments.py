"""A scan operator without `fields=` has the dimensions of the arguments of each call."""

import pickle

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.stencils.next_programs import QUIET, I, J, K, gtx, on, running_sum

pytestmark = [
    *(pytest.mark.filterwarnings(line) for line in QUIET),
    pytest.mark.filterwarnings("ignore:Calling generic programs:UserWarning"),
]
VALUES = np.random.default_rng(0).random((3, 4, 5))
SUMS = np.cumsum(VALUES, axis=2)


def labelled(values, *dims):
    return dlf.storage(values, dims=dims)


def test_fields_of_gt4py_have_dimensions():
    out = gtx.zeros({I: 3, J: 4, K: 5})
    dlf.bind(running_sum)(gtx.as_field([I, J, K], VALUES), out=out)
    np.testing.assert_allclose(out.asnumpy(), SUMS)


@pytest.mark.parametrize("backend", ["embedded", "gtfn_cpu"])
def test_arrays_with_names_have_dimensions(backend):
    run = dlf.bind(on(backend, "running_sum"), dims={"lon": I, "lat": J})
    out = np.zeros((5, 3, 4))
    run(labelled(VALUES, "lon", "lat", "K"), out=dlf.as_storage(out, dims=("K", "lon", "lat")))
    np.testing.assert_allclose(out.transpose(1, 2, 0), SUMS)


def test_a_data_array_has_dimensions():
    xr = library("xarray")
    run = dlf.bind(running_sum, dims={"x": I, "z": K})
    out = xr.zeros_like(xr.DataArray(VALUES[:, 0], dims=("x", "z")))
    run(xr.DataArray(VALUES[:, 0], dims=("x", "z")), out=out)
    np.testing.assert_allclose(out, SUMS[:, 0])


def test_one_operator_serves_arguments_of_several_dimensions():
    run = dlf.bind(running_sum, dims={"lon": I, "lat": J})
    for values, dims in ((VALUES, ("lon", "lat", "K")), (VALUES[0, 0], ("K",))):
        out = dlf.zeros(values.shape, dims=dims)
        run(labelled(values, *dims), out=out)
        np.testing.assert_allclose(out.to_numpy(), np.cumsum(values, axis=-1))


def test_an_output_is_made_with_the_dimensions_of_the_inputs():
    made = dlf.bind(running_sum, dims={"lon": I}).functional(labelled(VALUES[:, 0], "lon", "K"))
    np.testing.assert_allclose(made.to_numpy(), SUMS[:, 0])


def test_every_call_is_checked():
    run = dlf.bind(running_sum, dims={"lon": I})
    with refused(ValueError, "argument 'value': expected dtype float64, got float32"):
        run(
            labelled(VALUES[:, 0].astype("f4"), "lon", "K"),
            out=dlf.zeros((3, 5), dims=("lon", "K")),
        )


def test_a_call_is_explained():
    run = dlf.bind(running_sum, dims={"lon": I})
    given = labelled(VALUES[:, 0], "lon", "K")
    assert dlf.explain(run, given, out=dlf.zeros((3, 5), dims=("lon", "K"))).refusal is None
    assert "out" in dlf.explain(run, given, functional=True).plan.fields


def test_arrays_without_names_need_them():
    text = "argument 'value': needs names of its dimensions, as 'running_sum' is a scan operator"
    with refused(ValueError, text, "fields={'value': gtx.Field[...], ...}"):
        dlf.bind(running_sum)(VALUES, out=np.zeros((3, 4, 5)))


def test_a_name_without_a_dimension_is_refused():
    with refused(ValueError, "dims: needs a gtx.Dimension for 'lon'; bind the operator with"):
        dlf.bind(running_sum)(labelled(VALUES[:, 0], "lon", "K"), out=np.zeros((3, 5)))


def test_it_is_pickled_as_other_operators():
    run = pickle.loads(pickle.dumps(dlf.bind(running_sum, dims={"lon": I})))
    out = dlf.zeros((3, 5), dims=("lon", "K"))
    run(labelled(VALUES[:, 0], "lon", "K"), out=out)
    np.testing.assert_allclose(out.to_numpy(), SUMS[:, 0])


def test_a_functional_call_takes_a_halo():
    run = dlf.bind(running_sum, dims={"I": I, "J": J})
    made = run.functional(labelled(VALUES, "I", "J", "K"), halo=0)
    np.testing.assert_allclose(made.to_numpy(), SUMS)
