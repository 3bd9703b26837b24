"""Arithmetic of named storages gives what xarray gives, and DataArrays beside them decide."""

import operator
import warnings

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import operands as rules
from support.errors import refused
from support.optional import library

xr = library("xarray")


@st.composite
def calls(draw):
    ufunc = draw(st.sampled_from([one for one in rules.UFUNCS if one.nin < 3]))
    names = draw(st.permutations(rules.NAMES))[:3]
    extents = {name: draw(st.integers(0, 4)) for name in names}
    return ufunc, [draw(rules.storages(extents)) for _ in range(ufunc.nin)]


@settings(max_examples=400, deadline=None)
@given(calls())
def test_universal_functions_give_what_xarray_gives(call):
    ufunc, operands = call
    dims = rules.expected_dims(operands)
    if dims is None:
        return
    arrays = [xr.DataArray(one.to_numpy(), dims=one.dims or ()) for one in operands]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = ufunc(*arrays)
        except (TypeError, ValueError, NotImplementedError):
            return
        if isinstance(expected, tuple) or expected.dtype == object:
            return
        made = ufunc(*operands)
    assert (made.dims or ()) == dims
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made.to_numpy(), expected.transpose(*dims).to_numpy())


#: Functions of NumPy and methods by name, and what xarray calls them.
ALIKE = {
    "isel": (lambda a, b: a.isel(I=0), lambda a, b: a.isel(I=0)),
    "isel a part": (lambda a, b: a.isel({"J": slice(1)}), lambda a, b: a.isel({"J": slice(1)})),
    "broadcast_like": (lambda a, b: b.broadcast_like(a), lambda a, b: b.broadcast_like(a)),
    "where": (lambda a, b: np.where(b > 2, a, 0), lambda a, b: xr.where(b > 2, a, 0)),
    "isin": (lambda a, b: np.isin(a, [1, 2]), lambda a, b: a.isin([1, 2])),
    "clip": (lambda a, b: np.clip(a, 1, 2), lambda a, b: a.clip(1, 2)),
    "roll": (lambda a, b: np.roll(a, 2, "J"), lambda a, b: a.roll(J=2)),
    "diff": (lambda a, b: np.diff(a, axis="J"), lambda a, b: a.diff("J")),
    "take": (lambda a, b: np.take(a, [0, 0], "I"), lambda a, b: a.isel(I=[0, 0])),
    "pad": (lambda a, b: np.pad(a, {"I": 1}), lambda a, b: a.pad(I=1, constant_values=0)),
    "sort": (
        lambda a, b: np.sort(a, "I"),
        lambda a, b: a.copy(data=np.sort(a.data, a.dims.index("I"))),
    ),
    "concatenate": (lambda a, b: np.concatenate([a, a], "J"), lambda a, b: xr.concat([a, a], "J")),
    "outer": (
        lambda a, b: np.add.outer(level(a), b.isel(I=0, J=0)),
        lambda a, b: level(a) + b.isel(I=0, J=0),
    ),
}


def level(a):
    return a.isel(K=0) if "K" in a.dims else a


@pytest.mark.parametrize(("ours", "theirs"), ALIKE.values(), ids=ALIKE)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_functions_by_name_give_what_xarray_gives(ours, theirs, data):
    extents = {name: data.draw(st.integers(1, 4)) for name in data.draw(st.permutations("IJK"))}
    named = rules.storages(extents).filter(lambda one: {*(one.dims or ())} >= {"I", "J"})
    a, b = (np.real(data.draw(named)).astype("float64") for _ in range(2))
    b = b if "K" in b.dims else b.broadcast_like(dlf.ones(extents["K"], dims="K")).copy()
    if rules.expected_dims([b, a]) is None:
        return
    found = ours(a, b)
    expected = theirs(*(xr.DataArray(one.to_numpy(), dims=one.dims) for one in (a, b)))
    assert found.dims == expected.dims
    np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())


@pytest.fixture
def square():
    return dlf.storage(np.arange(9.0).reshape(3, 3), dims="IJ")


def test_a_storage_on_either_side_of_a_dataarray_meets_it_by_name(square):
    array = xr.DataArray(np.arange(9.0).reshape(3, 3), dims=("J", "I"), coords={"I": [1, 2, 3]})
    expected = xr.DataArray(square.to_numpy(), dims=("I", "J")) - array
    for compute in (lambda: square - array, lambda: -(array - square)):
        found = compute()
        assert isinstance(found, xr.DataArray)
        xr.testing.assert_equal(found.transpose("I", "J"), expected)
    profile = dlf.ones(4, dims="K")
    assert (array + profile).dims == ("J", "I", "K")
    assert set((profile + array).dims) == {"I", "J", "K"}


def test_a_storage_without_dims_goes_by_position_beside_a_dataarray(square):
    plain = dlf.as_storage(square.to_numpy())
    array = xr.DataArray(np.ones((3, 3)), dims=("J", "I"))
    assert (array + plain).dims == (plain + array).dims == ("J", "I")


def test_a_dataarray_is_not_assigned_in_place(square):
    with refused(TypeError, "expected an operand whose class does not decide the result"):
        square += xr.DataArray(np.ones(3), dims="I")
    square[...] = square + xr.DataArray(np.ones(3), dims="I")
    assert square[0, 0] == 1


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "lt", "eq", "pow"])
def test_dataarrays_around_storages_compute(square, name):
    array = xr.DataArray(square, dims=square.dims, coords={"I": [1.0, 2.0, 3.0]})
    profile = xr.DataArray(dlf.storage([1.0, 2.0], dims="K"), dims="K")
    compute = getattr(operator, name)
    for other in (2.0, array, profile):
        found = compute(array, other)
        plain = other.as_numpy() if isinstance(other, xr.DataArray) else other
        assert isinstance(found.data, dlf.Storage)
        xr.testing.assert_equal(found.as_numpy(), compute(array.as_numpy(), plain))


COMPUTED = {
    "isnull": lambda array: array.isnull(),
    "fillna": lambda array: array.fillna(0),
    "where": lambda array: array.where(array > 1),
    "clip": lambda array: array.clip(0, 2),
    "shift": lambda array: array.shift(J=1),
    "diff": lambda array: array.diff("J"),
    "groupby": lambda array: array.groupby("I").mean(),
    "coarsen": lambda array: array.coarsen(J=2).mean(),
    "interp": lambda array: array.interp(J=1.5),
    "median": lambda array: array.median("J"),
    "quantile": lambda array: array.quantile([0.25, 0.5], "J"),
    "std": lambda array: array.std(),
    "cumsum": lambda array: array.cumsum("J"),
    "argmax": lambda array: array.argmax("J"),
    "round": lambda array: array.round(1),
    "rolling": lambda array: array.rolling(J=2).mean(),
    "rolling median": lambda array: array.rolling(I=3, min_periods=1, center=True).median(),
    "sortby": lambda array: array.sortby("J", ascending=False),
    "isin": lambda array: array.isin([1, 2]),
    "differentiate": lambda array: array.differentiate("J"),
    "pad": lambda array: array.pad(I=1),
}


@pytest.fixture
def array():
    values = dlf.storage(np.arange(24.0).reshape(4, 6) % 5, dims="IJ")
    coords = {"I": [0, 0, 1, 1], "J": np.arange(6.0)}
    return xr.DataArray(values, dims=("I", "J"), coords=coords)


@pytest.mark.parametrize("call", COMPUTED.values(), ids=COMPUTED)
def test_methods_of_dataarrays_around_storages_give_what_they_give_around_arrays(array, call):
    library("scipy")
    xr.testing.assert_allclose(call(array).as_numpy(), call(array.as_numpy()))
