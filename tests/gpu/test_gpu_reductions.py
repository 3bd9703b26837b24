"""Reductions of storages on a GPU: CuPy reduces there, and the result stays there."""

import sys

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cuda.buffers import Counted, pair, values
from support.cuda.driver import REAL
from support.cuda.handed import handed
from support.cuda.kinds import CLASSES, DEVICE_NEWER, HOST_NEWER, every_kind
from support.errors import refused

pytestmark = pytest.mark.usefixtures("cupy")

VALUES = np.arange(24.0).reshape(2, 3, 4) % 7
LABELS = {"dims": "IJK", "halo": ((0, 0), (1, 0), (0, 2)), "layout": (2, 0, 1)}
NAMES = (
    "sum prod mean std var min max argmin argmax all any ptp median nansum nanmax nanmean nanstd"
)


def made(managed, array=VALUES, **options):
    """Return a storage with labels whose newest values are on the GPU."""
    return handed(array, managed, **{**LABELS, **options})


@every_kind
@pytest.mark.parametrize("name", NAMES.split())
def test_a_reduction_along_a_dim_stays_on_the_gpu_with_its_labels(managed, name):
    function = getattr(np, name)
    result, expected = function(made(managed), axis="J"), function(VALUES, axis=1)
    assert type(result) is CLASSES[managed]
    assert (result.dims, result.halo, result.layout) == (("I", "K"), ((0, 0), (0, 2)), (1, 0))
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(values(result), expected, rtol=1e-12)


@every_kind
@pytest.mark.parametrize("name", NAMES.split())
def test_a_full_reduction_is_a_storage_without_dims_on_the_gpu(managed, name):
    function = getattr(np, name)
    result = function(made(managed))
    assert type(result) is CLASSES[managed]
    assert (result.shape, result.dtype) == ((), function(VALUES).dtype)
    assert float(result) == pytest.approx(float(function(VALUES)))


CALLS = {
    "several axes": lambda a: a.sum(("I", "K")),
    "keepdims": lambda a: np.max(a, axis="K", keepdims=True),
    "dtype": lambda a: np.sum(a, axis="I", dtype="float32"),
    "ddof": lambda a: a.std("K", ddof=1),
    "cumsum": lambda a: np.cumsum(a, axis="K"),
    "add.reduce": lambda a: np.add.reduce(a, axis=1),
    "add.accumulate": lambda a: np.add.accumulate(a, axis=1),
    "quantile": lambda a: np.quantile(a, 0.5, axis="I"),
    "method": lambda a: a.mean("J"),
}


EXPECTED = {
    "several axes": VALUES.sum((0, 2)),
    "keepdims": VALUES.max(2, keepdims=True),
    "dtype": VALUES.sum(0, dtype="float32"),
    "ddof": VALUES.std(2, ddof=1),
    "cumsum": VALUES.cumsum(2),
    "add.reduce": VALUES.sum(1),
    "add.accumulate": VALUES.cumsum(1),
    "quantile": np.quantile(VALUES, 0.5, axis=0),
    "method": VALUES.mean(1),
}


@every_kind
@pytest.mark.parametrize("call", CALLS)
def test_every_way_to_reduce_gives_numpys_values(managed, call):
    result = CALLS[call](made(managed))
    assert type(result) is CLASSES[managed]
    assert result.dtype == EXPECTED[call].dtype
    np.testing.assert_allclose(values(result), EXPECTED[call])


@every_kind
def test_an_output_on_the_gpu_may_have_more_dims_than_the_result(managed):
    out = dlf.zeros((2, 3, 4), dims="IJK", device="gpu", managed=managed)
    assert np.sum(made(managed), axis="K", out=out) is out
    np.testing.assert_array_equal(
        values(out), np.broadcast_to(VALUES.sum(2)[:, :, None], (2, 3, 4))
    )
    with pytest.raises(BufferError, match=r"on GPU 0, where it computes, got an array of NumPy"):
        np.sum(made(managed), axis="K", out=np.zeros((2, 3)))


@every_kind
@pytest.mark.parametrize(
    ("call", "got"),
    [
        (lambda a: np.sum(a, axis="K", where=a > 2), "where"),
        (lambda a: np.max(a, axis="K", initial=0), "initial"),
        (lambda a: np.quantile(a, [0.1, 0.5], axis="K"), "several points"),
    ],
    ids=["where", "initial", "points"],
)
def test_what_cupys_reductions_do_not_take_is_refused(managed, call, got):
    with pytest.raises(TypeError, match=rf"alone for memory on a GPU.*got {got}; use a copy"):
        call(made(managed))


@pytest.mark.keeps_memory  # of NumPy: it never lets go an operand whose `__array_ufunc__` raises
def test_a_method_that_cupy_lacks_is_refused():
    refusals = {
        TypeError: r"subtract\.accumulate: expected a function that CuPy has",
        NotImplementedError: "`cupy_subtract.accumulate` is not supported",  # in CuPy's own words
    }
    kind = NotImplementedError if REAL else TypeError
    with pytest.raises(kind, match=refusals[kind]):
        np.subtract.accumulate(made(None), axis=0)


def test_without_cupy_an_error_names_it(monkeypatch, cupy):
    a, on_host = made("gt4py"), pair(VALUES, HOST_NEWER)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"numpy\.sum: expected CuPy to be installed"):
        a.sum("K")
    assert on_host.sum() == VALUES.sum()


def test_a_pair_that_is_newer_on_the_host_is_reduced_there():
    result = pair(VALUES, HOST_NEWER).sum(0)
    assert (type(result), result.sync_state.state) == (CLASSES["gt4py"], HOST_NEWER)
    result = made("gt4py").sum(0)
    assert (type(result), result.sync_state.state) == (CLASSES["gt4py"], DEVICE_NEWER)


@pytest.mark.stand_in
def test_a_reduction_neither_waits_nor_copies():
    a = made(None)
    with Counted() as counted:
        result = np.isnan(a).any()
        a.sum("K").max()
    assert (counted.waits, counted.to_host, counted.to_device) == (0, 0, 0)
    assert not bool(result)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_random_reductions_give_numpys_values(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    array = np.arange(np.prod(shape), dtype=data.draw(st.sampled_from(["f8", "f4", "i4", "u1"])))
    array = array.reshape(shape) % 5
    managed = data.draw(st.sampled_from(list(CLASSES)))
    layout = data.draw(st.permutations(range(len(shape))))
    a = handed(array, managed, dims="IJK"[: len(shape)], layout=layout)
    function = getattr(np, data.draw(st.sampled_from(["sum", "mean", "max", "argmin", "any"])))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    keepdims = data.draw(st.booleans())
    result = function(a, axis=axis, keepdims=keepdims)
    expected = np.asarray(function(array, axis=axis, keepdims=keepdims))
    assert (type(result), result.dtype) == (CLASSES[managed], expected.dtype)
    np.testing.assert_allclose(values(result), expected, rtol=1e-6)


WEIGHTS = np.array([1.0, 0.5, 3.0])


@every_kind
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", ["J", ("I", "J"), "I", None], ids=str)
def test_an_average_has_weights_by_name_where_the_values_are(managed, axis, keepdims):
    weights = handed(WEIGHTS, managed, dims="J")
    at = None if axis is None else tuple("IJK".index(name) for name in axis)
    whole = np.broadcast_to(WEIGHTS[:, None], VALUES.shape)
    options = {"returned": True, "keepdims": keepdims}
    found = np.average(made(managed), axis, weights, **options)
    for one, wanted in zip(found, np.average(VALUES, at, whole, **options), strict=True):
        assert type(one) is CLASSES[managed]
        np.testing.assert_allclose(values(one), wanted, rtol=1e-12)


@every_kind
def test_weights_without_names_on_a_gpu_are_those_of_what_is_reduced(managed):
    weights = handed(WEIGHTS, managed)
    found = np.average(made(managed), "J", weights)
    np.testing.assert_allclose(values(found), np.average(VALUES, 1, WEIGHTS), rtol=1e-12)
    with refused(ValueError, "weights: expected shape (2, 3, 4), or (2,)", "got (3,)"):
        np.average(made(managed), "I", weights)
    with refused(ValueError, "weights: expected dims among ('I', 'J', 'K')", "got ('lon',)"):
        np.average(made(managed), "J", handed(WEIGHTS, managed, dims=["lon"]))


def test_weights_on_the_host_of_values_on_a_gpu_are_to_be_copied():
    with refused(BufferError, "on GPU 0", "copy it with dlfield.storage(array, device="):
        np.average(made(None), "J", WEIGHTS)
