"""DataArrays into storages, by the names of their dims, and storages into xarray."""

import subprocess
import sys

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.owners import assert_freed_once
from support.parameters import NUMPY_DTYPES

xr = library("xarray")


def test_the_dims_are_kept_by_name():
    array = xr.DataArray(np.zeros((4, 3, 2)), dims=("level", "lat", "lon"))
    storage = dlf.as_storage(array)
    assert storage.dims == ("level", "lat", "lon")
    assert address_of(storage) == array.data.ctypes.data


def test_a_transposed_array_keeps_names_and_memory():
    array = xr.DataArray(np.zeros((4, 3, 2)), dims=("K", "J", "I"))
    storage = dlf.as_storage(array.transpose("I", "K", "J"))
    assert storage.dims == ("I", "K", "J")
    assert storage.shape == (2, 4, 3)
    assert address_of(storage) == array.data.ctypes.data


def test_dims_without_names_of_their_own_get_those_of_xarray():
    assert dlf.as_storage(xr.DataArray(np.zeros((4, 3)))).dims == ("dim_0", "dim_1")


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_scalars_and_empty_arrays_arrive(shape):
    assert dlf.as_storage(xr.DataArray(np.zeros(shape))).shape == shape


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_every_dtype_arrives_with_its_values(dtype):
    array = xr.DataArray(np.array([0, 1, 1], dtype=dtype), dims="x")
    storage = dlf.as_storage(array)
    assert storage.dtype == dtype
    assert np.array_equal(storage.to_numpy(), array)


def test_writes_to_a_data_array_are_seen_on_both_sides():
    array = xr.DataArray(np.zeros((4, 3)), dims=("x", "y"))
    storage = dlf.as_storage(array)
    array[{"x": 2, "y": 1}] = 7.0
    assert storage.to_numpy()[2, 1] == 7.0
    storage.to_numpy()[0, 0] = 8.0
    assert array.isel(x=0, y=0) == 8.0


def test_a_data_array_lives_exactly_as_long_as_its_storage():
    assert_freed_once(np.from_dlpack, xr.DataArray, dlf.as_storage)


def test_an_instance_of_a_subclass_keeps_its_dims():
    class Field(xr.DataArray):
        __slots__ = ()

    assert dlf.as_storage(Field(np.zeros((4, 3)), dims=("x", "y"))).dims == ("x", "y")


def test_the_gt_dims_of_a_subclass_are_used():
    class Field(xr.DataArray):
        __slots__ = ()

        @property
        def __gt_dims__(self):
            return ("I", "J")

    assert dlf.as_storage(Field(np.zeros((4, 3)), dims=("lon", "lat"))).dims == ("I", "J")


def test_a_coordinate_is_read_only_since_xarray_never_changes_an_index():
    array = xr.DataArray(np.zeros(3), dims="x", coords={"x": [0.0, 1.0, 2.0]})
    assert dlf.as_storage(array.coords["x"]).readonly


def test_an_array_over_jax_is_read_only():
    jnp = library("jax.numpy")
    inner = jnp.zeros((4, 3))
    storage = dlf.as_storage(xr.DataArray(inner, dims=("x", "y")))
    assert storage.readonly
    assert storage.dims == ("x", "y")
    assert address_of(storage) == inner.unsafe_buffer_pointer()


class Chunked:
    """As far as xarray knows, an array of its own, such as Dask's: values only when computed."""

    shape, ndim, dtype = (4, 3), 2, np.dtype(np.float64)

    def __array_function__(self, *_arguments):
        return NotImplemented

    def __array_ufunc__(self, *_arguments, **_keywords):
        return NotImplemented

    def __array__(self, *_arguments, **_keywords):
        raise AssertionError("the array was computed")


@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "lists, and objects with only `__array__`, can be used on a CPU",
)
def test_an_array_of_chunks_is_refused_and_not_computed():
    array = xr.DataArray(Chunked(), dims=("x", "y"))
    with pytest.raises(TypeError, match=r"got an object of type 'Chunked'.*\.compute\(\)"):
        dlf.as_storage(array)


@pytest.fixture
def opened(tmp_path):
    """Open a file lazily, with or without xarray's cache."""
    library("scipy")
    xr.Dataset({"t": (("x", "y"), np.ones((4, 3)))}).to_netcdf(tmp_path / "t.nc", engine="scipy")
    return lambda **options: xr.open_dataset(tmp_path / "t.nc", engine="scipy", **options)["t"]


def test_an_array_that_xarray_reloads_each_time_is_refused(opened):
    with pytest.raises(TypeError, match=r"\.load\(\)|\.compute\(\)"):
        dlf.as_storage(opened(cache=False))


def test_an_array_that_was_loaded_from_a_file_is_shared(opened):
    array = opened().load()
    dlf.as_storage(array).to_numpy()[2, 1] = 7.0
    assert array.isel(x=2, y=1) == 7.0


def test_a_dataset_is_refused():
    with pytest.raises(TypeError, match="got a Dataset"):
        dlf.as_storage(xr.Dataset({"t": ("x", np.zeros(3))}))


def test_a_labelled_array_over_a_storage_shares_its_memory():
    storage = dlf.zeros((4, 3), dims="IJ")
    array = xr.DataArray(storage, dims=storage.dims)
    assert array.dims == ("I", "J")
    assert array.values.ctypes.data == address_of(storage)
    array[{"I": 2, "J": 1}] = 7.0
    assert storage.to_numpy()[2, 1] == 7.0


def test_a_labelled_array_keeps_the_memory_of_a_storage_and_frees_it_once():
    assert_freed_once(dlf.as_storage, xr.DataArray)


def test_a_labelled_array_over_a_read_only_storage_cannot_be_written():
    array = xr.DataArray(dlf.as_storage(np.frombuffer(bytes(16))))
    with pytest.raises(BufferError, match="read-only"):
        array[0] = 1.0


def test_importing_dlfield_does_not_import_xarray():
    code = "import sys, dlfield; print('xarray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_an_array_with_dims_of_its_own_still_goes_into_an_unbound_stencil(compiled):
    from support.stencils.cartesian import skewed_reference

    values = np.arange(5 * 6 * 2.0).reshape(5, 6, 2)
    inp = xr.DataArray(values, dims=("x", "y", "z"))
    out = xr.DataArray(np.full(values.shape, -1.0), dims=("x", "y", "z"))
    compiled("skewed", "numpy")(inp, out, origin=(0, 2, 0), domain=(4, 4, 2))
    assert np.array_equal(out, skewed_reference(values))


def test_a_data_array_is_assigned_by_name(xr):
    values = np.arange(24.0).reshape(2, 3, 4)
    storage = dlf.zeros((4, 3, 2), dims="IJK")
    storage[...] = xr.DataArray(values, dims=("K", "J", "I"))
    np.testing.assert_array_equal(storage.to_numpy(), values.T)
    storage[:, 1:] = xr.DataArray([1.0, 2.0], dims="K")
    assert storage[0, 1].to_numpy().tolist() == [1.0, 2.0]


def test_a_data_array_of_bools_is_a_mask_by_name(xr):
    values = np.arange(24.0).reshape(2, 3, 4)
    storage = dlf.storage(values, dims="IJK")
    mask = xr.DataArray((values > 9).T, dims=("K", "J", "I"))
    assert storage[mask].tolist() == values[values > 9].tolist()
    with refused(ValueError, "key: expected", "pass an array without names"):
        storage[mask.rename(K="lev")]


def test_a_data_array_of_other_names_is_refused_with_the_line_that_renames_it(xr):
    storage = dlf.zeros((4, 4, 4), dims="IJK")
    value = xr.DataArray(np.arange(64.0).reshape(4, 4, 4), dims=("level", "lat", "lon"))
    line = 'value.rename({"level": "K", "lat": "J", "lon": "I"})'
    with refused(ValueError, f"with {line}, or"):
        storage[...] = value
    storage[...] = eval(line, {"value": value})
    np.testing.assert_array_equal(storage.to_numpy(), value.to_numpy().T)
    storage[...] = value.to_numpy()
    np.testing.assert_array_equal(storage.to_numpy(), value.to_numpy())


def test_a_data_array_without_names_is_assigned_by_position(xr):
    storage = dlf.zeros((3, 2), dims="IJ")
    storage[...] = xr.DataArray(np.arange(6.0).reshape(3, 2))
    assert storage[2, 1] == 5.0


def test_a_data_array_that_names_what_is_not_there_is_refused(xr):
    storage = dlf.zeros((2, 2), dims="IJ")
    with refused(ValueError, "among ('I', 'J')", "('I', 'K')"):
        storage[...] = xr.DataArray(np.ones((2, 2)), dims=("I", "K"))
    assert not storage.to_numpy().any()


def test_a_data_array_of_swapped_bytes_is_a_model_with_its_names(xr):
    model = xr.DataArray(np.zeros((2, 3), ">f4", order="F"), dims=("K", "I"))
    made = dlf.zeros_like(model)
    assert (made.dims, made.dtype, made.layout) == (("K", "I"), np.float32, (1, 0))


# --- variables, which have names and no coordinates --------------------------------------------


def test_a_variable_is_shared_with_its_names():
    values = np.arange(6.0).reshape(2, 3)
    variable = xr.Variable(("J", "I"), values)
    storage = dlf.as_storage(variable)
    assert (storage.dims, address_of(storage)) == (("J", "I"), values.ctypes.data)
    assert dlf.get_dims(variable) == ("J", "I")


@pytest.mark.parametrize("kind", [xr.DataArray, xr.Variable])
def test_values_and_masks_of_a_variable_go_by_name(kind):
    values = np.arange(4.0).reshape(2, 2)
    assigned, masked = dlf.zeros((2, 2), dims="IJ"), dlf.zeros((2, 2), dims="IJ")
    assigned[...] = kind(dims=("J", "I"), data=values)
    masked[kind(dims=("J", "I"), data=values > 1)] = 1
    np.testing.assert_array_equal(assigned, values.T)
    np.testing.assert_array_equal(masked, values.T > 1)


@pytest.mark.parametrize("kind", [xr.DataArray, xr.Variable])
@pytest.mark.parametrize("values", [np.arange(3, dtype=">f4"), np.zeros(3, "f4, i1")["f0"]])
def test_what_no_storage_can_share_is_converted_in_an_array_of_xarray_too(kind, values):
    given = kind(dims=("I",), data=values)
    made, assigned = dlf.storage(given), dlf.zeros(3, dims="I")
    assigned[...] = given
    assert (made.dims, made.dtype) == (("I",), np.float32)
    np.testing.assert_array_equal(made, values)
    np.testing.assert_array_equal(assigned, values)
