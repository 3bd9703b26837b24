"""Arrays of CuPy in storages, and storages in CuPy, on a real GPU."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, delay, device_view, new_stream
from support.cuda.driver import call
from support.cuda.handed import VALUES, Late, address_of, handed
from support.cuda.kinds import every_kind
from support.cuda.libraries import eventually, library

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("default"),  # what CuPy warns of is CuPy's
]

DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
MANY = 1 << 22  # elements: more than a kernel does at once


@pytest.fixture
def cupy():
    yield library("cupy")
    call("cuCtxSynchronize")


@pytest.fixture
def stream(cupy):
    """A stream of CuPy, which keeps no order with the default streams."""
    stream = cupy.cuda.Stream(non_blocking=True)
    yield stream
    stream.synchronize()


def pool(cupy):
    return cupy.get_default_memory_pool()


LAYOUTS = {
    "C order": lambda array: array,
    "Fortran order": lambda array: array.T,
    "every second": lambda array: array[::2, 1::2],
    "with an offset": lambda array: array[1:, 1:],
    "reversed": lambda array: array[::-1],
    "0-d": lambda array: array[1, 2],
}


@pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device alone", "pair"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_arrives_at_its_address_with_its_strides(cupy, layout, managed):
    array = layout(cupy.asarray(VALUES))
    storage = dlf.as_storage(array, managed=managed)
    assert address_of(storage) == array.data.ptr
    on_gpu = dlf.as_storage(storage, managed=None)  # a pair has the strides of its host buffer
    assert (on_gpu.shape, on_gpu.strides) == (array.shape, array.strides)
    assert np.array_equal(device_view(storage), layout(VALUES))


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_of_cupy_arrives_and_leaves_with_its_values(cupy, name):
    array = cupy.asarray(np.array([0, 1, 1, 0]).astype(name))
    storage = dlf.as_storage(array, managed=None)
    assert storage.dtype == array.dtype
    assert device_view(storage).tolist() == [0, 1, 1, 0]
    assert storage.to_cupy().dtype == array.dtype


@pytest.mark.source("GDP-3", "Methods", "`to_cupy()` is a view of the device buffer")
@every_kind
def test_to_cupy_gives_an_array_over_the_memory_of_the_device(cupy, managed):
    storage = handed(VALUES, managed, layout=(1, 0))
    array = storage.to_cupy()
    assert isinstance(array, cupy.ndarray)
    assert (array.data.ptr, array.strides) == (address_of(storage), storage.strides)
    assert np.array_equal(array.get(), VALUES)


@pytest.mark.source(
    "CUDA array interface",
    "Interoperability",
    "other libraries take objects with the interface, such as CuPy through `as_cupy`",
)
@every_kind
def test_the_array_interface_gives_the_same_memory_to_cupy(cupy, managed):
    storage = handed(VALUES, managed, layout=(1, 0))
    array = cupy.asarray(storage)
    assert (array.data.ptr, array.strides) == (address_of(storage), storage.strides)


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`device_data` is the pointer of a device buffer"
)
@pytest.mark.source(
    "GDP-3", "Methods", "`to_ndarray()` is a view of the device buffer if there is one"
)
@every_kind
def test_the_words_of_gdp_3_give_the_same_memory(cupy, managed):
    storage = handed(VALUES, managed)
    assert storage.to_ndarray().data.ptr == address_of(storage)
    assert isinstance(storage.device_data, cupy.cuda.MemoryPointer)
    assert storage.device_data.ptr == address_of(storage)


@pytest.mark.source(
    "Allocation note", "Supported Buffer Interfaces", "`as_cupy` gives a CuPy array"
)
@every_kind
def test_as_cupy_gives_an_array_over_the_memory_up_to_date(cupy, managed):
    storage = handed(VALUES, managed)
    if managed:
        with storage.host() as host:
            host[...] = 2 * VALUES
    array = dlf.as_cupy(storage)
    assert array.data.ptr == address_of(storage)
    assert np.array_equal(array.get(), 2 * VALUES if managed else VALUES)


@every_kind
def test_what_a_kernel_of_cupy_writes_is_in_the_storage(cupy, managed):
    double = cupy.RawKernel(
        'extern "C" __global__ void dbl(double* x, int n) { for (int i = threadIdx.x; i < n; '
        "i += blockDim.x) x[i] *= 2; }",
        "dbl",
    )
    storage = handed(VALUES, managed)
    with storage.device() as side:
        double((1,), (32,), (side.to_cupy(), np.int32(VALUES.size)))
    assert np.array_equal(dlf.storage(storage, device="cpu").to_numpy(), 2 * VALUES)


def test_a_write_to_the_storage_is_seen_by_cupy(cupy):
    array = cupy.zeros((3, 4))
    dlf.as_storage(array, managed=None)[1] = 5.0
    assert array[1].tolist() == [5.0] * 4


def test_an_array_is_assigned_on_the_device(cupy):
    storage = dlf.zeros((3, 4), device="gpu")
    storage[...] = cupy.asarray(VALUES)
    assert storage.sync_state.state == dlf.SyncState.SYNC_DEVICE_DIRTY
    assert np.array_equal(storage.to_numpy(), VALUES)


def test_indices_take_elements_on_the_device(cupy):
    taken = handed(VALUES, None)[[2, 0]]
    assert isinstance(taken, cupy.ndarray)
    assert np.array_equal(taken.get(), VALUES[[2, 0]])


def test_managed_memory_of_cupy_is_a_storage_with_one_address(cupy):
    memory = cupy.cuda.malloc_managed(VALUES.nbytes)
    array = cupy.ndarray(VALUES.shape, VALUES.dtype, memory)
    array[...] = cupy.asarray(VALUES)
    cupy.cuda.get_current_stream().synchronize()
    storage = dlf.as_storage(array)
    assert isinstance(storage, dlf.CUDAManagedGPUStorage)
    assert storage.to_numpy().ctypes.data == array.data.ptr
    assert np.array_equal(storage.to_numpy(), VALUES)


def test_a_copy_waits_for_the_stream_on_which_cupy_works(cupy, stream):
    array = cupy.zeros(MANY)
    array.fill(1.0)  # compiles what it needs
    call("cuCtxSynchronize")
    with stream:
        delay(stream.ptr)
        array.fill(7.0)
        storage = dlf.as_storage(array, managed=None)
    assert (dlf.storage(storage, device="cpu").to_numpy() == 7.0).all()


@pytest.mark.parametrize("take", ["to_cupy", "from_dlpack", "asarray"])
@every_kind
def test_the_stream_of_cupy_waits_for_what_is_in_flight(cupy, stream, take, managed):
    ways = {
        "to_cupy": lambda storage: storage.to_cupy(),
        "from_dlpack": cupy.from_dlpack,
        "asarray": cupy.asarray,
    }
    values = np.arange(float(MANY))
    cupy.zeros(MANY).copy()  # compiles what it needs
    late = Late(values, managed)
    with stream:
        copied = ways[take](late.storage).copy()
    stream.synchronize()
    assert np.array_equal(copied.get(), values)


def test_the_named_stream_of_an_array_waits_for_what_is_done_to_the_storage(cupy, stream):
    array, ones, mine = cupy.zeros(MANY), cupy.ones(MANY), new_stream()
    call("cuCtxSynchronize")
    source = dlf.as_storage(ones, managed=None)
    with stream:
        storage = dlf.as_storage(Named(array, stream.ptr), managed=None)
        delay(mine)
        with dlf.use_stream(mine):
            storage[...] = source
        copied = array.copy()
    stream.synchronize()
    assert bool((copied == 1.0).all())


class Named:
    """An array by its CUDA array interface, with the stream on which it is worked on."""

    def __init__(self, array, stream):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream}


def test_dlfield_works_on_a_stream_of_cupy(cupy, stream):
    source = dlf.as_storage(OnDevice(VALUES), managed=None)
    storage = dlf.zeros(VALUES.shape, device="gpu", managed=None)
    call("cuCtxSynchronize")
    with stream, dlf.use_stream(stream) as used:
        delay(stream.ptr)
        storage[...] = source
        copied = storage.to_cupy().copy()
    assert int(used) == stream.ptr
    stream.synchronize()
    assert np.array_equal(copied.get(), VALUES)


@pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device alone", "pair"])
def test_a_cupy_array_lives_exactly_as_long_as_its_storage(cupy, managed):
    gc.collect()
    before = pool(cupy).used_bytes()
    array = cupy.full(MANY, 3.0)
    storage = dlf.as_storage(array, managed=managed)
    del array
    gc.collect()
    assert pool(cupy).used_bytes() > before
    assert (device_view(storage) == 3.0).all()
    del storage
    assert eventually(lambda: pool(cupy).used_bytes() == before)


@pytest.mark.parametrize("take", ["to_cupy", "asarray"])
def test_a_cupy_array_keeps_the_memory_of_its_storage(cupy, take):
    storage = dlf.full(MANY, 3.0, device="gpu", managed=None)
    array = storage.to_cupy() if take == "to_cupy" else cupy.asarray(storage)
    del storage
    gc.collect()
    fill_what_is_free()
    assert bool((array == 3.0).all())


def fill_what_is_free():
    """Write over memory that was given back, if there is some."""
    return [dlf.full(MANY, 4.0, device="gpu", managed=None) for _ in range(4)]


def test_memory_is_not_given_back_under_work_of_cupy(cupy, stream):
    storage = dlf.full(MANY, 3.0, device="gpu", managed=None)
    cupy.zeros(MANY).copy()  # compiles what it needs
    call("cuCtxSynchronize")
    with stream:
        array = storage.to_cupy()
        delay(stream.ptr)
        copied = array.copy()
    del array, storage
    fill_what_is_free()
    stream.synchronize()
    assert bool((copied == 3.0).all())


@pytest.mark.parametrize("take", ["to_cupy", "to_ndarray", "device_data"])
def test_cupy_gets_no_memory_that_it_must_not_write(cupy, take):
    storage = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=None)
    ways = {
        "to_cupy": lambda: storage.to_cupy(),
        "to_ndarray": lambda: storage.to_ndarray(),
        "device_data": lambda: storage.device_data,
    }
    kind = AttributeError if take == "device_data" else BufferError
    with pytest.raises(kind, match=f"{take}: expected a writable storage"):
        ways[take]()
    assert np.array_equal(storage.copy().to_cupy().get(), VALUES)


def test_an_array_of_another_gpu_is_a_storage_there(cupy):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU")
    with cupy.cuda.Device(1):
        array = cupy.zeros(3)
    assert dlf.as_storage(array, managed=None).device_id == 1
