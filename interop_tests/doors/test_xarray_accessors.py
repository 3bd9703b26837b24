"""The default accessors of DataArray: computed at each access, and never instead of the user's."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.xarray import DefaultAccessor

from support.errors import refused
from support.optional import library
from support.processes import run_in_subprocess

xr = library("xarray")

NAMES = ("__gt_data_interface__", "__gt_dims__")


def labelled(dims, shape=(4, 3, 2)):
    return xr.DataArray(np.arange(np.prod(shape), dtype=float).reshape(shape), dims=tuple(dims))


def why_absent(array, name="__gt_data_interface__"):
    """Check that an attribute is absent, and return the reason as xarray words it."""
    assert not hasattr(array, name)
    with pytest.raises(AttributeError) as caught:
        getattr(xr.DataArray, name).fget(array)
    return str(caught.value)


class Duck:
    """A duck array that xarray keeps. Describes itself by the given attributes."""

    shape, ndim, dtype = (4, 3), 2, np.dtype(np.float64)

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def __array_function__(self, *_arguments):
        return NotImplemented

    def __array_ufunc__(self, *_arguments, **_keywords):
        return NotImplemented

    def __array__(self, *_arguments, **_keywords):
        raise AssertionError("the array was computed")


def holding(interface, dims=("x", "y")):
    return xr.DataArray(Duck(__gt_data_interface__=interface), dims=dims)


# Installation, with the real xarray and GT4Py; the hook itself is tested in tests/python.


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "importing the package registers the accessor for DataArrays",
)
@pytest.mark.parametrize("order", ["xarray, dlfield", "dlfield, xarray"])
def test_whichever_is_imported_first_the_accessors_are_there(order):
    printed = run_in_subprocess(f"""
        import {order}
        array = xarray.DataArray([[1.0]], dims=("J", "I"))
        print(array.__gt_dims__, array.__gt_data_interface__[None]["dims"])
    """)
    assert printed == "('J', 'I') ('J', 'I')"


def test_gt4py_imported_between_the_two_changes_nothing():
    library("gt4py.cartesian.gtscript")
    printed = run_in_subprocess(
        """
        import dlfield, gt4py.cartesian.gtscript, xarray
        print(xarray.DataArray([1.0], dims="K").__gt_dims__)
    """,
        warnings="default",
    )
    assert printed == "('K',)"


@pytest.mark.source("GDP-3", "Default xarray Data Interface", "users can replace the accessor")
@pytest.mark.source("Allocation note", "Dimension Mapping", "users add support for xarray by hand")
@pytest.mark.parametrize("name", NAMES)
def test_an_accessor_that_was_registered_before_is_kept(name):
    printed = run_in_subprocess(f"""
        import warnings, xarray
        warnings.simplefilter("error")
        xarray.register_dataarray_accessor({name!r})(lambda array: ("mine", array.name))
        import dlfield
        print(xarray.DataArray([1.0], dims="K", name="t").{name})
    """)
    assert printed == "('mine', 't')"


@pytest.mark.source(
    "GDP-3", "Default xarray Data Interface", "xarray warns when the accessor is replaced"
)
@pytest.mark.parametrize("name", NAMES)
def test_an_accessor_that_is_registered_afterwards_wins_with_the_warning_of_xarray(
    monkeypatch, name
):
    monkeypatch.setattr(xr.DataArray, name, getattr(xr.DataArray, name))  # put back at the end
    with pytest.warns(xr.core.extensions.AccessorRegistrationWarning, match=name):
        xr.register_dataarray_accessor(name)(lambda array: ("mine", array.name))
    assert getattr(xr.DataArray([1.0], dims="K", name="t"), name) == ("mine", "t")


@pytest.mark.source("GDP-3", "Default xarray Data Interface", "users can replace the accessor")
def test_an_attribute_of_a_subclass_wins():
    class Field(xr.DataArray):
        __slots__ = ()
        __gt_dims__ = ("J", "I")

    assert Field(np.zeros((4, 3)), dims=("x", "y")).__gt_dims__ == ("J", "I")


@pytest.mark.parametrize("name", NAMES)
def test_the_accessors_are_recognised_by_their_class(name):
    accessor = type(getattr(xr.DataArray, name))
    assert (accessor.__module__, accessor.__name__) == (
        "dlfield.xarray.accessors",
        "DefaultAccessor",
    )
    assert accessor is DefaultAccessor


# __gt_dims__


@pytest.mark.parametrize("dims", ["IJK", "KJI", "KI", "J", "", "I0", ("J", "10", "0")])
def test_gt_dims_are_the_dims_where_gt4py_knows_them_all(dims):
    assert labelled(dims, (2,) * len(dims)).__gt_dims__ == tuple(dims)


@pytest.mark.parametrize(
    "dims", ["xyz", "IJz", ("I", "J", "00"), ("IJ",), ("I", "²"), ("I", 0), ("I", "4294967296")]
)
def test_gt_dims_are_absent_where_gt4py_does_not_know_one(dims):
    said = why_absent(labelled(dims, (2,) * len(dims)), "__gt_dims__")
    assert f"'I', 'J', 'K' and decimals, got {tuple(dims)}; rename()" in said


@pytest.mark.parametrize("dims", ["IJK", "xyz", ("0", "1"), ("I", "4294967295"), ("4294967296",)])
def test_gt_dims_are_there_where_a_storage_has_them(dims):
    array = labelled(dims, (2,) * len(dims))
    assert hasattr(array, "__gt_dims__") == hasattr(dlf.as_storage(array), "__gt_dims__")


def test_gt_dims_are_those_of_the_labelled_array_and_not_of_what_it_holds():
    array = xr.DataArray(Duck(__gt_dims__=("I", "J")), dims=("K", "J"))
    assert array.__gt_dims__ == ("K", "J")
    assert not hasattr(array.rename(K="level"), "__gt_dims__")


class Naming(xr.DataArray):
    """States the names of its axes for GT4Py as a method, as the storage allocation note has it."""

    __slots__ = ()

    def __gt_dims__(self):
        return ("J", "I")


@pytest.mark.parametrize("kind", ["numpy", "torch", "storage", "named storage"])
def test_dims_that_a_class_states_by_a_method_count_everywhere(kind):
    make = {
        "numpy": np.zeros,
        "torch": lambda shape: library("torch").zeros(shape),
        "storage": dlf.zeros,
        "named storage": lambda shape: dlf.zeros(shape, dims="JI"),
    }
    array = Naming(make[kind]((2, 3)), dims=("y", "x"))
    assert array.__gt_data_interface__[None]["dims"] == ("J", "I")
    assert dlf.as_storage(array).dims == dlf.get_dims(array) == ("J", "I")


def test_an_interface_is_absent_where_a_name_is_no_text():
    array = xr.DataArray(np.zeros((2, 3)), dims=("I", 0))
    assert not hasattr(array, "__gt_data_interface__")
    assert "expected names, got 0" in why_absent(array, "__gt_data_interface__")


def test_gt_dims_follow_a_change_of_names_and_of_order():
    array = labelled("IJK")
    assert array.transpose("K", "I", "J").__gt_dims__ == ("K", "I", "J")
    assert array.rename(I="J", J="I").__gt_dims__ == ("J", "I", "K")
    assert not hasattr(array.rename(I="x"), "__gt_dims__")


# __gt_data_interface__ of plain arrays


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "without the interface, the array interface of the data is the entry None",
)
def test_the_interface_is_that_of_the_data_with_dims():
    array = labelled("xyz").transpose("z", "x", "y")
    expected = {**array.data.__array_interface__, "dims": ("z", "x", "y")}
    assert expected["strides"] is not None
    assert array.__gt_data_interface__ == {None: expected}


def test_the_interface_follows_data_that_is_replaced():
    array = labelled("xyz")
    before = array.__gt_data_interface__
    array.data = other = np.zeros((4, 3, 2), np.float32)
    assert before[None]["data"][0] != other.ctypes.data
    assert array.__gt_data_interface__[None]["data"][0] == other.ctypes.data
    assert array.__gt_data_interface__[None]["typestr"] == "<f4"


def test_the_interface_follows_a_change_of_names_and_of_order():
    array = labelled("xyz")
    _ = array.__gt_data_interface__
    array = array.rename(x="I")
    assert array.__gt_data_interface__[None]["dims"] == ("I", "y", "z")
    assert array.transpose("z", "y", "I").__gt_data_interface__[None]["shape"] == (2, 3, 4)


def test_the_interface_of_read_only_data_says_so():
    array = xr.DataArray(np.frombuffer(bytes(16)), dims="x")
    assert array.__gt_data_interface__[None]["data"][1] is True


def test_the_interface_of_a_coordinate_points_into_its_index():
    coordinate = xr.DataArray(np.zeros(3), dims="x", coords={"x": [0.0, 1.0, 2.0]}).coords["x"]
    expected = coordinate.variable.data.__array_interface__["data"]
    assert coordinate.__gt_data_interface__[None]["data"] == expected
    assert expected[1] is True


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    'without the interface, the CUDA array interface of the data is the entry "gpu"',
    "dims are added to each entry",
)
def test_the_interface_of_memory_that_both_sides_reach_names_both():
    host, gpu = {"shape": (4, 3), "data": (64, False)}, {"shape": (4, 3), "data": (128, False)}
    array = xr.DataArray(Duck(__array_interface__=host, __cuda_array_interface__=gpu))
    dims = {"dims": ("dim_0", "dim_1")}
    assert array.__gt_data_interface__ == {None: host | dims, "gpu": gpu | dims}


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    'without the interface, the CUDA array interface of the data is the entry "gpu"',
)
def test_the_interface_of_memory_on_a_gpu_has_no_entry_for_the_host():
    array = xr.DataArray(Duck(__cuda_array_interface__={"data": (128, False)}), dims=("x", "y"))
    assert array.__gt_data_interface__ == {"gpu": {"data": (128, False), "dims": ("x", "y")}}


def test_the_interface_of_data_computed_on_demand_is_absent_and_nothing_is_computed():
    said = why_absent(xr.DataArray(Duck(), dims=("x", "y")))
    assert "got an object of type 'Duck'" in said
    assert ".compute()" in said


@pytest.fixture
def opened(tmp_path):
    """Open a file lazily, with or without xarray's cache."""
    library("scipy")
    xr.Dataset({"t": (("x", "y"), np.ones((4, 3)))}).to_netcdf(tmp_path / "t.nc", engine="scipy")
    return lambda **options: xr.open_dataset(tmp_path / "t.nc", engine="scipy", **options)["t"]


def test_data_that_is_reloaded_each_time_has_no_interface(opened):
    assert "call .load() or .compute() first" in why_absent(opened(cache=False))


def test_the_interface_of_data_that_was_loaded_points_to_it(opened):
    array = opened().load()
    assert array.__gt_data_interface__[None]["data"][0] == array.data.ctypes.data


# __gt_data_interface__ of data that has one


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "if the data has the interface, it is passed on",
    "if the data has no dims, those of the DataArray are used",
)
def test_the_interface_of_the_data_is_passed_on_with_dims_and_left_as_it_was():
    inner = {None: {"data": (64, False), "acquire": len}, "gpu": {"data": (128, False)}}
    array = holding(inner)
    assert array.__gt_data_interface__ == {
        None: {"data": (64, False), "acquire": len, "dims": ("x", "y")},
        "gpu": {"data": (128, False), "dims": ("x", "y")},
    }
    assert inner == {None: {"data": (64, False), "acquire": len}, "gpu": {"data": (128, False)}}


@pytest.mark.source(
    "GDP-3", "Default xarray Data Interface", "if the data has the interface, it is passed on"
)
def test_the_interface_of_the_data_goes_before_its_array_interface():
    duck = Duck(__gt_data_interface__={"gpu": {}}, __array_interface__={"data": (64, False)})
    assert xr.DataArray(duck, dims=("x", "y")).__gt_data_interface__ == {
        "gpu": {"dims": ("x", "y")}
    }


@pytest.mark.parametrize("inner", [None, ("I", "J"), "IJ", ["I", "J"]])
def test_dims_of_the_data_that_agree_are_fine(inner):
    array = holding({None: {"dims": inner}}, ("I", "J"))
    assert array.__gt_data_interface__[None]["dims"] == ("I", "J")


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "dims of the data that differ from the DataArray's are an error",
)
def test_dims_of_the_data_that_contradict_are_an_error():
    array = holding({None: {"dims": "IJ"}}, ("J", "I"))
    with refused(ValueError, "('I', 'J')", "('J', 'I')", "transpose or rename one of them"):
        _ = array.__gt_data_interface__


@pytest.mark.source(
    "GDP-3",
    "Default xarray Data Interface",
    "any names that differ between data and DataArray are an error",
)
@pytest.mark.parametrize(("inner", "outer"), [("IJ", "xy"), ("xy", "JI"), ("xy", "ab")])
def test_names_of_different_kinds_do_not_contradict(inner, outer):
    array = holding({None: {"dims": tuple(inner)}}, tuple(outer))
    assert array.__gt_data_interface__[None]["dims"] == tuple(outer)


@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "`__gt_interface__` maps devices to functions that return dicts",
)
def test_an_entry_that_is_called_for_its_description_stays_one():
    described = []
    entry = {"data": (64, False)}
    array = holding({None: lambda: described.append("now") or entry})
    called = array.__gt_data_interface__[None]
    assert described == []
    assert called() == {"data": (64, False), "dims": ("x", "y")}
    assert entry == {"data": (64, False)}


# Stencils of GT4Py that are not bound


def skewed(compiled, backend, inp):
    """Run a stencil on a DataArray of shape 5 x 6 x 2 in its order, and return all it wrote."""
    out = np.full((5, 6, 2), -1.0)
    compiled("skewed", backend)(inp, out, origin=(0, 2, 0), domain=(4, 4, 2))
    return out


def test_names_that_gt4py_does_not_know_go_in_by_position_as_without_dlfield(
    compiled, backend, monkeypatch
):
    inp = labelled("xyz", (5, 6, 2))
    after = skewed(compiled, backend, inp)
    for name in NAMES:
        monkeypatch.delattr(xr.DataArray, name)
    assert np.array_equal(skewed(compiled, backend, inp), after)


@pytest.mark.source(
    "Interface note",
    "Examples",
    "a stencil takes an array beside a DataArray with dims in another order",
)
def test_names_that_gt4py_knows_are_ordered(compiled, backend):
    from support.stencils.cartesian import skewed_reference

    inp, out = labelled("KJI", (2, 6, 5)), xr.full_like(labelled("JKI", (6, 2, 5)), -1.0)
    compiled("skewed", backend)(inp, out, origin=(0, 2, 0), domain=(4, 4, 2))
    assert np.array_equal(out.transpose("I", "J", "K"), skewed_reference(inp.data.T))


def test_without_the_accessors_gt4py_takes_them_by_position(compiled, monkeypatch):
    from support.stencils.cartesian import skewed_reference

    monkeypatch.delattr(xr.DataArray, "__gt_dims__")
    inp = labelled("KJI", (5, 6, 2))
    assert np.array_equal(skewed(compiled, "numpy", inp), skewed_reference(inp.data))


def test_names_of_other_axes_than_the_field_has_are_refused_by_gt4py(compiled):
    inp, out = labelled(("I", "J", "0"), (5, 6, 3)), np.zeros((5, 6, 3))
    with refused(ValueError, "'inp' has dimensions '('I', 'J', '0')'"):
        compiled("skewed", "numpy")(inp, out, origin=(0, 2, 0), domain=(4, 4, 3))


def test_an_unbound_stencil_and_a_bound_one_agree(compiled, backend):
    inp, out = labelled("KJI", (2, 6, 5)), dlf.full((5, 6, 2), -1.0, dims="IJK")
    dlf.bind(compiled("skewed", backend))(inp, out, origin=(0, 2, 0), domain=(4, 4, 2))
    assert np.array_equal(skewed(compiled, backend, inp), out.to_numpy())
