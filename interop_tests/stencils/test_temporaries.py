"""`explain` tells the memory of a stencil's temporary fields."""

import functools
import tracemalloc

import dlfield as dlf
import numpy as np

from support.optional import library
from support.processes import one_at_a_time

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    PARALLEL,
    Field,
    computation,
    interval,
    stencil,
)

# ruff: noqa: F841

SHAPE, DOMAIN = (66, 67, 5), (64, 65, 5)


def crossed(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        along = inp[-1, 0, 0] + inp[1, 0, 0]
        twice = along[0, -1, 0] + along[0, 1, 0]
    with computation(PARALLEL), interval(1, None):
        out = twice[0, 0, -1]


def plain(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp[-1, 0, 0] + inp[1, 0, 0]


@functools.cache
def bound(definition):
    with one_at_a_time(f"{definition.__name__}-temporaries"):
        return dlf.bind(stencil(backend="numpy", definition=definition))


def explained(run):
    fields = [np.ones(SHAPE) for _ in range(2)]
    return dlf.explain(run, *fields, origin=(1, 1, 0), domain=DOMAIN)


def test_a_temporary_is_as_large_as_its_neighbours_are_read():
    i, j, k = DOMAIN
    expected = i * (j + 2) * k * 8 + i * j * k * 8
    told = explained(bound(crossed))
    assert told.temporaries == (2, expected)
    assert f"temporaries: 2, {expected} bytes at most" in repr(told)
    assert "temporaries: 2" in told._repr_html_()


def test_a_call_takes_as_much_memory_as_it_is_told():
    run, fields = bound(crossed), [np.ones(SHAPE) for _ in range(2)]
    run(*fields, origin=(1, 1, 0), domain=DOMAIN)
    tracemalloc.start()
    run(*fields, origin=(1, 1, 0), domain=DOMAIN)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most >= explained(run).temporaries.nbytes


def test_without_temporaries_nothing_is_told():
    told = explained(bound(plain))
    assert told.temporaries == (0, 0)
    assert "temporaries" not in repr(told)


def test_of_a_callable_of_ones_own_nothing_is_known():
    field, access, ijk = (getattr(dlf.annotations, name) for name in ("Field", "Access", "IJK"))
    fields = {"inp": field[float, ijk, access["in"]], "out": field[float, ijk, access["out"]]}
    run = dlf.bind(lambda inp, out: None, fields=fields)
    told = dlf.explain(run, np.ones(SHAPE), np.ones(SHAPE))
    assert told.plan is not None
    assert told.temporaries is None
