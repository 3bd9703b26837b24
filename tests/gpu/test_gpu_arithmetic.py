"""Operators and universal functions of storages on a GPU: CuPy computes there, and who decides."""

import sys

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import pair, values
from support.cuda.devices import OnDevice
from support.cuda.driver import REAL
from support.cuda.kinds import (
    CLASSES,
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    every_kind,
    every_state,
    two_devices,
)

pytestmark = pytest.mark.usefixtures("cupy")

VALUES = np.arange(1.0, 13.0).reshape(3, 4)
LABELS = {"dims": "IJ", "halo": ((1, 0), (0, 2)), "layout": (1, 0)}


def made(managed, array=VALUES, **options):
    """Return a storage whose newest values are on the GPU."""
    storage = dlf.storage(array, device="gpu", managed=managed, **{**LABELS, **options})
    storage.synchronize()
    return storage


@pytest.fixture
def without_cupy(cupy, monkeypatch):
    """Importing CuPy fails, whether it is installed or not."""
    monkeypatch.setitem(sys.modules, "cupy", None)


OPERATIONS = {
    "a + b": lambda a, b: a + b,
    "2 - a": lambda a, b: 2 - a,
    "a * float32": lambda a, b: a * np.float32(3),
    "a < b": lambda a, b: a < b,
    "-a": lambda a, b: -a,
    "divmod": lambda a, b: divmod(a, b)[1],
    "sqrt": lambda a, b: np.sqrt(a),
    "dtype": lambda a, b: np.add(a, b, dtype="float32"),
    "a ** 0-d": lambda a, b: a ** np.array(2.0),
    "clip": lambda a, b: np.clip(a, 2, b),
    "round": lambda a, b: np.round(a / 3, 1),
    "where": lambda a, b: np.where(a > 4, b, 0.0),
    "isclose": lambda a, b: np.isclose(a, b, rtol=0.5),
}


@pytest.mark.source(
    "GDP-3 draft",
    "Supported Functionality",
    "mathematical operations are passed to NumPy and CuPy",
)
@every_kind
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_result_has_the_class_the_labels_and_the_values_of_its_operands(managed, operation):
    a, b = made(managed), made(managed, VALUES[::-1])
    result, expected = operation(a, b), operation(VALUES, VALUES[::-1])
    assert type(result) is CLASSES[managed]
    assert (result.dims, result.halo, result.layout) == (a.dims, a.halo, a.layout)
    assert (result.dtype, result.device_id) == (expected.dtype, a.device_id)
    np.testing.assert_allclose(values(result), expected, rtol=1e-6)
    if managed == "gt4py":
        assert operation(a, b).sync_state.state == DEVICE_NEWER


@every_kind
def test_operands_on_a_gpu_meet_by_name(managed):
    column, profile = (
        made(managed, VALUES[:, 0], dims=dims, halo=None, layout=None) for dims in "IK"
    )
    result = column * made(managed)
    assert result.dims == ("I", "J")
    np.testing.assert_array_equal(values(result), VALUES[:, :1] * VALUES)
    square = column + profile
    assert square.dims == ("I", "K")
    np.testing.assert_array_equal(values(square), VALUES[:, :1] + VALUES[:, 0])
    np.testing.assert_array_equal(values(np.add.outer(column, profile)), values(square))
    with pytest.raises(ValueError, match="transpose"):
        square + square.rename(I="K", K="I")


@every_kind
def test_an_operator_in_place_writes_into_the_memory_that_is_there(managed, cupy):
    a, b = made(managed), made(managed, VALUES[0], dims="J", halo=None, layout=None)
    before, where = a, a.__gt_data_interface__["gpu"]["data"]
    a += b
    assert a is before
    assert a.__gt_data_interface__["gpu"]["data"] == where
    np.testing.assert_array_equal(values(a), VALUES + VALUES[0])
    assert REAL or cupy.copies == []


@every_kind
def test_operands_that_overlap_the_output_in_other_places_are_read_before(managed):
    a = made(managed)
    np.add(a[:-1], a[1:], out=a[1:])
    expected = VALUES.copy()
    expected[1:] += VALUES[:-1]
    np.testing.assert_array_equal(values(a), expected)
    b = made(managed)
    b[:, ::-1] += b
    np.testing.assert_array_equal(values(b), VALUES + VALUES[:, ::-1])


@every_kind
def test_where_leaves_other_elements_as_they_are(managed):
    a, out = made(managed), made(managed, -VALUES)
    assert np.sqrt(a, out=out, where=a > 4) is out
    expected = np.sqrt(VALUES, out=-VALUES, where=VALUES > 4)
    np.testing.assert_allclose(values(out), expected)
    np.add(a, 1, out=out, where=False)
    np.testing.assert_allclose(values(out), expected)
    first, second = np.divmod(a, 5, where=a > 4, out=(made(managed), made(managed)))
    np.testing.assert_array_equal(values(first), np.where(VALUES > 4, VALUES // 5, VALUES))
    np.testing.assert_array_equal(values(second), np.where(VALUES > 4, VALUES % 5, VALUES))


@every_kind
def test_an_output_may_have_more_dims_than_the_result(managed):
    row = made(managed, VALUES[0], dims="J", halo=None, layout=None)
    out = dlf.zeros((3, 4), dims="IJ", device="gpu", managed=managed)
    np.negative(row, out=out)
    np.testing.assert_array_equal(values(out), np.broadcast_to(-VALUES[0], (3, 4)))


@pytest.mark.usefixtures("without_cupy")
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_without_cupy_an_error_names_it_and_nothing_is_written(managed):
    a = made(managed)
    state = getattr(a, "sync_state", None) and a.sync_state.state
    way_out = r"expected CuPy to be installed.*pip install cupy.*dlfield.storage\(field, device="
    for refused in (lambda: a + 1, lambda: a.__iadd__(1), lambda: np.round(a), lambda: a == a):
        with pytest.raises(ImportError, match=way_out):
            refused()
    assert (getattr(a, "sync_state", None) and a.sync_state.state) == state
    np.testing.assert_array_equal(values(a), VALUES)


@pytest.mark.usefixtures("without_cupy")
def test_a_pair_that_is_newer_on_the_host_needs_no_cupy():
    result = pair(VALUES, HOST_NEWER) + 1
    assert type(result) is dlf.SoftwareManagedGPUStorage
    np.testing.assert_array_equal(result.to_numpy(), VALUES + 1)


CPU, GPU = "CPUStorage", "GPUStorage"
PAIR, CUDA = "SoftwareManagedGPUStorage", "CUDAManagedGPUStorage"
OPERANDS = {
    "host": lambda: dlf.storage(VALUES),
    "NumPy": lambda: VALUES,
    "GPU": lambda: made(None, dims=None, halo=None),
    "foreign": lambda: OnDevice(VALUES),
    "clean pair": lambda: pair(VALUES, CLEAN),
    "pair of the host": lambda: pair(VALUES, HOST_NEWER),
    "managed": lambda: made("cuda", dims=None, halo=None),
}
TOGETHER = [
    ("GPU", "foreign", GPU, "gpu"),
    ("clean pair", "pair of the host", PAIR, "gpu"),
    ("pair of the host", "pair of the host", PAIR, "host"),
    ("pair of the host", "NumPy", PAIR, "host"),
    ("pair of the host", "host", PAIR, "host"),
    ("host", "pair of the host", PAIR, "host"),
    ("pair of the host", "GPU", PAIR, "gpu"),
    ("GPU", "pair of the host", PAIR, "gpu"),
    ("pair of the host", "foreign", PAIR, "gpu"),
    ("managed", "managed", CUDA, "gpu"),
    ("managed", "GPU", CUDA, "gpu"),
    ("managed", "foreign", CUDA, "gpu"),
    ("managed", "NumPy", CUDA, "host"),
    ("host", "managed", CUDA, "host"),
    ("managed", "pair of the host", CUDA, "gpu"),
    ("pair of the host", "managed", PAIR, "gpu"),
]


@pytest.mark.source(
    "GDP-3 draft",
    "Mixing Devices",
    "with memory managed by CUDA, the GPU computes exactly if CuPy takes the inputs",
    "with memory managed by the library, the GPU computes unless no input is on it",
    "a storage that was modified on the host counts as host memory",
    "if classes are mixed, the one that handles the operation decides",
)
@pytest.mark.parametrize(("one", "other", "expected", "where"), TOGETHER)
def test_the_storage_that_is_kept_in_step_decides_where(
    one, other, expected, where, monkeypatch, cupy
):
    if where == "gpu":
        first, second = OPERANDS[one](), OPERANDS[other]()
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "cupy", None)
            with pytest.raises(ImportError, match="CuPy"):
                first + second
    else:
        monkeypatch.setitem(sys.modules, "cupy", None)
    result = OPERANDS[one]() + OPERANDS[other]()
    assert type(result).__name__ == expected
    if expected == PAIR:
        assert result.sync_state.state == (HOST_NEWER if where == "host" else DEVICE_NEWER)
    np.testing.assert_array_equal(values(result), 2 * VALUES)


APART = [
    ("GPU", "NumPy", "on GPU 0.*an array of NumPy"),
    ("GPU", "host", "on GPU 0.*a CPUStorage"),
    ("host", "GPU", "on the host.*a GPUStorage on GPU 0"),
    ("host", "foreign", "on the host.*memory on cuda:0"),
    ("clean pair", "NumPy", "on GPU 0.*an array of NumPy"),
    ("host", "clean pair", "on GPU 0.*a CPUStorage"),
]


@pytest.mark.source(
    "GDP-3 draft",
    "Mixing Devices",
    "host storages take what NumPy takes, and GPU storages what CuPy takes",
)
@pytest.mark.parametrize(("one", "other", "got"), APART)
def test_what_would_have_to_be_copied_to_the_other_side_is_refused(one, other, got):
    operands = OPERANDS[one](), OPERANDS[other]()
    with pytest.raises(BufferError, match=rf"add: expected arrays {got}; copy it with dlfield"):
        operands[0] + operands[1]


@pytest.mark.source(
    "GDP-3 draft",
    "Mixing Devices",
    "host storages take what NumPy takes, and GPU storages what CuPy takes",
)
@pytest.mark.parametrize("other", [lambda: 2, lambda: np.float64(2), OPERANDS["foreign"]])
def test_a_storage_on_a_gpu_takes_what_cupy_takes(other, cupy):
    storage, value = OPERANDS["GPU"](), other()
    result = storage * value
    assert type(result) is dlf.GPUStorage
    expected = VALUES * (VALUES if isinstance(value, OnDevice) else 2)
    np.testing.assert_array_equal(values(result), expected)


@every_state
def test_reading_on_the_gpu_brings_a_pair_up_to_date_there(state):
    storage = pair(VALUES, state)
    storage[1:] + made(None, VALUES[1:], dims=None, halo=None)
    assert storage.sync_state.state == (CLEAN if state == HOST_NEWER else state)


@every_state
def test_a_part_that_is_written_on_one_side_leaves_the_rest_of_a_pair_whole(state):
    storage = pair(VALUES, state)
    storage[1:] *= 2
    expected = VALUES.copy()
    expected[1:] *= 2
    assert storage.sync_state.state == (HOST_NEWER if state == HOST_NEWER else DEVICE_NEWER)
    np.testing.assert_array_equal(values(storage), expected)


@every_kind
def test_numbers_alone_are_written_where_the_output_decides(managed):
    out = made(managed)
    assert np.add(1, 2, out=out) is out
    np.testing.assert_array_equal(values(out), np.full((3, 4), 3.0))


@every_kind
def test_an_output_on_the_other_side_is_refused_and_stays_as_it_is(managed):
    plain, storage = np.zeros((3, 4)), dlf.zeros((3, 4))
    for out in (plain, storage):
        with pytest.raises(BufferError, match="on GPU 0, where it computes, got a"):
            np.negative(made(managed, dims=None, halo=None), out=out)
    assert not plain.any()
    assert not np.asarray(storage).any()


@every_kind
def test_what_cupy_does_not_have_is_refused(managed):
    a = made(managed)
    with pytest.raises(TypeError, match=r"numpy\.spacing: expected a function that CuPy has too"):
        np.spacing(a)
    own = np.frompyfunc(lambda one, other: 0.0, 2, 1)
    with pytest.raises(TypeError, match="expected a"):
        own(a, a, out=made(managed))
    with pytest.raises(TypeError, match=r"expected dtype and casting alone.*got signature"):
        np.add(a, a, signature="dd->d")


@every_kind
def test_types_that_numpy_refuses_are_refused_and_nothing_is_written(managed):
    a, out = made(managed), made(managed, VALUES.astype(int))
    with pytest.raises(TypeError):
        np.sqrt(a, out=out)  # float64 does not go into int64
    with pytest.raises(TypeError):
        np.left_shift(a, a)
    small = made(managed, VALUES.astype("int8"))
    with pytest.raises(OverflowError):
        np.add(small, 300, out=small)
    np.testing.assert_array_equal(values(out), VALUES)
    np.testing.assert_array_equal(values(small), VALUES)


def test_read_only_memory_on_a_gpu_is_read_and_not_written():
    readonly = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=None)
    np.testing.assert_array_equal(values(readonly + readonly), 2 * VALUES)
    with pytest.raises(BufferError, match="read-only"):
        readonly += 1


def test_an_array_of_cupy_is_an_operand(cupy):
    array = cupy.asarray(VALUES)
    result = made(None) - array
    assert (type(result), result.dims) == (dlf.GPUStorage, ("I", "J"))
    np.testing.assert_array_equal(values(result), 0 * VALUES)


@two_devices
@every_kind
def test_a_second_gpu_computes_on_its_own_memory(managed):
    there = dlf.storage(VALUES, device=("gpu", 1), managed=managed)
    there.synchronize()
    result = there + there
    assert result.device_id == 1
    np.testing.assert_array_equal(values(result), 2 * VALUES)
    if managed != "cuda":  # which every GPU reaches
        with pytest.raises(BufferError, match=r"on GPU 1, where it computes, got a.*on GPU 0"):
            there + made(managed, dims=None, halo=None)


@every_kind
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 0)])
def test_storages_without_elements_or_dims_compute(managed, shape):
    a = dlf.ones(shape, device="gpu", managed=managed)
    a.synchronize()
    a += 1
    result = a * a
    assert result.shape == shape
    np.testing.assert_array_equal(values(result), np.full(shape, 4.0))
