"""Random fields through a stencil that shows every mistake with axes, against NumPy."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

library("gt4py.cartesian.gtscript")
hypothesis = library("hypothesis")

from hypothesis import given, settings  # noqa: E402 (after the skip)
from hypothesis import strategies as st  # noqa: E402

NAMES = ("I", "J", "K")
REACH_ABOVE = (1, 0, 0)
SETTINGS = settings(max_examples=60, deadline=None)
every_backend = pytest.mark.parametrize("backend", ["numpy", "gt:cpu_kfirst", "gt:cpu_ifirst"])

#: Halos that leave room for what `skewed` reads: one point above I, two below J.
halos = st.tuples(
    st.tuples(st.integers(0, 2), st.integers(1, 3)),
    st.tuples(st.integers(2, 4), st.integers(0, 2)),
    st.just((0, 0)),
)
extents = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4))
orders = st.permutations(range(3))
layouts = st.permutations(range(3))
alignments = st.sampled_from([1, 8, 32, 64])


def interior(values, halo):
    """Return the points inside a halo."""
    ends = [
        slice(low, extent - high) for (low, high), extent in zip(halo, values.shape, strict=True)
    ]
    return values[tuple(ends)]


def expected(values, halo):
    """Return what `skewed` writes at the points inside the halo of its input."""
    (low_i, _), (low_j, _), _ = halo
    inner = interior(values, halo)
    (n_i, n_j, _) = inner.shape
    east = values[low_i + 1 : low_i + 1 + n_i, low_j : low_j + n_j]
    south = values[low_i : low_i + n_i, low_j - 2 : low_j - 2 + n_j]
    return east + 2.0 * south + 3.0 * inner


def filled(points, halo, data):
    """Give random numbers for a domain of `points` and the halo around it."""
    shape = [n + low + high for n, (low, high) in zip(points, halo, strict=True)]
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    return random.integers(-99, 99, shape).astype(np.float64)


def stored(values, halo, data):
    """Put values into a storage of any order of dimensions, layout and alignment."""
    order = data.draw(orders)
    storage = dlf.empty(
        [values.shape[axis] for axis in order],
        dims=[NAMES[axis] for axis in order],
        halo=[halo[axis] for axis in order],
        layout=data.draw(layouts),
        alignment_size=data.draw(alignments),
    )
    storage.to_numpy()[...] = values.transpose(order)
    return storage


def in_order(storage):
    """Return the values with the axes as I, J, K."""
    return storage.transpose("I", "J", "K").to_numpy()


@every_backend
@given(points=extents, inner=halos, outer=halos, data=st.data())
@SETTINGS
def test_the_domain_is_computed_and_nothing_else_is_written(
    compiled, backend, points, inner, outer, data
):
    values = filled(points, inner, data)
    inp = stored(values, inner, data)
    out = stored(
        np.full([n + a + b for n, (a, b) in zip(points, outer, strict=True)], -1.0), outer, data
    )
    dlf.bind(compiled("skewed", backend))(inp=inp, out=out)
    result = in_order(out).copy()
    np.testing.assert_array_equal(interior(result, outer), expected(values, inner))
    interior(result, outer)[...] = -1.0
    assert (result == -1.0).all()
    np.testing.assert_array_equal(in_order(inp), values)


@every_backend
@given(points=extents, halo=halos, data=st.data())
@SETTINGS
def test_views_with_steps_backwards_are_read_and_written_in_place(
    compiled, backend, points, halo, data
):
    values = filled(points, halo, data)
    flips = tuple(slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in range(3))
    held, out = values[flips].copy(), np.full(values.shape, -1.0)
    first = [low for low, _ in halo]
    run = dlf.bind(compiled("skewed", backend))
    run(held[flips], out[flips], origin=first, domain=points)
    np.testing.assert_array_equal(interior(out[flips], halo), expected(values, halo))
    np.testing.assert_array_equal(held[flips], values)


@every_backend
@given(points=extents, halo=halos, data=st.data())
@SETTINGS
def test_the_functional_form_gives_what_the_call_writes(compiled, backend, points, halo, data):
    values = filled(points, halo, data)
    inp = stored(values, halo, data)
    result = dlf.bind(compiled("skewed", backend)).functional(inp)
    widths = dict(zip(result.dims, result.halo, strict=True))
    assert [widths[name] for name in NAMES] == list(halo)
    computed = in_order(result)
    np.testing.assert_array_equal(interior(computed, halo), expected(values, halo))
    outside = computed.copy()
    interior(outside, halo)[...] = 0.0
    assert not outside.any()


@given(points=extents, halo=halos, data=st.data())
@SETTINGS
def test_a_dataarray_comes_back_with_its_names_and_the_points_of_the_domain(
    compiled, points, halo, data
):
    xr = library("xarray")
    values = filled(points, halo, data)
    order = data.draw(orders)
    names = ("lon", "lat", "level")
    coords = {name: np.arange(n) * 10 for name, n in zip(names, values.shape, strict=True)}
    array = xr.DataArray(
        values.transpose(order), dims=[names[axis] for axis in order], coords=coords
    )
    run = dlf.bind(compiled("skewed", "numpy"), dims=dict(zip(names, NAMES, strict=True)))
    result = run.functional(array, origin=[low for low, _ in halo], domain=points)
    assert result.dims == array.dims
    np.testing.assert_array_equal(result.transpose(*names).values, expected(values, halo))
    for name, (low, _), n in zip(names, halo, points, strict=True):
        assert result[name].values.tolist() == coords[name][low : low + n].tolist()


@pytest.mark.parametrize("axis", range(3))
@every_backend
@given(points=extents, halo=halos, data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_field_one_point_too_short_is_refused_and_nothing_is_written(
    compiled, backend, points, halo, data, axis
):
    values = filled(points, halo, data)
    origin = [low for low, _ in halo]
    domain = np.subtract(values.shape, origin) - REACH_ABOVE  # all that there is room for
    out = np.full(values.shape, -1.0)
    run = dlf.bind(compiled("skewed", backend))
    with pytest.raises(ValueError, match="argument 'inp'"):
        run(np.delete(values, -1, axis), out, origin=origin, domain=domain)
    assert (out == -1.0).all()
