"""Pickling: what a storage is after a journey, and what a pickle holds."""

import mmap
import pickle
from itertools import permutations

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.parameters import KNOWN, ML_DTYPES, NUMPY_DTYPES, every_view
from support.processes import run_in_subprocess


def out_of_band(storage, change=lambda buffer: buffer):
    """Return a storage that travelled beside its pickle, its buffers changed on the way."""
    buffers = []
    text = pickle.dumps(storage, 5, buffer_callback=buffers.append)
    return pickle.loads(text, buffers=[change(buffer) for buffer in buffers])


ROADS = {
    f"protocol {number}": lambda storage, number=number: pickle.loads(pickle.dumps(storage, number))
    for number in range(pickle.HIGHEST_PROTOCOL + 1)
}
ROADS["out of band"] = out_of_band
every_road = pytest.mark.parametrize("travelled", ROADS.values(), ids=ROADS)
two_roads = pytest.mark.parametrize(
    "travelled", [ROADS["protocol 2"], out_of_band], ids=["in band", "out of band"]
)


@pytest.fixture
def field():
    """A field that is unusual in every respect."""
    options = {"halo": (1, (0, 2)), "layout": (1, 0), "alignment_size": 64}
    storage = dlf.zeros((6, 7), dims="IJ", aligned_index=(2, 3), default_origin=(1, 0), **options)
    storage.to_numpy()[...] = np.arange(42).reshape(6, 7)
    return storage


def assert_equal(arrived, storage):
    for name in KNOWN:
        assert getattr(arrived, name) == getattr(storage, name), name
    assert arrived.to_numpy().tobytes() == storage.to_numpy().tobytes()


@every_road
def test_a_storage_arrives_as_it_was(field, travelled):
    arrived = travelled(field)
    assert_equal(arrived, field)
    assert type(arrived) is dlf.CPUStorage
    assert (arrived.default_origin, arrived.strides) == ((1, 0), field.strides)


@every_road
def test_what_arrives_is_writable_and_apart_from_what_was_sent(field, travelled):
    arrived = travelled(field)
    arrived.to_numpy()[...] = -1
    assert field.to_numpy().max() == 41


@two_roads
@pytest.mark.parametrize("name", NUMPY_DTYPES + ML_DTYPES)
def test_every_type_arrives(name, travelled):
    dtype = np.dtype(getattr(library("ml_dtypes"), name)) if name in ML_DTYPES else name
    assert_equal(travelled(dlf.ones((2, 3), dtype)), dlf.ones((2, 3), dtype))


@two_roads
@pytest.mark.parametrize("layout", list(permutations(range(3))))
@pytest.mark.parametrize("alignment", [1, 64], ids=["dense", "padded"])
def test_every_layout_arrives(layout, alignment, travelled):
    storage = dlf.empty((2, 3, 4), layout=layout, alignment_size=alignment)
    storage.to_numpy()[...] = np.arange(24).reshape(2, 3, 4)
    assert_equal(travelled(storage), storage)


@two_roads
def test_the_aligned_element_lies_on_its_boundary_again(field, travelled):
    arrived = travelled(field)
    strides = arrived.strides
    assert (address_of(arrived) + 2 * strides[0] + 3 * strides[1]) % 64 == 0


@two_roads
@every_view
def test_a_view_arrives_alone(field, view, travelled):
    assert_equal(travelled(view(field)), view(field))


@every_road
@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (0, 5)], ids=repr)
def test_a_storage_without_elements_arrives(shape, travelled):
    assert_equal(travelled(dlf.zeros(shape)), dlf.zeros(shape))


@every_road
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1,) * 64], ids=len)
def test_a_single_element_arrives(shape, travelled):
    assert_equal(travelled(dlf.full(shape, 2.5)), dlf.full(shape, 2.5))


@two_roads
@pytest.mark.parametrize(
    "dims", [("Cell", "K"), ("ümlaut", "0"), ("", " "), ("I", "007")], ids=repr
)
def test_names_arrive_whatever_they_are(dims, travelled):
    assert travelled(dlf.zeros((2, 3), dims=dims)).dims == dims


@two_roads
def test_an_unknown_halo_arrives_unknown(field, travelled):
    assert travelled(field[::2]).halo is None


@two_roads
def test_read_only_memory_arrives_writable(travelled):
    arrived = travelled(dlf.as_storage(b"123"))
    assert (arrived.readonly, arrived.to_numpy().tolist()) == (False, [49, 50, 51])
    assert arrived.door is None


def test_one_storage_in_two_places_is_one_storage_after_the_journey(field):
    first, second = pickle.loads(pickle.dumps([field, field]))
    assert first is second


@pytest.mark.parametrize(
    "storage", [dlf.ones((4, 5)), dlf.ones((4, 5), layout=(1, 0)), dlf.ones(())]
)
def test_out_of_band_a_dense_storage_is_not_copied(storage):
    arrived = out_of_band(storage)
    assert address_of(arrived) == address_of(storage)


def test_a_buffer_that_is_taken_is_held_as_long_as_the_storage():
    arrived = out_of_band(dlf.ones(3), lambda buffer: bytearray(buffer.raw()))
    memory = arrived.to_numpy()
    del arrived
    assert memory.tolist() == [1, 1, 1]


def test_a_storage_holds_its_pickled_buffer_and_releases_it():
    buffers = []
    text = pickle.dumps(dlf.ones(3), 5, buffer_callback=buffers.append)
    memory = mmap.mmap(-1, 24)  # at the start of a page
    memory[:] = buffers[0].raw()
    arrived = pickle.loads(text, buffers=[memory])
    with pytest.raises(BufferError):
        memory.close()
    del arrived
    memory.close()


def arrived_at(storage, shift):
    """Unpickle a storage out of memory that begins so many bytes behind a boundary of 64."""
    buffers = []
    text = pickle.dumps(storage, 5, buffer_callback=buffers.append)
    values = np.frombuffer(buffers[0], np.uint8)
    memory = dlf.zeros(128 + len(values), "uint8").to_numpy()[shift : shift + len(values)]
    memory[:] = values
    return pickle.loads(text, buffers=[memory]), memory.ctypes.data


@pytest.mark.parametrize("shift", [0, 8, 16, 32])
def test_a_buffer_that_lies_as_numpy_allocates_is_not_copied(shift):
    arrived, address = arrived_at(dlf.full(3, 2.5), shift)
    assert address_of(arrived) == address
    assert arrived.to_numpy().tolist() == [2.5, 2.5, 2.5]


def test_a_buffer_off_the_boundary_that_a_storage_asked_for_is_copied():
    arrived, _ = arrived_at(dlf.full(16, 2.5, alignment_size=64), 16)
    assert address_of(arrived) % 64 == 0
    assert arrived.to_numpy().tolist() == [2.5] * 16


@pytest.mark.parametrize(
    "storage",
    [
        dlf.ones((4, 5), alignment_size=64),
        dlf.ones((4, 6))[:, ::2],
        dlf.ones((4, 5))[::-1],
        dlf.as_storage(b"12345678"),
    ],
    ids=["padded", "thinned out", "reversed", "read-only"],
)
def test_out_of_band_what_is_not_dense_and_writable_is_copied(storage):
    assert address_of(out_of_band(storage)) != address_of(storage)


def test_a_buffer_that_comes_back_read_only_is_copied_to_be_writable():
    arrived = out_of_band(dlf.ones(3), lambda buffer: bytes(buffer.raw()))
    arrived.to_numpy()[0] = 9
    assert arrived.to_numpy().tolist() == [9, 1, 1]


def test_a_buffer_that_comes_back_off_its_boundary_is_copied():
    def shifted(buffer):
        return memoryview(bytearray(1) + bytearray(buffer.raw()))[1:]

    arrived = out_of_band(dlf.full(3, 2.5), shifted)
    assert address_of(arrived) % 8 == 0
    assert arrived.to_numpy().tolist() == [2.5, 2.5, 2.5]


def test_a_pickle_holds_no_padding():
    storage = dlf.ones((100, 3), alignment_size=4096)
    assert storage.strides == (4096, 8)
    assert len(pickle.dumps(storage)) < storage.nbytes + 300


def test_a_pickle_of_a_view_holds_only_the_view():
    assert len(pickle.dumps(dlf.ones((1000, 1000))[:2, :3])) < 48 + 300


def test_out_of_band_a_pickle_holds_no_values():
    text = pickle.dumps(dlf.ones(10**6), 5, buffer_callback=lambda buffer: None)
    assert len(text) < 300


def test_a_pickle_does_not_depend_on_where_the_memory_lies():
    one, other = (dlf.ones((4, 5), dims="IJ", alignment_size=64) for _ in range(2))
    assert address_of(one) != address_of(other)
    assert pickle.dumps(one) == pickle.dumps(other)


@pytest.mark.parametrize("protocol", [2, 5])
def test_another_process_can_read_a_pickle_before_it_imports_anything(field, protocol):
    arrived = run_in_subprocess(f"""
        import pickle

        storage = pickle.loads({pickle.dumps(field, protocol)!r})
        print(storage.dims, storage.halo, storage.strides, storage.to_numpy().sum())
    """)
    assert arrived == f"{field.dims} {field.halo} {field.strides} 861.0"


def test_without_its_buffers_a_pickle_is_refused():
    text = pickle.dumps(dlf.ones(3), 5, buffer_callback=lambda buffer: None)
    with pytest.raises(pickle.UnpicklingError, match="out-of-band"):
        pickle.loads(text)


def test_unset_arrives_as_the_one_object():
    assert pickle.loads(pickle.dumps(dlf.UNSET)) is dlf.UNSET


@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
def test_out_of_band_the_values_are_one_row_of_bytes(layout):
    buffers = []
    pickle.dumps(dlf.zeros((3, 4), layout=layout), 5, buffer_callback=buffers.append)
    with memoryview(buffers[0]) as row:
        assert (row.ndim, row.shape, row.format) == (1, (96,), "B")
