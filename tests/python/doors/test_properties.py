"""What holds for every array: random views of NumPy against NumPy itself."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.addresses import address_of
from support.parameters import NUMPY_DTYPES


@st.composite
def views(draw, dtypes=NUMPY_DTYPES):
    """A view of an array: permuted, sliced with steps of either sign, widened, broadcast."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    values = (
        np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(draw(st.sampled_from(dtypes)))
    )
    view = values.transpose(draw(st.permutations(range(len(shape)))))
    view = view[(*(draw(st.slices(extent)) for extent in view.shape), ...)]
    if draw(st.booleans()):
        view = np.expand_dims(view, draw(st.integers(0, view.ndim)))
    if draw(st.booleans()):
        view = np.broadcast_to(view, (draw(st.integers(0, 3)), *view.shape))
    if draw(st.booleans()):
        view.flags.writeable = False
    return view


def strides_that_count(array):
    return [stride for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1]


class Interface:
    """Has only the array interface."""

    def __init__(self, array):
        self.__array_interface__ = {**array.__array_interface__, "strides": array.strides}
        self.array = array


class Dlpack:
    """Has only DLPack."""

    def __init__(self, array):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def assert_same(storage, view):
    assert (storage.shape, storage.dtype, storage.ndim) == (view.shape, view.dtype, view.ndim)
    assert (storage.size, storage.nbytes) == (view.size, view.nbytes)
    assert storage.readonly is not view.flags.writeable
    if view.size:
        assert address_of(storage) == address_of(view)
        assert strides_that_count(storage) == strides_that_count(view)
    np.testing.assert_array_equal(storage.to_numpy(), view, strict=True)


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "a storage can wrap memory from another allocator without copying",
)
@pytest.mark.source(
    "GDP-3",
    "Storage Creation",
    "`as_storage(data, …)` wraps a buffer without copying",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "storages can wrap existing memory",
)
@given(views())
def test_every_view_is_taken_as_it_is_through_its_buffer(view):
    assert_same(dlf.as_storage(view), view)


@given(views())
def test_every_view_is_taken_as_it_is_through_the_array_interface(view):
    assert_same(dlf.as_storage(Interface(view)), view)


@given(views())
def test_every_view_is_taken_as_it_is_through_dlpack(view):
    assert_same(dlf.as_storage(Dlpack(view)), view)


@given(views())
def test_every_door_out_gives_the_view_again(view):
    storage = dlf.as_storage(view)
    doors = [np.asarray(storage), np.asarray(memoryview(storage)), np.asarray(Interface(storage))]
    if min(strides_that_count(view), default=0) >= 0 or not view.size:
        doors.append(np.from_dlpack(storage))
    for array in doors:
        np.testing.assert_array_equal(array, view, strict=True)
        assert array.ctypes.data == address_of(view) or not view.size


@given(views())
def test_a_storage_is_written_exactly_where_the_view_is(view):
    assume(view.flags.writeable and view.dtype != bool)
    whole = view if view.base is None else view.base
    expected = whole.copy()
    twin = np.ndarray(
        view.shape, view.dtype, expected, view.ctypes.data - whole.ctypes.data, view.strides
    )
    twin += 1
    dlf.as_storage(view).to_numpy()[...] += 1
    np.testing.assert_array_equal(whole, expected)


@given(views(), st.data())
def test_a_copy_in_any_layout_has_the_values_and_shares_nothing(view, data):
    layout = data.draw(st.permutations(range(view.ndim)))
    alignment = view.itemsize * data.draw(st.sampled_from([1, 3, 8, 16]))
    copied = dlf.storage(view, layout=layout, alignment_size=alignment)
    np.testing.assert_array_equal(copied.to_numpy(), view, strict=True)
    assert not copied.readonly
    assert not np.shares_memory(copied.to_numpy(), view)
    assert dlf.as_storage(copied, layout=layout).shape == view.shape


@given(views(), st.sampled_from(NUMPY_DTYPES))
def test_a_conversion_gives_what_astype_gives(view, name):
    assume(not (view.dtype.kind == "c" and np.dtype(name).kind != "c"))  # NumPy warns
    converted = dlf.storage(view, dtype=name)
    np.testing.assert_array_equal(converted.to_numpy(), view.astype(name), strict=True)


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`domain_view` is a view of the part inside the halo, starting at the domain's first point",
)
@given(views(), st.data())
def test_the_domain_is_the_slice_inside_the_halo(view, data):
    halo = []
    for extent in view.shape:
        low = data.draw(st.integers(0, extent))
        halo.append((low, data.draw(st.integers(0, extent - low))))
    domain = dlf.as_storage(view, halo=halo).domain_view
    ends = zip(halo, view.shape, strict=True)
    inside = view[(*(slice(low, extent - high) for (low, high), extent in ends), ...)]
    np.testing.assert_array_equal(domain.to_numpy(), inside, strict=True)
    assert address_of(domain) == address_of(inside) or not inside.size


@given(views(), st.data())
def test_layout_ranks_the_strides(view, data):
    layout = dlf.as_storage(view).layout
    assert sorted(layout) == list(range(view.ndim))
    by_rank = sorted(range(view.ndim), key=layout.__getitem__)
    assume(view.size)
    large_first = [abs(view.strides[axis]) for axis in by_rank if view.shape[axis] > 1]
    assert large_first == sorted(large_first, reverse=True)
