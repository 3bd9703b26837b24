"""Attributes of a storage, and its memory in NumPy."""

import threading
import weakref

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.owners import tracked


@pytest.fixture
def field():
    """A field of 5 x 4 values in Fortran order, with a halo and rows padded to 64 bytes."""
    storage = dlf.zeros(
        (5, 4), "float32", dims="IJ", halo=(1, (0, 2)), layout=(1, 0), alignment_size=64
    )
    storage.to_numpy()[...] = np.arange(20).reshape(5, 4)
    return storage


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`device` is None without a device buffer",
    "`dtype` is a NumPy dtype",
    "`nbytes` does not count padding",
    "`ndim` is the number of dimensions",
    "`shape` has an extent for each axis",
    "`strides` has a stride for each axis",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "storages look like NumPy arrays as far as possible",
)
@pytest.mark.source(
    "GDP-3 draft", "Properties", "`shape` and `strides` have an entry for each dimension"
)
def test_the_attributes_say_what_was_asked_for(field):
    assert (field.shape, field.ndim, field.size, field.nbytes) == ((5, 4), 2, 20, 80)
    assert (field.dtype, field.strides, field.layout) == (np.dtype("float32"), (4, 64), (1, 0))
    assert (field.dims, field.halo) == (("I", "J"), ((1, 1), (0, 2)))
    assert (field.aligned_index, field.alignment_size) == ((1, 0), 64)
    assert (field.readonly, field.device, field.door) == (False, None, None)


@pytest.mark.source("GDP-3", "Storage Creation", "`Storage` is public for type checks")
@pytest.mark.source("GDP-3", "Storage Types", "`CPUStorage` has host memory")
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "`Storage` is public for type checks")
@pytest.mark.source("GDP-3 draft", "Storage Types", "`CPUStorage` has host memory")
def test_a_host_storage_is_a_cpu_storage_and_a_storage(field):
    assert type(field) is dlf.CPUStorage
    assert isinstance(field, dlf.Storage)


@pytest.mark.parametrize("name", ["shape", "dtype", "dims", "layout", "readonly", "data", "device"])
def test_no_attribute_can_be_set(field, name):
    with pytest.raises(AttributeError):
        setattr(field, name, getattr(field, name))


@pytest.mark.source(
    "GDP-3", "Functionality", "host memory is held as a NumPy array, device memory as a CuPy array"
)
@pytest.mark.source("GDP-3", "Methods", "`to_numpy()` is a view of the host buffer")
def test_to_numpy_shares_the_memory_in_the_order_of_the_axes(field):
    array = field.to_numpy()
    assert (array.shape, array.strides, array.ctypes.data) == (
        field.shape,
        field.strides,
        address_of(field),
    )
    array[2, 3] = 42
    assert field.to_numpy()[2, 3] == 42


def test_ndarray_is_the_array_that_to_numpy_gives(field):
    assert field.ndarray.ctypes.data == address_of(field)
    assert field.ndarray.flags.writeable


def test_an_array_of_a_storage_keeps_the_memory_after_the_storage_is_gone():
    source, watch = tracked(np.arange(6.0))
    array = dlf.as_storage(source).to_numpy()
    del source
    assert not watch.freed
    assert array.tolist() == [0, 1, 2, 3, 4, 5]
    del array
    assert watch.freed


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`domain_view` is a view of the part inside the halo, starting at the domain's first point",
)
def test_the_domain_view_is_the_part_inside_the_halo(field):
    domain = field.domain_view
    np.testing.assert_array_equal(domain.to_numpy(), field.to_numpy()[1:-1, :2])
    assert (domain.halo, domain.dims) == (((0, 0), (0, 0)), ("I", "J"))
    assert address_of(domain) == address_of(field) + field.strides[0]


def test_what_is_written_to_the_domain_view_is_in_the_storage(field):
    field.domain_view.to_numpy()[...] = -1
    assert (field.to_numpy() == -1).sum() == 6


def test_the_domain_view_keeps_the_memory_alone():
    source, watch = tracked(np.zeros((4, 4)))
    domain = dlf.as_storage(source, halo=(1, 1)).domain_view
    del source
    assert not watch.freed
    del domain
    assert watch.freed


def test_the_domain_view_of_a_read_only_storage_is_read_only():
    source = np.zeros((4, 4))
    source.flags.writeable = False
    assert dlf.as_storage(source, halo=(1, 1)).domain_view.readonly


def test_a_halo_that_fills_the_extent_leaves_an_empty_domain():
    assert dlf.zeros((4, 3), halo=(2, 0)).domain_view.shape == (0, 3)


def test_repr_has_the_facts_in_its_first_line_and_then_the_values(field):
    first, *values = repr(field).splitlines()
    assert first == (
        "<CPUStorage shape=(5, 4), dtype=float32, dims=('I', 'J'), halo=((1, 1), (0, 2)), "
        "layout=(1, 0), alignment_size=64, device=cpu>"
    )
    assert "\n".join(values) == np.array2string(field.to_numpy())


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2000, 2000)], ids=repr)
def test_repr_is_short_for_every_shape(shape):
    storage = dlf.zeros(shape)
    assert repr(storage).startswith(f"<CPUStorage shape={shape}, ")
    assert len(repr(storage)) < 2000


def test_repr_says_that_a_storage_is_read_only():
    assert "readonly" in repr(dlf.as_storage(b"123")).splitlines()[0]


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    'I, J, K and decimals from "0" on are names of GT4Py',
    "other names are refused",
)
@pytest.mark.source("Allocation note", "Dimension Mapping", "I, J, K and decimals are valid names")
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    'I, J, K and decimals from "0" on are names of GT4Py',
)
def test_the_names_for_gt4py_are_there_exactly_when_it_knows_them():
    assert dlf.empty((2, 3), dims="KI").__gt_dims__ == ("K", "I")
    assert dlf.empty((2, 3), dims="J0").__gt_dims__ == ("J", "0")
    for dims in (None, ("lon", "K"), ("i", "j"), ("I", "01")):
        assert not hasattr(dlf.empty((2, 3), dims=dims), "__gt_dims__")


def test_a_halo_is_not_exported_as_an_origin(field):
    assert not hasattr(field, "__gt_origin__")
    assert not hasattr(field, "default_origin")


def test_a_storage_can_be_referred_to_weakly():
    storage = dlf.zeros((2,))
    reference = weakref.ref(storage)
    assert reference() is storage
    del storage
    assert reference() is None


def test_unset_says_its_name_and_is_false():
    assert repr(dlf.UNSET) == "UNSET"
    assert not dlf.UNSET


def test_the_last_reference_may_be_dropped_on_another_thread():
    source, watch = tracked(np.zeros(3))
    held = [dlf.as_storage(source)]
    del source
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert watch.freed


def test_a_missing_buffer_is_a_buffer_error_and_an_attribute_error():
    assert issubclass(dlf.GTNoSuchBufferError, BufferError)
    assert issubclass(dlf.GTNoSuchBufferError, AttributeError)


@pytest.mark.parametrize(
    "name", ["a\nb", "a'b", "\x1b[2J", "\u202egnp", "h\xf6he", "a\\", "\U000e0001"]
)
def test_a_name_is_shown_as_python_shows_a_text(name):
    assert f"dims=({name!r},)" in repr(dlf.zeros((2,), dims=(name,)))


def test_a_long_name_is_cut():
    assert f"dims=('{'x' * 40}...',)" in repr(dlf.zeros((2,), dims=("x" * 100_000,)))


def test_more_names_than_a_storage_can_have_are_not_counted():
    with pytest.raises(ValueError, match=r"3 dimensions of shape .*, got more than 64$"):
        dlf.zeros((1, 1, 1), dims=[f"d{n}" for n in range(100)])


def test_a_step_beyond_the_memory_has_the_strides_of_numpy():
    array = np.ones(3)
    assert dlf.as_storage(array)[:: -(2**62)].strides == array[:: -(2**62)].strides
    assert dlf.as_storage(array)[::5].strides == array[::5].strides


def test_names_that_are_assigned_are_refused_with_what_gives_others(field):
    with pytest.raises(AttributeError, match=r"dims: expected names that stay.*rename"):
        field.dims = "JI"
