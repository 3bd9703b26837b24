"""Calls that come again: what is prepared for them yields and refuses what a first call does."""

import gc
import os
import subprocess
import sys
import weakref

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.stencils.calls_again import ROLES, changed, outcome, told
from support.stencils.stand_ins import SHAPE, StandIn, Waiting

HOWS = [
    *["same"] * 6,
    "transposed",
    "read-only",
    "float32",
    "int64",
    ">f8",
    "complex128",
    "subclass",
    "named",
    "part",
    "reversed",
    "broadcast",
    "warns",
    "misaligned",
    "off by 8",
    "short",
    *["storage"] * 4,
    "named storage",
    "halo",
    "origin",
    "memoryview",
]


@st.composite
def calls(draw):
    """Return arguments, some of which may be one and the same, and options."""
    made = {}
    for name in ROLES:
        made[name] = changed(np.zeros(SHAPE), draw(st.sampled_from(HOWS)))
    if draw(st.integers(0, 9)) == 0:
        made["c"] = made[draw(st.sampled_from("ab"))]
    origin = draw(st.sampled_from([None, None, None, (0, 0, 0), (1, 0, 0), {"a": (0, 1, 0)}]))
    domain = draw(st.sampled_from([None, None, None, (1, 2, 2), (0, 1, 1)]))
    return made, {"origin": origin, "domain": domain}


def altered(one, how):
    """Alter a field in place, if it can be: what was compared before may no longer hold."""
    if how == "frozen" and isinstance(one, np.ndarray):
        one.flags.writeable = False
    elif how == "halo" and isinstance(one, dlf.Storage) and one.dims is not None:
        one.halo = (1, 1, 0)
    elif how == "shape" and type(one) is np.ndarray and one.flags.c_contiguous:
        one.shape = one.shape[::-1]


ALTERATIONS = st.tuples(st.sampled_from("abc"), st.sampled_from(["frozen", "halo", "shape"]))


@pytest.mark.filterwarnings(
    "ignore:Numpy has detected:DeprecationWarning",
    "ignore:Setting the:DeprecationWarning",
    "ignore::UserWarning",
)
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(calls(), st.lists(st.none() | ALTERATIONS, min_size=1, max_size=4)),
        min_size=1,
        max_size=4,
    )
)
def test_a_call_that_comes_again_yields_and_refuses_what_a_first_call_does(series):
    stencil, fresh = StandIn(**ROLES), StandIn(**ROLES)
    run = dlf.bind(stencil)
    for (arguments, options), alterations in series:
        for alteration in alterations:
            if alteration is not None:
                altered(arguments[alteration[0]], alteration[1])
            first = outcome(dlf.bind(fresh), fresh, arguments, options)
            assert outcome(run, stencil, arguments, options) == first


def again(*arguments, **options):
    """Bind a stencil and call it until the call is prepared."""
    stencil = StandIn(**ROLES)
    run = dlf.bind(stencil)
    for _ in range(3):
        run(*arguments, **options)
    return stencil, run


def three(make=np.zeros):
    return [make(SHAPE) for _ in range(3)]


@pytest.mark.skipif(os.environ.get("DLFIELD_SHORT_WAYS") == "0", reason="that is a short way")
def test_a_storage_gives_the_same_array_to_one_call_after_another():
    fields = three(dlf.zeros)
    stencil, run = again(*fields)
    before = stencil.seen["a"]
    run(*fields)
    assert stencil.seen["a"] is before


def test_short_ways_can_be_turned_off():
    code = """
import dlfield as dlf
from test_call_again import again, three
fields = three(dlf.zeros)
stencil, run = again(*fields)
before = stencil.seen["a"]
run(*fields)
print(stencil.seen["a"] is before)
"""
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    run = [sys.executable, "-c", code]
    told = [
        subprocess.check_output(run, env={**here, "DLFIELD_SHORT_WAYS": value}, text=True).strip()
        for value in ("1", "0")
    ]
    assert told == ["True", "False"]


CHANGES = {
    "shape": lambda array: setattr(array, "shape", (5, 4, 3)),
    "strides": lambda array: setattr(array, "strides", (8, 8, 8)),
    "dtype": lambda array: setattr(array, "dtype", np.int64),
    "flags": lambda array: setattr(array.flags, "writeable", False),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_what_a_stencil_does_to_its_array_does_not_reach_the_next_call(change):
    fields = three(dlf.zeros)
    stencil, run = again(*fields)
    change(stencil.seen["b"])
    run(*fields)
    assert told(stencil.seen["b"]) == told(fields[1].to_numpy())


def test_another_array_of_the_same_form_is_the_one_that_is_given():
    stencil, run = again(*three())
    others = three()
    run(*others)
    assert [stencil.seen[name] is other for name, other in zip(ROLES, others, strict=True)]


@pytest.mark.parametrize("dims", ["IJK", "KJI"])
def test_a_storage_that_comes_for_the_first_time_gives_its_own_memory(dims):
    def made(_):
        return dlf.zeros([dict(zip("IJK", SHAPE, strict=True))[one] for one in dims], dims=dims)

    stencil, run = again(*three(made))
    for new in (three(made), three(made)):
        for _ in range(2):
            run(*new)
            arrays = [stencil.seen[name] for name in ROLES]
            assert [one.shape for one in arrays] == [SHAPE] * 3
            assert [one.ctypes.data for one in arrays] == [
                one.__array_interface__["data"][0] for one in new
            ]


def test_a_read_only_storage_that_comes_for_the_first_time_stays_so():
    fields = three(dlf.zeros)
    stencil, run = again(*fields)
    frozen = np.zeros(SHAPE)
    frozen.flags.writeable = False
    run(dlf.as_storage(frozen), *fields[1:])
    assert not stencil.seen["a"].flags.writeable
    with pytest.raises(BufferError, match="'b'"):
        run(fields[0], dlf.as_storage(frozen), fields[2])


def test_a_halo_that_is_set_between_two_calls_counts():
    fields = three(lambda shape: dlf.zeros(shape, dims="IJK"))
    stencil, run = again(*fields)
    for one in fields:
        one.halo = (1, 1, 0)
    run(*fields)
    assert (stencil.domain, stencil.origin["a"]) == ((1, 2, 5), (1, 1, 0))


def test_an_output_that_overlaps_an_input_is_refused_after_calls_without_overlap():
    a, b, c = three()
    _, run = again(a, b, c)
    with pytest.raises(BufferError, match="'b' and 'c'"):
        run(a, c, c)


def test_the_origins_that_a_stencil_gets_are_its_own():
    fields = three()
    stencil, run = again(*fields)
    stencil.origin.clear()
    run(*fields)
    assert stencil.origin == dict.fromkeys(ROLES, (0, 0, 0))


def test_a_bound_stencil_keeps_no_array_of_its_calls():
    fields = [*three()[:2], dlf.zeros(SHAPE)]
    stencil, run = again(*fields)
    stencil.seen = None
    gone = [weakref.ref(field) for field in fields]
    del fields
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3
    del run


def test_memory_is_given_back_when_a_storage_that_a_stencil_used_is_gone():
    array = np.zeros(SHAPE)
    before = sys.getrefcount(array)
    storage = dlf.as_storage(array)
    stencil, run = again(storage, *three(dlf.zeros)[1:])
    stencil.seen = None
    del storage
    assert sys.getrefcount(array) == before
    del run


def test_a_wait_follows_each_run_that_comes_again():
    stencil = Waiting(log := [], **ROLES)
    run, fields = dlf.bind(stencil), three()
    for _ in range(4):
        run(*fields)
    assert log == ["run", "synchronize"] * 4
