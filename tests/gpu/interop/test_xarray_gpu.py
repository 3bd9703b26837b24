"""A DataArray around a storage on a GPU holds both sides, and freezes neither."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import pair, values
from support.cuda.kinds import (
    CLASSES,
    DEVICE_NEWER,
    HOST_NEWER,
    every_kind,
    every_state,
    host_backed,
)

xr = pytest.importorskip("xarray", exc_type=ImportError)

VALUES = np.arange(12.0).reshape(3, 4)
DIMS = ("I", "J")


def around(storage):
    return xr.DataArray(storage, dims=DIMS)


def made(managed):
    return dlf.storage(VALUES, dims=DIMS, halo=(1, 0), device="gpu", managed=managed)


@every_kind
def test_a_data_array_holds_the_storage_on_a_gpu_itself(managed):
    storage = made(managed)
    assert around(storage).data is storage
    array = storage.to_xarray(coords={"J": range(4)}, name="t")
    assert array.data is storage
    assert (array.dims, array.attrs) == (
        DIMS,
        {"halo_I": (1, 1), "halo_J": (0, 0), "extent_I": 3, "extent_J": 4},
    )


@every_kind
def test_parts_and_copies_are_storages_of_the_same_kind(managed):
    storage = made(managed)
    part = around(storage).isel(I=slice(1, None)).transpose("J", "I")
    assert (type(part.data), part.data.halo) == (CLASSES[managed], ((0, 0), (0, 1)))
    part[{"J": 0}] = -1.0
    assert values(storage)[1:, 0].tolist() == [-1.0, -1.0]
    copied = around(storage).copy().data
    assert type(copied) is CLASSES[managed]
    copied[...] = 0.0
    assert values(storage)[0, 1] == 1.0


@every_state
def test_the_values_of_a_pair_are_the_newer_ones_whenever_they_are_asked_for(state):
    storage = pair(VALUES, state)
    array = around(storage)
    assert np.array_equal(array.values, VALUES)
    with storage.device() as side:
        side[...] = VALUES + 1
    assert np.array_equal(array.values, VALUES + 1)
    assert np.array_equal(array.isel(I=1).values, VALUES[1] + 1)


def test_a_write_through_it_is_noted():
    storage = pair(VALUES, DEVICE_NEWER)
    around(storage)[{"I": 0}] = -1.0
    assert storage.sync_state.state == HOST_NEWER
    assert np.array_equal(values(storage)[1:], VALUES[1:])


def test_a_view_of_it_shares_the_state():
    storage = pair(VALUES)
    assert around(storage).T.isel(J=0).data.sync_state is storage.sync_state


@pytest.mark.parametrize("ask", [lambda array: array.values, lambda array: array.to_numpy()])
def test_the_error_for_values_on_a_gpu_gives_the_reason(ask):
    array = around(made(None))
    with pytest.raises(BufferError, match=r"use to_cupy\(\), or storage\(.*'cpu'\)"):
        ask(array)


@every_kind
def test_what_is_shown_has_the_class_and_the_values(managed):
    shown = repr(around(made(managed)))
    assert CLASSES[managed].__name__ in shown
    assert "11." in shown


@host_backed
def test_a_file_has_the_newer_values(managed, tmp_path):
    pytest.importorskip("scipy", exc_type=ImportError)
    storage = made(managed)
    with storage.device() as side:
        side[...] = VALUES + 1
    around(storage).rename("t").to_netcdf(tmp_path / "t.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "t.nc", engine="scipy") as file:
        assert np.array_equal(file["t"], VALUES + 1)


@every_kind
def test_the_data_interface_has_every_side(managed):
    storage = made(managed)
    found, expected = around(storage).__gt_data_interface__, storage.__gt_data_interface__
    assert found.keys() == expected.keys()
    assert {side: found[side]["data"] for side in found} == {
        side: expected[side]["data"] for side in expected
    }


@every_kind
def test_a_storage_of_it_is_of_the_same_kind_and_shares_its_state(managed):
    storage = made(managed)
    back = dlf.as_storage(around(storage))
    assert (type(back), back.dims, back.halo) == (CLASSES[managed], DIMS, storage.halo)
    assert getattr(back, "sync_state", None) is getattr(storage, "sync_state", None)


class HostSide(xr.DataArray):
    """Shows the host's side of the storage that it holds, and nothing else."""

    __slots__ = ()

    @property
    def __gt_data_interface__(self):
        return {None: self.data.__gt_data_interface__[None]}


@pytest.mark.source(
    "GDP-3",
    "Choosing the Device",
    "the interface of a DataArray decides, not the array that it holds",
)
@host_backed
def test_a_data_array_that_shows_the_host_side_is_assigned_on_the_host(managed):
    target = pair(np.zeros(VALUES.shape))
    target[...] = HostSide(made(managed), dims=DIMS)
    assert target.sync_state.state == HOST_NEWER
    assert np.array_equal(values(target), VALUES)


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "the accessor of a user decides names, order of axes, side, and what is read-only",
)
@host_backed
def test_a_storage_of_a_data_array_that_shows_the_host_side_is_on_the_host(managed):
    storage = made(managed)
    back = dlf.as_storage(HostSide(storage, dims=DIMS))
    assert (type(back), back.dims, back.halo) == (dlf.CPUStorage, DIMS, storage.halo)
    back[0, 0] = -1.0
    assert values(storage)[0, 0] == -1.0


@every_kind
def test_chunks_are_storages_of_the_same_kind(managed):
    pytest.importorskip("dask.array", exc_type=ImportError)
    whole = around(made(managed)).chunk({"I": 2}).compute(scheduler="synchronous").data
    assert (type(whole), whole.halo) == (CLASSES[managed], ((1, 1), (0, 0)))
    assert np.array_equal(values(whole), VALUES)


@every_kind
def test_overlapping_chunks_are_storages_of_the_same_kind(managed):
    pytest.importorskip("dask.array", exc_type=ImportError)
    chunks, seen = around(made(managed)).chunk({"I": 2}).data, set()

    def see(block):
        seen.add(type(block))
        return block

    made_of_it = chunks.map_overlap(see, depth={0: 1}, boundary="periodic", meta=chunks._meta)
    whole = made_of_it.compute(scheduler="synchronous")
    assert seen == {CLASSES[managed]}
    assert np.array_equal(values(whole), VALUES)


@every_kind
@pytest.mark.parametrize("chunks", [None, 2], ids=["plain", "chunked"])
def test_a_file_has_the_values_of_every_kind_encoded_as_those_of_numpy(managed, chunks, tmp_path):
    pytest.importorskip("scipy", exc_type=ImportError)
    array = around(made(managed)).rename("t")
    if chunks is not None:
        pytest.importorskip("dask.array", exc_type=ImportError)
        array = array.chunk(chunks)
    encoding = {"t": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}}
    array.to_netcdf(tmp_path / "t.nc", engine="scipy", encoding=encoding)
    with xr.open_dataset(tmp_path / "t.nc", engine="scipy") as file:
        assert np.array_equal(file["t"], VALUES)
