"""Calling a class of storages: it gives a storage of its own kind, or refuses."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import values
from support.cuda.devices import OnDevice
from support.cuda.kinds import CLASSES, every_class, every_kind, two_devices


@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "the constructors of the classes behind it are not for users",
)
@every_class
def test_a_class_that_is_called_gives_a_storage_of_itself_with_the_values(name, options):
    kind = getattr(dlf, name)
    sources = [
        np.arange(3.0),
        [0.0, 1.0, 2.0],
        OnDevice(np.arange(3.0)),
        dlf.storage(np.arange(3.0)),
    ]
    sources += [dlf.storage(np.arange(3.0), device="gpu", managed=managed) for managed in CLASSES]
    for source in sources:
        made = kind(source, dims="I")
        assert type(made) is kind
        assert made.dims == ("I",)
        assert values(made).tolist() == [0, 1, 2]
    assert type(kind(shape=(2, 3), dtype="int8")) is kind
    assert type(kind(np.arange(3.0), **options)) is kind


@every_class
def test_the_base_class_gives_what_fits(name, options):
    assert type(dlf.Storage([1, 2], **options)) is getattr(dlf, name)


@every_kind
def test_a_class_refuses_a_device_of_the_other_kind(managed):
    kind = CLASSES[managed]
    for device in (None, "cpu"):
        with pytest.raises(
            ValueError, match=f"{kind.__name__}: expected device='gpu', got device="
        ):
            kind([1, 2], device=device)
    for device in ("gpu", ("gpu", 0)):
        with pytest.raises(ValueError, match="CPUStorage: expected device=None, got device="):
            dlf.CPUStorage([1, 2], device=device)


@every_kind
def test_a_class_refuses_to_be_managed_otherwise(managed):
    for other in CLASSES:
        if other != managed:
            with pytest.raises(
                ValueError, match=f"expected managed={managed!r}, got managed={other!r}"
            ):
                CLASSES[managed]([1, 2], managed=other)


@every_kind
def test_a_class_takes_layout_and_alignment_from_a_preset(managed):
    for option in ("backend", "defaults"):
        made = CLASSES[managed](np.ones((2, 3, 4)), **{option: "gt:gpu"})
        assert type(made) is CLASSES[managed]
        assert (made.layout, made.alignment_size) == ((2, 1, 0), 256)


@pytest.mark.parametrize(
    ("kind", "preset"),
    [(dlf.CPUStorage, "gt:gpu"), *((kind, "gt:cpu_ifirst") for kind in CLASSES.values())],
)
def test_a_class_gives_itself_or_refuses_a_preset_of_the_other_kind(kind, preset):
    try:
        made = kind([1, 2], backend=preset)
    except ValueError:
        return
    assert type(made) is kind


@two_devices
@every_kind
def test_a_class_uses_the_gpu_of_the_data_unless_asked_otherwise(managed):
    source = dlf.ones(3, device=("gpu", 1))
    assert CLASSES[managed](source).device_id == 1
    assert CLASSES[managed](source, device=("gpu", 0)).device_id == 0


@every_class
def test_a_class_without_copy_shares_memory_or_refuses(name, options):
    made = dlf.ones(3, **options)
    shared = getattr(dlf, name)(made, copy=False)
    made[0] = 7
    assert values(shared).tolist() == [7, 1, 1]


@every_class
def test_users_cannot_subclass_the_classes_of_storages(name, options):
    with pytest.raises(TypeError):
        type("Mine", (getattr(dlf, name),), {})


def test_a_subclass_of_the_base_makes_no_storages():
    class Mine(dlf.Storage):
        pass

    with pytest.raises(TypeError, match="expected Storage or one of its own kinds"):
        Mine([1, 2])


@two_devices
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_the_device_of_a_storage_names_its_gpu(managed):
    model = dlf.zeros(3, device=("gpu", 1), managed=managed)
    assert dlf.zeros(3, device=model.device).device_id == 1


@two_devices
@pytest.mark.parametrize("managed", [None, "cuda"])
def test_managed_memory_is_not_labelled_with_another_gpu(managed):
    made = dlf.zeros(3, device=("gpu", 1), managed="cuda")
    with pytest.raises(
        dlf.DeviceUnavailable, match="expected memory on GPU 0, got memory on GPU 1"
    ):
        dlf.as_storage(made, device=("gpu", 0), managed=managed)


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "a missing option comes first from the preset"
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "a missing option comes from the preset, then the data, then a default",
)
@pytest.mark.parametrize("option", ["backend", "defaults"])
def test_a_preset_decides_the_device_by_either_option(option):
    made = dlf.ones((2, 3), device="gpu")
    for name in ("gt:cpu_ifirst", "numpy"):
        for make in (dlf.storage, dlf.zeros_like):
            assert type(make(made, **{option: name})) is dlf.CPUStorage
    assert type(dlf.storage(np.ones((2, 3)), **{option: "gt:gpu"})) is type(made)


@pytest.mark.parametrize("option", ["backend", "defaults"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_order_of_numpy_says_nothing_of_a_device(option, order):
    made = dlf.ones((2, 3), device="gpu")
    for make in (dlf.storage, dlf.zeros_like):
        assert type(make(made, **{option: order})) is type(made)
        assert type(make(np.ones((2, 3)), **{option: order})) is dlf.CPUStorage


def test_an_explicit_device_beats_that_of_defaults():
    made = dlf.ones((2, 3), device="gpu")
    assert dlf.storage(made, defaults="numpy", device=made.device).device_id == made.device_id
    assert dlf.storage(made, device=made.device, defaults="numpy").device_id == made.device_id


@pytest.mark.parametrize(
    ("managed", "way_out"),
    [(None, "to_cupy(), or dlfield.storage(..., device='cpu')"), ("gt4py", "or storage.to_cupy()")],
)
def test_a_storage_that_is_no_number_names_a_way_out_that_there_is(managed, way_out):
    made = dlf.ones((2, 3), device="gpu", managed=managed)
    with pytest.raises(TypeError) as caught:
        float(made)
    assert way_out in str(caught.value)


@pytest.mark.source(
    "GDP-3 draft",
    "Mixing Devices",
    "`__array_priority__` is 11 for synchronised storages and 10 for the others",
)
@every_kind
def test_storages_that_are_kept_in_step_come_before_others(managed):
    made = dlf.ones((2, 3), device="gpu", managed=managed)
    assert made.__array_priority__ == (10 if managed is None else 11)
