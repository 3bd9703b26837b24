"""What a view knows of the field that it is a part of: names, halo, origin, alignment, owner."""

import copy
import pickle
import threading

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.owners import tracked


@pytest.fixture
def field():
    """A halo of 2 and 1 around I, of 1 around J, none around K."""
    return dlf.zeros((8, 6, 4), dims="IJK", halo=((2, 1), 1, 0), default_origin=(3, 1, 0))


@pytest.fixture
def thinned(field):
    """Every other point of I: its halo is unknown."""
    return field[::2]


KEYS_AND_DIMS = [
    ((), ("I", "J", "K")),
    (..., ("I", "J", "K")),
    (slice(None, None, -3), ("I", "J", "K")),
    (slice(4, 4), ("I", "J", "K")),
    (0, ("J", "K")),
    ((slice(None), -1), ("I", "K")),
    ((..., 2), ("I", "J")),
    ((1, ..., 2), ("J",)),
    ((1, 2, 3, ...), ()),
    (None, None),
    ((..., None), None),
    ((0, None, 0), None),
]


@pytest.mark.source(
    "GDP-3",
    "Methods",
    "a single index removes its dimension from the view",
    "a slice keeps its dimension",
)
@pytest.mark.source("GDP-3 draft", "Methods", "an index masks its dimension, a slice keeps it")
@pytest.mark.parametrize(("key", "dims"), KEYS_AND_DIMS, ids=repr)
def test_slices_keep_names_integers_drop_them_and_a_new_axis_has_none(field, key, dims):
    assert field[key].dims == dims


def test_names_of_any_kind_are_kept():
    view = dlf.zeros((2, 3, 4), dims=("lev", "0", "K"))[:, 1, ::2]
    assert (view.dims, hasattr(view, "__gt_dims__")) == (("lev", "K"), False)


KEYS_AND_HALO = [
    (slice(None), (2, 1)),
    (slice(0, 8, 1), (2, 1)),
    (slice(1, None), (1, 1)),
    (slice(1, -1), (1, 0)),
    (slice(2, -1), (0, 0)),
    (slice(3, 5), (0, 0)),
    (slice(0, 2), (2, 0)),
    (slice(0, 1), (1, 0)),
    (slice(7, 8), (0, 1)),
    (slice(4, 4), (0, 0)),
    (slice(1, 1), (0, 0)),
    (slice(None, None, -1), (1, 2)),
    (slice(-2, None, -1), (0, 2)),
    (slice(None, 1, -1), (1, 0)),
    (slice(1, None, -1), (0, 2)),
    (slice(0, 2, 5), (1, 0)),
    (slice(7, 6, -5), (0, 1)),
    (slice(5, 1, 2), (0, 0)),
]


@pytest.mark.parametrize(("key", "width"), KEYS_AND_HALO, ids=repr)
def test_a_slice_keeps_what_is_still_inside_of_the_halo(field, key, width):
    assert field[key].halo == (width, (1, 1), (0, 0))


def test_one_point_that_runs_backwards_has_its_halo_mirrored(field):
    assert field[:1].halo[0] == (1, 0)
    assert field[0::-1].halo[0] == (0, 1)


@pytest.mark.parametrize("key", [slice(None, None, 2), slice(None, None, -2), slice(0, 4, 3)])
def test_thinning_out_a_dimension_with_a_halo_makes_the_halo_unknown(field, key):
    assert field[key].halo is None
    assert field[:, key].halo is None


def test_thinning_out_inside_the_halo_makes_it_unknown_only_where_halo_is_left(field):
    assert field[2:-1][::2].halo == ((0, 0), (1, 1), (0, 0))
    assert field[2:-1:2].halo is None


@pytest.mark.parametrize("step", [2, -2, -3])
def test_thinning_out_a_dimension_without_a_halo_keeps_the_halo(field, step):
    assert field[:, :, ::step].halo == ((2, 1), (1, 1), (0, 0))


def test_an_integer_drops_a_halo_and_a_new_axis_has_none(field):
    assert field[3].halo == ((1, 1), (0, 0))
    assert field[:, 0].halo == ((2, 1), (0, 0))
    assert field[None, ..., None].halo == ((0, 0), (2, 1), (1, 1), (0, 0), (0, 0))


def test_an_unknown_halo_stays_unknown_in_every_part(thinned):
    for view in (thinned[1:3], thinned[0], thinned[..., 1:1], thinned.T, thinned[None]):
        assert view.halo is None


class Shown:
    def __init__(self, storage):
        self.__gt_data_interface__ = storage.__gt_data_interface__


def test_an_unknown_halo_is_exported_as_unknown_and_stays_unknown(field, thinned):
    assert "halo_unknown" not in field.__gt_data_interface__[None]
    assert thinned.__gt_data_interface__[None]["halo_unknown"] is True
    assert "halo" not in thinned.__gt_data_interface__[None]
    assert dlf.as_storage(Shown(thinned)).halo is None
    assert dlf.as_storage(Shown(field)).halo == field.halo


def test_names_are_exported_beside_an_unknown_halo(thinned):
    assert thinned.__gt_data_interface__[None]["dims"] == ("I", "J", "K")


def test_repr_says_that_a_halo_is_unknown(thinned):
    assert "halo=None" in repr(thinned).splitlines()[0]
    assert "halo" not in repr(dlf.zeros((2,))).splitlines()[0]


def test_without_a_known_halo_there_is_no_domain(thinned):
    with pytest.raises(ValueError, match=r"domain_view: expected a halo, got .* unknown"):
        _ = thinned.domain_view


AGAIN = {
    "as_storage": dlf.as_storage,
    "storage": dlf.storage,
    "copy": dlf.Storage.copy,
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle 2": lambda storage: pickle.loads(pickle.dumps(storage, 2)),
    "pickle 5": lambda storage: pickle.loads(pickle.dumps(storage, 5)),
    "zeros_like": dlf.zeros_like,
    "...": lambda storage: storage[...],
    "T.T": lambda storage: storage.T.T,
}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
def test_an_unknown_halo_stays_unknown_in_a_storage_like_it(thinned, again):
    assert again(thinned).halo is None
    assert again(thinned).dims == ("I", "J", "K")


@pytest.mark.parametrize("again", [dlf.as_storage, dlf.storage, dlf.zeros_like])
def test_an_unknown_halo_is_known_once_it_is_given(thinned, again):
    assert again(thinned, halo=(1, 0, 0)).domain_view.shape == (2, 6, 4)


KEYS_AND_ORIGIN = [
    (..., (3, 1, 0)),
    (slice(2, None), (1, 1, 0)),
    (slice(3, 5), (0, 1, 0)),
    (slice(0, 3), (3, 1, 0)),
    (5, (1, 0)),
    ((slice(None), 0), (3, 0)),
    ((..., 3), (3, 1)),
    (slice(4, None), None),
    (slice(0, 2), None),
    ((slice(None), slice(2, 3)), None),
    (slice(None, None, 2), None),
    (slice(None, None, -1), None),
    (None, None),
]


@pytest.mark.parametrize(("key", "origin"), KEYS_AND_ORIGIN, ids=repr)
def test_an_origin_moves_with_a_slice_and_is_gone_where_it_falls_outside(field, key, origin):
    assert getattr(field[key], "default_origin", None) == origin
    assert getattr(field[key], "__gt_origin__", None) == origin


def test_an_origin_follows_the_names_and_not_the_axes():
    storage = dlf.zeros((4, 8, 6), dims="KIJ", default_origin=(3, 1, 2))
    assert storage[1:, 2:].default_origin == (1, 1, 1)
    assert storage[:, 0].default_origin == (1, 2)
    assert not hasattr(storage[3:], "default_origin")


@pytest.mark.parametrize(
    ("key", "index"),
    [((), (2, 3)), (slice(1, None), (1, 3)), ((..., slice(3, 5)), (2, 0)), (slice(0, 3), (2, 3))],
    ids=repr,
)
def test_the_aligned_element_stays_in_a_view_that_has_it(key, index):
    storage = dlf.zeros((6, 9), "float32", aligned_index=(2, 3), alignment_size=64)
    view = storage[key]
    assert (view.alignment_size, view.aligned_index) == (64, index)
    assert address_of(view[index[0], index[1], ...]) % 64 == 0


@pytest.mark.parametrize(
    "key",
    [slice(3, None), slice(0, 2), (..., slice(0, 3)), 2, slice(None, None, 2), (..., None)],
    ids=repr,
)
def test_a_view_without_the_aligned_element_asks_for_no_alignment(key):
    storage = dlf.zeros((6, 9), "float32", halo=(2, 3), alignment_size=64)
    view = storage[key]
    assert view.alignment_size == 1
    assert view.aligned_index == tuple(low for low, _ in view.halo or ((0, 0),) * view.ndim)
    assert "alignment_size" not in repr(view).splitlines()[0]


def test_a_domain_view_begins_at_the_aligned_element():
    storage = dlf.zeros((6, 20), dims="IJ", halo=((2, 1), 3), alignment_size=256)
    domain = storage.domain_view
    assert (domain.alignment_size, domain.aligned_index) == (256, (0, 0))
    assert (address_of(domain) % 256, domain.halo) == (0, ((0, 0), (0, 0)))


def test_a_domain_view_of_a_part_is_the_part_of_the_domain(field):
    assert field[1:5, :, ::-1].domain_view.shape == (3, 4, 4)
    assert address_of(field[1:5].domain_view) == address_of(field[2:, 1:])
    assert field[::-1].domain_view.shape == field.domain_view.shape
    assert field[:2].domain_view.shape == (0, 4, 4)


@pytest.mark.parametrize("key", [slice(1, 3), 1, (..., None), slice(None, None, -2)], ids=repr)
def test_a_view_is_read_only_and_has_the_door_of_its_storage(key):
    source = np.zeros((4, 3))
    source.flags.writeable = False
    view, own = dlf.as_storage(source)[key], dlf.zeros((4, 3))[key]
    assert (view.readonly, view.door) == (True, "buffer")
    assert (own.readonly, own.door) == (False, None)
    assert not view.to_numpy().flags.writeable


@pytest.mark.source("GDP-3", "Methods", "a basic index gives a storage over the same memory")
def test_a_view_shares_what_is_written_on_either_side(field):
    view = field[2:, ::-1, 1]
    view.to_numpy()[...] = 7
    assert (field.to_numpy()[2:, :, 1] == 7).all()
    assert field.to_numpy().sum() == 7 * view.size
    field.to_numpy()[...] = 1
    assert view.to_numpy().sum() == view.size


def test_a_view_of_a_view_keeps_the_memory_alone_and_frees_it_once():
    source, watch = tracked(np.arange(24.0).reshape(4, 6))
    storage = dlf.as_storage(source)
    view = storage[1:].T[::-2][None][0, :, 1, ...]
    del source, storage
    assert not watch.freed
    assert view.to_numpy().tolist() == [17, 15, 13]
    del view
    assert watch.freed


def test_a_number_keeps_no_memory():
    source, watch = tracked(np.arange(4.0))
    number, own = dlf.as_storage(source)[3], dlf.as_storage(source)[[1, 2]]
    del source
    assert (watch.freed, number, own.tolist()) == (True, 3, [1, 2])


def test_views_may_be_made_and_dropped_on_several_threads():
    source, watch = tracked(np.arange(600.0).reshape(20, 30))
    storage, sums = dlf.as_storage(source, halo=(1, 1)), []

    def slices(storage):
        for row in range(1, 19):
            sums.append(storage[row, 1:-1].domain_view.to_numpy().sum())

    threads = [threading.Thread(target=slices, args=(storage,)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sum(sums) == 4 * storage.domain_view.to_numpy().sum()
    del source, storage, threads
    assert watch.freed
