"""Stencils in the idioms of CLOUDSC2 compute the same bound as by GT4Py alone, bit for bit."""

import functools

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

gtscript = library("gt4py.cartesian.gtscript")

from support.processes import one_at_a_time  # noqa: E402 (after the skip)
from support.stencils import idioms_ifs  # noqa: E402
from support.stencils.idioms import HELD, Call, Values, check_same, empty, of_numpy, spread  # noqa: E402

COLUMNS, LEVELS = 7, 5
SHAPE, IJK = (COLUMNS, 1, LEVELS), "IJK"


@functools.cache
def clouds(backend):
    with one_at_a_time(f"clouds-{backend}".replace(":", "-")):
        return gtscript.stencil(
            backend=backend, definition=idioms_ifs.clouds, externals=idioms_ifs.EXTERNALS
        )


def arguments():
    """Make fields of columns. Those on half levels have a level more, which all others leave."""
    more = (COLUMNS, 1, LEVELS + 1)
    names = "in_t", "in_q", "in_ap", "in_tnd_t", "in_tnd_q", "in_aph"
    low = dict(zip(names, (250.0, 0.0, 1e4, -1e-3, -1e-7, 1e4), strict=True))
    high = dict(zip(names, (300.0, 0.3, 1e5, 1e-3, 1e-7, 1e5), strict=True))
    found = {name: spread(*more, dims=IJK, low=low[name], high=high[name]) for name in names}
    index = np.arange(COLUMNS).reshape(COLUMNS, 1)
    found["in_eta"] = spread(LEVELS + 1, dims="K", low=0.0)
    found["in_land"] = Values(("I", "J"), index % 2 == 0)
    found["in_count"] = Values(("I", "J"), 1 + index)
    found |= {f"out_{name}": empty(*more, dims=IJK) for name in ("t", "q", "cover", "rain")}
    return found | {"out_fallen": empty(COLUMNS, 1, dims="IJ"), "dt": 600.0}


BACKENDS = ("numpy", "gt:cpu_kfirst")
ORIGINS = {
    "a list": {"origin": [0, 0, 0], "domain": SHAPE},
    "numbers of NumPy": {"origin": (0, 0, 0), "domain": tuple(np.array(SHAPE))},
    "columns behind the first": {"origin": (2, 0, 0), "domain": (4, np.int32(1), np.int64(LEVELS))},
    "levels behind the first": {"origin": [0, 0, 1], "domain": [COLUMNS, 1, LEVELS - 1]},
}


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize("where", ORIGINS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_columns_with_many_fields_are_computed_as_without_being_bound(backend, where, kind):
    stencil = clouds(backend)
    check_same(stencil, dlf.bind(stencil), arguments(), of_numpy, HELD[kind], **ORIGINS[where])


@pytest.mark.parametrize("backend", BACKENDS)
def test_times_of_a_call_are_told_as_without_being_bound(backend):
    stencil = clouds(backend)
    own, bound = ({"__aggregate_data": True} for _ in range(2))
    for call, told in ((stencil, own), (dlf.bind(stencil), bound)):
        given = Call(arguments(), of_numpy).arguments
        call(**given, origin=[0, 0, 0], domain=SHAPE, exec_info=told)
    assert own.keys() <= bound.keys()
    name = next(key for key in own if key.startswith("clouds"))
    assert own[name]["ncalls"] == bound[name]["ncalls"] == 1


def test_a_level_that_half_levels_lack_is_refused_before_anything_is_written():
    given = Call(arguments(), of_numpy)
    given.arguments["in_aph"] = given.arguments["in_aph"][..., :-1]
    before = given.results()
    with refused(ValueError, "'in_aph'", "expected", "along K"):
        dlf.bind(clouds("numpy"))(**given.arguments, origin=[0, 0, 0], domain=SHAPE)
    for name, one in given.results().items():
        np.testing.assert_array_equal(one, before[name])
