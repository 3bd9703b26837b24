"""A `functools.partial` of a stencil gives every call its arguments."""

import copy
import functools
import inspect
from functools import partial

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import IJ, Field

from support.errors import refused
from support.stencils.stand_ins import SHAPE, StandIn, field

OUT = np.zeros(SHAPE)


def add(a, b, out):
    out[...] = a + b


def stencil():
    return StandIn(body=add, a=field("READ"), b=field("READ"), out=field("WRITE"))


def test_every_call_gets_the_arguments_that_were_given_by_name():
    out = np.zeros(SHAPE)
    run = dlf.bind(partial(stencil(), b=np.full(SHAPE, 2.0)))
    run(np.ones(SHAPE), out=out)
    assert (out == 3.0).all()


def test_arguments_that_were_given_without_a_name_come_first():
    out = np.zeros(SHAPE)
    dlf.bind(partial(stencil(), np.ones(SHAPE)))(np.full(SHAPE, 4.0), out)
    assert (out == 5.0).all()


def test_a_call_may_give_its_own_instead():
    out = np.zeros(SHAPE)
    run = dlf.bind(partial(stencil(), b=np.full(SHAPE, 2.0)))
    run(np.ones(SHAPE), out=out, b=np.full(SHAPE, 6.0))
    assert (out == 7.0).all()


def test_a_name_that_was_given_is_not_given_again_by_position():
    with refused(TypeError, "stand_in: expected one value for 'b', got two"):
        dlf.bind(partial(stencil(), b=OUT))(np.ones(SHAPE), np.ones(SHAPE), np.zeros(SHAPE))


def test_a_partial_of_a_partial_has_the_arguments_of_both():
    out = np.zeros(SHAPE)
    dlf.bind(partial(partial(stencil(), b=np.ones(SHAPE)), out=out))(np.ones(SHAPE))
    assert (out == 2.0).all()


def test_origin_and_domain_of_a_partial_are_those_of_its_calls():
    own = stencil()
    run = dlf.bind(partial(own, origin=(1, 1, 0), domain=(1, 2, 3)))
    run(np.ones(SHAPE), np.ones(SHAPE), np.zeros(SHAPE))
    assert (own.domain, own.origin["a"]) == ((1, 2, 3), (1, 1, 0))
    run(np.ones(SHAPE), np.ones(SHAPE), np.zeros(SHAPE), domain=(2, 2, 2))
    assert own.domain == (2, 2, 2)


def test_a_functional_call_takes_what_is_left():
    run = dlf.bind(partial(stencil(), b=np.full(SHAPE, 2.0)))
    assert (run.functional(np.ones(SHAPE)) == 3.0).all()


def test_the_signature_is_that_of_the_partial():
    run = dlf.bind(partial(stencil(), np.ones(SHAPE)))
    assert [*inspect.signature(run).parameters][:2] == ["b", "out"]


def test_the_stencil_is_the_one_in_the_partial():
    own = stencil()
    assert dlf.bind(partial(own, b=OUT)).stencil is own


def test_a_copy_keeps_the_arguments():
    out = np.zeros(SHAPE)
    copy.copy(dlf.bind(partial(stencil(), b=np.ones(SHAPE))))(np.ones(SHAPE), out=out)
    assert (out == 2.0).all()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (partial(stencil(), c=1), "got 'c'; the arguments are a, b, out"),
        (partial(stencil(), 1, 2, 3, 4), "expected at most 3 arguments of 'stand_in'"),
        (partial(dlf.bind(stencil()), b=1), "got one that is bound already"),
    ],
)
def test_a_partial_that_fits_no_call_is_refused_when_it_is_bound(given, text):
    with refused(TypeError, "bind: expected", text):
        dlf.bind(given)


def test_an_array_of_a_partial_is_checked_at_every_call():
    run = dlf.bind(partial(stencil(), b=np.ones(SHAPE, dtype="f4")))
    with refused(ValueError, "argument 'b': expected dtype float64, got float32"):
        run(np.ones(SHAPE), out=np.zeros(SHAPE))


def test_a_functional_call_takes_the_arguments_that_the_partial_lacks():
    run = dlf.bind(partial(stencil(), np.ones(SHAPE)))
    made = run.functional(np.ones(SHAPE), np.full(SHAPE, 5.0))
    np.testing.assert_array_equal(made, np.full(SHAPE, 2.0))


def combined(a: Field[IJ, np.float64], b: Field[IJ, np.float64], scale: float, **others):
    b[...] = scale * a + others.get("offset", 0.0)


def columns_first():
    return dlf.as_storage(np.arange(4.0).reshape(2, 2), dims=("J", "I"))


@pytest.mark.parametrize(
    "given", [partial(combined, columns_first()), partial(combined, a=columns_first())]
)
def test_a_field_in_a_partial_of_a_callable_goes_by_name(given):
    out = np.zeros((2, 2))
    dlf.bind(given)(b=out, scale=1.0)
    np.testing.assert_array_equal(out, [[0.0, 2.0], [1.0, 3.0]])


def test_a_field_in_a_partial_of_a_callable_is_checked():
    with refused(ValueError, "argument 'a': expected dtype float64, got float32"):
        dlf.bind(partial(combined, np.ones((2, 2), "f4")))(np.ones((2, 2)), 1.0)


def test_a_callable_gets_the_further_keywords_of_a_partial():
    out = np.zeros((2, 2))
    dlf.bind(partial(partial(combined, offset=5.0), scale=2.0))(np.ones((2, 2)), out)
    assert (out == 7.0).all()


def test_a_partial_of_a_callable_tells_every_call_where_to_compute():
    def plain(inp: Field[np.float64], *, origin, domain):
        inp[...] = domain[0]

    run, values = dlf.bind(partial(plain, domain=(1, 1, 1))), np.zeros((2, 2, 2))
    run(values)
    assert (values == 1.0).all()


@pytest.mark.skipif(not hasattr(functools, "Placeholder"), reason="new in Python 3.14")
def test_a_placeholder_in_a_partial_is_refused():
    with refused(TypeError, "bind: expected a functools.partial without functools.Placeholder"):
        dlf.bind(partial(combined, functools.Placeholder, np.ones((2, 2))))


def test_an_argument_given_twice_in_a_partial_is_refused_by_its_name():
    with refused(TypeError, "in the functools.partial, got 'a' twice; leave one out"):
        dlf.bind(partial(stencil(), OUT, a=OUT))
