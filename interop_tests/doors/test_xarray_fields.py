"""DataArrays of exactly xarray's class are read by their fields, all others by properties."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.optional import library
from support.processes import run_in_subprocess

xr = library("xarray")


class Own(xr.DataArray):
    """A subclass that changes nothing, which is read by its properties."""

    __slots__ = ()


class Units(np.ndarray):
    """A subclass of arrays."""


DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex128", ">f8")
LAYOUTS = {
    "as it is": lambda array: array,
    "transposed": lambda array: array.T,
    "sliced": lambda array: array[::2, 1:],
    "reversed": lambda array: array[::-1],
    "a row": lambda array: array[0],
    "an element": lambda array: array[1, 2, ...],
    "empty": lambda array: array[:0],
    "repeated": lambda array: np.broadcast_to(array[0], (3, 4)),
}
KINDS = {
    "ndarray": lambda array: array,
    "read-only": lambda array: np.lib.stride_tricks.as_strided(array, writeable=False),
    "a subclass": lambda array: array.view(Units),
    "storage": dlf.as_storage,
    "named storage": lambda array: dlf.as_storage(array, dims=("A", "B", "C")[: array.ndim]),
}
NAMES = [("I", "J"), ("J", "I"), ("x", "y"), ("K", "0"), (0, "x"), ("x", None), (("a", 1), "b")]


@st.composite
def parts(draw):
    """Give data and dims of a DataArray."""
    dtype = draw(st.sampled_from(DTYPES))
    array = np.arange(12).reshape(3, 4).astype(dtype)
    array = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](array)
    kind = draw(st.sampled_from(sorted(KINDS)))
    if dtype != ">f8":
        array = KINDS[kind](array)
    return array, draw(st.sampled_from(NAMES))[: array.ndim]


def taken(data_array):
    """Return what comes of a DataArray: the storage in words, or the refusal."""
    try:
        storage = dlf.as_storage(data_array)
    except (TypeError, ValueError, BufferError) as refusal:
        return type(refusal), str(refusal)
    return (
        storage.ptr if storage.size else None,
        storage.shape,
        storage.strides,
        storage.dims,
        storage.halo,
        str(storage.dtype),
        storage.readonly,
        storage.door,
    )


@settings(deadline=None)
@given(parts=parts())
def test_xarrays_class_and_its_subclasses_are_taken_and_refused_alike(parts):
    data, dims = parts
    found = taken(xr.DataArray(data, dims=dims))
    assert taken(Own(data, dims=dims)) == found
    if isinstance(found[1], tuple):
        assert found[3] == dims
        assert found[0] in (None, dlf.as_storage(data).ptr)


def test_an_index_is_refused_or_taken_as_by_its_properties():
    made = [of(np.zeros(3), dims="x", coords={"x": [1.0, 2.0, 3.0]}) for of in (xr.DataArray, Own)]
    found = [taken(one.coords["x"]) for one in made]
    assert found[0][1:] == found[1][1:]


@pytest.mark.parametrize("of", [xr.DataArray, Own])
def test_data_that_was_replaced_is_read_anew(of):
    array = of(np.zeros((2, 3)), dims=("x", "y"))
    dlf.as_storage(array)
    array.data = np.ones((2, 3))
    assert dlf.as_storage(array).ptr == array.data.ctypes.data
    renamed = array.rename(x="a")
    assert dlf.as_storage(renamed).dims == ("a", "y")


def test_a_data_array_whose_properties_give_something_else_is_read_by_them():
    run_in_subprocess(
        """
        import dlfield as dlf, numpy as np, xarray as xr

        other = np.ones((2, 3))
        xr.Variable.data = property(lambda _self: other)
        array = xr.DataArray(np.zeros((2, 3)), dims=("x", "y"))
        assert dlf.as_storage(np.zeros(3)).door == "buffer"
        for _ in range(2):
            assert dlf.as_storage(array).ptr == other.ctypes.data
        """
    )


def test_a_user_may_still_describe_an_array_of_plain_memory():
    run_in_subprocess(
        """
        import dlfield as dlf, numpy as np, xarray as xr

        array = xr.DataArray(np.zeros((2, 3)), dims=("x", "y"))
        assert dlf.as_storage(array).dims == ("x", "y")

        @xr.register_dataarray_accessor("__gt_dims__")
        class Names:
            def __new__(cls, _array):
                return ("I", "J")

        assert dlf.as_storage(xr.DataArray(np.zeros((2, 3)), dims=("x", "y"))).dims == ("I", "J")
        """,
        warnings="ignore",
    )
