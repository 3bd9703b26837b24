"""Files of storages: every engine of xarray writes them, plain and in chunks, and so does zarr."""

import warnings

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

xr = library("xarray")

SHAPE = (4, 6, 3)
VALUES = np.arange(np.prod(SHAPE), dtype=float).reshape(SHAPE)
ENGINES = {"netcdf4": "netCDF4", "h5netcdf": "h5netcdf", "scipy": "scipy", "zarr": "zarr"}
CHUNKED = {"plain": lambda array: array, "chunked": lambda array: chunked(array)}

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata:UserWarning")


def chunked(array):
    library("dask.array")
    return array.chunk(dict.fromkeys(array.dims, 2))


@pytest.fixture(autouse=True)
def one_thread():
    """Write chunks one after the other: HDF5 under threads of Dask hangs now and then by itself."""
    with library("dask").config.set(scheduler="synchronous"):
        yield


@pytest.fixture(params=ENGINES)
def engine(request):
    library(ENGINES[request.param])
    return request.param


@pytest.fixture(params=CHUNKED.values(), ids=CHUNKED)
def held(request):
    return request.param


def written(array, engine, path, **encoding):
    """Write a DataArray, and read what is in the file, decoded by xarray."""
    options = {"encoding": {"t": encoding}} if encoding else {}
    if engine == "zarr":
        array.to_zarr(path, **options)
    else:
        array.to_netcdf(path, engine=engine, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(path, engine=engine) as file:
            return file["t"].load()


def around(storage):
    return xr.DataArray(storage, dims=storage.dims, name="t", attrs={"units": "K"})


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0)], ids=["rows", "columns"])
def test_a_file_has_the_values_and_names_of_a_storage(engine, held, layout, tmp_path):
    storage = dlf.storage(VALUES, dims="IJK", halo=(1, (2, 0), 0), layout=layout)
    read = written(held(around(storage)), engine, tmp_path / "t")
    np.testing.assert_array_equal(read, VALUES)
    assert (read.dims, read.attrs) == (("I", "J", "K"), {"units": "K"})


@pytest.mark.parametrize("name", ["bool", "int8", "int16", "int32", "int64", "float32"])
def test_a_file_has_values_of_every_type(engine, held, name, tmp_path):
    storage = dlf.storage(np.arange(6).astype(name).reshape(2, 3), dims="IJ")
    read = written(held(around(storage)), engine, tmp_path / "t")
    np.testing.assert_array_equal(read, storage.to_numpy())


ENCODINGS = {
    "another type": {"dtype": "float32"},
    "a fill value": {"_FillValue": -1.0},
    "a scale": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -9},
}


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_values_are_encoded_as_those_of_numpy(engine, held, encoding, tmp_path):
    storage = dlf.storage(VALUES, dims="IJK")
    storage[0, 0, 0] = np.nan
    read = written(held(around(storage)), engine, tmp_path / "t", **encoding)
    np.testing.assert_array_equal(read, storage.to_numpy())


def test_writing_leaves_the_data_array_as_it_was(engine, tmp_path):
    storage = dlf.storage(VALUES, dims="IJK")
    array = around(storage)
    written(array, engine, tmp_path / "t")
    assert array.data is storage


def test_a_part_of_a_storage_goes_into_a_file(engine, tmp_path):
    storage = dlf.storage(VALUES, dims="IJK")
    read = written(around(storage[::-2, 1:4].T), engine, tmp_path / "t")
    np.testing.assert_array_equal(read, VALUES[::-2, 1:4].T)


def test_a_dataset_of_several_storages_goes_into_a_file(engine, tmp_path):
    library("dask.array")
    storage = dlf.storage(VALUES, dims="IJK")
    plain = around(storage)
    both = xr.Dataset({"t": plain, "u": chunked(plain), "v": plain.as_numpy()})
    if engine == "zarr":
        both.to_zarr(tmp_path / "t")
    else:
        both.to_netcdf(tmp_path / "t", engine=engine)
    with xr.open_dataset(tmp_path / "t", engine=engine) as file:
        for name in both:
            np.testing.assert_array_equal(file[name], VALUES)


def test_another_call_of_install_changes_nothing():
    from dlfield.xarray import install
    from xarray import conventions

    before = conventions.encode_cf_variable
    install()
    assert conventions.encode_cf_variable is before


# --- zarr alone ----------------------------------------------------------------------------------

WRITES = {
    "save_array": lambda zarr, path, storage: zarr.save_array(path, storage),
    "save": lambda zarr, path, storage: zarr.save(path, storage),
    "array": lambda zarr, path, storage: zarr.array(storage, store=path),
    "create_array": lambda zarr, path, storage: zarr.create_array(path, data=storage),
    "in chunks": lambda zarr, path, storage: zarr.create_array(
        path, data=storage, chunks=(3, 2, 2)
    ),
    "assigned": lambda zarr, path, storage: zarr.create_array(
        path, shape=SHAPE, chunks=(3, 2, 2), dtype=storage.dtype
    ).__setitem__(..., storage),
}


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0)], ids=["rows", "columns"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_zarr_writes_a_storage(write, layout, tmp_path):
    zarr = library("zarr")
    storage = dlf.storage(VALUES, dims="IJK", layout=layout)
    write(zarr, str(tmp_path / "t"), storage)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "t", mode="r")[...], VALUES)


@pytest.mark.parametrize("name", ["bool", "int16", "float32", "complex64"])
def test_zarr_writes_a_storage_of_every_type(name, tmp_path):
    zarr = library("zarr")
    storage = dlf.storage(np.arange(6).astype(name).reshape(2, 3))
    zarr.save_array(tmp_path / "t", storage)
    np.testing.assert_array_equal(
        zarr.open_array(tmp_path / "t", mode="r")[...], storage.to_numpy()
    )


def test_zarr_writes_a_part_of_a_storage(tmp_path):
    zarr = library("zarr")
    storage = dlf.storage(VALUES, dims="IJK")
    zarr.save_array(tmp_path / "t", storage[::-2, 1:4].T)
    read = zarr.open_array(tmp_path / "t", mode="r")[...]
    np.testing.assert_array_equal(read, VALUES[::-2, 1:4].T)


def test_chunks_of_dask_go_to_zarr(tmp_path):
    zarr, da = library("zarr"), library("dask.array")
    storage = dlf.storage(VALUES, dims="IJK")
    da.from_array(storage, chunks=2).to_zarr(str(tmp_path / "t"))
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "t", mode="r")[...], VALUES)
