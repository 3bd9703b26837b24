"""JAX arrays into storages, and storages into JAX, which must never copy silently."""

import os
import subprocess
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.errors import refused
from support.optional import library
from support.owners import assert_freed_once
from support.parameters import NUMPY_DTYPES

jax = library("jax")
jnp = library("jax.numpy")

DTYPES = (*NUMPY_DTYPES, "bfloat16", "float8_e4m3fn", "float8_e5m2")


def address_of(storage):
    return storage.to_numpy().ctypes.data  # the array interface cannot name bfloat16


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_arrives_at_the_same_address_with_its_values(dtype):
    array = jnp.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    storage = dlf.as_storage(array)
    assert storage.dtype == array.dtype
    assert address_of(storage) == array.unsafe_buffer_pointer()
    assert np.array_equal(storage.to_numpy(), np.asarray(array))


@pytest.mark.parametrize("shape", [(), (0, 3), (4, 3, 2)])
def test_every_shape_arrives(shape):
    assert dlf.as_storage(jnp.zeros(shape)).shape == shape


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0, 3), (3, 0), (4, 3, 2), (1, 7, 1)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_arrives_with_the_strides_that_its_buffer_shows(shape, dtype):
    array = jnp.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    seen, storage = np.asarray(array), dlf.as_storage(array)
    assert (storage.shape, storage.strides) == (seen.shape, seen.strides)
    assert np.array_equal(storage.to_numpy(), seen)


def test_an_array_in_another_order_of_memory_is_never_read_in_c_order():
    layout = library("jax.experimental.layout")
    where = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    values = np.arange(6.0, dtype="float32").reshape(2, 3)
    array = jax.device_put(values, layout.Format(layout.Layout((1, 0)), where))
    try:
        storage = dlf.as_storage(array)
    except (BufferError, RuntimeError):
        return
    assert np.array_equal(storage.to_numpy(), values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_storage_over_a_jax_array_is_read_only(dtype):
    storage = dlf.as_storage(jnp.zeros(3).astype(dtype))
    assert storage.readonly
    with pytest.raises(ValueError, match="read-only"):
        storage.to_numpy()[0] = 1


def test_a_jax_array_lives_as_long_as_its_storage_and_no_longer():
    assert_freed_once(jax.dlpack.from_dlpack, dlf.as_storage)


def test_a_deleted_array_raises_what_jax_says():
    array = jnp.zeros(3)
    array.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        dlf.as_storage(array)


def test_an_array_inside_a_traced_function_raises_what_jax_says():
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(dlf.as_storage)(jnp.zeros(3))


def test_a_field_with_halo_reaches_jax_at_the_same_address():
    storage = dlf.zeros((64, 64, 40), halo=(3, 3, 0))
    array = storage.to_jax()
    assert isinstance(array, jax.Array)
    assert array.unsafe_buffer_pointer() == address_of(storage)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_reaches_jax_with_its_values(dtype):
    dtype = jnp.dtype(dtype)
    storage = dlf.ones((4, 3), dtype=dtype)
    array = storage.to_jax()
    assert array.dtype == dtype
    assert array.unsafe_buffer_pointer() == address_of(storage)
    assert np.array_equal(np.asarray(array).astype(complex), np.ones((4, 3)))


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_every_order_of_the_axes_reaches_jax_without_a_copy(layout):
    storage = dlf.zeros((4, 3, 2), layout=layout)
    storage.to_numpy()[...] = np.arange(24.0).reshape(4, 3, 2)
    array = storage.to_jax()
    assert array.unsafe_buffer_pointer() == address_of(storage)
    assert np.array_equal(array, np.arange(24.0).reshape(4, 3, 2))


@pytest.mark.parametrize("copy", [None, False])
def test_another_order_than_c_is_refused_for_a_jax_that_may_read_it_in_c_order(copy, monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", (0, 7, 1))
    with pytest.raises(BufferError, match=r"to_jax: expected JAX 0\.8 or newer.* copy=True"):
        dlf.zeros((4, 3), layout=(1, 0)).to_jax(copy=copy)


def test_an_old_jax_takes_c_order_as_it_is_and_copies_another_order_when_asked(monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", (0, 7, 1))
    plain, turned = (dlf.zeros((4, 3), layout=layout) for layout in [(0, 1), (1, 0)])
    assert plain.to_jax().unsafe_buffer_pointer() == address_of(plain)
    turned.to_numpy()[...] = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(turned.to_jax(copy=True), np.arange(12.0).reshape(4, 3))


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_scalars_and_empty_fields_reach_jax(shape):
    assert dlf.zeros(shape).to_jax().shape == shape


def test_copy_false_shares():
    storage = dlf.zeros((4, 3))
    assert storage.to_jax(copy=False).unsafe_buffer_pointer() == address_of(storage)


def test_copy_true_gives_jax_values_of_its_own():
    storage = dlf.ones((4, 3))
    array = storage.to_jax(copy=True)
    storage.to_numpy()[...] = 7.0
    assert array.unsafe_buffer_pointer() != address_of(storage)
    assert np.array_equal(array, np.ones((4, 3)))


def test_a_read_only_storage_reaches_jax_at_the_same_address():
    array = jnp.arange(12.0)
    back = dlf.as_storage(array).to_jax()
    assert back.unsafe_buffer_pointer() == array.unsafe_buffer_pointer()


NOT_SHARED = {
    "misaligned": lambda: dlf.as_storage(dlf.zeros(9).to_numpy()[1:]),
    "padded": lambda: dlf.zeros((6, 5), halo=(2, 1)).domain_view,
    "backwards": lambda: dlf.as_storage(np.zeros((4, 3))[::-1]),
}


@pytest.mark.parametrize("make", NOT_SHARED.values(), ids=NOT_SHARED)
def test_memory_that_jax_would_copy_is_refused(make):
    with pytest.raises(BufferError, match="pass copy=True"):
        make().to_jax()


@pytest.mark.parametrize("make", NOT_SHARED.values(), ids=NOT_SHARED)
def test_memory_that_jax_would_copy_is_copied_when_asked(make):
    storage = make()
    storage.to_numpy()[...] = 7.0
    assert np.array_equal(storage.to_jax(copy=True), storage.to_numpy())


def test_jax_keeps_the_memory_of_a_storage_and_frees_it_once():
    assert_freed_once(dlf.as_storage, dlf.CPUStorage.to_jax)


def test_jax_own_from_dlpack_shares_a_writable_storage():
    storage = dlf.zeros((4, 3))
    storage.to_numpy()[2, 1] = 7.0
    array = jax.dlpack.from_dlpack(storage)
    assert array.unsafe_buffer_pointer() == address_of(storage)
    assert array[2, 1] == 7.0


def test_jax_own_from_dlpack_frees_the_memory_once():
    assert_freed_once(dlf.as_storage, jax.dlpack.from_dlpack)


def test_jax_own_from_dlpack_of_a_read_only_storage_names_two_ways_that_work():
    storage = dlf.as_storage(jnp.arange(3.0))
    np.testing.assert_array_equal(storage.to_jax(copy=None), [0, 1, 2])
    np.testing.assert_array_equal(jnp.asarray(storage), [0, 1, 2])
    ways = r"storage\.to_jax\(copy=None\), .* jnp\.asarray\(storage\)"
    with pytest.raises(BufferError, match=ways):  # JAX up to 0.11 asks for just that
        dlf.as_storage(jnp.zeros(3)).__dlpack__(stream=None)


def run_without_x64(code):
    """Run code in an interpreter whose JAX has 64-bit types switched off, as it is by default."""
    environment = {**os.environ, "JAX_ENABLE_X64": "0"}
    code = f"import dlfield as dlf, numpy as np\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("copy", [None, True])
def test_float64_is_refused_while_jax_would_make_float32_of_it(copy):
    done = run_without_x64(f"dlf.zeros(3).to_jax(copy={copy})")
    assert done.returncode == 1
    assert "BufferError" in done.stderr
    assert "jax.config.update('jax_enable_x64', True)" in done.stderr


def test_float32_reaches_jax_without_64_bit_types():
    code = "print(dlf.zeros(3, dtype=np.float32).to_jax().dtype)"
    assert run_without_x64(code).stdout == "float32\n"


@pytest.mark.parametrize("transform", ["jit", "grad", "vmap"])
@pytest.mark.parametrize(
    "call",
    [dlf.as_storage, dlf.storage, dlf.as_numpy, lambda x: dlf.zeros(3).__setitem__(..., x)],
    ids=["as_storage", "storage", "as_numpy", "assignment"],
)
def test_an_array_that_jax_traces_names_the_callback(transform, call):
    traced = getattr(jax, transform)(lambda x: call(x).sum())
    values = jnp.ones((2, 3)) if transform == "vmap" else jnp.ones(3)
    with refused(Exception, "jax.pure_callback"):
        traced(values)


@pytest.mark.source(
    "GDP-3 draft", "Mixing Types", "beside an array of another library the storage decides"
)
def test_a_storage_beside_an_array_of_jax_decides():
    storage, array = dlf.ones((2, 3), "float32", dims="IJ"), jnp.ones((2, 3), "float32")
    made = storage + array
    assert (type(made), made.dims) == (dlf.CPUStorage, ("I", "J"))
