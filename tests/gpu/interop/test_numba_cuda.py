"""Storages of every kind as arrays of numba.cuda."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, delay, device_view
from support.cuda.driver import call, stats
from support.cuda.handed import VALUES, Inbox, Late, address_of, collect, handed
from support.cuda.kinds import every_kind

cuda = pytest.importorskip("numba.cuda", exc_type=ImportError)


@pytest.fixture(autouse=True)
def numba_keeps_nothing():
    """Let numba free at once what it would free at some time."""
    yield
    free_now()


def free_now():
    collect()
    cuda.current_context().memory_manager.deallocations.clear()
    collect()


def address(array):
    return array.device_ctypes_pointer.value


@pytest.mark.source(
    "CUDA array interface",
    "Interoperability",
    "other libraries take objects with the interface, such as CuPy through `as_cupy`",
)
@every_kind
def test_an_array_names_the_memory_of_the_storage(managed):
    storage = handed(VALUES, managed)
    array = cuda.as_cuda_array(storage)
    assert address(array) == address_of(storage)
    assert (array.shape, array.strides) == (storage.shape, storage.strides)
    assert array.dtype == storage.dtype
    assert np.array_equal(array.copy_to_host(), VALUES)


@pytest.mark.parametrize("layout", [(0, 1), (1, 0)], ids=["C", "Fortran"])
@every_kind
def test_an_array_has_the_layout_of_the_storage(managed, layout):
    storage = handed(VALUES, managed, layout=layout)
    array = cuda.as_cuda_array(storage)
    assert array.strides == storage.strides
    assert np.array_equal(array.copy_to_host(), VALUES)


@every_kind
def test_the_part_inside_the_halo_is_an_array_with_gaps(managed):
    whole = np.arange(30.0).reshape(6, 5)
    inside = handed(whole, managed, halo=(2, 1)).domain_view
    array = cuda.as_cuda_array(inside)
    assert (address(array), array.strides) == (address_of(inside), (40, 8))
    assert array.shape == (2, 3)


@every_kind
def test_a_storage_without_elements_is_an_empty_array(managed):
    array = cuda.as_cuda_array(dlf.zeros((0, 3), device="gpu", managed=managed))
    assert (array.shape, array.size) == ((0, 3), 0)
    assert array.copy_to_host().shape == (0, 3)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "complex128"])
def test_an_array_has_the_type_of_the_storage(dtype):
    storage = handed(np.array([0, 1, 1]).astype(dtype), None)
    array = cuda.as_cuda_array(storage)
    assert array.dtype == storage.dtype
    assert array.copy_to_host().tolist() == [0, 1, 1]


@every_kind
def test_what_numba_writes_is_in_the_storage(managed):
    storage = handed(VALUES, managed)
    with storage.device() as side:
        cuda.as_cuda_array(side).copy_to_device(2 * VALUES)
    assert np.array_equal(device_view(storage), 2 * VALUES)
    assert np.array_equal(dlf.storage(storage, device="cpu").to_numpy(), 2 * VALUES)


@every_kind
def test_a_write_to_the_storage_is_seen_by_numba(managed):
    storage = handed(VALUES, managed)
    array = cuda.as_cuda_array(storage)
    storage[...] = OnDevice(3 * VALUES)
    # There is no wait: the default stream, which numba uses, is ordered after dlfield's stream.
    assert np.array_equal(array.copy_to_host(), 3 * VALUES)


def test_a_pair_that_was_written_on_the_host_is_up_to_date_in_numba():
    storage = handed(VALUES, "gt4py")
    with storage.host() as host:
        host[...] = 4 * VALUES
    assert np.array_equal(cuda.as_cuda_array(storage).copy_to_host(), 4 * VALUES)


@pytest.mark.source(
    "CUDA array interface",
    "Design Motivations",
    "exchange is free of data races by default, without action of the user",
)
@every_kind
def test_an_array_shows_what_was_in_flight(managed):
    late = Late(VALUES, managed)
    assert np.array_equal(cuda.as_cuda_array(late.storage).copy_to_host(), VALUES)


@every_kind
def test_an_array_that_waits_for_nothing_has_the_stream_to_wait_for(managed):
    inbox, late = Inbox(), Late(VALUES, managed)
    array = cuda.as_cuda_array(late.storage, sync=False)
    assert np.array_equal(inbox.fetch(address(array), int(array.stream)), VALUES)


def test_an_array_of_idle_memory_has_no_stream():
    assert cuda.as_cuda_array(handed(VALUES, None)).stream == 0


@pytest.mark.stand_in
@every_kind
def test_an_array_keeps_the_memory_which_is_freed_once(managed):
    storage = handed(VALUES, managed)
    array, before = cuda.as_cuda_array(storage), stats().frees
    buffers = len(storage.__gt_data_interface__) if managed == "gt4py" else 1
    del storage
    collect()
    assert np.array_equal(array.copy_to_host(), VALUES)
    assert stats().frees == before
    del array
    collect()
    assert stats().frees == before + buffers


def test_memory_is_not_freed_under_work_of_numba():
    inbox, stream, storage = Inbox(), cuda.stream(), handed(VALUES, None)
    there = address(cuda.as_cuda_array(storage))
    delay(int(stream))
    call("cuMemcpyDtoHAsync_v2", inbox.address, there, inbox.nbytes, int(stream))
    del storage  # the array is gone as well, while the copy is on its way
    stream.synchronize()
    assert np.array_equal(inbox.values(), VALUES)


def compiles():
    try:
        return cuda.is_available() and bool(cuda.jit("void()")(lambda: None))
    except (RuntimeError, AttributeError):  # no compiler is there, or NumPy is too new for numba
        return False


@pytest.mark.real
@pytest.mark.filterwarnings("ignore:.*Grid size")  # a single block
@every_kind
def test_a_kernel_of_numba_takes_a_storage_and_changes_it(managed):
    if not compiles():
        pytest.skip("numba has no compiler for kernels here")

    @cuda.jit
    def double(array):
        i, j = cuda.grid(2)
        if i < array.shape[0] and j < array.shape[1]:
            array[i, j] *= 2

    storage = handed(VALUES, managed, layout=(1, 0))
    with storage.device() as side:
        double[(1, 1), (8, 8)](side)
    assert np.array_equal(dlf.storage(storage, device="cpu").to_numpy(), 2 * VALUES)
