"""Calling a class, `storage()` without data or of numbers, and what only a GPU has."""

import re
from functools import partial

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.no_driver import no_driver, without_driver
from support.optional import library
from support.parameters import readable
from support.processes import run_in_subprocess
from support.stencils.stand_ins import OnDevice

GPU_CLASSES = [dlf.GPUStorage, dlf.SoftwareManagedGPUStorage, dlf.CUDAManagedGPUStorage]
HOST_MAKERS = [dlf.storage, dlf.Storage, dlf.CPUStorage]


def named(value):
    """Name a class or function in a test's name."""
    return value.__name__


@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`Storage(…)` does what `storage(…)` does"
)
@pytest.mark.parametrize("cls", [dlf.Storage, dlf.CPUStorage], ids=named)
def test_a_class_makes_what_storage_makes(cls):
    source = np.arange(6.0).reshape(2, 3)
    options = {"dims": "IJ", "halo": (0, 1), "layout": (1, 0), "alignment_size": 32}
    made, expected = (
        cls(source, dtype="int16", **options),
        dlf.storage(source, dtype="int16", **options),
    )
    assert repr(made) == repr(expected)
    assert type(made) is dlf.CPUStorage


@pytest.mark.parametrize("cls", [dlf.Storage, dlf.CPUStorage], ids=named)
def test_a_class_copies_unless_copy_is_false(cls):
    source = np.zeros(3)
    assert address_of(cls(source)) != address_of(source)
    assert address_of(cls(source, copy=False)) == address_of(source)


@without_driver
@pytest.mark.parametrize("cls", GPU_CLASSES, ids=named)
@pytest.mark.parametrize(
    "options", [{}, {"device": "gpu"}, {"device": ("gpu", 0)}, {"backend": "gt:gpu"}], ids=str
)
def test_a_class_of_the_gpu_says_that_there_is_none(cls, options):
    with no_driver():
        cls(shape=(2, 3), **options)
    with no_driver():
        cls(np.zeros((2, 3)), **options)


@pytest.mark.source("GDP-3", "Storage Types", "`device` and `managed` decide the class")
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "the constructors of the classes behind it are not for users",
)
@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (dlf.CPUStorage, {"device": "gpu"}),
        (dlf.CPUStorage, {"device": ("gpu", 0)}),
        (dlf.GPUStorage, {"device": None}),
        (dlf.GPUStorage, {"device": "cpu"}),
        (dlf.GPUStorage, {"managed": "gt4py"}),
        (dlf.GPUStorage, {"managed": "cuda"}),
        (dlf.SoftwareManagedGPUStorage, {"managed": None}),
        (dlf.SoftwareManagedGPUStorage, {"managed": "cuda"}),
        (dlf.CUDAManagedGPUStorage, {"managed": "gt4py"}),
        (dlf.CUDAManagedGPUStorage, {"device": "cpu"}),
    ],
)
def test_an_option_that_contradicts_the_class_is_refused(cls, options):
    option = next(iter(options))
    with pytest.raises(ValueError, match=f"{cls.__name__}: expected .*{option}="):
        cls(shape=(2,), **options)


@pytest.mark.parametrize("device", [None, "cpu", dlf.UNSET], ids=repr)
def test_a_device_that_agrees_with_the_class_may_be_named(device):
    assert dlf.CPUStorage(shape=(2,), device=device).shape == (2,)


def test_a_cpu_storage_can_be_made_for_a_backend():
    made = dlf.CPUStorage(shape=(2, 3, 4), backend="gt:cpu_ifirst")
    assert made.layout == (2, 1, 0)


def test_a_cpu_storage_is_in_host_memory_whatever_the_preset():
    made = dlf.CPUStorage(shape=(2, 3, 4), defaults="gt:gpu")
    assert made.layout == (2, 1, 0)


@pytest.mark.source(
    "GDP-3",
    "Storage Types",
    "`GT4PySyncedGPUStorage` and `CUDASyncedGPUStorage` are names of classes too",
)
def test_the_other_names_of_gdp_3_are_the_same_classes():
    assert dlf.GT4PySyncedGPUStorage is dlf.SoftwareManagedGPUStorage
    assert dlf.CUDASyncedGPUStorage is dlf.CUDAManagedGPUStorage
    assert dlf.CudaManagedGPUStorage is dlf.CUDAManagedGPUStorage


@pytest.mark.source(
    "GDP-3", "Storage Types", "every storage is an instance of a subclass of `Storage`"
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Types", "every storage is an instance of a subclass of `Storage`"
)
@pytest.mark.parametrize("cls", [dlf.CPUStorage, *GPU_CLASSES], ids=named)
def test_every_kind_is_a_storage_and_no_kind_is_another(cls):
    assert issubclass(cls, dlf.Storage)
    others = {dlf.CPUStorage, *GPU_CLASSES} - {cls}
    assert not any(issubclass(cls, other) for other in others)
    assert isinstance(dlf.zeros(2), cls) == (cls is dlf.CPUStorage)


def test_a_subclass_of_storage_cannot_be_called():
    class Mine(dlf.Storage):
        pass

    with pytest.raises(TypeError, match="Mine: expected Storage or one of its own kinds"):
        Mine([1, 2])


@pytest.mark.parametrize("cls", [dlf.CPUStorage, *GPU_CLASSES], ids=named)
def test_a_kind_of_storage_has_no_subclasses(cls):
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (cls,), {})


@pytest.mark.parametrize("cls", [dlf.Storage, dlf.CPUStorage, *GPU_CLASSES], ids=named)
def test_no_storage_can_be_had_without_memory(cls):
    assert run_in_subprocess(f"""
        import dlfield as dlf

        try:
            repr(object.__new__(dlf.{cls.__name__}))
        except TypeError as error:
            print(error)
    """)


@pytest.mark.source("GDP-3", "Optional Keyword-Only Parameters", "a missing shape is an error")
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "what has no default is an error")
@pytest.mark.parametrize("make", HOST_MAKERS, ids=named)
@pytest.mark.parametrize("options", [{}, {"data": None}, {"copy": False}, {"dtype": int}], ids=str)
def test_without_data_and_shape_both_are_asked_for(make, options):
    with pytest.raises(TypeError, match="storage: expected data or shape=, got neither"):
        make(**options)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "without data, memory of the given shape is allocated"
)
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "without data, memory is allocated")
@pytest.mark.parametrize("make", HOST_MAKERS, ids=named)
def test_a_shape_without_data_allocates(make):
    made = make(shape=(2, 3), dtype="int16", dims="IJ", layout=(1, 0))
    made.to_numpy()[...] = 7
    assert (made.shape, made.dtype, made.dims) == ((2, 3), np.dtype("int16"), ("I", "J"))
    assert (made.layout, made.readonly, made.door) == ((1, 0), False, None)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "without data, memory of the given shape is allocated"
)
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "without data, memory is allocated")
def test_float64_is_what_a_shape_alone_gives():
    assert dlf.storage(shape=3).dtype == np.float64
    assert dlf.storage(shape=3, copy=False).shape == (3,)


@pytest.mark.parametrize("shape", [(2, 3), [2, 3], dlf.UNSET, None], ids=repr)
@pytest.mark.parametrize("copy", [True, False])
def test_a_shape_beside_data_that_agrees_says_nothing(shape, copy):
    assert dlf.storage(np.zeros((2, 3)), shape=shape, copy=copy).shape == (2, 3)


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 3, 1), ()], ids=repr)
@pytest.mark.parametrize("copy", [True, False])
def test_a_shape_beside_data_of_another_is_refused(shape, copy):
    with pytest.raises(ValueError, match=r"shape: expected \[2, 3\], as the data has, got"):
        dlf.storage(np.zeros((2, 3)), shape=shape, copy=copy)


@pytest.mark.parametrize(
    "numbers",
    [[[1, 2], [3, 4]], [1, 2.5], (1, 2), [], [[], []], [True, False], [1j], 3, 2.5, True, 1 + 2j],
    ids=repr,
)
def test_numbers_and_lists_of_them_become_what_numpy_makes_of_them(numbers):
    made = dlf.storage(numbers)
    np.testing.assert_array_equal(made.to_numpy(), np.array(numbers), strict=True)
    assert not made.readonly


def test_a_list_takes_options_and_another_dtype():
    made = dlf.storage([[1, 2], [3, 4]], dtype="float32", dims="JI", defaults="F", halo=(1, 0))
    assert (made.dtype, made.dims, made.layout) == (np.float32, ("J", "I"), (1, 0))
    assert made.to_numpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("numbers", "dtype"),
    [
        ([2**63 - 1, 2**63], "u8"),
        ([2**53 + 1, 0.5], "i8"),
        ([2**70], "f8"),
        (2**70, "f8"),
        ((1, 2.5), "c8"),
        ([[-1], [True]], "f2"),
        ([0, 2, -1], "?"),
        ([300], "f4"),
    ],
    ids=repr,
)
def test_numbers_become_what_numpy_makes_of_them_in_the_type_asked_for(numbers, dtype):
    made = dlf.storage(numbers, dtype=dtype).to_numpy()
    np.testing.assert_array_equal(made, np.array(numbers, dtype), strict=True)


@pytest.mark.parametrize(
    ("numbers", "dtype"), [([300], "i1"), (300, "i1"), ([-1], "u8"), ([2**64], "u8")], ids=repr
)
def test_a_number_that_the_type_asked_for_does_not_hold_is_refused_as_numpy_refuses_it(
    numbers, dtype
):
    with pytest.raises(OverflowError) as refused:
        np.array(numbers, dtype)
    with pytest.raises(OverflowError, match=re.escape(str(refused.value))):
        dlf.storage(numbers, dtype=dtype)


def test_numbers_may_become_of_a_type_of_ml_dtypes():
    library("ml_dtypes")
    made = dlf.storage([1.5, 3, 2.0**70], dtype="bfloat16")
    assert made.to_numpy().astype(float).tolist() == [1.5, 3, 2.0**70]


@pytest.mark.parametrize(
    ("numbers", "error", "text"),
    [
        ([[1], [2, 3]], ValueError, "inhomogeneous shape"),
        (["a", "b"], BufferError, "expected bool, int8.*convert with astype"),
        ([None], BufferError, "expected bool, int8.*got 'O'"),
        ([2**70], BufferError, "expected bool, int8.*got 'O'"),
        ("text", TypeError, r"'str'.*np\.asarray"),
        ({1: 2}, TypeError, r"'dict'.*np\.asarray"),
        ({1, 2}, TypeError, r"'set'.*np\.asarray"),
        (range(3), TypeError, r"'range'.*np\.asarray"),
        (object(), TypeError, r"'object'.*np\.asarray"),
    ],
    ids=readable,
)
def test_an_object_that_is_not_a_block_of_numbers_is_refused(numbers, error, text):
    with pytest.raises(error, match=text):
        dlf.storage(numbers)


@pytest.mark.parametrize("numbers", [[1, 2], 3, (1.5,)], ids=repr)
def test_numbers_cannot_be_shared(numbers):
    with pytest.raises(TypeError, match=rf"'{type(numbers).__name__}'.*np\.asarray"):
        dlf.storage(numbers, copy=False)


@without_driver
@without_driver
def test_a_host_storage_refuses_a_device_buffer():
    expected = "device_data: memory on cuda:0: CUDA: expected the driver's library"
    for make in (
        dlf.as_storage,
        partial(dlf.storage, copy=False),
        partial(dlf.Storage, copy=False),
    ):
        with pytest.raises(dlf.DeviceUnavailable, match=expected):
            make(np.zeros(2), OnDevice(np.ones(2)), device="cpu")
    with pytest.raises(dlf.DeviceUnavailable, match=expected):
        dlf.CPUStorage(np.zeros(2), OnDevice(np.ones(2)), copy=False)


@pytest.mark.parametrize("nothing", [None, dlf.UNSET], ids=repr)
def test_no_buffer_of_a_device_is_fine(nothing):
    assert dlf.as_storage(np.zeros(2), nothing, sync_state=nothing).shape == (2,)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`sync_state` says which of two buffers is up to date"
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", '`sync_state` affects only `managed="gt4py"`'
)
@pytest.mark.parametrize("make", [dlf.as_storage, dlf.storage], ids=named)
def test_a_sync_state_changes_nothing_in_host_memory(make):
    state = dlf.SyncState()
    state.state = dlf.SyncState.SYNC_DEVICE_DIRTY
    assert make(np.arange(2.0), sync_state=state).to_numpy().tolist() == [0, 1]
    assert state.state == dlf.SyncState.SYNC_DEVICE_DIRTY


@pytest.mark.parametrize("wrong", [0, "clean", dlf.SyncState], ids=repr)
def test_a_sync_state_does_not_equal_its_number(wrong):
    with pytest.raises(TypeError, match="sync_state: expected a SyncState or None"):
        dlf.as_storage(np.zeros(2), sync_state=wrong)


@pytest.mark.parametrize("make", [dlf.as_storage, dlf.storage], ids=named)
def test_names_that_are_unset_change_nothing(make):
    source = dlf.zeros((4, 5), dims="IJ", default_origin=(1, 2))
    made = make(source, dims=dlf.UNSET)
    assert (made.dims, getattr(made, "default_origin", None)) == (("I", "J"), (1, 2))


@pytest.mark.source(
    "GDP-3",
    "Sync State",
    "`SyncState.state` is one of SYNC_CLEAN, SYNC_HOST_DIRTY and SYNC_DEVICE_DIRTY",
)
def test_a_new_sync_state_is_clean_and_takes_each_of_three_values():
    state = dlf.SyncState()
    assert state.state == dlf.SyncState.SYNC_CLEAN
    names = ("SYNC_CLEAN", "SYNC_HOST_DIRTY", "SYNC_DEVICE_DIRTY")
    for name in names:
        state.state = getattr(dlf.SyncState, name)
        assert state.state == getattr(dlf.SyncState, name)
        assert repr(state) == f"SyncState({name})"
    assert len({getattr(dlf.SyncState, name) for name in names}) == 3


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (3, ValueError),
        ("clean", TypeError),
        (1.0, TypeError),
        (None, TypeError),
        (-1, ValueError),
        (256, ValueError),
    ],
)
def test_a_sync_state_refuses_other_values_and_keeps_its_own(value, error):
    state = dlf.SyncState()
    with pytest.raises(error):
        state.state = value
    assert state.state == dlf.SyncState.SYNC_CLEAN
