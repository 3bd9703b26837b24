"""Origins, domains and halos that a bound stencil refuses, before anything was written."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused

SHAPE = (5, 6, 4)
VALUES = np.arange(5 * 6 * 4.0).reshape(SHAPE)


@pytest.fixture(params=["numpy", "gt:cpu_kfirst"])
def split(request, compiled):
    return dlf.bind(compiled("split", request.param))


@pytest.fixture
def skewed(compiled):
    return dlf.bind(compiled("skewed", "gt:cpu_kfirst"))


def untouched(*shape):
    return np.full(shape or SHAPE, -1.0)


BOUNDS = {
    "origin inside the reach": ({"origin": (0, 1, 0)}, "inp", "points -2 to 5 along J"),
    "no origin": ({}, "inp", "pass a larger array, a wider halo"),
    "domain into the reach": ({"origin": (0, 2, 0), "domain": (5, 4, 4)}, "inp", "0 to 6 along I"),
    "domain beyond the array": (
        {"origin": (0, 2, 0), "domain": (4, 5, 4)},
        "inp",
        "-2 to 5 along J",
    ),
    "negative origin": ({"origin": (-1, 2, 0)}, "inp", "along I"),
    "origin beyond the array": ({"origin": (0, 2, 4), "domain": (4, 4, 1)}, "inp", "got -4 to 0"),
    "huge domain": (
        {"origin": (0, 2, 0), "domain": (2**62, 4, 4)},
        "inp",
        "another origin= or domain=",
    ),
    "huge origin": ({"origin": (2**63 - 1, 2, 0), "domain": (1, 1, 1)}, "inp", "along I"),
}


@pytest.mark.parametrize(("options", "name", "text"), BOUNDS.values(), ids=BOUNDS)
def test_a_call_beyond_the_bounds_is_refused_and_nothing_is_written(skewed, options, name, text):
    out = untouched()
    with refused(ValueError, f"argument '{name}'", "expected", "got", text):
        skewed(VALUES, out, **options)
    assert (out == -1.0).all()


def test_an_output_smaller_than_origin_domain_and_reach_is_refused(skewed):
    out = untouched(5, 5, 4)
    texts = ("points 0 to 4 along J, which 'skewed' writes", "got -2 to 3", "larger array")
    with refused(ValueError, "argument 'out'", *texts):
        skewed(VALUES, out, origin=(0, 2, 0), domain=(4, 4, 4))
    assert (out == -1.0).all()


@pytest.mark.parametrize("domain", [(-1, 4, 4), (4, 4, -3)])
def test_a_domain_of_fewer_points_than_none_is_refused(split, domain):
    with refused(ValueError, "domain of 'split'", "expected at least 0 points along"):
        split(VALUES, untouched(), untouched(), domain=domain)


@pytest.mark.parametrize("domain", [(0, 4, 4), (4, 4, 0), (0, 0, 0)])
def test_a_domain_without_points_writes_nothing(compiled, backend, domain):
    left, right = untouched(), untouched()
    dlf.bind(compiled("split", backend))(VALUES, left, right, domain=domain)
    assert (left == -1.0).all()
    assert (right == -1.0).all()


@pytest.mark.parametrize("shape", [(0, 6, 4), (5, 6, 0), (0, 0, 0)])
def test_fields_of_a_rank_without_points_are_taken(compiled, backend, shape):
    dlf.bind(compiled("split", backend))(*(np.zeros(shape) for _ in range(3)))


def test_a_field_without_points_beside_others_is_refused(split):
    with refused(ValueError, "expected at least 1 point along J", "pass larger fields"):
        split(untouched(5, 0, 4), untouched(), untouched())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"domain": (4, 4)}, ValueError),
        ({"domain": 4}, TypeError),
        ({"domain": (4.0, 4, 4)}, TypeError),
        ({"domain": (2**70, 4, 4)}, ValueError),
        ({"origin": (0, 0)}, ValueError),
        ({"origin": 0}, TypeError),
        ({"origin": (0.5, 0, 0)}, TypeError),
        ({"origin": {"up": (0, 0, 0)}}, ValueError),
        ({"origin": {"inp": (0, 0, 0, 0)}}, ValueError),
    ],
)
def test_an_origin_or_domain_that_makes_no_sense_is_refused(split, options, error):
    with refused(error, *options, "expected", "got"):
        split(VALUES, untouched(), untouched(), **options)


def test_halos_that_leave_different_domains_are_refused(split):
    left, right = dlf.zeros((8, 9, 4), halo=(2, 3, 0)), dlf.zeros((8, 9, 4), halo=(1, 3, 0))
    with refused(ValueError, "argument 'right'", "expected 4 points", "got 6", "pass origin="):
        split(untouched(4, 3, 4), left, right)
    assert not left.to_numpy().any()


def test_an_array_of_neither_shape_beside_halos_is_refused(split):
    left = dlf.zeros((8, 9, 4), halo=(2, 3, 0))
    with refused(
        ValueError,
        "argument 'inp'",
        "got 5 and no halo",
        "of such an extent",
        "or origin= and domain=",
    ):
        split(untouched(5, 3, 4), left, untouched(4, 3, 4))
    assert not left.to_numpy().any()


def test_an_array_of_the_whole_shape_is_refused_where_halos_differ(split):
    left, right = dlf.zeros((8, 3, 4), halo=(2, 0, 0)), dlf.zeros((8, 3, 4), halo=((3, 1), 0, 0))
    texts = ("argument 'inp'", "halos of the others differ", "or origin= and domain=")
    with refused(ValueError, *texts):
        split(untouched(8, 3, 4), left, right)


def test_a_domain_with_fewer_levels_than_the_stencil_needs_is_refused(compiled):
    out = untouched(5, 6, 1)
    with refused(ValueError, "domain of 'cumulate'", "at least 2 points along K, got 1"):
        dlf.bind(compiled("cumulate", "numpy"))(untouched(5, 6, 1), out)
    assert (out == -1.0).all()


def test_an_origin_off_the_halo_without_a_domain_is_refused(split):
    fields = {name: dlf.zeros((8, 9, 4), halo=(2, 3, 0)) for name in ("inp", "left", "right")}
    with refused(ValueError, "argument 'inp'", "domain=", "[1, 0, 0]"):
        split(**fields, origin=(1, 0, 0))
