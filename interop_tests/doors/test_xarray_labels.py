"""`from_xarray` finds the labels that `to_xarray` wrote."""

import re

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

xr = library("xarray")


@pytest.fixture
def field():
    """A field that has every label."""
    return dlf.as_storage(
        np.arange(60.0).reshape(3, 4, 5),
        dims="KJI",
        halo=(0, 1, (2, 1)),
        default_origin=(2, 1, 0),
    )


def labels(storage):
    return storage.dims, storage.halo, getattr(storage, "default_origin", None)


def test_the_labels_come_back_and_the_memory_is_shared(field):
    back = dlf.from_xarray(field.to_xarray())
    assert labels(back) == labels(field)
    assert np.shares_memory(back, field)


@pytest.mark.parametrize("stored", [list, np.array], ids=["as zarr", "as netCDF"])
def test_they_come_back_from_attributes_as_files_keep_them(field, stored):
    array = field.to_xarray()
    array.attrs = {
        name: stored(value) if isinstance(value, tuple) else np.int64(value)
        for name, value in array.attrs.items()
    }
    assert labels(dlf.from_xarray(array)) == labels(field)


def test_they_come_back_from_a_file(field, tmp_path):
    library("scipy")
    field.to_xarray(name="t").to_netcdf(tmp_path / "a.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "a.nc", engine="scipy") as file:
        back = dlf.from_xarray(file["t"].load().astype("float64"))  # netCDF 3 swaps the bytes
    assert labels(back) == labels(field)
    np.testing.assert_array_equal(back.to_numpy(), field.to_numpy())


def test_a_transposition_moves_them(field):
    back = dlf.from_xarray(field.to_xarray().transpose("I", "K", "J"))
    assert labels(back) == (("I", "K", "J"), ((2, 1), (0, 0), (1, 1)), (2, 1, 0))


def test_a_part_has_an_unknown_halo_and_no_origin(field):
    part = field.to_xarray().isel(I=slice(1, None))
    assert labels(dlf.from_xarray(part)) == (("K", "J", "I"), None, None)
    assert dlf.from_xarray(part, halo=(0, 1, 1)).halo == ((0, 0), (1, 1), (1, 1))
    level = dlf.from_xarray(field.to_xarray().isel(K=0))
    assert (level.dims, level.halo) == (("J", "I"), ((1, 1), (2, 1)))


def test_an_unknown_halo_stays_unknown(field):
    assert dlf.from_xarray(field[:, ::2].to_xarray()).halo is None


def test_an_array_that_dlfield_did_not_write_has_its_dims_alone():
    back = dlf.from_xarray(xr.DataArray(np.zeros((2, 3)), dims=("lat", "lon")))
    assert labels(back) == (("lat", "lon"), ((0, 0), (0, 0)), None)


def test_a_data_array_around_a_storage_has_the_labels_of_the_storage(field):
    array = xr.DataArray(field, dims=field.dims, attrs={"halo_I": (0, 0)})
    assert labels(dlf.from_xarray(array)) == labels(field)


def test_options_override_what_is_written(field):
    back = dlf.from_xarray(field.to_xarray(), halo={"J": 2}, default_origin=None)
    assert labels(back) == (field.dims, ((0, 0), (2, 2), (0, 0)), None)


@pytest.mark.parametrize(
    ("array", "way_out"),
    [
        (np.zeros(3), r"use as_storage\(\.\.\.\)"),
        (xr.Dataset({"t": ("I", np.zeros(3))}), r"pass one of its variables, for example x\['t'\]"),
    ],
    ids=["array", "dataset"],
)
def test_what_is_no_dataarray_is_refused_with_what_to_call(array, way_out):
    with pytest.raises(TypeError, match=rf"from_xarray: expected an xarray.DataArray, .*{way_out}"):
        dlf.from_xarray(array)


def test_a_dataset_is_refused_with_the_name_of_a_variable():
    with pytest.raises(TypeError, match=r"got a Dataset; pass one .* x\['t'\]$"):
        dlf.as_storage(xr.Dataset({"t": ("I", np.zeros(3))}))


def test_a_renamed_dimension_has_no_known_halo():
    array = dlf.zeros((6, 5), dims="IJ", halo=((1, 2), (0, 3))).to_xarray()
    assert dlf.from_xarray(array.rename(I="lon")).halo is None
    assert dlf.from_xarray(array.expand_dims(time=3)).halo == ((0, 0), (1, 2), (0, 3))
    assert dlf.from_xarray(array.isel(I=0)).halo == ((0, 3),)


def test_a_halo_of_numpy_takes_the_place_of_a_lost_one():
    part = dlf.zeros((6, 5), dims="IJ", halo=(1, 1)).to_xarray()[1:]
    assert dlf.from_xarray(part, halo=np.array([[1, 0], [1, 1]])).halo == ((1, 0), (1, 1))


# --- labels that xarray or a file has changed --------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 7), (7,)])
def test_a_halo_in_which_operands_differ_is_not_known(shape):
    names = "IJ"[-len(shape) :]
    one = dlf.ones((6, 7), dims="IJ", halo=(1, 1)).to_xarray()
    other = dlf.ones(shape, dims=names, halo=(2,) * len(shape)).to_xarray()
    attrs = {key: value for key, value in one.attrs.items() if other.attrs.get(key, value) == value}
    assert dlf.from_xarray((one * other).assign_attrs(attrs)).halo is None
    both = xr.concat([one, one + 1], "K", combine_attrs="drop_conflicts")[0]
    assert dlf.from_xarray(both).halo == ((1, 1), (1, 1))


def test_a_dimension_may_be_called_unknown():
    field = dlf.zeros((5, 4), dims=("unknown", "b"), halo=(1, 1))
    assert dlf.from_xarray(field.to_xarray()).halo == ((1, 1), (1, 1))
    field.halo = None
    assert dlf.from_xarray(field.to_xarray()).halo is None


@pytest.mark.parametrize(
    ("name", "value"), [("halo_I", 1), ("halo_I", "1,1"), ("halo_I", [1, 1, 1]), ("extent_I", "x")]
)
def test_an_attribute_that_is_no_label_is_named(name, value):
    array = dlf.ones((6, 4), dims="IJ", halo=(1, 1)).to_xarray()
    array.attrs[name] = value
    with pytest.raises(ValueError, match=f"attribute '{name}', got {re.escape(repr(value))}"):
        dlf.from_xarray(array)


def test_the_origin_of_an_array_without_names_counts_by_axis_under_names():
    inner = dlf.zeros((3, 4, 5), default_origin=(0, 1, 2))
    array = xr.DataArray(inner, dims=("K", "I", "J"))
    assert dlf.as_storage(array).default_origin == (1, 2, 0)
    assert dlf.from_xarray(array).default_origin == (1, 2, 0)


def test_attributes_may_have_keys_that_are_no_texts():
    array = xr.DataArray(np.zeros(3), dims="x", attrs={1: 2})
    assert dlf.from_xarray(array).dims == ("x",)


def test_a_storage_is_no_array_of_xarray():
    with pytest.raises(TypeError, match=r"expected an xarray\.DataArray, got an object of type"):
        dlf.from_xarray(dlf.zeros(3, dims="x"))
