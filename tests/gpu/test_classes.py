"""Creation of storages on a GPU: every function, every combination of `device` and `managed`."""

import itertools

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import Counted, buffers, pair, values
from support.cuda.devices import OnDevice, current
from support.cuda.kinds import CLASSES, CLEAN, DEVICE_NEWER, HOST_NEWER, every_kind, two_devices
from support.optional import library
from support.parameters import ML_DTYPES, NUMPY_DTYPES

FILLED = {
    "zeros": (dlf.zeros, 0.0),
    "ones": (dlf.ones, 1.0),
    "full": (lambda shape, *rest, **options: dlf.full(shape, 7.5, *rest, **options), 7.5),
}
every_fill = pytest.mark.parametrize(("make", "value"), FILLED.values(), ids=FILLED)


def assert_filled(storage, expected):
    """Both the buffer that counts and what dlfield gives of it hold the values."""
    _, device = buffers(storage)
    np.testing.assert_array_equal(device, expected, strict=True)
    np.testing.assert_array_equal(values(storage), expected, strict=True)


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    '`device="gpu"` asks for a buffer on a GPU',
    "`managed` says what synchronises two buffers; GT4Py unless given",
)
@pytest.mark.source("GDP-3", "Storage Types", "`device` and `managed` decide the class")
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "`managed` says what copies to the GPU; GT4Py unless given",
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    '`device="gpu"` asks for a buffer on a GPU',
)
@every_kind
@every_fill
@pytest.mark.parametrize("device", ["gpu", ("gpu", 0)], ids=str)
def test_device_and_managed_decide_the_class_of_what_is_filled(make, value, device, managed):
    storage = make((2, 3), device=device, managed=managed)
    assert type(storage) is CLASSES[managed]
    assert_filled(storage, np.full((2, 3), value))


@every_kind
def test_device_and_managed_decide_the_class_of_what_is_empty(managed):
    storage = dlf.empty((2, 3), "int16", device="gpu", managed=managed)
    assert type(storage) is CLASSES[managed]
    assert (storage.shape, storage.dtype) == ((2, 3), np.int16)


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "`managed` says what synchronises two buffers; GT4Py unless given",
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "`managed` says what copies to the GPU; GT4Py unless given",
)
@pytest.mark.parametrize("make", [dlf.empty, dlf.zeros, dlf.ones])
def test_dlfield_synchronises_both_sides_unless_asked_otherwise(make):
    for options in ({}, {"managed": dlf.UNSET}):
        assert type(make(3, device="gpu", **options)) is dlf.SoftwareManagedGPUStorage


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "`managed` affects only storages on a GPU"
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`managed` affects only storages on a GPU"
)
@every_kind
@pytest.mark.parametrize("device", [None, "cpu"])
def test_managed_has_no_effect_in_host_memory(device, managed):
    assert type(dlf.zeros(3, device=device, managed=managed)) is dlf.CPUStorage
    assert type(dlf.zeros(3, managed=managed)) is dlf.CPUStorage


@pytest.mark.parametrize("managed", ["gpu", "CUDA", "", 1, True, ("gt4py",)], ids=repr)
def test_other_values_of_managed_are_refused(managed):
    for device in ("gpu", None):
        with pytest.raises(ValueError, match=r"managed: expected None, 'gt4py' or 'cuda', got"):
            dlf.zeros(3, device=device, managed=managed)


@pytest.mark.parametrize("device", [("gpu", 99), ("gpu", 2**31 - 1)], ids=str)
def test_a_gpu_that_does_not_exist_cannot_be_had(device):
    for managed in CLASSES:
        with pytest.raises(dlf.DeviceUnavailable, match=f"GPU.*got {device[1]}"):
            dlf.zeros(3, device=device, managed=managed)


@pytest.mark.parametrize("device", ["cuda", ("gpu", -1), ("gpu", 2**31), ("cpu", 0), 0], ids=str)
def test_other_devices_are_refused(device):
    with pytest.raises(ValueError, match=r"device: expected None, 'cpu', 'gpu' or \('gpu', n\)"):
        dlf.zeros(3, device=device)


@pytest.mark.source("GDP-3", "Optional Keyword-Only Parameters", "`device` takes nothing else")
@two_devices
@every_kind
@every_fill
def test_memory_is_on_the_gpu_that_is_asked_for(make, value, managed):
    storage = make(5, device=("gpu", 1), managed=managed)
    assert storage.device_id == 1
    assert_filled(storage, np.full(5, value))


@two_devices
@every_kind
def test_without_a_number_it_is_the_gpu_of_the_threads_context(managed):
    with current(1):
        assert dlf.zeros(3, device="gpu", managed=managed).device_id == 1
    with current(0):
        assert dlf.zeros(3, device="gpu", managed=managed).device_id == 0


@pytest.mark.parametrize("make", [dlf.zeros, dlf.ones, lambda *a, **k: dlf.full(a[0], 3, **k)])
def test_a_pair_that_is_filled_is_filled_on_the_device(make):
    assert make(3, device="gpu").sync_state.state == DEVICE_NEWER


def test_a_pair_that_is_empty_is_in_step():
    assert dlf.empty(3, device="gpu").sync_state.state == CLEAN
    assert dlf.empty_like(pair([1.0, 2.0], HOST_NEWER)).sync_state.state == CLEAN


@pytest.mark.stand_in
@every_kind
@every_fill
def test_a_fill_copies_nothing_and_waits_for_nothing(make, value, managed):
    with Counted() as copies:
        storage = make((4, 5), device="gpu", managed=managed)
    assert (copies.made, copies.waits) == (0, 0)
    assert_filled(storage, np.full((4, 5), value))


@pytest.mark.source(
    "GDP-3", "Functionality", "the supported types are those of both NumPy and CuPy"
)
@every_kind
@pytest.mark.parametrize("name", NUMPY_DTYPES + ML_DTYPES)
def test_every_type_is_filled(name, managed):
    dtype = np.dtype(getattr(library("ml_dtypes"), name)) if name in ML_DTYPES else name
    for make, wanted in ((dlf.ones, 1), (lambda *a, **k: dlf.full(a[0], 0.5, *a[1:], **k), 0.5)):
        storage = make((3, 5), dtype, device="gpu", managed=managed)
        expected = np.full((3, 5), wanted).astype(dtype)
        assert storage.dtype == expected.dtype
        assert values(storage).tobytes() == expected.tobytes()


@every_kind
def test_the_pattern_of_a_fill_is_the_item_whatever_its_bytes(managed):
    for dtype, value in [
        ("u4", 0x01020304),
        ("i8", -2),
        ("f8", 0.1),
        ("f8", -0.0),
        ("c16", 0.1 - 3j),
    ]:
        storage = dlf.full((3, 7), value, dtype, device="gpu", managed=managed, layout=(1, 0))
        assert_filled(storage, np.full((3, 7), value, dtype))
        assert values(storage).tobytes() == np.full((3, 7), value, dtype).tobytes()


@every_kind
def test_what_cannot_be_a_fill_value_is_refused_before_anything_is_allocated(managed):
    with pytest.raises(ValueError, match="fill_value: expected one number"):
        dlf.full(3, [1, 2], device="gpu", managed=managed)
    with pytest.raises(OverflowError, match="fill_value"):
        dlf.full(3, 300, "int8", device="gpu", managed=managed)


def starts(storage):
    """Addresses of the first element on host and device, of what there is."""
    return [entry["data"][0] for entry in storage.__gt_data_interface__.values()]


def assert_rows_aligned(storage, boundary):
    """The aligned element of every row lies on its boundary, in each buffer."""
    inner = storage.layout.index(storage.ndim - 1)
    ranges = [range(extent) for extent in storage.shape]
    ranges[inner] = [storage.aligned_index[inner]]
    for start in starts(storage):
        for index in itertools.product(*ranges):
            steps = zip(index, storage.strides, strict=True)
            assert (start + sum(i * stride for i, stride in steps)) % boundary == 0


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "the address of the aligned point is a multiple of `alignment_size` bytes",
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "the address of the aligned point is a multiple of `alignment_size`",
)
@every_kind
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=str)
@pytest.mark.parametrize("alignment", [32, 256, 512])
def test_both_buffers_are_aligned_where_they_are_asked_to_be(layout, alignment, managed):
    options = {"layout": layout, "alignment_size": alignment, "halo": (1, 2, 3)}
    for index in ((1, 2, 3), (0, 0, 0), (3, 4, 5)):
        storage = dlf.ones((4, 5, 6), device="gpu", managed=managed, aligned_index=index, **options)
        assert storage.layout == layout
        assert storage.aligned_index == index
        assert_rows_aligned(storage, alignment)
        assert_filled(storage, np.ones((4, 5, 6)))


@every_kind
def test_without_an_alignment_the_first_element_of_both_lies_on_64_bytes(managed):
    storage = dlf.zeros((3, 3), "int8", device="gpu", managed=managed, halo=(1, 1))
    assert storage.alignment_size == 1
    assert all(start % 64 == 0 for start in starts(storage))
    assert storage.strides == (3, 1)


#: Rank of each dimension of I, J, K, and items that rows are aligned to.
PRESETS = {
    "gt:gpu": ((2, 1, 0), 32),
    "gtcuda": ((2, 1, 0), 32),
    "dace:gpu": ((2, 1, 0), 1),
    "dace:gpu_IJK": ((0, 1, 2), 1),
}


@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`backend` is a preset of layout, alignment and device",
)
@pytest.mark.parametrize("option", ["backend", "defaults"])
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_preset_of_a_gpu_says_layout_alignment_and_device(name, option, dtype):
    layout, items = PRESETS[name]
    halo = (3, 3, 0)
    storage = dlf.zeros((10, 11, 4), dtype, halo=halo, dims="IJK", **{option: name})
    boundary = items * storage.itemsize if items > 1 else 1
    assert type(storage) is dlf.SoftwareManagedGPUStorage
    assert (storage.layout, storage.alignment_size) == (layout, boundary)
    assert_rows_aligned(storage, boundary)


@pytest.mark.parametrize("name", PRESETS)
def test_the_layout_of_a_preset_goes_by_the_names(name):
    storage = dlf.zeros((4, 5, 6), dims="KJI", backend=name)
    assert storage.layout == PRESETS[name][0][::-1]


@every_kind
@pytest.mark.parametrize("option", ["backend", "defaults"])
def test_managed_stands_beside_a_preset(option, managed):
    storage = dlf.zeros((4, 5, 6), managed=managed, **{option: "gt:gpu"})
    assert type(storage) is CLASSES[managed]
    assert_rows_aligned(storage, 256)


def test_an_explicit_option_overrides_a_gpu_preset():
    for device in (None, "cpu"):
        storage = dlf.zeros((4, 5, 6), defaults="gt:gpu", device=device)
        assert type(storage) is dlf.CPUStorage
        assert storage.layout == (2, 1, 0)
    storage = dlf.zeros((4, 5, 6), defaults="gt:cpu_kfirst", device="gpu", alignment_size=64)
    assert type(storage) is dlf.SoftwareManagedGPUStorage
    assert (storage.layout, storage.alignment_size) == ((0, 1, 2), 64)


def test_backend_excludes_a_device():
    for device in (None, "gpu"):
        with pytest.raises(ValueError, match="backend: expected no 'device' beside it"):
            dlf.zeros((4, 5, 6), backend="gt:gpu", device=device)


@two_devices
@pytest.mark.parametrize("option", ["backend", "defaults"])
def test_a_preset_takes_the_gpu_of_the_threads_context(option):
    with current(1):
        assert dlf.zeros((2, 2, 2), **{option: "gt:gpu"}).device_id == 1


@every_kind
def test_a_storage_is_like_another_in_kind_too(managed):
    known = {"dims": "IJ", "halo": ((1, 0), 2), "layout": (1, 0), "alignment_size": 64}
    model = dlf.full((6, 7), 3, "float32", device="gpu", managed=managed, **known)
    for make, expected in ((dlf.zeros_like, 0), (dlf.ones_like, 1), (dlf.empty_like, None)):
        like = make(model)
        assert type(like) is type(model)
        for name in ("shape", "dtype", "dims", "halo", "layout", "alignment_size", "strides"):
            assert getattr(like, name) == getattr(model, name), name
        if expected is not None:
            assert_filled(like, np.full((6, 7), expected, "float32"))
    assert_filled(dlf.full_like(model, 2.5, "float64"), np.full((6, 7), 2.5))
    assert_filled(model, np.full((6, 7), 3, "float32"))


@every_kind
def test_options_say_where_the_storage_like_another_is(managed):
    there, here = dlf.zeros(3, device="gpu", managed=managed), dlf.zeros(3)
    assert type(dlf.ones_like(there, device=None)) is dlf.CPUStorage
    assert type(dlf.ones_like(here, device="gpu", managed=managed)) is CLASSES[managed]
    assert type(dlf.ones_like(here, device="gpu")) is dlf.SoftwareManagedGPUStorage
    assert type(dlf.ones_like(there, device="gpu")) is CLASSES[managed]
    assert type(dlf.ones_like(OnDevice([1.0]), managed=managed)) is CLASSES[managed]
    for other, kind in CLASSES.items():
        assert type(dlf.ones_like(there, managed=other)) is kind


@two_devices
@every_kind
def test_a_storage_like_another_is_on_its_gpu(managed):
    model = dlf.zeros(3, device=("gpu", 1), managed=managed)
    assert dlf.ones_like(model).device_id == 1
    assert dlf.ones_like(model, device="gpu").device_id == 1
    assert dlf.ones_like(model, device=("gpu", 0)).device_id == 0
    assert dlf.ones_like(OnDevice([1.0], device=1)).device_id == 1


@pytest.mark.stand_in
@pytest.mark.parametrize("state", [HOST_NEWER, DEVICE_NEWER])
def test_the_values_of_a_model_are_not_brought_up_to_date(state):
    model = pair([1.0, 2.0], state)
    with Counted() as copies:
        dlf.zeros_like(model)
    assert copies.made == 0
    assert model.sync_state.state == state
