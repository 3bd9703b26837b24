"""get_dims, as_numpy and explain with arrays of other libraries."""

import dlfield as dlf
import numpy as np
import pytest

from .support import library


def test_the_dims_of_a_data_array_are_its_names(xr):
    array = xr.DataArray(np.zeros((2, 3)), dims=("level", "K"))
    assert dlf.get_dims(array, "IJ") == ("level", "K")


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


def test_a_field_annotation_names_the_axes_of_an_array_without_names():
    for annotation, names in annotations().items():
        assert dlf.get_dims(np.zeros((1,) * len(names)), annotation) == names


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
    assert "call tensor.detach() first" in str(explanation)
