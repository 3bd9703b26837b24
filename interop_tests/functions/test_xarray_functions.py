"""xarray's functions of DataArrays around storages give what they give around NumPy."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

xr = library("xarray")
library("dask.array")


def pair():
    values = np.arange(24.0).reshape(4, 6) % 5
    coords = {"I": np.arange(4.0), "J": np.arange(6.0)}
    return [
        xr.DataArray(dlf.storage(one, dims="IJ"), dims=("I", "J"), coords=coords, name="t")
        for one in (values, values**2 % 7)
    ]


CALLS = {
    "apply_ufunc": lambda a, b: xr.apply_ufunc(np.hypot, a, b, dask="allowed"),
    "align": lambda a, b: xr.align(a, b.isel(I=slice(2))),
    "broadcast": lambda a, b: xr.broadcast(a, b.isel(J=0, drop=True)),
    "combine_nested": lambda a, b: xr.combine_nested([a, b], "I", join="override"),
    "concat": lambda a, b: xr.concat([a, b], "I"),
    "concat along a new dim": lambda a, b: xr.concat([a, b], "K"),
    "corr": lambda a, b: xr.corr(a, b),
    "corr along a dim": lambda a, b: xr.corr(a, b, "J"),
    "cov": lambda a, b: xr.cov(a, b),
    "cov along a dim": lambda a, b: xr.cov(a, b, "I"),
    "cov with weights": lambda a, b: xr.cov(a, b, "J", weights=a + 1),
    "cross": lambda a, b: xr.cross(a.isel(J=slice(3)), b.isel(J=slice(3)), dim="J"),
    "dot": lambda a, b: xr.dot(a, b, dim="J"),
    "full_like": lambda a, b: xr.full_like(a, 3.0),
    "map_blocks": lambda a, b: xr.map_blocks(lambda one: one * 2, a, template=a),
    "merge": lambda a, b: xr.merge([a, b.rename("q")]),
    "ones_like": lambda a, b: xr.ones_like(a),
    "polyval": lambda a, b: xr.polyval(
        a, b.isel(J=0, drop=True).rename(I="degree").assign_coords(degree=range(4))
    ),
    "unify_chunks": lambda a, b: xr.unify_chunks(a, b),
    "where": lambda a, b: xr.where(a > 2, a, b),
    "zeros_like": lambda a, b: xr.zeros_like(a),
    "Dataset": lambda a, b: xr.Dataset({"a": a, "b": b}).mean("I"),
    "to_array": lambda a, b: xr.Dataset({"a": a, "b": b}).to_array(),
}


def each(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a.chunk(I=2)], ids=["whole", "in chunks"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_function_gives_what_it_gives_around_numpy(call, make):
    try:
        wanted = each(call(*(make(one.copy(data=one.data.to_numpy())) for one in pair())))
    except (AttributeError, TypeError) as error:
        pytest.skip(f"this xarray has it not: {error}")
    found = each(call(*map(make, pair())))
    for one, other in zip(found, wanted, strict=True):
        xr.testing.assert_allclose(one.compute().as_numpy(), other.compute())


WRITES = {
    "a number": lambda a, b: a.__setitem__({"I": 0}, 5),
    "a part": lambda a, b: a.__setitem__({"I": 1}, b.isel(I=2, drop=True)),
    "a profile": lambda a, b: a.loc.__setitem__({"J": 2.0}, b.isel(J=0, drop=True)),
    "by a list": lambda a, b: a.__setitem__({"J": [0, 2]}, b.isel(J=[3, 4]).drop_vars("J")),
    "by a mask": lambda a, b: a.__setitem__({"I": a.I > 1}, b.isel(I=slice(2)).drop_vars("I")),
    "the whole": lambda a, b: a.__setitem__(..., b.transpose("J", "I")),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_xarray_writes_into_a_storage_as_into_an_array(write):
    (a, b), (plain, other) = pair(), (one.copy(data=one.data.to_numpy()) for one in pair())
    storage = a.data
    write(a, b)
    write(plain, other)
    assert a.data is storage
    xr.testing.assert_equal(a.as_numpy(), plain)


# --- halos and matrices ------------------------------------------------------------------------


def test_points_that_xarray_pads_to_shift_are_no_halo():
    array = xr.DataArray(dlf.ones((6, 4), dims="IJ"), dims=("I", "J"))
    for made in (array.shift(I=1, fill_value=5.0), array.rolling(I=3, min_periods=1).mean()):
        assert dlf.as_storage(made).halo == ((0, 0), (0, 0))


def test_a_halo_that_is_shifted_is_not_known():
    array = xr.DataArray(dlf.ones((6, 4), dims="IJ", halo=(1, 0)), dims=("I", "J"))
    assert array.shift(I=1).data.halo is None
    assert array.shift(J=1).data.halo == ((1, 1), (0, 0))


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0)])
def test_a_halo_is_not_known_behind_a_stack_in_any_order_of_memory(layout):
    field = dlf.ones((3, 4, 5), dims="IJK", halo=(1, 1, 0), layout=layout)
    stacked = xr.DataArray(field, dims=field.dims).stack(z=("I", "J"))
    assert stacked.data.halo is None
    assert dlf.as_storage(stacked.unstack("z")).halo is None
    assert field.flatten().halo is None


def test_functions_of_matrices_are_computed_within_xarray():
    values = np.random.default_rng(0).random((4, 3, 3))
    array = xr.DataArray(dlf.storage(values, dims="IJK"), dims=("I", "J", "K"))
    made = xr.apply_ufunc(
        np.matmul,
        array,
        array.rename(J="K", K="L"),
        input_core_dims=[["J", "K"], ["K", "L"]],
        output_core_dims=[["J", "L"]],
    )
    np.testing.assert_allclose(made, values @ values, rtol=1e-14)
