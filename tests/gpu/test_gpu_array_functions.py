"""NumPy's functions of storages on a GPU: results are on the GPU, or an error gives a way out."""

import io

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.buffers import Counted, pair, values
from support.cuda.devices import OnDevice
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

VALUES = np.arange(12.0).reshape(3, 4)


def made(managed, numbers=VALUES, **options):
    options = {"dims": "IJ", "halo": (1, 0), **options}
    return dlf.storage(numbers, device="gpu", managed=managed, **options)


VIEWS = {
    "transpose": np.transpose,
    "moveaxis": lambda array: np.moveaxis(array, 0, -1),
    "swapaxes": lambda array: np.swapaxes(array, 0, 1),
    "expand_dims": lambda array: np.expand_dims(array, 1),
    "squeeze": lambda array: np.squeeze(array[1:2]),
}
every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


@every_kind
@every_view
def test_what_moves_axes_is_a_view_of_the_same_kind(managed, view):
    storage = made(managed)
    moved = view(storage)
    assert type(moved) is CLASSES[managed]
    assert np.array_equal(values(moved), view(VALUES))
    moved[...] = -1.0
    assert np.array_equal(view(values(storage)), np.full(moved.shape, -1.0))


@every_view
@every_state
def test_a_view_shares_the_state_of_a_pair(view, state):
    storage = pair(VALUES, state)
    moved = view(storage)
    assert moved.sync_state is storage.sync_state
    moved.set_device_modified()
    assert storage.sync_state.state == DEVICE_NEWER


JOINS = {
    "concatenate": np.concatenate,
    "concatenate along the other axis": lambda arrays: np.concatenate(arrays, 1),
    "stack": np.stack,
    "stack along the last axis": lambda arrays: np.stack(arrays, -1),
}
every_join = pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)


@every_kind
@every_join
def test_storages_are_put_together_where_they_are(managed, join):
    pieces = [made(managed), made(managed, VALUES + 20, layout=(1, 0))]
    joined = join(pieces)
    assert type(joined) is CLASSES[managed]
    assert joined.device_id == pieces[0].device_id
    assert np.array_equal(values(joined), join([VALUES, VALUES + 20]))


@pytest.mark.stand_in
@every_join
def test_memory_on_a_gpu_alone_does_not_come_to_the_host_for_it(join):
    pieces = [made(None), made(None)]
    with Counted() as copies:
        join(pieces)
    assert (copies.to_host, copies.to_device) == (0, 0)


@every_state
@every_join
def test_of_a_pair_the_newer_values_are_put_together(state, join):
    pieces = [pair(VALUES, state), pair(VALUES + 20, HOST_NEWER)]
    assert np.array_equal(values(join(pieces)), join([VALUES, VALUES + 20]))


@every_kind
def test_the_joined_parts_of_a_field_on_a_gpu_have_its_halo(managed):
    storage = made(managed)
    joined = np.concatenate([storage[:2], storage[2:]])
    assert (joined.dims, joined.halo) == (("I", "J"), storage.halo)
    assert np.concatenate([storage, storage]).halo is None


@host_backed
@every_join
def test_arrays_of_numpy_go_beside_storages_with_a_buffer_on_the_host(managed, join):
    joined = join([VALUES + 20, made(managed)])
    assert type(joined) is CLASSES[managed]
    assert np.array_equal(values(joined), join([VALUES + 20, VALUES]))


OTHERS = {
    "NumPy beside a GPU alone": (None, lambda: VALUES, "another array on the host"),
    "host beside a GPU": (None, lambda: dlf.storage(VALUES), "a CPUStorage on the host"),
    "host beside a pair": ("gt4py", lambda: dlf.storage(VALUES), "a CPUStorage on the host"),
    "pair beside a GPU": (None, lambda: made("gt4py"), "a SoftwareManagedGPUStorage on GPU 0"),
    "GPU beside a pair": ("gt4py", lambda: made(None), "a GPUStorage on GPU 0"),
}


@every_join
@pytest.mark.parametrize(("managed", "other", "got"), OTHERS.values(), ids=OTHERS)
def test_what_would_be_copied_from_one_place_to_another_is_refused(join, managed, other, got):
    expected = rf"expected arrays where the {CLASSES[managed].__name__} is, got {got}; copy it with"
    with pytest.raises(BufferError, match=expected):
        join([made(managed), other()])


@two_devices
@every_kind
def test_two_gpus_are_not_put_together(managed):
    with pytest.raises(BufferError, match="on GPU 1; copy it"):
        np.stack([made(managed), dlf.storage(VALUES, device=("gpu", 1), managed=managed)])


@host_backed
def test_sorting_reads_and_notes_the_buffer_of_the_host(managed):
    storage = pair(VALUES, DEVICE_NEWER) if managed == "gt4py" else made(managed)
    ordered = np.sort(storage[::-1], axis=0)
    assert type(ordered) is CLASSES[managed]
    assert np.array_equal(values(ordered), VALUES)
    if managed == "gt4py":
        assert ordered.sync_state.state == HOST_NEWER


ON_THE_HOST = {
    "take": lambda storage: np.take(storage, [0], 0),
    "sort": np.sort,
    "unique": np.unique,
    "copyto": lambda storage: np.copyto(storage, 0, where=VALUES > 4),
    "shares_memory": lambda storage: np.shares_memory(storage, VALUES),
    "linalg.norm": np.linalg.norm,
}


@pytest.mark.parametrize(("name", "call"), ON_THE_HOST.items(), ids=ON_THE_HOST)
def test_what_numpy_alone_can_do_is_refused_of_a_gpu_alone(name, call):
    way_out = rf"use cupy\.{name} with storage\.to_cupy\(\), or dlfield\.storage\(.*'cpu'\) for"
    with pytest.raises(dlf.GTNoSuchBufferError, match=way_out):
        call(made(None))


@every_kind
@pytest.mark.parametrize("equal", [np.array_equal, np.allclose])
def test_storages_on_a_gpu_are_compared_by_value(managed, equal):
    storage = made(managed)
    assert equal(storage, VALUES)
    assert equal(VALUES, storage)
    assert equal(storage, made(None))
    assert not equal(storage, VALUES + 1)


@every_kind
def test_files_read_the_values(managed):
    storage = made(managed)
    np.save(file := io.BytesIO(), storage)
    file.seek(0)
    assert np.array_equal(np.load(file), VALUES)


@every_kind
def test_copyto_writes_and_reads_wherever_the_memory_is(managed):
    storage, target = made(managed), np.zeros((3, 4))
    np.copyto(storage, VALUES + 1)
    np.copyto(target, storage)
    assert np.array_equal(target, VALUES + 1)
    np.copyto(storage, OnDevice(VALUES))
    assert np.array_equal(values(storage), VALUES)


@host_backed
def test_copyto_with_a_mask_writes_the_host_and_notes_it(managed):
    storage = pair(VALUES, DEVICE_NEWER) if managed == "gt4py" else made(managed)
    np.copyto(storage, -1.0, where=VALUES > 4)
    assert np.array_equal(values(storage), np.where(VALUES > 4, -1.0, VALUES))
    if managed == "gt4py":
        assert storage.sync_state.state == HOST_NEWER


@every_kind
@pytest.mark.parametrize(
    "call",
    [np.copy, np.zeros_like, lambda one: np.full_like(one, 7.0), lambda one: one.astype("int32")],
    ids=["copy", "zeros_like", "full_like", "astype"],
)
def test_copies_and_models_are_of_the_same_kind(managed, call):
    storage = made(managed)
    copied = call(storage)
    assert (type(copied), copied.device_id) == (CLASSES[managed], storage.device_id)
    assert (copied.dims, copied.halo) == (storage.dims, storage.halo)
    np.testing.assert_array_equal(values(copied), call(VALUES), strict=True)


@every_kind
def test_a_like_of_another_shape_has_the_class_of_its_model_unless_asked_otherwise(managed):
    storage = made(managed)
    assert type(np.zeros_like(storage, shape=(2, 2))) is CLASSES[managed]
    assert type(np.zeros_like(storage, shape=(2, 2), device="cpu")) is dlf.CPUStorage
    assert type(np.ones_like(storage, device="cpu")) is dlf.CPUStorage


@every_kind
def test_a_broadcast_view_of_a_gpu_is_refused_with_a_way_out(managed):
    with pytest.raises(TypeError, match=r"broadcast_to: expected a storage in host memory.*to_"):
        np.broadcast_to(made(managed), (2, 3, 4))


@every_kind
def test_a_part_by_name_is_a_view_of_the_same_kind(managed):
    storage = made(managed)
    part = storage.isel(I=1)
    assert (type(part), part.dims) == (CLASSES[managed], ("J",))
    part[...] = -1.0
    assert np.array_equal(values(storage)[1], np.full(4, -1.0))


@every_kind
@pytest.mark.parametrize(
    "call",
    [
        lambda a: a.broadcast_like(a),
        lambda a: np.add.at(a, 0, 1),
    ],
    ids=["broadcast_like", "at"],
)
def test_what_needs_host_memory_alone_is_refused_with_a_way_out(managed, call):
    storage = made(managed)
    with pytest.raises(TypeError, match=rf"host.*, got a {CLASSES[managed].__name__}.*use storage"):
        call(storage)
    assert np.array_equal(values(storage), VALUES)


@every_kind
def test_other_functions_name_a_way_out_that_there_is(managed):
    way_out = r"to_cupy\(\), or dlfield\.storage" if managed is None else r"to_numpy\(\)"
    with pytest.raises(
        TypeError, match=rf"numpy\.linalg\.inv: expected an array, got a .*{way_out}"
    ):
        np.linalg.inv(made(managed))


def test_asking_for_shape_and_type_moves_nothing():
    storage = pair(VALUES, DEVICE_NEWER)
    assert (np.shape(storage), np.size(storage), np.result_type(storage)) == ((3, 4), 12, float)
    assert storage.sync_state.state == DEVICE_NEWER
    assert pair(VALUES, CLEAN).sync_state.state == CLEAN
