"""Wrapping arrays without copying: what is kept, what must hold, and what is refused."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.no_driver import no_driver, without_driver
from support.owners import Watch, tracked
from support.parameters import readable


@pytest.mark.source("GDP-3", "Storage Creation", "`data` is a buffer or a storage")
@pytest.mark.parametrize(
    "data", [bytearray(8), memoryview(bytearray(8)), np.zeros(8, "u1")], ids=type
)
def test_a_storage_of_a_buffer_shares_its_memory(data):
    storage = dlf.as_storage(data)
    storage[...] = 7
    assert bytes(memoryview(data).cast("B")) == bytes([7] * 8)


@pytest.mark.source("GDP-3", "Storage Creation", "`data` is a buffer or a storage")
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`data` is what `asstorage` and `storage` start from"
)
def test_a_storage_of_a_storage_shares_memory_and_what_it_knows():
    field = dlf.zeros((4, 5), dims="IJ", halo=(1, 1), layout=(1, 0), alignment_size=64)
    again = dlf.as_storage(field)
    assert (address_of(again), again.strides) == (address_of(field), field.strides)
    assert (again.dims, again.halo, again.alignment_size) == (field.dims, field.halo, 64)


def test_a_storage_of_a_storage_keeps_the_memory_alone():
    source, watch = tracked(np.zeros(3))
    again = dlf.as_storage(dlf.as_storage(source))
    del source
    assert not watch.freed
    del again
    assert watch.freed


def test_the_door_that_was_used_is_remembered():
    assert dlf.as_storage(np.zeros(3)).door == "buffer"
    assert dlf.as_storage(dlf.as_storage(np.zeros(3))).door == "buffer"
    assert dlf.as_storage(dlf.zeros(3)).door is None


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "names and halo, which memory does not carry, are given as options",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Abstract, Motivation and Scope, Backward Compatibility",
    "what memory does not carry is given to the constructor",
)
def test_names_and_halo_are_added_to_foreign_memory():
    storage = dlf.as_storage(np.zeros((4, 5)), dims="JK", halo=(1, 0))
    assert (storage.dims, storage.halo) == (("J", "K"), ((1, 1), (0, 0)))


def test_names_that_contradict_the_array_are_refused():
    field = dlf.zeros((4, 5), dims="IJ")
    with pytest.raises(ValueError, match=r"dims: expected \('I', 'J'\) as the array says"):
        dlf.as_storage(field, dims="JI")


@pytest.mark.source(
    "GDP-3",
    "Storage Creation",
    "`as_storage(data, …)` wraps a buffer without copying",
)
@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    'Fortran and C memory can be wrapped with "F" and "C" without copying',
)
def test_the_layout_that_memory_has_already_may_be_asked_for():
    array = np.zeros((4, 5), order="F")
    assert dlf.as_storage(array, layout=(1, 0)).strides == array.strides
    assert dlf.as_storage(array, defaults="F").strides == array.strides


@pytest.mark.source("GDP-3", "Storage Creation", "with data, options must hold for it")
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "with data, options must hold for it")
@pytest.mark.parametrize("options", [{"layout": (0, 1)}, {"defaults": "C"}], ids=str)
def test_another_layout_is_refused_with_the_way_out(options):
    with pytest.raises(ValueError, match=r"layout: expected memory ordered as.*make a copy"):
        dlf.as_storage(np.zeros((4, 5), order="F"), **options)


def test_extents_of_one_fit_every_layout():
    assert dlf.as_storage(np.zeros((4, 1, 5)), layout=(1, 0, 2)).shape == (4, 1, 5)
    assert dlf.as_storage(np.zeros((4, 1, 5)), layout=(0, 2, 1)).shape == (4, 1, 5)


@pytest.mark.parametrize("option", ["backend", "defaults"])
def test_the_layout_of_a_gpu_preset_must_hold_whether_there_is_a_gpu_or_not(option):
    with pytest.raises(ValueError, match=r"expected memory ordered as \[1, 0\].*make a copy"):
        dlf.as_storage(np.zeros((4, 5)), **{option: "gt:gpu"})


@without_driver
@pytest.mark.parametrize("option", ["backend", "defaults"])
def test_host_memory_in_the_layout_of_a_gpu_preset_still_asks_for_the_gpu(option):
    array = dlf.zeros((4, 5), defaults="gt:gpu", device=None).to_numpy()
    with no_driver():
        dlf.as_storage(array, **{option: "gt:gpu"})


@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "lists, and objects with only `__array__`, can be used on a CPU",
)
@pytest.mark.parametrize("thing", [[1.0, 2.0], (1,), 3, 2.5, "text", {}, object()], ids=readable)
def test_an_object_that_is_not_an_array_is_refused_with_a_way_out(thing):
    with pytest.raises(TypeError, match=rf"'{type(thing).__name__}'.*np\.asarray"):
        dlf.as_storage(thing)


@pytest.mark.parametrize("cls", [np.ndarray, dlf.CPUStorage, np.float64, bytearray])
def test_a_class_is_not_an_array(cls):
    with pytest.raises(TypeError, match=f"the class '{cls.__name__}'"):
        dlf.as_storage(cls)


def test_a_masked_array_does_not_lose_its_mask_silently():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(BufferError, match="mask"):
        dlf.as_storage(masked)


def test_a_numpy_scalar_is_a_read_only_storage_without_dims():
    storage = dlf.as_storage(np.float64(2.5))
    assert (storage.shape, storage.readonly, storage.to_numpy()[()]) == ((), True, 2.5)


@pytest.mark.source(
    "Allocation note",
    "Dimension Mapping",
    "an object may have a method `__gt_dims__`",
    "`__gt_dims__` gives names in the order of the axes",
)
def test_dims_are_read_off_an_attribute_or_a_method():
    class Named(np.ndarray):
        __gt_dims__ = "KI"

    class Asked(np.ndarray):
        def __gt_dims__(self):
            return ["K", "I"]

    for cls in (Named, Asked):
        assert dlf.as_storage(np.zeros((2, 3)).view(cls)).dims == ("K", "I")


def test_dims_that_do_not_fit_the_array_are_refused():
    class Named(np.ndarray):
        __gt_dims__ = ("I", "J", "K")

    with pytest.raises(ValueError, match="dims: expected one entry for each of the 2 dim"):
        dlf.as_storage(np.zeros((2, 3)).view(Named))


def test_dims_of_none_mean_no_names():
    class Unnamed(np.ndarray):
        __gt_dims__ = None

    assert dlf.as_storage(np.zeros((2, 3)).view(Unnamed)).dims is None


def test_an_error_inside_gt_dims_reaches_the_user():
    class Broken(np.ndarray):
        def __gt_dims__(self):
            raise RuntimeError("broken on purpose")

    with pytest.raises(RuntimeError, match="broken on purpose"):
        dlf.as_storage(np.zeros((2, 3)).view(Broken))


class Wrapper:
    """Has an array, as a field of gt4py.next has one."""

    def __init__(self, ndarray):
        self.ndarray = ndarray


def test_the_array_of_a_wrapper_is_taken_and_kept():
    source, watch = tracked(np.arange(3.0))
    storage = dlf.as_storage(Wrapper(source))
    assert (storage.door, address_of(storage)) == ("ndarray", source.ctypes.data)
    del source
    assert not watch.freed
    del storage
    assert watch.freed


def test_wrappers_without_an_end_are_refused():
    class Endless:
        @property
        def ndarray(self):
            return Endless()

    with pytest.raises(RecursionError, match="around each other"):
        dlf.as_storage(Endless())


def test_a_refused_array_is_not_held():
    source = np.zeros((4, 5)).astype(object)
    view = source.view(type("Own", (np.ndarray,), {}))
    watch = Watch(view)
    with pytest.raises(BufferError):
        dlf.as_storage(view)
    del view
    assert watch.freed
