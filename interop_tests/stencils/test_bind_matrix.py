"""Every producer on every kind of stencil: equal results, and the producer's own memory."""

import enum

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import IJK, Access, Field, K

from support.optional import library
from support.stencils import arguments, spy
from support.stencils.cartesian import mixed_arguments, mixed_reference, skewed_reference
from support.stencils.next_programs import BACKENDS as NEXT
from support.stencils.next_programs import IJK as FIELD
from support.stencils.next_programs import QUIET, Dims, I, J, float64, gtx, on
from support.stencils.next_programs import K as Level
from support.stencils.spy import DOMAIN, ORIGIN, SHAPE, of_callable, of_cartesian, of_next

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

CARTESIAN = ("numpy", "gt:cpu_kfirst", "gt:cpu_ifirst", "debug", "dace:cpu")
KINDS = (*CARTESIAN, "callable", "embedded", "gtfn_cpu")

VALUES = np.random.default_rng(seed=7).random(SHAPE)

WRITABLE = arguments.WRITABLE + spy.WRITABLE
EVERY = arguments.EVERY + spy.WRITABLE + spy.READ_ONLY

#: Python runs these slowly, and as it runs "embedded".
ROUNDTRIP = [one for one in EVERY if one.name in ("numpy, Fortran order", "xarray KJI")]


def pairs(every, kinds=KINDS):
    """Each producer with each kind of stencil; "roundtrip" with few."""
    slow = [pytest.param(one, "roundtrip", id=f"{one}-roundtrip") for one in ROUNDTRIP]
    return slow + [pytest.param(one, kind, id=f"{one}-{kind}") for one in every for kind in kinds]


@gtx.field_operator
def skewed(inp: FIELD) -> FIELD:
    return inp(I + 1) + 2.0 * inp(J - 2) + 3.0 * inp


@pytest.fixture
def spied(compiled):
    """Return `skewed` for a kind of stencil; it tells where the arrays lay that it was given."""

    def spied(kind):
        if kind in CARTESIAN:
            return of_cartesian(compiled("skewed", kind))
        if kind == "callable":
            return of_callable()
        on(kind, "lift")  # skips where nothing can compile it
        return of_next(skewed.with_backend(NEXT[kind]))

    return spied


def run(stencil, producer, inp, out):
    dlf.bind(stencil, dims=producer.dims)(inp=inp, out=out, origin=ORIGIN, domain=DOMAIN)


def output():
    return np.full(SHAPE, -1.0)


# --- producers -----------------------------------------------------------------------------------


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "stencils take objects of other libraries unchanged",
    "an object with only an array interface counts as host memory",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "`Field[dtype]` keeps working",
    "a storage whose layout differs from the backend's is declared to the stencil",
)
@pytest.mark.source("GDP-3 draft", "Run-time Checks", "fields need not be storages")
@pytest.mark.source(
    "Interface note",
    "Storages without the interface",
    "objects without the interface have axes in the order of the stencil",
    "other standards are accepted if NumPy or CuPy accepts them",
)
@pytest.mark.source(
    "Allocation note",
    "Introduction",
    "names of dimensions need not be given: a stencil has an order of its own",
)
@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "any interface that `numpy.asarray` accepts can be used on a CPU",
)
@pytest.mark.parametrize(("producer", "kind"), pairs(EVERY))
def test_every_producer_is_read_as_numpy_reads_it(spied, producer, kind):
    held, out = producer.hold(VALUES), output()
    run(spied(kind).stencil, producer, held.array, out)
    np.testing.assert_allclose(out, skewed_reference(VALUES), rtol=1e-14)


@pytest.mark.parametrize(("producer", "kind"), pairs(EVERY))
def test_an_input_is_not_written(spied, producer, kind):
    held = producer.hold(VALUES)
    run(spied(kind).stencil, producer, held.array, output())
    assert np.array_equal(held.read(), VALUES)


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "stencils take objects of other libraries unchanged",
)
@pytest.mark.parametrize(("producer", "kind"), pairs(EVERY))
def test_an_input_reaches_the_stencil_at_the_address_of_the_producer(spied, producer, kind):
    held, skewed = producer.hold(VALUES), spied(kind)
    run(skewed.stencil, producer, held.array, output())
    assert skewed.addresses()["inp"] == held.address


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "stencils take objects of other libraries unchanged",
)
@pytest.mark.parametrize(("producer", "kind"), pairs(WRITABLE))
def test_every_writable_producer_shows_the_result_and_nothing_else(spied, producer, kind):
    held = producer.hold(output())
    run(spied(kind).stencil, producer, VALUES, held.array)
    np.testing.assert_allclose(held.read(), skewed_reference(VALUES), rtol=1e-14)


@pytest.mark.parametrize(("producer", "kind"), pairs(WRITABLE))
def test_an_output_reaches_the_stencil_at_the_address_of_the_producer(spied, producer, kind):
    held, skewed = producer.hold(output()), spied(kind)
    run(skewed.stencil, producer, VALUES, held.array)
    assert skewed.addresses()["out"] == held.address


IMMUTABLE = [one for one in EVERY if one.readonly]


@pytest.mark.parametrize(
    ("producer", "kind"),
    [pytest.param(one, kind, id=f"{one}-{kind}") for one in IMMUTABLE for kind in KINDS],
)
def test_a_producer_of_read_only_memory_is_refused_as_output_and_keeps_its_values(
    spied, producer, kind
):
    held = producer.hold(output())
    with pytest.raises(BufferError, match="argument 'out': expected a writable output"):
        run(spied(kind).stencil, producer, VALUES, held.array)
    assert (held.read() == -1.0).all()


Input = Field[np.float64, Access["in"]]


@pytest.mark.parametrize(
    "backend",
    [
        None,
        "numpy",
    ],
)
def test_a_function_of_python_cannot_write_into_immutable_memory(backend):
    def overwrite(inp: Input):
        inp[...] = -1.0

    held = arguments.jax_array(VALUES)
    with pytest.raises(ValueError, match="read-only"):
        dlf.bind(overwrite, backend=backend)(held.array)
    assert np.array_equal(held.read(), VALUES)


# --- planes, columns, vectors, scalars -----------------------------------------------------------


def expected_of_mixed():
    return mixed_reference(**mixed_arguments(), scale=3.0)


def turned(given):
    """Hand the same fields in with their axes in another order, and named."""
    xr = library("xarray")
    return given | {
        "plane": xr.DataArray(given["plane"].T.copy(), dims=("J", "I")),
        "profile": xr.DataArray(given["profile"], dims="K"),
        "pair": xr.DataArray(given["pair"].transpose(3, 2, 0, 1).copy(), dims=("0", "K", "I", "J")),
    }


Column = Field[K, np.float64, Access["in"]]
Plane = Field["IJ", np.float64, Access["in"]]
Pair = Field[IJK, (np.float64, (2,)), Access["in"]]


def mixed_of_numpy(
    field: Field[np.float64], plane: Plane, profile: Column, pair: Pair, *, scale: np.float64
):
    field[...] = mixed_reference(field, plane, profile, pair, scale)


every_cartesian = pytest.mark.parametrize("kind", CARTESIAN)


@pytest.mark.source(
    "GDP-3 draft",
    "Annotation of Stencils",
    "fields of fewer dimensions are left to a later proposal",
)
@pytest.mark.source(
    "Interface note",
    "Storages without the interface",
    "objects without the interface have axes in the order of the stencil",
)
@pytest.mark.source("Allocation note", "Dimension Mapping", "decimals stand for data dimensions")
@every_cartesian
@pytest.mark.parametrize("turn", [dict, turned], ids=["plain", "named"])
def test_planes_columns_vectors_scalars_and_in_out_fields(compiled, kind, turn):
    given = turn(mixed_arguments())
    dlf.bind(compiled("mixed", kind))(**given, spare=None, scale=3.0)
    assert np.array_equal(given["field"], expected_of_mixed())


@pytest.mark.parametrize("turn", [dict, turned], ids=["plain", "named"])
def test_a_callable_gets_planes_columns_vectors_scalars_and_in_out_fields(turn):
    given = turn(mixed_arguments())
    dlf.bind(mixed_of_numpy)(**given, scale=3.0)
    assert np.array_equal(given["field"], expected_of_mixed())


where = gtx.where  # what an operator calls has a name of its own


@gtx.field_operator
def on_land(
    field: FIELD,
    plane: gtx.Field[Dims[I, J], float64],
    column: gtx.Field[Dims[Level], float64],
    land: gtx.Field[Dims[I, J, Level], bool],
    sea: float64,
) -> FIELD:
    return where(land, field * plane + column, sea)


@pytest.mark.parametrize("kind", ["embedded", "gtfn_cpu"])
def test_gt4py_next_gets_planes_columns_bools_and_scalars(xr, kind):
    on(kind, "lift")  # skips where nothing can compile it
    field, plane, column, land = VALUES, VALUES[:, :, 0].copy(), VALUES[0, 0].copy(), VALUES > 0.5
    given = {
        "plane": xr.DataArray(plane.T.copy(), dims=("J", "I")),
        "land": xr.DataArray(land.transpose(2, 0, 1).copy(), dims=("K", "I", "J")),
    }
    out, run = output(), dlf.bind(on_land.with_backend(NEXT[kind]))
    run(field=field, column=column, **given, sea=7.0, out=out)
    np.testing.assert_allclose(out, np.where(land, field * plane[:, :, None] + column, 7.0))


@every_cartesian
def test_an_unused_field_may_be_left_out_or_none_or_anything(compiled, kind):
    for spare in ({}, {"spare": None}, {"spare": np.zeros((1, 1, 1))}):
        given = mixed_arguments()
        dlf.bind(compiled("mixed", kind))(**given, **spare, scale=3.0)
        assert np.array_equal(given["field"], expected_of_mixed())


@every_cartesian
@pytest.mark.parametrize("scale", [3.0, np.float64(3.0)], ids=["Python", "NumPy"])
def test_a_scalar_may_be_of_python_or_of_numpy(compiled, kind, scale):
    given = mixed_arguments()
    dlf.bind(compiled("mixed", kind))(**given, scale=scale)
    assert np.array_equal(given["field"], expected_of_mixed())


@every_cartesian
@pytest.mark.parametrize("more", [2, np.int64(2)], ids=["Python", "NumPy"])
def test_fields_of_bools_and_small_numbers_are_taken_as_they_are(compiled, kind, more):
    steps, land = np.full((4, 3, 2), 5, dtype=np.int32), np.arange(24).reshape(4, 3, 2) % 2 == 0
    out = np.zeros((4, 3, 2), dtype=np.float32)
    dlf.bind(compiled("choose", kind))(steps, land, out, more=more)
    assert np.array_equal(out, np.where(land, 7.0, 0.0))


@every_cartesian
def test_exec_info_has_what_gt4pys_own_call_puts_into_it(compiled, kind):
    stencil, ours, theirs = compiled("skewed", kind), {}, {}
    place = {"origin": ORIGIN, "domain": DOMAIN}
    dlf.bind(stencil)(inp=VALUES, out=output(), **place, exec_info=ours)
    stencil(inp=VALUES.copy(), out=output(), **place, exec_info=theirs)
    assert ours.keys() == theirs.keys()


@every_cartesian
def test_exec_info_has_a_run_that_began_before_it_ended(compiled, kind):
    info = {}
    run = dlf.bind(compiled("skewed", kind))
    run(inp=VALUES, out=output(), origin=ORIGIN, domain=DOMAIN, exec_info=info)
    assert info["run_start_time"] <= info["run_end_time"]


def test_exec_info_of_a_callable_has_a_call_that_began_before_it_ended():
    info, given = {}, mixed_arguments()
    dlf.bind(mixed_of_numpy)(**given, scale=3.0, exec_info=info)
    assert info["call_run_start_time"] <= info["call_run_end_time"]
    assert np.array_equal(given["field"], expected_of_mixed())


@pytest.mark.parametrize("kind", ["embedded", "gtfn_cpu"])
def test_exec_info_of_gt4py_next_has_a_call_that_began_before_it_ended(kind):
    info, out = {}, output()
    dlf.bind(on(kind, "scaled"))(VALUES, 2.0, out=out, exec_info=info)
    assert info["call_run_start_time"] <= info["call_run_end_time"]
    np.testing.assert_array_equal(out, 2.0 * VALUES)


def scaled_by_loops(field: Field[np.float64], factor: np.float64):
    for index in np.ndindex(field.shape):
        field[index] *= factor


def test_a_kernel_of_numba_computes_in_the_memory_of_every_framework():
    kernel = library("numba").njit(scaled_by_loops)
    for producer in (one for one in WRITABLE if one.name in ("torch", "xarray KJI", "storage")):
        held = producer.hold(VALUES)
        dlf.bind(kernel)(field=held.array, factor=2.0)
        assert np.array_equal(held.read(), 2.0 * VALUES)


class More(enum.IntEnum):
    """A choice as gtscript.enum takes it."""

    NONE = 0
    TWO = 2


@every_cartesian
def test_a_member_of_an_enumeration_is_the_int_that_it_names(compiled, kind):
    steps, out = np.arange(24, dtype=np.int32).reshape(2, 3, 4), np.zeros((2, 3, 4), np.float32)
    dlf.bind(compiled("choose", kind))(steps, np.ones((2, 3, 4), bool), out, more=More.TWO)
    assert np.array_equal(out, steps + 2)
