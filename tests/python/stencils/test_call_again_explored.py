"""Every sequence of a few calls of a bound stencil: each does what it does as a first call."""

import itertools
import os

import dlfield as dlf
import numpy as np
import pytest

from support.stencils.calls_again import ROLES, changed, outcome
from support.stencils.stand_ins import SHAPE, StandIn

#: Calls of a sequence. DLFIELD_TEST_STEPS=5 makes all that are so long.
STEPS = int(os.environ.get("DLFIELD_TEST_STEPS", "4"))


def fields(**hows):
    """Return new arrays, of which some differ in one respect."""
    return {name: changed(np.zeros(SHAPE), hows.get(name, "same")) for name in ROLES}


def one_array_twice():
    made = fields()
    return {**made, "c": made["b"]}


#: Arguments and options of calls. A sequence has the same arrays each time, and new ones.
CALLS = {
    "arrays": (fields(), {}),
    "other arrays": (fields(), {}),
    "storages": (fields(a="storage", b="storage", c="storage"), {}),
    "storages with a halo": (fields(a="halo", b="halo", c="halo"), {}),
    "read-only": (fields(b="read-only"), {}),
    "too short": (fields(b="short"), {}),
    "one array twice": (one_array_twice(), {}),
    "a smaller domain": (fields(), {"domain": (1, 2, 2)}),
}


@pytest.fixture(scope="module")
def first_calls():
    """What each call does where it is the first one."""
    stencils = {name: StandIn(**ROLES) for name in CALLS}
    return {
        name: outcome(dlf.bind(stencils[name]), stencils[name], *call)
        for name, call in CALLS.items()
    }


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize("first", CALLS)
def test_every_sequence_of_calls_does_what_each_does_as_the_first(first, first_calls):
    stencil = StandIn(**ROLES)
    for names in itertools.product(CALLS, repeat=STEPS - 1):
        run = dlf.bind(stencil)
        for at, name in enumerate((first, *names)):
            got = outcome(run, stencil, *CALLS[name])
            assert got == first_calls[name], (first, *names)[: at + 1]
