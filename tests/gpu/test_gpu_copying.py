"""Copies, pickles, transpositions and halos of storages on a GPU."""

import copy
import gc
import pickle
from itertools import permutations

import dlfield as dlf
import numpy as np
import pytest

from support.cuda import stand_in
from support.cuda.buffers import Counted, buffers, pair, values
from support.cuda.devices import LEGACY, OnDevice, delay
from support.cuda.kinds import (
    CLASSES,
    CLEAN,
    DEVICE_NEWER,
    HOST_NEWER,
    every_kind,
    every_state,
    host_backed,
    two_devices,
)
from support.optional import library
from support.parameters import KNOWN, ML_DTYPES, NUMPY_DTYPES, every_view

VALUES = np.arange(42.0).reshape(6, 7)


def out_of_band(storage):
    found = []
    text = pickle.dumps(storage, 5, buffer_callback=found.append)
    return pickle.loads(text, buffers=found)


WAYS = {
    "copy": lambda storage: storage.copy(),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "storage": dlf.storage,
    "pickle 0": lambda storage: pickle.loads(pickle.dumps(storage, 0)),
    "pickle 2": lambda storage: pickle.loads(pickle.dumps(storage, 2)),
    "pickle 5": lambda storage: pickle.loads(pickle.dumps(storage, 5)),
    "out of band": out_of_band,
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
three_ways = pytest.mark.parametrize(
    "way",
    [WAYS["copy"], WAYS["pickle 2"], WAYS["out of band"]],
    ids=["copy", "in band", "out of band"],
)


def field(managed, **options):
    """A field that is unusual in every respect."""
    known = {"halo": (1, (0, 2)), "layout": (1, 0), "alignment_size": 64, "aligned_index": (2, 3)}
    known |= {"dims": "IJ", "default_origin": (1, 0), "device": "gpu", "managed": managed}
    made = dlf.empty((6, 7), **{**known, **options})
    made[...] = VALUES
    return made


def known(storage):
    return [getattr(storage, name) for name in KNOWN]


@pytest.mark.source(
    "GDP-3", "Methods", "`copy()` gives a storage with the same parameters and its own values"
)
@every_kind
@every_way
def test_a_copy_is_as_the_original_in_memory_of_its_own(way, managed):
    made = field(managed)
    copied = way(made)
    assert type(copied) is type(made)
    assert known(copied) == known(made)
    assert (copied.strides, copied.default_origin) == (made.strides, (1, 0))
    np.testing.assert_array_equal(values(copied), VALUES, strict=True)
    copied[...] = -1
    np.testing.assert_array_equal(values(made), VALUES)


@every_kind
@three_ways
@every_view
def test_a_copy_of_a_view_has_its_values_and_facts(view, way, managed):
    made = view(field(managed))
    copied = way(made)
    assert known(copied) == known(made)
    expected = view(field(None, device=None)).to_numpy()
    np.testing.assert_array_equal(values(copied), expected, strict=True)


@every_way
@every_state
def test_a_copy_of_a_pair_is_one_of_its_newer_values(way, state):
    copied = way(pair(VALUES, state))
    np.testing.assert_array_equal(values(copied), VALUES)
    copied.synchronize()
    np.testing.assert_array_equal(buffers(copied), [VALUES, VALUES])


@pytest.mark.stand_in
@every_state
@pytest.mark.parametrize("way", ["copy", "deepcopy", "storage"])
def test_a_copy_on_the_same_gpu_does_not_go_by_the_host(way, state):
    for made in (pair(VALUES, state), field(None), field("cuda")):
        with Counted() as copies:
            copied = WAYS[way](made)
        assert (copies.to_host, copies.to_device) == (0, 0)
        assert type(made) is not dlf.SoftwareManagedGPUStorage or made.sync_state.state == state
        np.testing.assert_array_equal(values(copied), VALUES)


@pytest.mark.parametrize(
    ("source", "managed"),
    [
        ("gt4py", None),
        ("gt4py", "gt4py"),
        ("gt4py", "cuda"),
        ("cuda", None),
        ("cuda", "gt4py"),
        ("cuda", "cuda"),
    ],
)
def test_a_copy_is_done_with_the_memory_of_the_host_before_it_is_given(source, managed):
    made = dlf.storage(VALUES, device="gpu", managed=source)
    array = made.to_numpy()
    made.set_host_modified()
    delay(LEGACY)  # dlfield's stream keeps order with this one
    copied = dlf.storage(made, managed=managed)
    array[...] = -1
    np.testing.assert_array_equal(values(copied), VALUES)


@two_devices
@every_kind
def test_a_copy_stays_on_its_gpu_and_a_pickle_goes_to_the_current_one(managed):
    made = field(managed, device=("gpu", 1))
    assert [made.copy().device_id, copy.deepcopy(made).device_id] == [1, 1]
    travelled = pickle.loads(pickle.dumps(made))
    assert travelled.device_id == 0
    np.testing.assert_array_equal(values(travelled), VALUES)


@every_kind
@three_ways
@pytest.mark.parametrize("name", NUMPY_DTYPES + ML_DTYPES)
def test_every_type_is_copied_on_a_gpu(name, way, managed):
    dtype = np.dtype(getattr(library("ml_dtypes"), name)) if name in ML_DTYPES else name
    array = np.array([[1, 0, 2], [0.5, 1, 0]]).astype(dtype)
    made = dlf.storage(array, device="gpu", managed=managed, layout=(1, 0))
    for one in (way(made), way(made.T[1:, ::-1])):
        expected = array if one.shape == (2, 3) else array.T[1:, ::-1]
        assert one.dtype == array.dtype
        assert values(one).tobytes() == expected.tobytes()


@every_kind
@three_ways
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (1,) * 12, (2,) * 9], ids=str)
def test_every_shape_is_copied_on_a_gpu(shape, way, managed):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 0.5
    copied = way(dlf.storage(array, device="gpu", managed=managed))
    assert type(copied) is CLASSES[managed]
    np.testing.assert_array_equal(values(copied), array, strict=True)


@every_kind
def test_a_pickle_holds_neither_padding_nor_pointers_nor_what_a_view_leaves_out(managed):
    made = dlf.zeros((100, 100), device="gpu", managed=managed, alignment_size=4096)
    assert len(pickle.dumps(made[:2, :3], 5)) < 1000


@pytest.mark.stand_in
@every_kind
def test_a_pickle_of_memory_on_a_gpu_needs_one_where_it_arrives(managed):
    code = f"""
        import pickle
        import dlfield
        try:
            pickle.loads({pickle.dumps(field(managed))!r})
        except dlfield.DeviceUnavailable:
            raise SystemExit(3)
        """
    assert stand_in.end_of(code, DLFIELD_FAKE_CUDA_DEVICES="0").returncode == 3


@every_kind
def test_what_came_by_pickle_is_freed_with_the_last_reference(managed):
    travelled = out_of_band(field(managed))
    view = travelled[1:]
    del travelled
    gc.collect()
    np.testing.assert_array_equal(values(view), VALUES[1:])


TRANSPOSED = {
    "T": (lambda storage: storage.T, (1, 0)),
    "transpose": (lambda storage: storage.transpose(), (1, 0)),
    "by number": (lambda storage: storage.transpose(1, 0), (1, 0)),
    "by a list": (lambda storage: storage.transpose([-1, 0]), (1, 0)),
    "by name": (lambda storage: storage.transpose("J", "I"), (1, 0)),
    "unchanged": (lambda storage: storage.transpose("I", "J"), (0, 1)),
    "by NumPy": (np.transpose, (1, 0)),
}


@pytest.mark.source(
    "GDP-3",
    "NumPy Functions",
    "`np.transpose` gives a view with the strides in the order of `axes`",
)
@every_kind
@pytest.mark.parametrize(("turn", "axes"), TRANSPOSED.values(), ids=TRANSPOSED)
def test_a_transposition_is_a_view_on_both_sides(turn, axes, managed):
    made = field(managed)
    turned = turn(made)
    assert type(turned) is type(made)
    for name in ("shape", "strides", "dims", "halo", "layout", "aligned_index"):
        assert getattr(turned, name) == tuple(getattr(made, name)[axis] for axis in axes), name
    np.testing.assert_array_equal(values(turned), VALUES.transpose(axes))
    turned[...] = -values(turned)
    made.synchronize()
    for side in buffers(made):
        assert side is None or np.array_equal(side, -VALUES)


@every_kind
@pytest.mark.parametrize("layout", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("alignment", [1, 64, 256])
def test_padded_layouts_go_to_the_gpu_and_back(layout, alignment, managed):
    array = np.arange(5 * 6 * 7.0).reshape(5, 6, 7)
    options = {"layout": layout, "alignment_size": alignment, "halo": (1, 2, 0)}
    made = dlf.storage(array, device="gpu", managed=managed, **options)
    np.testing.assert_array_equal(values(made), array, strict=True)
    for axes in permutations(range(3)):
        np.testing.assert_array_equal(values(made.transpose(axes)), array.transpose(axes))
        other = dlf.empty_like(made.transpose(axes), layout=(0, 1, 2), alignment_size=1)
        other[...] = made.transpose(axes)
        np.testing.assert_array_equal(values(other), array.transpose(axes))


@host_backed
def test_a_padded_pair_shows_numpy_its_own_strides(managed):
    made = field(managed)
    array = made.to_numpy()
    assert array.strides == made.strides == (8, 64)
    np.testing.assert_array_equal(array, VALUES)


@every_kind
def test_a_domain_view_is_what_lies_inside_the_halo_on_both_sides(managed):
    made = field(managed)
    inside, expected = made.domain_view, VALUES.copy()
    assert (type(inside), inside.shape, inside.halo) == (type(made), (4, 5), ((0, 0), (0, 0)))
    inside[...] = OnDevice(-VALUES[1:-1, :-2])
    expected[1:-1, :-2] *= -1
    made.synchronize()
    for side in buffers(made):
        assert side is None or np.array_equal(side, expected)


@every_kind
def test_another_halo_is_for_the_storage_alone_and_moves_nothing(managed):
    made = field(managed)
    view, before = made[...], made.__gt_data_interface__["gpu"]["data"]
    made.halo = ((2, 1), 3)
    assert made.halo == ((2, 1), (3, 3))
    assert made.__gt_data_interface__["gpu"]["halo"] == ((2, 1), (3, 3))
    assert (view.halo, made.aligned_index) == (((1, 1), (0, 2)), (2, 3))
    assert made.__gt_data_interface__["gpu"]["data"] == before
    assert made.copy().halo == ((2, 1), (3, 3))
    np.testing.assert_array_equal(values(made.domain_view), VALUES[2:-1, 3:-3])
    made.halo = None
    assert made.halo is None
    with pytest.raises(ValueError, match="halo"):
        made.halo = (7, 7)


@pytest.mark.stand_in
@pytest.mark.parametrize("state", [CLEAN, HOST_NEWER, DEVICE_NEWER])
def test_setting_a_halo_copies_nothing(state):
    made = pair(VALUES, state)
    with Counted() as copies:
        made.halo = (1, 1)
    assert (copies.made, made.sync_state.state) == (0, state)
