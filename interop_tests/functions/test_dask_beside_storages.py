"""Dask computes with chunks that are storages as it does with chunks of NumPy."""

import operator

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

da = library("dask.array")
xr = library("xarray")

VALUES = np.arange(24.0).reshape(4, 6) % 5


@pytest.fixture
def whole():
    return xr.DataArray(dlf.storage(VALUES, dims="IJ", halo=(1, 1)), dims=("I", "J"))


REDUCED = {
    "std": lambda a: a.std(),
    "std along": lambda a: a.std("I"),
    "var": lambda a: a.var("J"),
    "var without NaN": lambda a: a.var("I", skipna=False),
    "cumsum": lambda a: a.cumsum("I"),
    "cumprod": lambda a: a.cumprod("J"),
    "argmax": lambda a: a.argmax("I"),
    "argmin": lambda a: a.argmin("J"),
    "mean": lambda a: a.mean("I"),
    "median": lambda a: a.chunk(I=-1).median("I"),
    "any": lambda a: (a > 3).any("I"),
    "difference from the mean": lambda a: a - a.mean("I"),
    "groupby": lambda a: a.assign_coords(I=[0, 0, 1, 1]).groupby("I").mean(),
    "rolling": lambda a: a.rolling(J=3).sum(),
    "dot": lambda a: a.dot(a, "J"),
    "weighted": lambda a: a.weighted(xr.DataArray(np.arange(6.0), dims="J")).mean(),
}


@pytest.mark.parametrize("call", REDUCED.values(), ids=REDUCED)
def test_chunks_are_combined_as_chunks_of_numpy(whole, call):
    library("scipy")
    found, wanted = call(whole.chunk(I=3, J=2)), call(whole.as_numpy())
    xr.testing.assert_allclose(found.compute().as_numpy(), wanted)


MIXED = {
    "+": operator.add,
    "-": operator.sub,
    "<": operator.lt,
    "maximum": np.maximum,
    "where": lambda a, b: a.where(b > 1),
    "fillna": lambda a, b: a.fillna(b),
    "xr.where": lambda a, b: xr.where(a > 2, a, b),
    "concat": lambda a, b: xr.concat([a, b], "I"),
}


@pytest.mark.parametrize("call", MIXED.values(), ids=MIXED)
def test_an_array_in_chunks_meets_one_that_is_not(whole, call):
    wanted = call(whole.as_numpy(), whole.as_numpy())
    for pair in ((whole.chunk(I=2), whole), (whole, whole.chunk(I=2))):
        found = call(*pair)
        assert isinstance(found.data, da.Array)
        xr.testing.assert_equal(found.compute().as_numpy(), wanted)


FUNCTIONS = {
    "add": np.add,
    "operator": operator.mul,
    "compare": operator.ge,
    "where": lambda a, b: np.where(a > 1, b, 0),
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "tensordot": lambda a, b: np.tensordot(a, b.T, 1),
}


@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_storage_beside_an_array_of_dask_is_computed_by_dask(whole, call):
    storage, chunked = whole.data, da.from_array(VALUES, chunks=2)
    for pair in ((storage, chunked), (chunked, storage)):
        found = call(*pair)
        assert isinstance(found, da.Array)
        np.testing.assert_array_equal(np.asarray(found.compute()), call(VALUES, VALUES))


def test_an_array_of_dask_is_not_assigned_in_place(whole):
    storage = whole.data
    with refused(TypeError, "expected an operand whose class does not decide the result"):
        storage += da.from_array(VALUES, chunks=2)
    with refused(TypeError, "compute()"):
        storage.clip(None, da.from_array(VALUES, chunks=2))


def test_a_function_of_the_user_sees_chunks_with_names(whole):
    def scaled(block):
        return block * dlf.storage([1.0, 2.0, 3.0, 4.0], dims="I")

    chunked = da.from_array(whole.data, chunks=(4, 3))
    found = chunked.map_blocks(scaled, meta=chunked._meta).compute()
    np.testing.assert_array_equal(found.to_numpy(), VALUES * np.array([[1.0], [2], [3], [4]]))
