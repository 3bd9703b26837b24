"""`run.storage`, `run.zeros`, `run.empty`: memory as the stencil wants it, under your names."""

import warnings

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Alignment, Field, LayoutMap

from support.errors import refused
from support.stencils.stand_ins import StandIn, field

NAMES = {"lon": "I", "lat": "J", "level": "K"}


def bound(backend="gt:cpu_ifirst", **options):
    fields = {"inp": field("READ"), "plane": field("READ", axes="IJ"), "out": field("WRITE")}
    return dlf.bind(StandIn(backend=backend, **fields), **options)


@pytest.mark.parametrize(
    ("backend", "layout"),
    [("gt:cpu_ifirst", (0, 1, 2)), ("gt:cpu_kfirst", (2, 1, 0)), ("dace:cpu", (0, 2, 1))],
)
def test_a_copy_has_the_order_of_the_backend_and_the_names_of_the_array(backend, layout):
    data = dlf.storage(
        np.arange(60.0).reshape(5, 4, 3), dims=("level", "lat", "lon"), halo=(0, 1, 1)
    )
    copy = bound(backend, dims=NAMES).storage(data)
    assert (copy.layout, copy.dims, copy.halo) == (layout, data.dims, data.halo)
    assert np.array_equal(copy.to_numpy(), data.to_numpy())
    assert not np.shares_memory(copy.to_numpy(), data.to_numpy())


def test_what_it_makes_is_not_slow():
    run = bound(dims=NAMES)
    inp, out = run.storage(np.zeros((32, 32, 32))), run.zeros((32, 32, 32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(inp, run.zeros((32, 32)), out)


def test_an_array_without_names_is_in_the_order_of_the_definition():
    copy = bound(dims=NAMES).storage(np.zeros((3, 4)))
    assert (copy.dims, copy.layout) == (None, (1, 0))


def test_new_memory_has_your_names_and_the_dtype_of_the_field():
    made = bound(dims=NAMES).zeros((3, 4, 5))
    assert (made.dims, made.dtype, made.layout) == (("lon", "lat", "level"), "float64", (2, 1, 0))
    assert not made.to_numpy().any()


def test_a_dimension_of_two_names_has_the_stencils():
    made = bound(dims=NAMES | {"lon_u": "I"}).empty((3, 4, 5))
    assert made.dims == ("I", "lat", "level")


def test_dims_are_in_any_order():
    made = bound(dims=NAMES).empty((5, 3, 4), dims=("level", "lon", "lat"), halo=(0, 1, 1))
    assert (made.layout, made.halo) == ((0, 2, 1), ((0, 0), (1, 1), (1, 1)))


def test_options_override_what_the_stencil_wants():
    assert bound().zeros((3, 4, 5), "f4", layout=(0, 1, 2)).layout == (0, 1, 2)


@pytest.mark.parametrize("option", ["defaults", "backend"])
def test_another_backend_overrides_what_the_stencil_wants(option):
    run = bound("gt:cpu_ifirst")
    options = {option: "gt:cpu_kfirst"}
    assert run.zeros((3, 4, 5), **options).layout == (0, 1, 2)
    assert run.storage(np.zeros((3, 4, 5)), dims="IJK", **options).layout == (0, 1, 2)


def test_the_demands_of_an_argument_are_met():
    fields = {
        "inp": Field[np.float64, LayoutMap[0, 2, 1], Alignment[8], Access["in"]],
        "out": Field[np.float32],
    }
    run = dlf.bind(lambda inp, out: None, fields=fields)
    made = run.zeros((3, 4, 5), field="inp")
    assert (made.layout, made.alignment_size, made.dtype) == ((0, 2, 1), 64, "float64")
    assert run.zeros((3, 4, 5), field="out").dtype == "float32"
    run(made, np.zeros((3, 4, 5), dtype="f4"))


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run.zeros((3, 4), dims=("lat", "height")),
        lambda run: run.zeros((3,)),
        lambda run: run.storage(np.zeros((1, 2, 3, 4))),
        lambda run: run.zeros((3, 4, 5), field="colour"),
        lambda run: run.zeros((3, 4, 5), field="plane"),
        lambda run: run.zeros((3, 4, 5), field="inp", dims=("lon", "lat", "time")),
        lambda run: run.storage(np.zeros((3, 4)), field="inp"),
    ],
)
def test_dimensions_of_no_field_are_refused(call):
    with refused(
        ValueError, "stand_in: expected the dimensions of a field, 'inp' of ('I', 'J', 'K')"
    ):
        call(bound(dims=NAMES))
