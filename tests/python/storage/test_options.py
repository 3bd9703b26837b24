"""Options of the functions that make storages: what they do, and what is refused."""

import dlfield as dlf
import numpy as np
import pytest

from support.no_driver import no_driver, without_driver
from support.parameters import readable

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


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "`defaults` is a preset of options for each backend",
    '`defaults` may be "F" or "C"',
    "the layout of a GridTools backend follows the meaning of the dimensions",
    '"F" and "C" order axes by position',
    'the table of layouts for "F", "C", "gtx86" and "gtcuda"',
)
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


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "one program runs on every backend in that backend's fast layout",
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`backend` is a preset of layout, alignment and device",
    'with "gt:cpu_kfirst" K has the smallest stride, wherever it is in `dims`',
)
@pytest.mark.parametrize("name", PRESETS)
def test_a_backend_decides_the_layout(name):
    assert dlf.empty((2, 3, 4), backend=name).layout == PRESETS[name]


@without_driver
@pytest.mark.parametrize("name", GPU_PRESETS)
def test_a_preset_of_a_gpu_backend_says_that_the_device_is_missing(name):
    for option in ("defaults", "backend"):
        with no_driver():
            dlf.empty((2, 3, 4), **{option: name})


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "explicit options override the preset"
)
@pytest.mark.parametrize("name", GPU_PRESETS)
def test_device_none_beats_the_device_of_a_preset(name):
    storage = dlf.empty((2, 3, 4), defaults=name, device=None)
    assert storage.layout == GPU_PRESETS[name]


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "one program runs on every backend in that backend's fast layout",
)
@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "`dims` decide the layout that a preset gives",
    "the layout of a GridTools backend follows the meaning of the dimensions",
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`dims` decide the layout that a preset gives",
    "the layout of a GridTools backend follows the meaning of the dimensions",
    'with "gt:cpu_kfirst" K has the smallest stride, wherever it is in `dims`',
)
def test_a_layout_follows_the_meaning_of_the_dims():
    assert dlf.empty((2, 3, 4), dims="KJI", backend="gt:cpu_kfirst").layout == (2, 1, 0)
    assert dlf.empty((2, 3), dims="IK", backend="dace:cpu").layout == (1, 0)


def test_dims_that_a_backend_does_not_know_are_left_in_c_order():
    for backend in PRESETS:
        with pytest.warns(UserWarning, match="expected names among I, J and K"):
            storage = dlf.empty((2, 3, 4), dims=("level", "lat", "lon"), backend=backend)
        assert storage.layout == (0, 1, 2)


@pytest.mark.source("Allocation note", "Dimension Mapping", "decimals stand for data dimensions")
def test_data_dims_come_outermost():
    storage = dlf.empty((2, 3, 4, 5), dims="IJK0", backend="gt:cpu_kfirst")
    assert storage.layout == (1, 2, 3, 0)


def test_the_cpu_presets_of_today_do_not_pad():
    for name in set(PRESETS) - {"gtmc"}:
        storage = dlf.empty((5, 6, 7), backend=name)
        assert sorted(storage.strides)[-1] * storage.shape[storage.layout.index(0)] == 5 * 6 * 7 * 8


@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`backend` is a preset of layout, alignment and device",
)
def test_gtmc_aligns_rows_to_eight_elements():
    storage = dlf.empty((5, 6, 7), "float32", backend="gtmc")
    assert (storage.alignment_size, storage.strides) == (32, (7 * 32, 4, 32))


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "`defaults` is a preset of options for each backend",
    "explicit options override the preset",
)
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "explicit options override the preset")
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "explicit options override the preset",
)
def test_an_explicit_option_overrides_its_preset():
    storage = dlf.empty((5, 6, 7), defaults="gtmc", layout=(2, 1, 0), alignment_size=1)
    assert (storage.layout, storage.alignment_size) == ((2, 1, 0), 1)


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "`layout` is a permutation; 0 has the largest stride",
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`layout` is a permutation; 0 has the largest stride",
)
@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)], ids=repr)
def test_a_layout_is_what_it_says(layout):
    storage = dlf.empty((4, 5, 6), layout=layout)
    ranked = sorted(range(3), key=lambda axis: -storage.strides[axis])
    assert [layout[axis] for axis in ranked] == [0, 1, 2]
    assert storage.layout == layout


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "`halo` has an int or a pair for each dimension"
)
@pytest.mark.source("GDP-3", "Attributes and Properties", "`halo` has a pair for each dimension")
def test_a_halo_is_one_width_for_both_ends_or_a_pair():
    storage = dlf.empty((9, 9, 9), halo=(1, (2, 3), np.int64(0)))
    assert storage.halo == ((1, 1), (2, 3), (0, 0))


@pytest.mark.source("GDP-3", "Optional Keyword-Only Parameters", "`halo` is zero unless given")
def test_no_halo_means_widths_of_zero():
    assert dlf.empty((2, 3)).halo == ((0, 0), (0, 0))


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "`aligned_index` is the lower halo unless given"
)
def test_the_aligned_index_is_the_lower_halo_unless_given():
    assert dlf.empty((9, 9), halo=((1, 3), 2)).aligned_index == (1, 2)
    assert dlf.empty((9, 9), halo=(1, 2), aligned_index=(0, 4)).aligned_index == (0, 4)


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "dimensions other than I, J and K are possible"
)
@pytest.mark.source("GDP-3", "Optional Keyword-Only Parameters", "`dims` names the dimensions")
@pytest.mark.source("GDP-3", "Alternatives", "storages do not hold dims")
def test_dims_are_kept_whatever_their_names():
    assert dlf.empty((2, 3), dims=("Cell", "K")).dims == ("Cell", "K")
    assert dlf.empty((2, 3), dims="I0").dims == ("I", "0")
    assert dlf.empty((2, 3), dims=None).dims is None


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    '`managed` is None, "gt4py" or "cuda"',
    "`managed` affects only storages on a GPU",
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "`managed` affects only storages on a GPU"
)
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda", dlf.UNSET], ids=repr)
def test_managed_has_no_effect_without_a_device(managed):
    assert isinstance(dlf.empty((2,), managed=managed), dlf.CPUStorage)


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "`device` is None unless given: host memory",
    "`device` takes nothing else",
)
@pytest.mark.source(
    "Allocation note", "Optional Keyword-Only Parameters", "`device` is None unless given"
)
@pytest.mark.parametrize("device", [None, "cpu", dlf.UNSET], ids=repr)
def test_host_memory_is_what_none_and_cpu_name(device):
    assert isinstance(dlf.empty((2,), device=device), dlf.CPUStorage)


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "after the data, a missing option comes from the fallback",
)
@pytest.mark.parametrize("option", ["aligned_index", "backend", "dims", "halo", "layout"])
def test_unset_is_as_if_an_option_was_not_given(option):
    storage = dlf.empty((2, 3), **{option: dlf.UNSET})
    assert (storage.layout, storage.dims, storage.halo) == ((0, 1), None, ((0, 0), (0, 0)))


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", '`device="gpu"` asks for a buffer on a GPU'
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    '`device="gpu"` asks for a buffer on a GPU',
)
@without_driver
@pytest.mark.parametrize("device", ["gpu", ("gpu", 0), ("gpu", 7)], ids=repr)
def test_a_gpu_is_unavailable_here(device):
    with no_driver():
        dlf.empty((2,), device=device)
    assert issubclass(dlf.DeviceUnavailable, RuntimeError)


@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`backend` excludes `alignment_size`, `device` and `layout`",
)
@pytest.mark.parametrize(
    ("option", "value"),
    [("layout", (0, 1)), ("alignment_size", 1), ("device", "cpu"), ("defaults", "C")],
)
def test_backend_refuses_what_it_stands_for_beside_it(option, value):
    with pytest.raises(ValueError, match=f"backend: expected no '{option}' beside it"):
        dlf.empty((2, 3), backend="numpy", **{option: value})


@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`backend` excludes `alignment_size`, `device` and `layout`",
)
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


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "`alignment_size` is any number of bytes",
    "`layout` is a permutation; 0 has the largest stride",
    '`managed` is None, "gt4py" or "cuda"',
)
@pytest.mark.source(
    "GDP-3 draft",
    "Storage Constructors",
    "for a field of fewer dimensions, shape and origin may have length 3",
)
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


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "an `Optional` option may be None, which is unset where it is no value of its own",
)
@pytest.mark.parametrize("option", ["aligned_index", "alignment_size", "halo", "defaults"])
def test_none_is_unset_where_it_is_no_value_of_its_own(option):
    plain, none = dlf.empty((2, 3)), dlf.empty((2, 3), **{option: None})
    assert (none.layout, none.halo, none.strides) == (plain.layout, plain.halo, plain.strides)
    field = dlf.zeros((4, 9), halo=(1, 2), aligned_index=(1, 4), alignment_size=64)
    like = dlf.zeros_like(field, **{option: None})
    assert (like.halo, like.aligned_index) == (field.halo, field.aligned_index)
    assert like.strides == field.strides


def test_the_halo_of_any_view_may_be_passed_on():
    field = dlf.zeros((8, 4), halo=(2, 0))
    for view in (field, field[1:], field[::2]):
        assert dlf.zeros(view.shape, halo=view.halo).halo == (view.halo or ((0, 0), (0, 0)))


def test_a_halo_may_be_given_by_name():
    assert dlf.zeros((5, 4, 3), dims="IJK", halo={"J": 1, "I": (2, 0)}).halo == (
        (2, 0),
        (1, 1),
        (0, 0),
    )
    named = dlf.as_storage(np.zeros((5, 4)), halo={"lat": 1}, dims=("lat", "lon"))
    assert named.halo == ((1, 1), (0, 0))
    assert dlf.zeros((4,), ("f4", (2,)), dims="I", halo={"I": 1}).halo == ((1, 1), (0, 0))
    named.halo = {"lon": (0, 2)}
    assert named.halo == ((0, 0), (0, 2))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"halo": {"I": 1}},
            "halo: expected dims for widths by name, got none; pass dims= too, or",
        ),
        ({"halo": {"X": 1}, "dims": "IJ"}, r"halo: expected one of \('I', 'J'\), got 'X'"),
        ({"halo": {"I": (1, 2, 3)}, "dims": "IJ"}, "halo: expected an int or a pair"),
        ({"halo": {"I": 9}, "dims": "IJ"}, r"halo: .*got \(9, 9\) on axis 0"),
    ],
    ids=repr,
)
def test_a_halo_by_name_that_cannot_be_placed_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        dlf.zeros((4, 5), **options)


class Axis:
    """An axis of GTScript."""

    def __init__(self, name):
        self.__gt_axis_name__ = name


@pytest.mark.parametrize("dims", [[Axis("I"), Axis("K")], (Axis("I"), "K")], ids=["all", "one"])
def test_axes_of_gtscript_are_names(dims):
    assert dlf.zeros((2, 3), dims=dims).dims == ("I", "K")
    assert dlf.get_dims(np.zeros((2, 3)), dims) == ("I", "K")


@pytest.mark.parametrize("order", ["C", "F", "K", "numpy"])
def test_a_layout_that_is_a_name_is_refused_with_the_option_for_it(order):
    way_out = f"layout: expected the rank of each stride, .*, got '{order}'; .*defaults="
    with pytest.raises(TypeError, match=way_out):
        dlf.zeros((2, 3), layout=order)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", ("cuda", 0)])
def test_a_device_of_cuda_is_called_gpu(device):
    with pytest.raises(ValueError, match=r"CUDA's devices are 'gpu'$"):
        dlf.zeros(3, device=device)


def test_a_layout_of_names_gets_those_of_the_item_too():
    def outermost(dims):
        order = sorted(range(len(dims)), key=lambda axis: (not dims[axis].isdigit(), dims[axis]))
        return [order.index(axis) for axis in range(len(dims))]

    assert dlf.zeros((4, 5), dtype=("f8", (3,)), layout=outermost).layout == (1, 2, 0)


def test_widths_of_one_name_twice_are_refused():
    class Name:
        def __init__(self, value):
            self.value = value

        __gt_axis_name__ = property(lambda self: self.value)

    with pytest.raises(ValueError, match="halo: expected one value for each name, got two"):
        dlf.zeros((2, 3), dims="IJ", halo={"I": 1, Name("I"): 0})
