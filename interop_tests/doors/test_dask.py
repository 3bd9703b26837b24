"""Dask's chunks of a storage are storages, and what Dask puts together again is one."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.annotations import Field

from support.errors import refused
from support.optional import library

da = library("dask.array")
xr = library("xarray")

SHAPE = (8, 6, 3)
VALUES = np.arange(np.prod(SHAPE), dtype=float).reshape(SHAPE)
HALO = ((2, 2), (1, 1), (0, 0))


@pytest.fixture
def storage():
    return dlf.storage(VALUES, dims="IJK", halo=HALO, layout=(2, 1, 0))


@pytest.fixture
def chunked(storage):
    return da.from_array(storage, chunks=(4, 3, 3))


def known(storage):
    return (type(storage), storage.dims, storage.halo)


def test_a_chunk_is_a_part_of_the_storage(chunked):
    corner = chunked.blocks[1, 0].compute()
    assert known(corner) == (dlf.CPUStorage, ("I", "J", "K"), ((0, 2), (1, 0), (0, 0)))
    np.testing.assert_array_equal(corner.to_numpy(), VALUES[4:, :3], strict=True)


PUT_TOGETHER = {
    "as it was": lambda chunked: chunked,
    "in other chunks": lambda chunked: chunked.rechunk((3, 6, 2)),
    "block by block": lambda chunked: chunked.map_blocks(lambda block: block.copy()),
}


@pytest.mark.parametrize("call", PUT_TOGETHER.values(), ids=PUT_TOGETHER)
def test_chunks_are_put_together_with_names_halo_and_layout(chunked, call):
    whole = call(chunked).compute()
    assert known(whole) == (dlf.CPUStorage, ("I", "J", "K"), HALO)
    assert whole.layout == (2, 1, 0)
    np.testing.assert_array_equal(whole.to_numpy(), VALUES, strict=True)


def test_axes_in_another_order_keep_their_names(chunked):
    turned = chunked.transpose(2, 0, 1).compute()
    assert known(turned) == (dlf.CPUStorage, ("K", "I", "J"), (HALO[2], HALO[0], HALO[1]))
    np.testing.assert_array_equal(turned.to_numpy(), VALUES.transpose(2, 0, 1), strict=True)


def mean_of_neighbours(values):
    """Return the mean of both neighbours along the first axis, and the ends as they are."""
    made = values.copy()
    made[1:-1] = (values[:-2] + values[2:]) / 2
    return made


def on_storage(block):
    assert isinstance(block, dlf.Storage)
    made = block.copy()
    made[...] = mean_of_neighbours(block.to_numpy())
    return made


@pytest.mark.parametrize("boundary", ["none", "periodic", "reflect", "nearest", -1.0], ids=str)
def test_a_function_of_overlapping_chunks_sees_storages_and_their_neighbours(chunked, boundary):
    options = {"depth": {0: 1, 1: 1}, "boundary": boundary}
    made = chunked.map_overlap(on_storage, **options, meta=chunked._meta).compute()
    plain = da.from_array(VALUES, chunks=(4, 3, 3))
    expected = plain.map_overlap(mean_of_neighbours, **options, meta=plain._meta).compute()
    assert isinstance(made, dlf.CPUStorage)
    assert made.dims == ("I", "J", "K")
    np.testing.assert_array_equal(made.to_numpy(), expected, strict=True)


def test_overlapping_chunks_have_the_halo_of_their_place(chunked):
    seen = []

    def see(block):
        seen.append((block.shape, block.halo))
        return block

    kept = chunked.map_overlap(see, depth={0: 1}, boundary="none", meta=chunked._meta).compute()
    assert ((5, 3, 3), ((2, 0), (1, 0), (0, 0))) in seen
    assert kept.halo == HALO


def test_a_stencil_runs_on_every_chunk(chunked):
    def add_one(field, *, origin, domain):
        (i, j, k), (ni, nj, nk) = origin["field"], domain
        field[i : i + ni, j : j + nj, k : k + nk] += 1

    run = dlf.bind(add_one, fields={"field": Field[np.float64]})

    def compute(block):
        made = block.copy()
        run(made)
        return made

    made = chunked.map_blocks(compute, meta=chunked._meta).compute()
    inside = np.zeros(SHAPE)
    inside[2:-2, 1:-1] = 1
    np.testing.assert_array_equal(made.to_numpy(), VALUES + inside)
    assert made.halo == HALO


def test_names_that_contradict_each_other_are_not_put_together(storage):
    other = dlf.as_storage(storage.to_numpy(), dims="JIK")
    with refused(ValueError, "('I', 'J', 'K')", "('J', 'I', 'K')"):
        da.concatenate([da.from_array(one, chunks=8) for one in (storage, other)]).compute()


def test_chunks_compute(chunked):
    assert chunked.sum().compute() == VALUES.sum()
    np.testing.assert_array_equal((chunked + 1).compute(), VALUES + 1)


def test_numpy_chunks_of_the_same_values_have_arithmetic(storage, chunked):
    assert chunked.map_blocks(np.asarray, dtype=float).sum().compute() == VALUES.sum()
    assert da.from_array(storage.to_numpy(), chunks=4).sum().compute() == VALUES.sum()


def test_dask_stores_into_a_storage(storage, chunked):
    target = dlf.zeros_like(storage)
    chunked.store(target)
    assert np.array_equal(target, storage)


# --- through xarray ----------------------------------------------------------------------------


@pytest.fixture
def array(storage):
    return xr.DataArray(storage, dims=storage.dims, name="t").chunk({"I": 4, "J": 3})


def test_xarray_puts_its_chunks_together(array):
    assert array.chunks == ((4, 4), (3, 3), (3,))
    whole = array.compute()
    assert known(whole.data) == (dlf.CPUStorage, ("I", "J", "K"), HALO)
    np.testing.assert_array_equal(whole.values, VALUES, strict=True)


def test_a_part_of_chunks_is_the_part_of_the_storage(array):
    part = array.isel(I=slice(1, 6), K=0).transpose("J", "I").compute()
    assert known(part.data) == (dlf.CPUStorage, ("J", "I"), ((1, 1), (1, 0)))
    np.testing.assert_array_equal(part.values, VALUES[1:6, :, 0].T, strict=True)


def test_overlapping_chunks_go_through_xarray(array):
    made = array.data.map_overlap(on_storage, depth={0: 1}, boundary="periodic")
    assert isinstance(array.copy(data=made).compute().data, dlf.Storage)


def test_blocks_of_a_data_array_hold_storages(array):
    def compute(block):
        assert block.size == 0 or isinstance(block.data, dlf.Storage)
        return block.copy()

    assert np.array_equal(xr.map_blocks(compute, array).compute().data, VALUES)


def test_chunks_go_into_a_file(array, tmp_path):
    library("scipy")
    array.to_netcdf(tmp_path / "t.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "t.nc", engine="scipy") as file:
        np.testing.assert_array_equal(file["t"], VALUES)


def test_chunks_become_storages_when_they_are_computed(array):
    with refused(TypeError, "got chunks of Dask", "map_overlap", "or call compute()"):
        dlf.as_storage(array)
