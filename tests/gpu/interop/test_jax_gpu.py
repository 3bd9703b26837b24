"""Arrays of JAX on a real GPU in storages, and storages in JAX. JAX never writes what it has."""

import gc

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, device_view
from support.cuda.driver import call
from support.cuda.handed import VALUES, Late, address_of, handed
from support.cuda.kinds import every_kind
from support.cuda.libraries import eventually, gpu_of_jax, library

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("default"),  # what JAX warns of is JAX's
]

DTYPES = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
MANY = 1 << 22  # elements: more than a kernel does at once


@pytest.fixture
def jax():
    yield library("jax")
    call("cuCtxSynchronize")


def on_gpu(jax, values):
    return jax.device_put(values, gpu_of_jax()).block_until_ready()


@pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device alone", "pair"])
def test_an_array_arrives_read_only_at_its_address(jax, managed):
    array = on_gpu(jax, VALUES)
    storage = dlf.as_storage(array, managed=managed)
    assert address_of(storage) == array.unsafe_buffer_pointer()
    assert (storage.shape, storage.dtype) == (array.shape, array.dtype)
    assert storage.readonly
    assert np.array_equal(dlf.storage(storage, device="cpu").to_numpy(), VALUES)


def test_an_array_is_not_written(jax):
    storage = dlf.as_storage(on_gpu(jax, VALUES), managed=None)
    with pytest.raises(BufferError, match="read-only"):
        storage[0] = 1.0
    with pytest.raises(BufferError, match="read-only"):
        storage.to_torch()


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_of_jax_on_a_gpu_arrives_and_leaves_with_its_values(jax, name):
    array = on_gpu(jax, jax.numpy.array([0, 1, 1, 0]).astype(name))
    storage = dlf.as_storage(array, managed=None)
    assert storage.dtype == array.dtype
    assert dlf.storage(storage, device="cpu").to_numpy().astype(complex).tolist() == [0, 1, 1, 0]
    assert storage.to_jax().dtype == array.dtype


@every_kind
def test_to_jax_gives_an_array_over_the_memory_of_the_device(jax, managed):
    storage = handed(VALUES, managed)
    array = storage.to_jax()
    assert array.unsafe_buffer_pointer() == address_of(storage)
    assert array.devices() == {gpu_of_jax()}
    assert np.array_equal(np.asarray(array), VALUES)


@every_kind
def test_jax_takes_a_writable_storage_by_dlpack_as_well(jax, managed):
    storage = handed(VALUES, managed)
    array = library("jax.dlpack").from_dlpack(storage)
    assert array.unsafe_buffer_pointer() == address_of(storage)


@every_kind
def test_a_copy_that_jax_makes_is_elsewhere(jax, managed):
    storage = handed(VALUES, managed)
    array = storage.to_jax(copy=True)
    assert array.unsafe_buffer_pointer() != address_of(storage)
    assert array.devices() == {gpu_of_jax()}
    assert np.array_equal(np.asarray(array), VALUES)


def test_read_only_memory_reaches_jax_by_to_jax_alone(jax):
    storage = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=None)
    with pytest.raises(BufferError, match="read-only"):
        library("jax.dlpack").from_dlpack(storage)
    assert storage.to_jax().unsafe_buffer_pointer() == address_of(storage)


def test_a_pair_that_was_written_on_the_host_reaches_jax_on_the_host(jax):
    storage = handed(VALUES, "gt4py")
    with storage.host() as host:
        host[...] = 7.0
    array = storage.to_jax()
    assert {device.platform for device in array.devices()} == {"cpu"}
    assert float(array[0, 0]) == 7.0


def test_a_gap_between_rows_is_refused_and_not_copied(jax):
    with pytest.raises(BufferError, match="without gaps"):
        handed(VALUES, None)[:, 1:].to_jax()


def slow(jax):
    """Return a function that takes the device some hundredths of a second, and adds nothing."""

    @jax.jit
    def slow(values):
        square = jax.numpy.zeros((4096, 4096), "float32")
        square = jax.lax.fori_loop(0, 20, lambda _, x: x @ x, square)
        return values + square[0, 0].astype(values.dtype)

    return slow


def test_a_copy_waits_for_what_jax_computes(jax):
    values, add_nothing = on_gpu(jax, np.arange(float(MANY))), slow(jax)
    add_nothing(values).block_until_ready()  # compiled
    storage = dlf.as_storage(add_nothing(values), managed=None)
    copied = dlf.storage(storage, device="cpu")
    assert np.array_equal(copied.to_numpy(), np.arange(float(MANY)))


@pytest.mark.parametrize("take", ["to_jax", "from_dlpack"])
@every_kind
def test_jax_waits_for_what_is_in_flight(jax, take, managed):
    values, twice = np.arange(float(MANY)), jax.jit(lambda x: 2 * x)
    twice(on_gpu(jax, values)).block_until_ready()  # compiled
    late = Late(values, managed)
    from_dlpack = library("jax.dlpack").from_dlpack
    array = late.storage.to_jax() if take == "to_jax" else from_dlpack(late.storage)
    assert np.array_equal(np.asarray(twice(array)), 2 * values)


def used():
    return gpu_of_jax().memory_stats()["bytes_in_use"]


@pytest.mark.parametrize("managed", [None, "gt4py"], ids=["device alone", "pair"])
def test_a_jax_array_on_a_gpu_lives_exactly_as_long_as_its_storage(jax, managed):
    gc.collect()
    before = used()
    storage = dlf.as_storage(on_gpu(jax, np.full(MANY, 3.0)), managed=managed)
    gc.collect()
    assert used() > before
    assert (device_view(storage) == 3.0).all()
    del storage
    assert eventually(lambda: used() == before)


def test_a_jax_array_keeps_the_memory_of_its_storage(jax):
    array = dlf.full(MANY, 3.0, device="gpu", managed=None).to_jax()
    gc.collect()
    fill_what_is_free()
    assert (np.asarray(array) == 3.0).all()


def fill_what_is_free():
    """Write over memory that was given back, if there is some."""
    return [dlf.full(MANY, 4.0, device="gpu", managed=None) for _ in range(4)]


def test_memory_is_not_given_back_under_work_of_jax(jax):
    storage, add_nothing = dlf.full(MANY, 3.0, device="gpu", managed=None), slow(jax)
    add_nothing(storage.to_jax()).block_until_ready()  # compiled
    result = add_nothing(storage.to_jax())
    del storage
    fill_what_is_free()
    assert (np.asarray(result) == 3.0).all()
