"""Calls that come again with DataArrays: prepared for them, and right whatever has changed."""

import os

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.optional import library
from support.stencils.stand_ins import StandIn, field

xr = library("xarray")

SHAPE = (3, 4, 5)
ROLES = {"a": field("READ"), "b": field("WRITE"), "c": field("READ_WRITE")}


short_way = pytest.mark.skipif(
    os.environ.get("DLFIELD_SHORT_WAYS") == "0", reason="that is a short way"
)


class Own(xr.DataArray):
    """A subclass that changes nothing, which is read by its properties."""

    __slots__ = ()


def made(dims="IJK", shape=SHAPE, dtype=float):
    return xr.DataArray(np.zeros(shape, dtype), dims=list(dims))


def frozen():
    array = made()
    array.data.flags.writeable = False
    return array


HOWS = {
    "the same": made,
    "with coordinates": lambda: made().assign_coords(I=[1.0, 2.0, 3.0]),
    "in another order": lambda: made("KJI", SHAPE[::-1]),
    "transposed": lambda: made("KJI", SHAPE[::-1]).transpose("I", "J", "K"),
    "names exchanged": lambda: made("JIK"),
    "a name that the stencil lacks": lambda: made(["I", "J", "x"]),
    "read-only": frozen,
    "single precision": lambda: made(dtype="float32"),
    "shorter": lambda: made(shape=(2, 4, 5)),
    "a part": lambda: made(shape=(9, 4, 5))[2:5],
    "of a subclass": lambda: Own(np.zeros(SHAPE), dims=list("IJK")),
    "around a storage": lambda: xr.DataArray(dlf.zeros(SHAPE), dims=list("IJK")),
    "an array": lambda: np.zeros(SHAPE),
    "a storage": lambda: dlf.zeros(SHAPE, dims="IJK"),
}


def outcome(run, stencil, arguments):
    """Return what `run` was given, or what was raised."""
    stencil.seen = None
    try:
        run(*arguments)
    except (BufferError, ValueError, TypeError) as error:
        return type(error), str(error)
    arrays = stencil.seen.values()
    told = [(one.ctypes.data, one.shape, one.strides, one.flags.writeable) for one in arrays]
    return told, stencil.origin, stencil.domain


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from(sorted(HOWS)), min_size=3, max_size=3), max_size=5))
def test_a_call_that_comes_again_yields_and_refuses_what_a_first_call_does(series):
    stencil, fresh = StandIn(**ROLES), StandIn(**ROLES)
    run = dlf.bind(stencil)
    for hows in series:
        arguments = [HOWS[how]() for how in hows]
        first = outcome(dlf.bind(fresh), fresh, arguments)
        for _ in range(3):
            assert outcome(run, stencil, arguments) == first


def again(arguments):
    """Bind a stencil and call it until the call is prepared."""
    stencil = StandIn(**ROLES)
    run = dlf.bind(stencil)
    for _ in range(3):
        run(*arguments)
    return stencil, run


@short_way
def test_a_stencil_gets_the_array_in_a_data_array_itself_at_every_call():
    arguments = [made() for _ in ROLES]
    stencil, run = again(arguments)
    for given_now in (arguments, [made() for _ in ROLES]):
        run(*given_now)
        seen = zip(stencil.seen.values(), given_now, strict=True)
        assert all(array is one.data for array, one in seen)


@short_way
def test_data_that_was_replaced_is_what_the_stencil_gets():
    arguments = [made() for _ in ROLES]
    stencil, run = again(arguments)
    arguments[0].data = np.ones(SHAPE)
    run(*arguments)
    assert stencil.seen["a"] is arguments[0].data


def test_dims_that_were_replaced_count():
    arguments = [made() for _ in ROLES]
    _, run = again(arguments)
    arguments[0].variable.dims = ("I", "J", "x")
    with pytest.raises(ValueError, match="argument 'a': "):
        run(*arguments)


@pytest.mark.parametrize(
    ("name", "said", "text"),
    [
        ("__gt_dims__", ("I", "J", "x"), "argument 'a': "),
        ("__gt_origin__", (9, 0, 0), "got -6 in "),
    ],
)
def test_what_a_user_says_of_data_arrays_between_two_calls_counts(name, said, text, monkeypatch):
    arguments = [made() for _ in ROLES]
    _, run = again(arguments)
    monkeypatch.setattr(xr.DataArray, name, said, raising=False)
    with pytest.raises(ValueError, match=text):
        run(*arguments)
