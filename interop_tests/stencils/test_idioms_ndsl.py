"""Stencils in the idioms of NDSL compute the same bound as by GT4Py alone, bit for bit."""

import functools

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

gtscript = library("gt4py.cartesian.gtscript")

from support.processes import one_at_a_time  # noqa: E402 (after the skip)
from support.stencils import idioms_ndsl as ndsl  # noqa: E402
from support.stencils.idioms import HELD, Call, check_same, empty, of_numpy, spread  # noqa: E402

HALO, INNER = 3, (5, 4, 6)
SHAPE = tuple(n + 2 * HALO for n in INNER[:2]) + INNER[2:]
EVERY_CALL = {"origin": (HALO, HALO, 0), "domain": INNER}


@functools.cache
def compiled(name, backend):
    externals = ndsl.EDGES if name == "divergence_damping" else {}
    with one_at_a_time(f"ndsl-{name}-{backend}".replace(":", "-")):
        return gtscript.stencil(
            backend=backend,
            definition=getattr(ndsl, name),
            externals=externals,
            dtypes=ndsl.TEMPORARIES,
        )


def field(low=-1.0):
    return spread(*SHAPE, dims="IJK", low=low, high=low + 2.0)


def new():
    return empty(*SHAPE, dims="IJK")


def columns():
    return {"delta": field(), "wind": new(), "ratio": field(1.0), "gam": new(), "beta": 0.5}


def edges():
    return {"u": field(), "v": field(0.0), "delpc": new(), "ptc": new()}


def tracers():
    q = spread(*SHAPE, ndsl.TRACERS, dims=("I", "J", "K", "0"))
    return {"q": q, "dp": field(1.0), "filled": new()}


CASES = {"solve_columns": columns, "divergence_damping": edges, "fill_tracers": tracers}
#: A compiler takes long: of one stencil.
ON = [(name, backend) for name in CASES for backend in ("numpy", "debug")]
ON += [("divergence_damping", "gt:cpu_kfirst")]


def compare(name, backend, kind, **where):
    stencil = compiled(name, backend)
    check_same(stencil, dlf.bind(stencil), CASES[name](), of_numpy, HELD[kind], **where)


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize(("name", "backend"), ON)
def test_a_stencil_inside_of_a_halo_computes_as_without_being_bound(name, backend, kind):
    compare(name, backend, kind, **EVERY_CALL)


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize(
    "where",
    [
        {"origin": (HALO, HALO, 0), "domain": (2, 2, 6)},
        {"origin": (HALO - 1, HALO - 1, 0), "domain": (7, 6, 6)},
        {"origin": (1, 0, 2), "domain": (9, 9, 3)},
    ],
    ids=["a_corner", "with_a_part_of_the_halo", "nearly_all"],
)
@pytest.mark.parametrize("name", CASES)
def test_each_call_tells_where_it_computes(name, where, kind):
    compare(name, "numpy", kind, **where)


@pytest.mark.parametrize("name", CASES)
def test_storages_with_a_halo_compute_where_the_author_says_it(name):
    stencil, halo = compiled(name, "numpy"), (HALO, HALO, 0)

    def with_halo(values):
        return dlf.as_storage(
            values.array.copy(), dims=values.dims, halo=(*halo, *(0,) * (len(values.dims) - 3))
        )

    own, bound = Call(CASES[name](), of_numpy), Call(CASES[name](), with_halo)
    stencil(**own.arguments, **EVERY_CALL)
    dlf.bind(stencil)(**bound.arguments)
    for one, expected in own.results().items():
        np.testing.assert_array_equal(bound.results()[one], expected, err_msg=one)


@pytest.mark.parametrize("kind", HELD)
def test_an_edge_without_a_point_beside_it_is_refused(kind):
    call = Call(edges(), HELD[kind])
    before = call.results()
    with refused(ValueError, "'u'", "expected", "along I"):
        dlf.bind(compiled("divergence_damping", "numpy"))(
            **call.arguments, origin=(0, HALO, 0), domain=INNER
        )
    for name, one in call.results().items():
        np.testing.assert_array_equal(one, before[name])


@pytest.mark.filterwarnings("ignore:2D temporaries:UserWarning")
def test_the_reach_of_a_stencil_is_known_beside_temporaries_whose_type_has_a_name():
    q = np.arange(24.0).reshape(2, 3, 4)
    run = dlf.bind(compiled("add_lowest", "numpy"))
    assert dlf.explain(run, q).plan.checked == "checked"
    expected = q + q[..., :1]
    run(q)
    np.testing.assert_array_equal(q, expected)


def test_winds_in_one_array_with_what_they_are_solved_for_are_refused():
    call = Call(columns(), of_numpy)
    call.arguments["delta"] = call.arguments["wind"]
    with refused(BufferError, "'delta'", "'wind'", "expected"):
        dlf.bind(compiled("solve_columns", "numpy"))(**call.arguments, **EVERY_CALL)
