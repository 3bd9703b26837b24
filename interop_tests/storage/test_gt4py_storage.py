"""`dlfield.gt4py_storage` beside `gt4py.storage`: the same arguments, the same memory."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield import gt4py_storage

from support.errors import refused
from support.optional import library

gtscript = library("gt4py.cartesian.gtscript")
theirs = library("gt4py.storage")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    PARALLEL,
    Field,
    computation,
    interval,
    stencil,
)

BACKENDS = ["numpy", "debug", "gt:cpu_kfirst", "gt:cpu_ifirst", "dace:cpu", "dace:cpu_kfirst"]
VECTOR, MATRIX = (np.float64, (2,)), (np.float32, (2, 3))
FUNCTIONS = ["empty", "zeros", "ones", "full", "from_array"]


def made_by(module, function, shape, dtype, **options):
    if function == "full":
        return module.full(shape, 7, dtype, **options)
    if function == "from_array":
        extents = (*shape, *np.dtype(dtype).shape)
        return module.from_array(np.arange(np.prod(extents)).reshape(extents), dtype, **options)
    return getattr(module, function)(shape, dtype, **options)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("shape", "dimensions"),
    [
        ((), None),
        ((4,), None),
        ((4, 5, 6), None),
        ((4, 5, 6, 2), None),
        ((4,), "K"),
        ((4, 5), gtscript.IJ),
        ([4, 5], ["J", "K"]),
        ((4, 5, 6), (gtscript.I, gtscript.J, gtscript.K)),
        ((4, 5, 2), ("I", "J", "0")),
    ],
    ids=str,
)
def test_shape_strides_and_values_are_those_of_gt4py(function, backend, shape, dimensions):
    for dtype in (np.float64, np.int32, VECTOR, MATRIX):
        options = {"backend": backend, "dimensions": dimensions}
        expected = made_by(theirs, function, shape, dtype, **options)
        made = made_by(gt4py_storage, function, shape, dtype, **options)
        assert isinstance(made, dlf.CPUStorage)
        assert (made.shape, made.strides) == (expected.shape, expected.strides)
        assert made.dtype == expected.dtype
        if function != "empty":
            assert np.array_equal(made.to_numpy(), expected)


@pytest.mark.parametrize("index", [None, (1, 2, 3), [0, 0, 5]])
def test_the_aligned_index_lies_where_gt4py_puts_it(index):
    theirs.register("mine", {**theirs.from_name("gt:cpu_ifirst"), "alignment": 16})
    try:
        options = {"backend": "mine", "aligned_index": index}
        expected = theirs.zeros((5, 6, 7), **options)
        made = gt4py_storage.zeros((5, 6, 7), **options)
        assert made.strides == expected.strides
        at = tuple(index or (0, 0, 0))
        for array in (expected, made.to_numpy()):
            assert array[at[0] :, at[1] :, at[2] :].ctypes.data % 128 == 0
    finally:
        theirs.register("mine", None)


def test_dimensions_are_names_and_without_them_there_are_none():
    assert gt4py_storage.ones((4, 5), backend="numpy", dimensions="IK").dims == ("I", "K")
    assert gt4py_storage.ones((4, 5), backend="numpy").dims is None
    vectors = gt4py_storage.ones((4, 2), VECTOR, backend="numpy", dimensions=("K", "0"))
    assert vectors.dims == ("K", "0", "1")


def test_dimensions_in_another_order_have_the_layout_of_their_names():
    options = {"backend": "gt:cpu_ifirst", "dimensions": "KJI"}
    assert gt4py_storage.empty((4, 5, 6), **options).strides == (240, 48, 8)
    assert theirs.empty((4, 5, 6), **options).strides == (8, 32, 160)


def test_an_array_keeps_its_dtype_if_none_is_asked_for_and_becomes_float64_else():
    values = np.arange(6, dtype="int16").reshape(2, 3)
    assert gt4py_storage.from_array(values, None, backend="numpy").dtype == np.int16
    assert gt4py_storage.from_array(values, backend="numpy").dtype == np.float64
    assert gt4py_storage.from_array([[1, 2]], backend="numpy").to_numpy().tolist() == [[1.0, 2.0]]


def test_the_values_of_an_array_are_copied():
    values = np.zeros((2, 3))
    made = gt4py_storage.from_array(values, backend="numpy")
    values[...] = 1
    assert not made.to_numpy().any()


def test_a_stencil_of_gt4py_takes_what_was_made():
    @stencil(backend="numpy")
    def copy(inp: Field[np.float64], out: Field[np.float64]):
        with computation(PARALLEL), interval(...):
            out = inp  # noqa: F841

    options = {"backend": "numpy", "aligned_index": (1, 1, 0)}
    inp = gt4py_storage.from_array(np.random.default_rng(1).random((5, 6, 4)), **options)
    out = gt4py_storage.zeros((5, 6, 4), **options)
    copy(inp, out)
    assert np.array_equal(out, inp)


def test_a_backend_without_a_preset_is_the_error_of_gt4py():
    with refused(RuntimeError, "backend: ", "'pigeons'"):
        gt4py_storage.zeros((3,), backend="pigeons")
    with pytest.raises(RuntimeError):
        theirs.zeros((3,), backend="pigeons")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"shape": (2, 2, 2), "dimensions": ()},
            "dimensions: expected 3 names for shape (2, 2, 2)",
        ),
        ({"shape": (2, 2), "dimensions": "IJK"}, "dimensions: expected 2 names for shape (2, 2)"),
        ({"shape": (2, 2), "aligned_index": (1,)}, "aligned_index: "),
        ({"shape": (2, 2), "aligned_index": (-1, 0)}, "aligned_index: "),
    ],
)
def test_what_does_not_fit_is_refused(arguments, text):
    with refused(ValueError, text):
        gt4py_storage.empty(**arguments, backend="numpy")


def test_an_array_without_the_data_dimensions_of_its_dtype_is_refused():
    with refused(ValueError, "data: expected a shape that ends with (2,)", "got (4, 3)"):
        gt4py_storage.from_array(np.ones((4, 3)), VECTOR, backend="numpy")


@pytest.mark.parametrize(("shape", "index"), [((1, 1, 10), (1, 1, 0)), ((3,), (3,))])
def test_an_aligned_index_beyond_the_extents_is_taken_as_by_gt4py(shape, index):
    options = {"backend": "gt:cpu_ifirst", "aligned_index": index}
    assert gt4py_storage.zeros(shape, **options).shape == theirs.zeros(shape, **options).shape


def test_an_aligned_index_beyond_an_extent_counts_as_that_of_the_last_element():
    made = gt4py_storage.zeros((1, 3), backend="gt:cpu_ifirst", aligned_index=(2, 5))
    assert made[0, 2:].to_numpy().ctypes.data % made.alignment_size == 0
