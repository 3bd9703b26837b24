"""Members of enumerations as scalars of gt4py.next and of gtscript: each is its number."""

import enum

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import gt4py, library
from support.stencils.next_programs import BACKENDS, QUIET, Dims, Field, I, float64, gtx, int32

gtscript = library("gt4py.cartesian.gtscript")
from gt4py.cartesian.gtscript import PARALLEL, computation, interval  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(line) for line in QUIET]

Line = Field[Dims[I], float64]


class Scheme(enum.IntEnum):
    CENTRED = 0
    UPWIND = 1
    FAR = 2**40


class Terms(enum.IntFlag):
    FLUX = 1
    SOURCE = 2


class Order(int, enum.Enum):
    SECOND = 1


class Weight(np.float64, enum.Enum):
    HALF = 0.5


class Plain(enum.Enum):
    UPWIND = 1


class Limiter(enum.IntEnum):
    NONE = 0
    SHARP = 10


if hasattr(gtscript, "enum"):  # new in GT4Py 1.2
    gtscript.enum(Limiter)


@gtx.field_operator
def moved_of(inp: Line, scheme: int32, weight: float64) -> Line:
    return weight * (inp + 1.0 if scheme == 1 else inp - 1.0)


@gtx.program
def moved(inp: Line, out: Line, scheme: int32, weight: float64):
    moved_of(inp, scheme, weight, out=out)


def moved_by(scheme, weight):
    return weight * (np.arange(4.0) + (1.0 if scheme == 1 else -1.0))


INTS = [Scheme.CENTRED, Scheme.UPWIND, Terms.FLUX, Terms.FLUX | Terms.SOURCE, Order.SECOND]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("scheme", INTS, ids=repr)
def test_a_member_is_its_number_to_a_program_and_an_operator(backend, scheme):
    program, operator = (one.with_backend(BACKENDS[backend]) for one in (moved, moved_of))
    first, second = np.zeros(4), np.zeros(4)
    dlf.bind(program)(np.arange(4.0), first, scheme, Weight.HALF)
    dlf.bind(operator)(np.arange(4.0), scheme, Weight.HALF, out=second)
    np.testing.assert_array_equal(first, moved_by(scheme, 0.5))
    np.testing.assert_array_equal(second, moved_by(scheme, 0.5))


def test_a_program_of_gt4py_takes_the_same_members():
    for scheme in INTS:
        inp, out = gtx.as_field([I], np.arange(4.0)), gtx.zeros({I: (0, 4)})
        moved(inp, out, scheme, Weight.HALF, offset_provider={})
        np.testing.assert_array_equal(out.asnumpy(), moved_by(scheme, 0.5))


@pytest.mark.parametrize("scheme", [Scheme.CENTRED, Scheme.UPWIND])
def test_a_member_is_compiled_in_as_a_static_argument(scheme):
    program = moved.with_backend(gtx.itir_python).with_compilation_options(
        static_params=("scheme",)
    )
    out = np.zeros(4)
    dlf.bind(program)(np.arange(4.0), out, scheme, 1.0)
    np.testing.assert_array_equal(out, moved_by(scheme, 1.0))


@pytest.mark.parametrize("scheme", [Scheme.FAR, Plain.UPWIND], ids=repr)
def test_a_member_that_is_no_number_of_the_type_is_refused(scheme):
    out = np.zeros(4)
    with refused(ValueError, "argument 'scheme': expected a scalar of int32, got <", "of type"):
        dlf.bind(moved)(np.arange(4.0), out, scheme, 1.0)
    assert not out.any()


def chosen(out: gtscript.Field[np.float64], scheme: int):
    with computation(PARALLEL), interval(...):
        out = 5.0 if scheme == 1 else 7.0  # noqa: F841


@pytest.mark.parametrize("scheme", [Scheme.CENTRED, Scheme.UPWIND, Scheme.FAR], ids=repr)
def test_a_member_goes_where_gtscript_declares_an_int(scheme):
    out = np.zeros((2, 2, 2))
    dlf.bind(gtscript.stencil(backend="numpy", definition=chosen))(out, scheme)
    assert (out == (5.0 if scheme == 1 else 7.0)).all()


@pytest.mark.parametrize("backend", ["numpy", "debug"])
def test_a_parameter_may_be_declared_as_an_enumeration_of_gtscript(backend):
    gt4py(since=(1, 2))

    def limited(out: gtscript.Field[np.float64], limiter: Limiter):
        with computation(PARALLEL), interval(...):
            out = 1.0
            if limiter < Limiter.SHARP:
                out = Limiter.SHARP  # noqa: F841

    stencil = gtscript.stencil(backend=backend, definition=limited)
    own = {}
    for limiter in Limiter:
        first, second = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
        stencil(first, limiter)
        dlf.bind(stencil)(second, limiter)
        np.testing.assert_array_equal(second, first)
        own[limiter] = second[0, 0, 0]
    assert own == {Limiter.NONE: 10.0, Limiter.SHARP: 1.0}
    with refused(ValueError, "argument 'limiter': expected a scalar of int64, got"):
        dlf.bind(stencil)(np.zeros((2, 2, 2)), Plain.UPWIND)
