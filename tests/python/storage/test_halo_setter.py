"""`storage.halo = ...`: checked as the option is, for this storage alone."""

import threading

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.parameters import readable


@pytest.fixture
def field():
    return dlf.zeros((9, 6, 4), dims="IJ0", halo=((2, 1), 1, 0), alignment_size=64)


class Index:
    def __index__(self):
        return 1


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`halo` can be set to any value of the option"
)
@pytest.mark.parametrize(
    ("halo", "widths"),
    [
        ((0, 0, 0), ((0, 0), (0, 0), (0, 0))),
        ([3, 2, 0], ((3, 3), (2, 2), (0, 0))),
        (((1, 8), 0, (0, 0)), ((1, 8), (0, 0), (0, 0))),
        ([[4, 5], [6, 0], 0], ((4, 5), (6, 0), (0, 0))),
        (np.array([1, 2, 0]), ((1, 1), (2, 2), (0, 0))),
        (np.array([[1, 2], [0, 1], [0, 0]]), ((1, 2), (0, 1), (0, 0))),
        ((Index(), (np.int8(2), Index()), 0), ((1, 1), (2, 1), (0, 0))),
        (iter((1, 1, 0)), ((1, 1), (1, 1), (0, 0))),
    ],
    ids=readable,
)
def test_ints_and_pairs_are_taken(field, halo, widths):
    field.halo = halo
    assert field.halo == widths


def test_the_domain_the_text_and_the_interface_follow(field):
    field.halo = ((3, 1), 0, 0)
    assert field.domain_view.shape == (5, 6, 4)
    assert address_of(field.domain_view) == address_of(field) + 3 * field.strides[0]
    assert "halo=((3, 1), (0, 0), (0, 0))" in repr(field).splitlines()[0]
    assert field.__gt_data_interface__[None]["halo"] == ((3, 1), (0, 0), (0, 0))


def test_none_makes_the_halo_unknown(field):
    field.halo = None
    assert field.halo is None
    assert field.__gt_data_interface__[None]["halo_unknown"] is True
    with pytest.raises(ValueError, match="unknown"):
        _ = field.domain_view


def test_an_unknown_halo_can_be_set(field):
    view = field[::2]
    view.halo = (1, 1, 0)
    assert view.domain_view.shape == (3, 4, 4)


def test_a_halo_that_another_storage_has_can_be_taken_over(field):
    other = dlf.zeros((9, 6, 4))
    other.halo = field.halo
    assert other.halo == field.halo


REFUSED = [
    (ValueError, (1, 1)),
    (ValueError, (1, 1, 0, 0)),
    (ValueError, ()),
    (ValueError, (0,) * 65),
    (ValueError, (-1, 0, 0)),
    (ValueError, ((0, -1), 0, 0)),
    (ValueError, (5, 0, 0)),
    (ValueError, ((5, 5), 0, 0)),
    (ValueError, ((10, 0), 0, 0)),
    (ValueError, ((2**62, 2**62), 0, 0)),
    (ValueError, (2**70, 0, 0)),
    (ValueError, (1, 1, 1)),
    (ValueError, (1, 1, (0, 1))),
    (ValueError, ((1, 1, 1), 0, 0)),
    (ValueError, ((1,), 0, 0)),
    (ValueError, ((), 0, 0)),
    (TypeError, 1),
    (TypeError, 1.5),
    (TypeError, object()),
    (TypeError, dlf.UNSET),
    (TypeError, "110"),
    (TypeError, (1.0, 1, 0)),
    (TypeError, (None, 1, 0)),
    (TypeError, ((1, None), 1, 0)),
    (TypeError, ("1", 1, 0)),
    (TypeError, np.ones(3)),
]


@pytest.mark.parametrize(("error", "halo"), REFUSED, ids=readable)
def test_what_is_refused_leaves_the_old_halo(field, error, halo):
    with pytest.raises(error, match="halo: expected"):
        field.halo = halo
    assert field.halo == ((2, 1), (1, 1), (0, 0))
    assert field.aligned_index == (2, 1, 0)


def test_an_error_while_it_is_read_leaves_the_old_halo(field):
    def raising():
        yield 1
        raise KeyError("of the halo")

    with pytest.raises(KeyError, match="of the halo"):
        field.halo = raising()
    assert field.halo == ((2, 1), (1, 1), (0, 0))


def test_a_halo_cannot_be_deleted(field):
    with pytest.raises(AttributeError):
        del field.halo
    assert field.halo == ((2, 1), (1, 1), (0, 0))


def test_a_storage_without_dimensions_has_a_halo_of_no_entries():
    storage = dlf.zeros(())
    storage.halo = ()
    assert storage.halo == ()
    with pytest.raises(ValueError, match="halo: expected one entry for each of the 0 dimensions"):
        storage.halo = (0,)


MADE = {
    "slice": lambda storage: storage[1:],
    "T": lambda storage: storage.T,
    "...": lambda storage: storage[...],
    "as_storage": dlf.as_storage,
    "copy": dlf.Storage.copy,
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("halo", [None, (3, 2, 0)], ids=repr)
def test_a_storage_made_before_keeps_its_halo(field, make, halo):
    made = make(field)
    before = made.halo
    field.halo = halo
    assert made.halo == before


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_view_has_a_halo_of_its_own(field, make):
    make(field).halo = None
    assert field.halo == ((2, 1), (1, 1), (0, 0))


def test_a_view_made_afterwards_has_the_new_halo(field):
    field.halo = (3, 2, 0)
    assert field[1:].halo == ((2, 3), (2, 2), (0, 0))
    assert field.T.halo == ((0, 0), (2, 2), (3, 3))


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "setting `halo` moves neither memory nor the aligned point",
)
@pytest.mark.parametrize("halo", [None, (0, 0, 0), (4, 3, 0)], ids=repr)
def test_the_aligned_element_stays_where_it_is(field, halo):
    field.halo = halo
    assert (field.aligned_index, field.alignment_size) == ((2, 1, 0), 64)
    assert field[:, 1:].aligned_index == (2, 0, 0)


@pytest.mark.parametrize("size", [1, 64])
def test_an_aligned_index_that_was_given_stays(size):
    storage = dlf.zeros((4, 5), aligned_index=(1, 2), alignment_size=size)
    storage.halo = (2, 0)
    assert storage.aligned_index == (1, 2)


def test_the_halo_of_a_read_only_storage_can_be_set():
    storage = dlf.as_storage(b"12345")
    storage.halo = [(2, 1)]
    assert storage.domain_view.to_numpy().tolist() == list(b"34")


def test_an_origin_stays_where_it_is():
    storage = dlf.zeros((4, 5), default_origin=(1, 2))
    storage.halo = (2, 0)
    assert storage.default_origin == (1, 2)


def test_several_threads_may_set_and_read_it():
    storage = dlf.zeros((9, 9), halo=(1, 1), alignment_size=64)
    halos = [((low, low + 1),) * 2 for low in range(4)]
    seen, start = set(), threading.Barrier(4)

    def work(number):
        start.wait()
        for turn in range(500):
            storage.halo = halos[(number + turn) % 4]
            seen.add(storage.halo)
            assert storage.domain_view.shape in [(8 - 2 * low,) * 2 for low in range(4)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert seen <= set(halos)
    assert storage.halo in halos


def test_another_halo_given_to_an_aligned_storage_leaves_the_aligned_element_where_it_is():
    storage = dlf.zeros((16, 16), halo=(3, 3), alignment_size=64)
    again = dlf.as_storage(storage, halo=(1, 1))
    assert (again.halo, again.aligned_index) == (((1, 1), (1, 1)), (3, 3))
