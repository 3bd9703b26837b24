"""A DataArray around a storage keeps it: memory, names and halo, through what xarray does to it."""

import pickle

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.owners import assert_freed_once
from support.processes import run_in_subprocess

xr = library("xarray")

DIMS, SHAPE = ("I", "J", "K"), (5, 6, 4)
VALUES = np.arange(np.prod(SHAPE), dtype=float).reshape(SHAPE)


@pytest.fixture
def storage():
    return dlf.storage(VALUES, dims="IJK", halo=((0, 1), (2, 0), 0), layout=(2, 1, 0))


@pytest.fixture
def array(storage):
    return xr.DataArray(storage, dims=storage.dims, coords={"K": [10, 20, 30, 40]})


def held(array):
    """What a DataArray holds, which has to be a storage."""
    assert isinstance(array.variable._data, dlf.Storage)
    return array.data


# --- the storage stays -------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"dims": DIMS}, {"coords": {"K": range(4)}, "dims": DIMS}])
def test_a_data_array_holds_the_storage_itself(storage, how):
    array = xr.DataArray(storage, **how)
    assert array.data is storage
    assert (array.shape, array.dtype, array.nbytes) == (SHAPE, np.float64, storage.nbytes)


def test_a_dataset_and_a_variable_hold_the_storage_itself(storage):
    assert xr.Variable(DIMS, storage).data is storage
    assert xr.Dataset({"t": (DIMS, storage)})["t"].data is storage


VIEWS = {
    "part": (lambda array: array.isel(J=slice(1, 4)), "IJK", ((0, 1), (1, 0), (0, 0))),
    "plane": (lambda array: array.isel(K=1), "IJ", ((0, 1), (2, 0))),
    "label": (lambda array: array.sel(K=20), "IJ", ((0, 1), (2, 0))),
    "labels": (lambda array: array.sel(K=slice(20, 30)), "IJK", ((0, 1), (2, 0), (0, 0))),
    "backwards": (lambda array: array[::-1], "IJK", ((1, 0), (2, 0), (0, 0))),
    "transposed": (
        lambda array: array.transpose("K", "I", "J"),
        "KIJ",
        ((0, 0), (0, 1), (2, 0)),
    ),
    "squeezed": (lambda array: array[:1].squeeze(), "JK", ((2, 0), (0, 0))),
    "renamed": (lambda array: array.rename(I="x"), "IJK", ((0, 1), (2, 0), (0, 0))),
    "shallow copy": (lambda array: array.copy(deep=False), "IJK", ((0, 1), (2, 0), (0, 0))),
    "one more": (lambda array: array.expand_dims("t"), None, ((0, 0), (0, 1), (2, 0), (0, 0))),
    "repeated": (lambda array: array.expand_dims(t=2), None, ((0, 0), (0, 1), (2, 0), (0, 0))),
}


@pytest.mark.parametrize(("view", "dims", "halo"), VIEWS.values(), ids=VIEWS)
def test_a_part_in_another_order_is_a_view_of_the_storage(storage, array, view, dims, halo):
    part = view(array)
    assert np.shares_memory(held(part), storage)
    assert held(part).dims == (None if dims is None else tuple(dims))
    assert held(part).halo == halo
    plain = view(xr.DataArray(VALUES, dims=array.dims, coords=array.coords))
    assert part.dims == plain.dims
    np.testing.assert_array_equal(part.values, plain.values, strict=True)


def test_a_list_of_indices_gives_an_array_of_numpy_as_the_storage_does(storage, array):
    part = array.isel(I=[0, 2], K=[1])
    assert type(part.data) is np.ndarray
    np.testing.assert_array_equal(part, VALUES[[0, 2]][:, :, [1]])
    assert not np.shares_memory(part.data, storage)


def test_writes_to_a_storage_inside_xarray_are_seen_on_both_sides(storage, array):
    array.loc[{"K": 20}] = -1.0
    array.values[0, 0, 0] = 42.0
    assert (storage[3, 3, 1], storage[0, 0, 0]) == (-1.0, 42.0)
    storage[1, 1, 1] = 43.0
    assert array.isel(I=1, J=1, K=1).item() == 43.0


def test_a_data_array_is_assigned_to_one_by_name(storage, array):
    array[{"I": 0}] = xr.DataArray(VALUES[1].T, dims=("K", "J"))
    np.testing.assert_array_equal(storage[0].to_numpy(), VALUES[1])


def test_a_read_only_storage_cannot_be_written_through_it():
    array = xr.DataArray(dlf.as_storage(bytes(3)), dims="x")
    with pytest.raises(BufferError, match="read-only"):
        array[0] = 1
    assert not array.values.flags.writeable


def test_a_deep_copy_is_a_storage_of_its_own(storage, array):
    copied = held(array.copy())
    assert (copied.dims, copied.halo, copied.layout) == (storage.dims, storage.halo, (2, 1, 0))
    assert np.array_equal(copied, storage)
    assert not np.shares_memory(copied, storage)


def test_a_pickle_brings_the_storage_back(storage, array):
    copied = held(pickle.loads(pickle.dumps(array)))
    assert (copied.dims, copied.halo, copied.layout) == (storage.dims, storage.halo, (2, 1, 0))


MADE = {
    "concat": lambda array: xr.concat([array[:2], array[2:]], "I"),
    "roll": lambda array: array.roll(J=1),
    "pad": lambda array: array.pad(I=1),
    "where": lambda array: array.where(array.values > 5, -1.0),
    "astype": lambda array: array.astype("float32"),
    "zeros_like": xr.zeros_like,
    "full_like": lambda array: xr.full_like(array, 7.0),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_xarray_makes_of_a_storage_is_a_storage_with_names(storage, array, make):
    made = make(array)
    plain = make(xr.DataArray(VALUES, dims=array.dims, coords=array.coords))
    assert held(made).dims == storage.dims
    np.testing.assert_array_equal(made.values, plain.values, strict=True)
    assert not np.shares_memory(held(made), storage)


def test_a_view_by_xarray_keeps_the_memory_and_frees_it_once():
    assert_freed_once(
        dlf.as_storage,
        lambda storage: xr.DataArray(storage, dims=("x", "y")),
        lambda array: array.T[1:],
    )


def test_a_file_has_the_values(array, tmp_path):
    library("scipy")
    array.rename("t").to_netcdf(tmp_path / "t.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "t.nc", engine="scipy") as file:
        np.testing.assert_array_equal(file["t"], VALUES)
        assert file["t"].dims == ("I", "J", "K")


@pytest.mark.parametrize("show", [repr, lambda shown: shown._repr_html_()], ids=["text", "html"])
def test_what_is_shown_names_the_storage(array, show):
    assert "CPUStorage" in show(array)
    assert "CPUStorage" in show(array.to_dataset(name="t"))


# --- computing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda a: a + 1,
        lambda a: a > 1,
        lambda a: a.mean(),
        lambda a: a.max("K"),
        lambda a: a.sum("I"),
    ],
    ids=["+", ">", "mean", "max", "sum"],
)
def test_it_computes_what_an_array_of_numpy_gives(array, call):
    xr.testing.assert_allclose(call(array).as_numpy(), call(array.as_numpy()))


def test_as_numpy_copies_nothing(storage, array):
    plain = array.as_numpy()
    assert plain.data.ctypes.data == address_of(storage)
    assert plain.coords.equals(array.coords)
    assert (plain + 1).mean("K").equals(xr.DataArray(VALUES, dims=DIMS).mean("K") + 1)


def test_equals_compares_values(array):
    assert array.equals(array.copy())
    assert not array.equals(array + 1)


# --- back into dlfield -------------------------------------------------------------------------


def test_a_storage_of_it_has_the_same_memory_names_and_halo(storage, array):
    back = dlf.as_storage(array.transpose("K", "J", "I"))
    assert address_of(back) == address_of(storage)
    assert (back.dims, back.halo) == (("K", "J", "I"), ((0, 0), (2, 0), (0, 1)))
    assert not back.readonly


def test_names_of_another_kind_are_those_of_xarray(storage, array):
    back = dlf.as_storage(array.rename(I="lon", J="lat", K="level"))
    assert (back.dims, back.halo) == (("lon", "lat", "level"), storage.halo)


def test_names_that_contradict_those_of_the_storage_are_refused(array):
    with refused(ValueError, "('I', 'J', 'K')", "('J', 'I', 'K')", "transpose or rename"):
        dlf.as_storage(array.rename(I="J", J="I"))


def test_xarray_keeps_an_unknown_halo_unknown(array):
    assert dlf.as_storage(array[::2]).halo is None


def test_a_stencil_does_not_take_an_unknown_halo_for_none(compiled, array):
    out = np.zeros((3, 6, 4))
    with refused(ValueError, "expected a known halo"):
        dlf.bind(compiled("split", "numpy"))(array[::2], out, out.copy())


def test_alignment_and_origin_come_back():
    storage = dlf.zeros((3, 4), dims="IJ", alignment_size=64, default_origin=(1, 2))
    back = dlf.as_storage(xr.DataArray(storage, dims=("I", "J")))
    assert (back.alignment_size, back.default_origin) == (64, (1, 2))


@pytest.mark.parametrize("dims", [("x", "y", "z"), ("I", "y", "K")])
def test_an_origin_whose_names_are_replaced_is_dropped(dims):
    storage = dlf.zeros((4, 5, 3), dims="IJK", default_origin=(1, 1, 0))
    back = dlf.as_storage(xr.DataArray(storage, dims=dims))
    assert back.dims == dims
    assert not hasattr(back, "default_origin")
    assert address_of(back) == address_of(storage)


@pytest.mark.parametrize("own", [None, (1, 0, 0)])
def test_a_storage_and_a_bound_stencil_begin_where_the_class_of_a_data_array_says(compiled, own):
    class Field(xr.DataArray):
        __slots__ = ()
        __gt_origin__ = (2, 2, 0)

    out = Field(dlf.zeros((4, 4, 1), dims="IJK", default_origin=own or dlf.UNSET), dims=DIMS)
    assert dlf.as_storage(out).default_origin == (2, 2, 0)
    dlf.bind(compiled("split", "numpy"))(np.zeros((2, 2, 1)), out, np.zeros((2, 2, 1)))
    assert out.data.to_numpy()[2:, 2:].all()
    assert out.data.to_numpy().sum() == 4.0


@pytest.mark.parametrize("order", ["IJK", "KJI"])
def test_a_bound_stencil_computes_inside_the_halo_of_the_storage(compiled, backend, array, order):
    from support.stencils.cartesian import skewed_reference

    out = dlf.full(SHAPE, -1.0, dims="IJK", halo=((0, 1), (2, 0), 0))
    around = xr.DataArray(out, dims=DIMS).transpose(*order)
    dlf.bind(compiled("skewed", backend))(array.transpose(*order), around)
    np.testing.assert_array_equal(out.to_numpy(), skewed_reference(VALUES))


def test_a_stencil_that_is_not_bound_takes_it(compiled, backend, array):
    from support.stencils.cartesian import skewed_reference

    out = xr.DataArray(dlf.full(SHAPE, -1.0, dims="IJK"), dims=DIMS)
    compiled("skewed", backend)(array, out, origin=(0, 2, 0), domain=(4, 4, 4))
    np.testing.assert_array_equal(out.values, skewed_reference(VALUES))


# --- to_xarray ---------------------------------------------------------------------------------


def test_to_xarray_shares_the_memory_under_the_names_of_the_storage(storage):
    array = storage.to_xarray()
    assert type(array.data) is np.ndarray
    assert (array.dims, array.data.ctypes.data) == (storage.dims, address_of(storage))
    array[{"I": 1, "J": 1, "K": 1}] = 42.0
    assert storage[1, 1, 1] == 42.0
    assert float((array + 1).max()) == VALUES.max() + 1


def test_to_xarray_uses_the_given_labels(storage):
    array = storage.to_xarray({"K": [1, 2, 3, 4]}, "t", {"units": "K", "halo_I": "mine"})
    assert (array.name, array.sel(K=2).shape) == ("t", (5, 6))
    extents = {"extent_I": 5, "extent_J": 6, "extent_K": 4}
    halo = {"halo_I": "mine", "halo_J": (2, 0), "halo_K": (0, 0)}
    assert array.attrs == {**halo, **extents, "units": "K"}


def test_to_xarray_says_a_halo_that_there_is():
    assert dlf.zeros((3, 4), dims="IJ").to_xarray().attrs == {}
    assert dlf.zeros((3, 4), dims="IJ", halo=(1, 0))[::2].to_xarray().attrs == {
        "halo_unknown": 1,
        "extent_I": 2,
        "extent_J": 4,
    }
    assert dlf.zeros((3, 4), dims="IJ", halo=(1, 0)).T.to_xarray().attrs == {
        "halo_J": (0, 0),
        "halo_I": (1, 1),
        "extent_J": 4,
        "extent_I": 3,
    }


def test_the_halo_goes_into_a_file(storage, tmp_path):
    library("scipy")
    storage.to_xarray(name="t").to_netcdf(tmp_path / "t.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "t.nc", engine="scipy") as file:
        assert file["t"].attrs["halo_J"].tolist() == [2, 0]


def test_to_xarray_needs_names():
    with refused(ValueError, "shape (3,) without", "as_storage(storage, dims=...)"):
        dlf.zeros(3).to_xarray()


def test_to_xarray_keeps_the_memory_and_frees_it_once():
    assert_freed_once(
        lambda memory: dlf.as_storage(memory, dims="IJ"), lambda storage: storage.to_xarray()
    )


def test_without_xarray_it_says_what_to_install():
    said = run_in_subprocess("""
        import sys
        sys.modules["xarray"] = None
        import dlfield
        try:
            dlfield.zeros(3, dims="I").to_xarray()
        except ImportError as error:
            print(error)
    """)
    assert said.endswith("pip install xarray")
