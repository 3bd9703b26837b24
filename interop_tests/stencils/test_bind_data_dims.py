"""Data dimensions of gt4py.cartesian, whose extents may be any kind of int in GT4Py 1.2."""

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import gt4py, library

gtscript = library("gt4py.cartesian.gtscript")
from gt4py.cartesian.gtscript import PARALLEL, computation, interval  # noqa: E402

SHAPE = (3, 2, 4)
EXTENTS = [(2, 3), (np.int32(2), 3), (np.uint8(2), np.int64(3))]


def turned(extents, backend):
    if any(type(extent) is not int for extent in extents):
        gt4py(since=(1, 2))
    first, second = extents
    matrix = gtscript.Field[(np.float64, (first, second))]
    vector = gtscript.Field[(np.float64, (first,))]

    def definition(inp: matrix, out: vector):
        with computation(PARALLEL), interval(...):
            out[0, 0, 0][0] = inp[0, 0, 0][0, 2] - inp[0, 0, 0][1, 0]
            out[0, 0, 0][1] = inp[0, 0, 0][1, 1]

    return gtscript.stencil(backend=backend, definition=definition, name="turned")


VALUES = np.random.default_rng(3).random((*SHAPE, 2, 3))
EXPECTED = np.stack([VALUES[..., 0, 2] - VALUES[..., 1, 0], VALUES[..., 1, 1]], axis=-1)

every = pytest.mark.parametrize("extents", EXTENTS, ids=str)


@every
@pytest.mark.parametrize("backend", ["numpy", "debug"])
def test_extents_of_data_dimensions_may_be_of_any_type_of_ints(extents, backend):
    out = np.zeros((*SHAPE, 2))
    dlf.bind(turned(extents, backend))(VALUES, out)
    np.testing.assert_array_equal(out, EXPECTED)


def test_a_compiled_stencil_has_them_too():
    out = np.zeros((*SHAPE, 2))
    dlf.bind(turned(EXTENTS[1], "gt:cpu_ifirst"))(VALUES, out)
    np.testing.assert_array_equal(out, EXPECTED)


@every
def test_outputs_with_data_dimensions_are_made(extents):
    made = dlf.bind(turned(extents, "numpy")).functional(VALUES)
    np.testing.assert_array_equal(made, EXPECTED)


@every
def test_data_dimensions_are_numbers_in_the_names_of_a_storage(extents):
    inp = dlf.as_storage(VALUES.transpose(4, 3, 2, 1, 0), dims=("1", "0", "K", "J", "I"))
    out = dlf.zeros((2, *SHAPE), dims=("0", "I", "J", "K"))
    dlf.bind(turned(extents, "numpy"))(inp, out)
    np.testing.assert_array_equal(out.to_numpy(), np.moveaxis(EXPECTED, -1, 0))


@every
def test_another_extent_is_refused(extents):
    with refused(ValueError, "argument 'inp': expected", "data dimension"):
        dlf.bind(turned(extents, "numpy"))(VALUES[..., :2], np.zeros((*SHAPE, 2)))
