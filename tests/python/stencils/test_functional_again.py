"""Functional calls that come again: each is compared with that of a stencil that is bound anew."""

import functools
import os

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Access, Boundary, Field
from hypothesis import given, settings
from hypothesis import strategies as st

from support.errors import refused
from support.optional import library

READ = Field[np.float64, Access["in"], Boundary[((1, 0), (0, 1), (0, 0))]]
PLAIN = Field[np.float64, Access["in"]]
WRITTEN = Field[np.float64, Access["out"]]
STATE = Field[np.float64]


def difference(inp: READ, state: STATE, out: WRITTEN, *, by=1.0, origin, domain):
    """Write what the neighbours in front and to the right differ by, and count in `state`."""

    def part(name, *shift):
        first = (at + more for at, more in zip(origin[name], shift, strict=True))
        ends = zip(first, domain, strict=True)
        return tuple(slice(start, start + count) for start, count in ends)

    out[part("out", 0, 0, 0)] = by * (inp[part("inp", 0, 1, 0)] - inp[part("inp", -1, 0, 0)])
    state[part("state", 0, 0, 0)] += 1


def array(shape, order="C", dtype=np.float64):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape, order=order)


def read_only(made):
    made.flags.writeable = False
    return made


#: Arguments that fit and that do not; each is made anew.
ARRAYS = {
    "array": lambda: array((5, 4, 2)),
    "wider": lambda: array((5, 6, 2)),
    "in the other order": lambda: array((5, 4, 2), "F"),
    "of another type": lambda: array((5, 4, 2), dtype=np.int32),
    "read only": lambda: read_only(array((5, 4, 2))),
    "of another class": lambda: array((5, 4, 2)).view(np.recarray),
    "storage": lambda: dlf.storage(array((5, 4, 2)), dims="IJK"),
    "with a halo": lambda: dlf.storage(
        array((5, 4, 2)), dims="IJK", halo={"I": (1, 0), "J": (0, 1)}
    ),
    "with a wider halo": lambda: dlf.storage(
        array((6, 6, 2)), dims="IJK", halo={"I": (2, 0), "J": (0, 2)}
    ),
    "by name": lambda: dlf.storage(array((4, 2, 5)), dims="JKI", halo={"I": (1, 0), "J": (0, 1)}),
    "names of nothing": lambda: dlf.storage(array((5, 4, 2)), dims="IKL"),
    "tensor": lambda: library("torch").from_numpy(array((5, 4, 2))),
    "wider tensor": lambda: library("torch").from_numpy(array((5, 6, 2))),
}
#: Where a call computes: the same points in several spellings, other ones, and mistakes.
PLACES = [
    {},
    {"origin": (1, 0, 0), "domain": (4, 3, 2)},
    {"origin": [1, 0, 0], "domain": {"J": 3, "I": 4, "K": 2}},
    {"origin": {"I": 1, "K": 0, "J": 0}, "domain": np.array([4, 3, 2])},
    {"origin": (True, 0, 0), "domain": (4, 3, 2)},
    {"origin": (1.0, 0, 0), "domain": (4, 3, 2)},
    {"origin": {"_all_": (1, 0, 0)}, "domain": (4, 3, 2)},
    {"origin": {"inp": (1, 0, 0), "state": (0, 1, 0)}, "domain": (4, 3, 2)},
    {"origin": (2, 1, 1), "domain": (2, 2, 1)},
    {"domain": (4, 3, 2)},
    {"origin": (1, 0, 0), "domain": (9, 3, 2)},
    {"halo": {"I": (1, 0), "J": (0, 1)}},
    {"halo": (1, 1, 0)},
    {"halo": 1},
]
OTHERS = [{}, {"by": 2.0}, {"by": 2}, {"by": "two"}, {"like": "storage"}, {"like": "numpy"}]
OTHERS += [{"like": "torch"}, {"like": "xarray"}, {"like": "nobody"}, {"nothing": 1}]
OUTPUTS = [None, None, None, "array", "storage", "with a halo"]
CALLS = st.tuples(
    st.sampled_from(sorted(ARRAYS)),
    st.sampled_from(sorted(ARRAYS)),
    st.sampled_from(OUTPUTS),
    st.sampled_from(PLACES),
    st.sampled_from(OTHERS),
    st.booleans(),
)


def outcome(run, call):
    """Return what a call returns: each result with its class, labels and values, or the error."""
    inp, state, out, place, others, by_name = call
    keywords = {**place, **others} | ({} if out is None else {"out": ARRAYS[out]()})
    args = ARRAYS[inp](), ARRAYS[state]()
    if by_name:
        keywords, args = keywords | dict(zip(("inp", "state"), args, strict=True)), ()
    try:
        made = run.functional(*args, **keywords)
    except Exception as error:
        return type(error), str(error)
    return [described(one) for one in made]


def described(one):
    labels = getattr(one, "dims", None), getattr(one, "halo", None)
    strides = one.stride() if hasattr(one, "stride") else getattr(one, "strides", None)
    return type(one), tuple(one.shape), strides, labels, np.asarray(one).tolist()


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@settings(max_examples=400)
@given(st.lists(CALLS, min_size=2, max_size=5))
def test_a_call_gives_what_it_gives_to_a_stencil_that_is_bound_anew(calls):
    run = dlf.bind(difference)
    for call in [one for one in calls for _ in range(2)]:
        assert outcome(run, call) == outcome(dlf.bind(difference), call)


@pytest.mark.skipif(os.environ.get("DLFIELD_SHORT_WAYS") == "0", reason="that is a short way")
def test_a_call_that_comes_again_is_planned_once(monkeypatch):
    from dlfield.stencils import functional

    run, planned = dlf.bind(difference), []
    usual = functional.planned
    monkeypatch.setattr(functional, "planned", lambda *args: planned.append(0) or usual(*args))
    for _ in range(3):
        run.functional(array((5, 4, 2)), array((5, 4, 2)), origin=(1, 0, 0), domain=(4, 3, 2))
    assert len(planned) == 1


def test_an_origin_that_its_owner_changes_counts_as_it_is():
    run, origin = dlf.bind(difference), [1, 0, 0]
    inp = array((6, 4, 2)) ** 2
    for _ in range(2):
        run.functional(inp, inp, origin=origin, domain=(3, 3, 2))
    origin[0] = 2
    expected = dlf.bind(difference).functional(inp, inp, origin=(2, 0, 0), domain=(3, 3, 2))
    got = run.functional(inp, inp, origin=origin, domain=(3, 3, 2))
    assert all(map(np.array_equal, got, expected))


def test_outputs_of_calls_that_come_again_are_memory_of_their_own():
    run = dlf.bind(difference)
    made = [run.functional(array((5, 4, 2)), array((5, 4, 2)), halo=(1, 1, 0)) for _ in range(4)]
    assert len({one.ctypes.data for outputs in made for one in outputs}) == 8


def test_a_stencil_that_wraps_another_has_a_plan_of_its_own():
    def double(a: PLAIN, b: WRITTEN):
        b[...] = 2 * a

    one, other = dlf.bind(difference), dlf.bind(double)
    one.functional(array((5, 4, 2)), array((5, 4, 2)), origin=(1, 0, 0), domain=(4, 3, 2))
    functools.update_wrapper(other, one)  # takes over its attributes
    assert np.array_equal(other.functional(array((5, 4, 2))), 2 * array((5, 4, 2)))


def test_a_plan_refuses_an_output_that_the_stencil_does_not_have():
    run = dlf.bind(difference)
    with refused(ValueError, "expected 'nobody' among the stencil's arguments"):
        dlf._core.FunctionalPlan(run, {"nobody": dlf._core.Allocation((5, 4, 2))})


def test_a_plan_without_the_arguments_is_refused():
    run = dlf.bind(difference)
    plan = dlf._core.FunctionalPlan(run, {"out": dlf._core.Allocation((5, 4, 2))}, order=["inp"])
    with refused(TypeError, "expected an argument 'state', got none"):
        plan.in_order(run, array((5, 4, 2)))
