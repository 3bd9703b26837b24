"""Other libraries of Arrow: arro3 and nanoarrow keep all metadata that dlfield writes."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.owners import assert_freed_once

LAYOUTS = pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])


def arro3(storage):
    return library("arro3.core").Array.from_arrow(storage)


def nanoarrow(storage):
    return library("nanoarrow").Array(storage)


def nanoarrow_in_c(storage):
    return library("nanoarrow").c_array(storage)


every_library = pytest.mark.parametrize("into", [arro3, nanoarrow, nanoarrow_in_c])


@every_library
@LAYOUTS
def test_a_field_comes_back_whole_and_over_its_memory(into, layout):
    values = np.arange(24.0).reshape(4, 3, 2)
    options = {"dims": "IJK", "halo": (1, 1, 0), "default_origin": (1, 0, 0)}
    storage = dlf.storage(values, layout=layout, **options)
    back = dlf.as_storage(into(storage))
    assert (back.dims, back.halo) == (storage.dims, storage.halo)
    assert (back.layout, back.default_origin) == (layout, (1, 0, 0))
    assert address_of(back) == address_of(storage)
    assert np.array_equal(back.to_numpy(), values)
    assert back.readonly


@every_library
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_a_row_of_every_dtype_comes_back_over_its_memory(into, dtype):
    storage = dlf.storage(np.array([0, 1, 1], dtype), dims="K")
    back = dlf.as_storage(into(storage))
    assert (back.dtype, back.dims) == (storage.dtype, ("K",))
    assert address_of(back) == address_of(storage)


@every_library
def test_the_memory_is_kept_and_freed_once(into):
    assert_freed_once(dlf.as_storage, into)
    assert_freed_once(dlf.as_storage, into, dlf.as_storage, lambda one: one[1:])


def test_a_batch_and_a_table_of_arro3_arrive():
    arro3_core = library("arro3.core")
    library("pyarrow")
    storage = dlf.ones((4, 3), dims="IJ", halo=(1, 0))
    batch = storage.to_arrow_batch("a")
    for made in (arro3_core.RecordBatch.from_arrow(batch), arro3_core.Table.from_arrow(batch)):
        back = dlf.as_storage(made)
        assert (back.dims, back.halo) == (storage.dims, storage.halo)
        assert address_of(back) == address_of(storage)


def test_nulls_of_nanoarrow_are_counted():
    nanoarrow = library("nanoarrow")
    with refused(BufferError, "got 1", "fill_null"):
        dlf.as_storage(nanoarrow.Array([1, None, 3], nanoarrow.int32()))
