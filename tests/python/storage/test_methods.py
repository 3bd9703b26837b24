"""What GDP-3 promises of a storage: attributes, methods, and those that do nothing on the host."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of, address_of_buffer
from support.owners import tracked

KINDS = [dlf.CPUStorage, dlf.GPUStorage, dlf.SoftwareManagedGPUStorage, dlf.CUDAManagedGPUStorage]

#: What the document lists, except what only GPU storages have.
ATTRIBUTES = [
    "__array_interface__",
    "__gt_data_interface__",
    "data",
    "device",
    "device_data",
    "domain_view",
    "dtype",
    "halo",
    "nbytes",
    "ndim",
    "shape",
    "strides",
]
METHODS = [
    "__array__",
    "__deepcopy__",
    "__getitem__",
    "__setitem__",
    "copy",
    "to_cupy",
    "to_ndarray",
    "to_numpy",
    "transpose",
]
SYNC_METHODS = [
    "device_to_host",
    "host_to_device",
    "set_device_modified",
    "set_host_modified",
    "set_synchronized",
    "synchronize",
]


def field():
    """Return a field with values, a halo, and its rows in Fortran order."""
    storage = dlf.zeros((3, 4), dims="IJ", halo=(1, 0), layout=(1, 0))
    storage.to_numpy()[...] = np.arange(12).reshape(3, 4)
    return storage


def read_only():
    return dlf.as_storage(np.arange(3.0).tobytes())


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_attribute_of_gdp_3_can_be_read(name):
    assert not callable(getattr(field(), name))


@pytest.mark.parametrize("name", METHODS + SYNC_METHODS)
def test_every_method_of_gdp_3_can_be_called(name):
    assert callable(getattr(field(), name))


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`sync_state` is absent from storages with one buffer"
)
@pytest.mark.parametrize("name", ["__cuda_array_interface__", "sync_state"])
def test_what_only_a_gpu_storage_has_is_absent(name):
    assert not hasattr(field(), name)


@pytest.mark.source(
    "GDP-3",
    "Methods",
    "every storage has the six synchronisation methods, which do nothing with one buffer",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Methods",
    "every storage has the synchronisation methods, which do nothing with one buffer",
)
@pytest.mark.parametrize("name", SYNC_METHODS)
@pytest.mark.parametrize("cls", [dlf.Storage, *KINDS], ids=lambda cls: cls.__name__)
def test_every_class_has_the_methods_that_synchronise(cls, name):
    assert callable(getattr(cls, name))


@pytest.mark.source(
    "GDP-3",
    "Methods",
    "every storage has the six synchronisation methods, which do nothing with one buffer",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Methods",
    "every storage has the synchronisation methods, which do nothing with one buffer",
)
@pytest.mark.parametrize("name", SYNC_METHODS)
@pytest.mark.parametrize("make", [field, read_only], ids=["field", "read-only"])
def test_there_is_nothing_to_synchronise_on_the_host(make, name):
    storage = make()
    before = repr(storage)
    assert getattr(storage, name)() is None
    assert repr(storage) == before


@pytest.mark.parametrize("name", ["device_to_host", "host_to_device"])
@pytest.mark.parametrize("force", [True, False])
def test_force_changes_nothing_on_the_host_and_is_given_by_name(name, force):
    assert getattr(field(), name)(force=force) is None
    with pytest.raises(TypeError, match="positional"):
        getattr(field(), name)(force)


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`data` is the memoryview of the host buffer"
)
@pytest.mark.source("GDP-3 draft", "Properties", "`data` is the attribute of the array inside")
def test_data_is_a_memoryview_of_the_same_memory():
    storage = field()
    view = storage.data
    assert (type(view), view.shape, view.strides) == (memoryview, (3, 4), (8, 24))
    view[2, 3] = 42
    assert storage.to_numpy()[2, 3] == 42


def test_data_is_writable_exactly_where_the_storage_is():
    assert not field().data.readonly
    assert read_only().data.readonly


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)], ids=repr)
def test_data_exists_where_there_is_little_or_nothing(shape):
    data = dlf.zeros(shape).data
    assert (data.shape, data.nbytes) == (shape, 8 * np.zeros(shape).size)


def test_data_keeps_the_memory():
    source, watch = tracked(np.arange(3.0))
    data = dlf.as_storage(source).data
    del source
    assert (watch.freed, data.tolist()) == (False, [0, 1, 2])
    data.release()
    assert watch.freed


def test_data_of_a_type_without_a_name_is_a_buffer_error():
    with pytest.raises(BufferError, match=r"bfloat16.*to_numpy"):
        _ = dlf.zeros(2, "bfloat16").data


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`device_data` is None without a device buffer"
)
def test_a_host_storage_has_neither_a_device_nor_a_device_buffer():
    assert (field().device, field().device_data) == (None, None)


@pytest.mark.source(
    "GDP-3", "Methods", "`to_ndarray()` is a view of the host buffer if there is no device buffer"
)
def test_to_ndarray_is_the_memory_of_the_host():
    storage = field()
    assert type(storage.to_ndarray()) is np.ndarray
    assert storage.to_ndarray().ctypes.data == address_of(storage)
    assert not read_only().to_ndarray().flags.writeable


@pytest.mark.source(
    "GDP-3", "Methods", "`to_cupy()` raises `GTNoSuchBufferError` without a device buffer"
)
def test_to_cupy_of_a_host_storage_raises():
    with pytest.raises(dlf.GTNoSuchBufferError, match="buffer on a GPU, got one in host memory"):
        field().to_cupy()


@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize(
    "of", [np.asarray, np.transpose, lambda one: one[:, 1:3], lambda one: one[::-1]]
)
def test_bytes_are_those_of_numpy_without_gaps(of, order):
    array = of(np.arange(20.0).reshape(4, 5))
    assert dlf.as_storage(array).tobytes(order) == array.tobytes(order)


def test_bytes_are_in_c_order_unless_another_is_asked_for():
    assert dlf.as_storage(np.array([[1, 2], [3, 4]], "u1").T).tobytes() == b"\1\3\2\4"
    with pytest.raises(ValueError, match="order"):
        field().tobytes("E")


def test_array_is_the_memory_unless_something_else_is_asked_for():
    storage = field()
    assert storage.__array__().ctypes.data == address_of(storage)
    assert storage.__array__("float64", copy=False).ctypes.data == address_of(storage)
    assert np.asarray(storage).ctypes.data == address_of(storage)


def test_array_copies_if_asked_to():
    storage = field()
    assert storage.__array__(copy=True).ctypes.data != address_of(storage)
    assert np.array(storage).ctypes.data != address_of(storage)
    assert read_only().__array__(copy=True).flags.writeable


def test_array_converts_and_says_where_it_cannot_do_so_without_a_copy():
    assert field().__array__("float32").dtype == np.float32
    with pytest.raises(ValueError, match=r"float64 with copy=False, got float32; pass copy=None"):
        field().__array__("float32", copy=False)


def test_the_length_is_that_of_the_first_dimension():
    assert len(field()) == 3
    assert len(dlf.zeros((0, 3))) == 0
    with pytest.raises(TypeError, match="len: expected at least one dimension"):
        len(dlf.zeros(()))


def test_going_through_a_storage_gives_views_with_the_other_names():
    storage = field()
    rows = list(storage)
    rows[1].to_numpy()[2] = -1
    assert [row.dims for row in rows] == [("J",)] * 3
    assert storage.to_numpy()[1, 2] == -1


def test_going_through_one_dimension_gives_numbers():
    assert list(dlf.as_storage(np.arange(3.0))) == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError):
        iter(dlf.zeros(()))


def test_an_item_is_a_number_of_python():
    storage = field()
    assert (storage.item(2, 3), storage.item((2, 3)), storage.item(5)) == (11.0, 11.0, 5.0)
    assert type(storage.item(0)) is float
    assert type(dlf.full((), 3, "int16").item()) is int


def test_an_item_needs_an_index_where_there_are_several():
    with pytest.raises(ValueError, match="size 1"):
        field().item()
    with pytest.raises(IndexError):
        field().item(12)


@pytest.mark.parametrize("name", ["acquire", "touch"])
def test_the_functions_of_the_data_interface_take_no_argument(name):
    assert field().__gt_data_interface__[None][name]() is None


@pytest.mark.source("GDP-3", "Data Interface", "storages have no `release` of their own")
@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`release` is not in `__gt_data_interface__` of a storage"
)
def test_the_data_interface_needs_no_release():
    assert "release" not in field().__gt_data_interface__[None]


@pytest.mark.parametrize("name", ["acquire", "touch"])
def test_the_functions_of_the_data_interface_keep_the_storage(name):
    source, watch = tracked(np.zeros(3))
    function = dlf.as_storage(source).__gt_data_interface__[None][name]
    del source
    assert not watch.freed
    assert function() is None
    del function
    assert watch.freed


def test_a_copy_shares_no_memory_with_its_source():
    memory = bytearray(24)
    copied = dlf.as_storage(memory).copy()
    copied.to_numpy()[...] = 7
    assert (memory, address_of(copied) == address_of_buffer(memory)) == (bytearray(24), False)
