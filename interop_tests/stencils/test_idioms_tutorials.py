"""Programs in the idioms of GT4Py's tutorials compute the same bound, bit for bit."""

import functools

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library

gtscript = library("gt4py.cartesian.gtscript")
library("gt4py.next")

from support.processes import one_at_a_time  # noqa: E402 (after the skip)
from support.stencils import idioms_tutorials as tutorials  # noqa: E402
from support.stencils.idioms import (  # noqa: E402
    HELD,
    Call,
    check_same,
    empty,
    field_of,
    of_numpy,
    origins,
    spread,
)
from support.stencils.next_programs import QUIET, int32  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

INNER, HALO = (6, 5, 3), 3
WIDE = (12, 11, 3)
BEGIN = (-HALO, -HALO, 0)
SCALARS = dict(zip(("ni", "nj", "nk"), map(int32, INNER), strict=True))
of_field = field_of(tutorials.DIMENSIONS)
NEXT = {"fields": of_field, **HELD}


@functools.cache
def compiled(name, backend):
    with one_at_a_time(f"tutorial-{name}-{backend}".replace(":", "-")):
        return gtscript.stencil(backend=backend, definition=getattr(tutorials, name))


def wide(low=-1.0, first=()):
    return spread(*WIDE, dims="IJK", low=low, first=first)


def new(*shape, first=()):
    return empty(*(shape or WIDE), dims="IJK", first=first)


def diffusion(first=()):
    """Make fields of which the output has the points of the domain alone."""
    found = {"in_field": wide(first=first), "out_field": new(*INNER)}
    return found | {"coeff": spread(*INNER, dims="IJK", low=0.0)}


DIFFUSION = {"in_field": (HALO, HALO, 0), "_all_": (0, 0, 0)}
ADVANCE = {"now": (HALO, HALO, 0), "tmp": (HALO, HALO, 0), "out": (HALO, HALO, 0)}


def burgers():
    return {"now": wide(), "tmp": wide(low=0.0), "out": new(), "dt": 0.1}


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize("backend", ["numpy", "debug", "gt:cpu_kfirst"])
def test_horizontal_diffusion_computes_as_without_being_bound(backend, kind):
    stencil = compiled("horizontal_diffusion", backend)
    where = {"origin": DIFFUSION, "domain": INNER}
    check_same(stencil, dlf.bind(stencil), diffusion(), of_numpy, HELD[kind], **where)


@pytest.mark.parametrize("kind", NEXT)
@pytest.mark.parametrize("backend", ["embedded", "roundtrip", "gtfn_cpu"])
def test_horizontal_diffusion_in_next_computes_as_without_being_bound(backend, kind):
    program, arguments = tutorials.on(backend, "diffusion_next"), diffusion(first=BEGIN)
    located = {} if kind == "fields" else origins(arguments)

    def own(**given):
        program(**given, **SCALARS, offset_provider={})

    def bound(**given):
        dlf.bind(program)(**given, **SCALARS, **located)

    check_same(own, bound, arguments, of_field, NEXT[kind])


@pytest.mark.parametrize("kind", HELD)
def test_diffusion_in_both_languages_gives_the_same(kind):
    cartesian, following = Call(diffusion(), HELD[kind]), Call(diffusion(), HELD[kind])
    dlf.bind(compiled("horizontal_diffusion", "numpy"))(
        **cartesian.arguments, origin=DIFFUSION, domain=INNER
    )
    dlf.bind(tutorials.on("embedded", "diffusion_next"))(
        **following.arguments, **SCALARS, origin={"in_field": (HALO, HALO, 0)}
    )
    left, right = (call.results()["out_field"] for call in (cartesian, following))
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize("backend", ["embedded", "roundtrip"])
def test_a_laplacian_in_both_languages_gives_the_same_in_one_array(backend, kind):
    call = Call({"inp": wide(), "out": new()}, HELD[kind])
    run = dlf.bind(compiled("laplacian", "numpy"))
    run(**call.arguments, origin=(1, 1, 0), domain=(10, 9, 3))
    by_cartesian = call.results()["out"]
    dlf.bind(tutorials.on(backend, "laplacian_next"))(
        **call.arguments, ni=int32(10), nj=int32(9), nk=int32(3), origin=(1, 1, 0)
    )
    np.testing.assert_array_equal(call.results()["out"], by_cartesian)
    assert (by_cartesian[0] == -1.0).all()
    assert (by_cartesian[1:-1, 1:-1] != -1.0).all()


@pytest.mark.parametrize("kind", HELD)
def test_a_step_of_burgers_with_fields_apart_computes_as_without_being_bound(kind):
    stencil = compiled("advance", "numpy")
    where = {"origin": ADVANCE, "domain": INNER}
    check_same(stencil, dlf.bind(stencil), burgers(), of_numpy, HELD[kind], **where)


@pytest.mark.parametrize("kind", HELD)
def test_a_step_of_burgers_that_reads_three_points_away_what_it_writes_is_refused(kind):
    call = Call(burgers(), HELD[kind])
    before = call.results()
    given = call.arguments | {"tmp": call.arguments["out"]}
    with refused(BufferError, "'tmp'", "'out'", "expected"):
        dlf.bind(compiled("advance", "numpy"))(**given, origin=ADVANCE, domain=INNER)
    for name, one in call.results().items():
        np.testing.assert_array_equal(one, before[name])


def test_steps_of_burgers_that_exchange_their_fields_compute_as_without_being_bound():
    stencil, results = compiled("advance", "numpy"), []
    for step in (stencil, dlf.bind(stencil)):
        given = Call(burgers(), of_numpy).arguments
        for _ in range(4):
            step(**given, origin=ADVANCE, domain=INNER)
            given |= {"now": given["out"], "out": given["now"], "tmp": given["out"].copy()}
        results.append(given["now"])
    np.testing.assert_array_equal(*results)
