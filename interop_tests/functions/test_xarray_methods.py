"""xarray's methods of a DataArray around a storage: values, and the table of docs/xarray.md."""

import numpy as np
import pytest

from support import xarray_methods as methods
from support.optional import library

xr = library("xarray")
library("dask.array")
library("scipy")
library("h5netcdf")
library("zarr")

PAGE = methods.DOCUMENT.read_text("utf-8")
#: The table is of one version of xarray; another may have other methods.
written_with_another = pytest.mark.skipif(
    f"With xarray {xr.__version__}:" not in PAGE, reason="the table is of another xarray"
)
TRIED = [name for name in methods.methods() if name in methods.CALLS]


def same(found, wanted):
    """Compare values, and what is around them."""
    if isinstance(wanted, tuple | dict):
        assert type(found) is type(wanted)
        for one, other in zip(methods.each(found), methods.each(wanted), strict=True):
            same(one, other)
    elif isinstance(wanted, xr.DataArray | xr.Dataset):
        xr.testing.assert_allclose(found.compute().as_numpy(), wanted.compute())
    elif hasattr(wanted, "equals"):
        assert found.equals(wanted)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("make", [lambda one: one, methods.in_chunks], ids=["whole", "in chunks"])
@pytest.mark.parametrize("name", TRIED)
def test_a_method_gives_what_it_gives_around_numpy(name, make):
    array = methods.example()
    found = methods.called(name, make(array))
    wanted = methods.called(name, make(methods.around_numpy(array)))
    if wanted.error is not None:
        assert type(found.error) is type(wanted.error)
        return
    if found.error is not None:
        raise found.error
    same(found.result, wanted.result)


@written_with_another
def test_every_method_is_tried():
    assert {*methods.CALLS, *methods.LEFT_OUT} == {*methods.methods()}


@written_with_another
def test_the_page_shows_the_table():
    assert methods.table() in PAGE, "run `make pages`"
