"""Options of the functions that make storages: what they do, and what is refused."""

import dlfield as dlf
import numpy as np
import pytest
from support import no_driver, readable, without_driver

PRESETS = {  # ranks of I, J and K: 0 is the largest stride
    "numpy": (0, 1, 2),
    "debug": (0, 1, 2),
    "gt:cpu_kfirst": (0, 1, 2),
    "gt:cpu_ifirst": (2, 1, 0),
    "dace:cpu": (1, 2, 0),
    "dace:cpu_kfirst": (0, 1, 2),
    "dace:cpu_KJI": (2, 1, 0),
    "gtx86": (0, 1, 2),
    "gtmc": (0, 2, 1),
}
GPU_PRESETS = {
    "gt:gpu": (2, 1, 0),
    "dace:gpu": (2, 1, 0),
    "dace:gpu_IJK": (0, 1, 2),
    "gtcuda": (2, 1, 0),
}


@pytest.mark.parametrize(
    ("defaults", "ijk", "kji"),
    [
        ("F", (2, 1, 0), (2, 1, 0)),
        ("C", (0, 1, 2), (0, 1, 2)),
        ("gtx86", (0, 1, 2), (2, 1, 0)),
        ("gtcuda", (2, 1, 0), (0, 1, 2)),
    ],
)
def test_layouts_are_those_of_the_table_in_gdp_3(defaults, ijk, kji):
    for dims, layout in (("IJK", ijk), ("KJI", kji)):
        storage = dlf.empty((2, 3, 4), dims=dims, defaults=defaults, device=None)
        assert storage.layout == layout


@pytest.mark.parametrize("name", PRESETS)
def test_a_backend_decides_the_layout(name):
    assert dlf.empty((2, 3, 4), backend=name).layout == PRESETS[name]


@without_driver
@pytest.mark.parametrize("name", GPU_PRESETS)
def test_a_preset_of_a_gpu_backend_says_that_the_device_is_missing(name):
    for option in ("defaults", "backend"):
        with no_driver():
            dlf.empty((2, 3, 4), **{option: name})


@pytest.mark.parametrize("name", GPU_PRESETS)
def test_device_none_beats_the_device_of_a_preset(name):
    storage = dlf.empty((2, 3, 4), defaults=name, device=None)
    assert storage.layout == GPU_PRESETS[name]


def test_a_layout_follows_the_meaning_of_the_dims():
    assert dlf.empty((2, 3, 4), dims="KJI", backend="gt:cpu_kfirst").layout == (2, 1, 0)
    assert dlf.empty((2, 3), dims="IK", backend="dace:cpu").layout == (1, 0)


def test_dims_that_a_backend_does_not_know_are_left_in_c_order():
    for backend in PRESETS:
        storage = dlf.empty((2, 3, 4), dims=("level", "lat", "lon"), backend=backend)
        assert storage.layout == (0, 1, 2)


def test_data_dims_come_outermost():
    storage = dlf.empty((2, 3, 4, 5), dims="IJK0", backend="gt:cpu_kfirst")
    assert storage.layout == (1, 2, 3, 0)


def test_the_cpu_presets_of_today_do_not_pad():
    for name in set(PRESETS) - {"gtmc"}:
        storage = dlf.empty((5, 6, 7), backend=name)
        assert sorted(storage.strides)[-1] * storage.shape[storage.layout.index(0)] == 5 * 6 * 7 * 8


def test_gtmc_aligns_rows_to_eight_elements():
    storage = dlf.empty((5, 6, 7), "float32", backend="gtmc")
    assert (storage.alignment_size, storage.strides) == (32, (7 * 32, 4, 32))


def test_explicit_options_override_defaults():
    storage = dlf.empty((5, 6, 7), defaults="gtmc", layout=(2, 1, 0), alignment_size=1)
    assert (storage.layout, storage.alignment_size) == ((2, 1, 0), 1)


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)], ids=repr)
def test_a_layout_is_what_it_says(layout):
    storage = dlf.empty((4, 5, 6), layout=layout)
    ranked = sorted(range(3), key=lambda axis: -storage.strides[axis])
    assert [layout[axis] for axis in ranked] == [0, 1, 2]
    assert storage.layout == layout


def test_a_halo_is_one_width_for_both_ends_or_a_pair():
    storage = dlf.empty((9, 9, 9), halo=(1, (2, 3), np.int64(0)))
    assert storage.halo == ((1, 1), (2, 3), (0, 0))


def test_no_halo_means_widths_of_zero():
    assert dlf.empty((2, 3)).halo == ((0, 0), (0, 0))


def test_the_aligned_index_is_the_lower_halo_unless_given():
    assert dlf.empty((9, 9), halo=((1, 3), 2)).aligned_index == (1, 2)
    assert dlf.empty((9, 9), halo=(1, 2), aligned_index=(0, 4)).aligned_index == (0, 4)


def test_dims_are_kept_whatever_their_names():
    assert dlf.empty((2, 3), dims=("Cell", "K")).dims == ("Cell", "K")
    assert dlf.empty((2, 3), dims="I0").dims == ("I", "0")
    assert dlf.empty((2, 3), dims=None).dims is None


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda", dlf.UNSET], ids=repr)
def test_managed_has_no_effect_in_host_memory(managed):
    assert isinstance(dlf.empty((2,), managed=managed), dlf.CPUStorage)


@pytest.mark.parametrize("device", [None, "cpu", dlf.UNSET], ids=repr)
def test_host_memory_is_what_none_and_cpu_name(device):
    assert isinstance(dlf.empty((2,), device=device), dlf.CPUStorage)


@pytest.mark.parametrize("option", ["aligned_index", "backend", "dims", "halo", "layout"])
def test_unset_is_as_if_an_option_was_not_given(option):
    storage = dlf.empty((2, 3), **{option: dlf.UNSET})
    assert (storage.layout, storage.dims, storage.halo) == ((0, 1), None, ((0, 0), (0, 0)))


@without_driver
@pytest.mark.parametrize("device", ["gpu", ("gpu", 0), ("gpu", 7)], ids=repr)
def test_a_gpu_is_unavailable_here(device):
    with no_driver():
        dlf.empty((2,), device=device)
    assert issubclass(dlf.DeviceUnavailable, RuntimeError)


@pytest.mark.parametrize(
    ("option", "value"),
    [("layout", (0, 1)), ("alignment_size", 1), ("device", "cpu"), ("defaults", "C")],
)
def test_backend_refuses_what_it_stands_for_beside_it(option, value):
    with pytest.raises(ValueError, match=f"backend: expected no '{option}' beside it"):
        dlf.empty((2, 3), backend="numpy", **{option: value})


def test_an_explicit_device_none_beside_backend_is_refused_like_any_other_device():
    with pytest.raises(ValueError, match="backend: expected no 'device' beside it"):
        dlf.empty((2, 3), backend="numpy", device=None)


@pytest.mark.parametrize("option", ["backend", "defaults"])
def test_an_unknown_preset_is_answered_with_the_known_ones(option):
    with pytest.raises(ValueError, match=r"gt:cpu_ifirst.*gtcuda, got 'gt:cpu'"):
        dlf.empty((2, 3), **{option: "gt:cpu"})


@pytest.mark.parametrize("value", [3, dlf.UNSET], ids=repr)
def test_an_unknown_option_is_named_with_the_known_ones(value):
    with pytest.raises(TypeError, match=r"option 'halos': expected one of .*halo"):
        dlf.empty((2, 3), halos=value)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"halo": (1,)}, ValueError, "halo: expected one entry for each of the 2 dimensions"),
        ({"halo": (-1, 0)}, ValueError, r"halo: .* got \(-1, -1\) on axis 0"),
        ({"halo": (0, (3, 3))}, ValueError, r"fit in extent 5, got \(3, 3\) on axis 1"),
        ({"halo": ((1, 2, 3), 0)}, ValueError, "halo: expected an int or a pair"),
        ({"halo": 1}, TypeError, "halo: expected a sequence"),
        ({"halo": (1.0, 0)}, TypeError, "halo: expected"),
        ({"dims": "II"}, ValueError, "dims: expected distinct names, got 'I' twice"),
        ({"dims": "IJK"}, ValueError, "dims: expected one entry for each of the 2 dimensions"),
        ({"dims": 3}, TypeError, "dims: expected a sequence of names"),
        ({"layout": (0, 0)}, ValueError, "layout: expected a permutation"),
        ({"layout": (1, 2)}, ValueError, "layout: expected a permutation"),
        ({"layout": (0, 1, 2)}, ValueError, "layout: expected a permutation"),
        ({"layout": 1}, TypeError, "layout: expected a sequence of ints"),
        ({"aligned_index": (0, 5)}, ValueError, "aligned_index: expected an index inside"),
        ({"aligned_index": (-1, 0)}, ValueError, "aligned_index: expected an index inside"),
        ({"aligned_index": (0,)}, ValueError, "aligned_index: expected one entry for each"),
        ({"alignment_size": 12}, ValueError, "multiple or a divisor of the item size 8"),
        ({"alignment_size": 0}, ValueError, "alignment_size: expected at least 1 byte"),
        ({"alignment_size": -8}, ValueError, "alignment_size: expected at least 1 byte"),
        ({"alignment_size": 8.0}, TypeError, "alignment_size: expected an int"),
        ({"device": "tpu"}, ValueError, "device: expected None, 'cpu', 'gpu'"),
        ({"device": 1}, ValueError, "device: expected None, 'cpu', 'gpu'"),
        ({"managed": "rust"}, ValueError, "managed: expected None, 'gt4py' or 'cuda'"),
        ({"backend": 3}, TypeError, "backend: expected"),
    ],
    ids=readable,
)
def test_a_value_that_cannot_hold_is_refused(options, error, text):
    with pytest.raises(error, match=text):
        dlf.empty((4, 5), **options)


def test_an_axis_that_was_only_numbered_gets_a_name():
    numbered = dlf.zeros((4, 3), dims=("dim_0", "J"))
    assert dlf.as_storage(numbered, dims="IJ").dims == ("I", "J")
    with pytest.raises(ValueError, match=r"as the array says"):
        dlf.as_storage(numbered, dims="JI")
    with pytest.raises(ValueError, match=r"as the array says"):
        dlf.as_storage(numbered.T, dims="JI")
