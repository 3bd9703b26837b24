"""`storage` copies what NumPy reads: datasets of zarr and HDF5, Dask arrays, pandas."""

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library

VALUES = np.arange(6.0).reshape(2, 3)


class Dataset:
    """An array in a file."""

    shape, dtype = VALUES.shape, VALUES.dtype

    def __init__(self, values=VALUES):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize("dtype", ["f8", ">f8", "i2"])
def test_what_numpy_reads_is_copied(dtype):
    values = VALUES.astype(dtype)
    made = dlf.storage(Dataset(values), layout=(1, 0), dims="IJ")
    np.testing.assert_array_equal(made.to_numpy(), VALUES)
    assert made.dtype == values.dtype.newbyteorder("=")
    assert dlf.storage(Dataset(values), dtype="f4").dtype == np.float32
    assert not np.shares_memory(made, values)


def test_names_of_what_numpy_reads_are_kept():
    class Named(Dataset):
        __gt_dims__ = ("J", "I")

    assert dlf.storage(Named()).dims == ("J", "I")


def test_nothing_is_read_without_a_copy():
    for take in (dlf.as_storage, lambda data: dlf.storage(data, copy=False)):
        with pytest.raises(TypeError, match="array: expected one that speaks"):
            take(Dataset())


def test_what_reading_raises_is_raised():
    class Broken(Dataset):
        def __array__(self, dtype=None, copy=None):
            raise OSError("the file is closed")

    with pytest.raises(OSError, match="the file is closed"):
        dlf.storage(Broken())
    with pytest.raises(TypeError, match="array: expected one that speaks"):
        dlf.storage(Dataset)


def test_a_zarr_array_is_copied():
    zarr = library("zarr")
    np.testing.assert_array_equal(dlf.storage(zarr.array(VALUES)).to_numpy(), VALUES)


def test_an_hdf5_dataset_is_copied(tmp_path):
    with library("h5py").File(tmp_path / "a.h5", "w") as file:
        made = dlf.storage(file.create_dataset("a", data=VALUES.astype(">f8")))
    np.testing.assert_array_equal(made.to_numpy(), VALUES)
