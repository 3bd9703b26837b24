"""get_dims, as_numpy and explain with arrays of other libraries."""

import re

import dlfield as dlf
import numpy as np
import pytest

from support.optional import library


def test_the_dims_of_a_data_array_are_its_names(xr):
    array = xr.DataArray(np.zeros((2, 3)), dims=("level", "K"))
    assert dlf.get_dims(array, "IJ") == ("level", "K")


@pytest.mark.source(
    "Allocation note", "Dimension Mapping", "`get_dims(storage, annotation)` gives the dimensions"
)
@pytest.mark.parametrize("name", ["__gt_data_interface__", "__gt_interface__"])
def test_the_dims_of_a_data_array_are_those_of_its_users_accessor(xr, name):
    class Field(xr.DataArray):
        __slots__ = ()

    def interface(array):
        return {None: {**array.data.__array_interface__, "dims": ("I", "J")}}

    setattr(Field, name, property(interface))
    array = Field(np.zeros((2, 3)), dims=("lon", "lat"))
    assert dlf.as_storage(array).dims == dlf.get_dims(array) == ("I", "J")


@pytest.mark.parametrize("ask", [dlf.as_storage, dlf.get_dims])
def test_a_data_array_whose_class_names_the_axes_in_two_ways_is_refused(xr, ask):
    class Field(xr.DataArray):
        __slots__ = ()
        __gt_dims__ = ("J", "I")

        @property
        def __gt_data_interface__(self):
            return {None: {**self.data.__array_interface__, "dims": ("I", "J")}}

    with pytest.raises(ValueError, match=r"\('J', 'I'\).*\('I', 'J'\)"):
        ask(Field(np.zeros((2, 3)), dims=("x", "y")))


@pytest.mark.parametrize("name", [0, None, ("I", "J"), 1.5], ids=repr)
@pytest.mark.parametrize("ask", [dlf.as_storage, dlf.get_dims, dlf.storage])
def test_a_dim_of_a_data_array_that_is_no_text_is_refused(xr, ask, name):
    array = xr.DataArray(np.zeros((2, 3)), dims=("I", name))
    with pytest.raises(TypeError, match=rf"dims: expected names, got {re.escape(repr(name))}"):
        ask(array)
    with pytest.raises(TypeError, match="dims: expected names, got"):
        dlf.zeros((2, 3), dims=("I", name))


def test_a_dim_of_a_data_array_that_is_no_text_is_explained(xr):
    explanation = dlf.explain(xr.DataArray(np.zeros((2, 3)), dims=("I", 0)))
    assert "dims: expected names, got 0" in str(explanation)


def test_the_dims_of_a_field_of_gt4py_next_are_its_names():
    gtx = library("gt4py.next")
    field = gtx.as_field([gtx.Dimension("Cell"), gtx.Dimension("K")], np.zeros((2, 3)))
    assert dlf.get_dims(field) == ("Cell", "K")


def annotations():
    gtscript = library("gt4py.cartesian.gtscript")
    return {
        gtscript.Field[np.float64]: ("I", "J", "K"),
        gtscript.Field[gtscript.IK, np.float64]: ("I", "K"),
        gtscript.Field[gtscript.K, (np.float64, (2, 3))]: ("K", "0", "1"),
    }


@pytest.mark.source("GDP-3 draft", "Annotation of Stencils", "`Field[dtype]` keeps working")
@pytest.mark.source(
    "Allocation note",
    "Dimension Mapping",
    "without `__gt_dims__`, the dimensions of the annotation hold",
    "`get_dims(storage, annotation)` gives the dimensions",
)
def test_a_field_annotation_names_the_axes_of_an_array_without_names():
    for annotation, names in annotations().items():
        assert dlf.get_dims(np.zeros((1,) * len(names)), annotation) == names


@pytest.mark.source(
    "Interface note",
    "Storages without the interface",
    "other standards are accepted if NumPy or CuPy accepts them",
)
@pytest.mark.source(
    "Allocation note", "Supported Buffer Interfaces", "`as_numpy` gives a NumPy array"
)
@pytest.mark.parametrize("name", ["torch", "jax.numpy"])
def test_as_numpy_shares_the_memory_of_a_framework(name):
    array = library(name).arange(6)
    shared = dlf.as_numpy(array)
    assert shared.tolist() == list(range(6))
    assert dlf.as_numpy(shared) is shared


def test_as_numpy_keeps_a_data_array_zero_copy_in_its_own_order(xr):
    values = np.arange(6.0).reshape(2, 3)
    shared = dlf.as_numpy(xr.DataArray(values, dims=("K", "I")))
    assert (shared.ctypes.data, shared.shape) == (values.ctypes.data, (2, 3))


DOORS = {
    "torch": ("dlpack_c_exchange_api", lambda: library("torch").zeros(3)),
    "jax": ("buffer", lambda: library("jax.numpy").zeros(3)),
    "tvm_ffi": ("dlpack", lambda: library("tvm_ffi").from_dlpack(np.zeros(3))),
    "pyarrow": ("buffer", lambda: library("pyarrow").py_buffer(np.zeros(3))),
    "xarray": ("buffer", lambda: library("xarray").DataArray(np.zeros(3))),
}


@pytest.mark.parametrize(("door", "make"), DOORS.values(), ids=DOORS)
def test_the_door_of_a_framework_is_explained(door, make):
    explanation = dlf.explain(make())
    assert explanation.door == door
    assert f"shared through {door}" in str(explanation)


def test_what_a_framework_refuses_is_explained_with_the_way_out():
    torch = library("torch")
    explanation = dlf.explain(torch.zeros(3, requires_grad=True))
    assert explanation.storage is None
    assert "dlfield.torch_op(" in str(explanation)
