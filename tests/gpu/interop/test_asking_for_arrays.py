"""What storages ask of CuPy and JAX, which cannot run without a GPU: doubles of both take memory by
DLPack on a stream, as the libraries do, and show what they were given.
"""

import sys
import types
from functools import partial

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import OnDevice, delay, new_stream, read
from support.cuda.driver import call, stats
from support.cuda.handed import VALUES, Inbox, Late, address_of, collect, handed
from support.cuda.kinds import every_kind

StridedMemoryView = pytest.importorskip("cuda.core.utils").StridedMemoryView


class Array:
    """An array of a library: what it was made of, and where it is."""

    def __init__(self, given, stream):
        self.view = StridedMemoryView.from_dlpack(given, stream_ptr=stream)
        self.given, self.stream, self.dtype = given, stream, self.view.dtype
        self.address = self.view.ptr
        self.data = types.SimpleNamespace(ptr=self.address, owner=self)

    def unsafe_buffer_pointer(self):
        return self.address

    def copy(self):
        return "a copy that the library makes"

    def __getitem__(self, key):
        return ("taken by the library", key)

    def values(self):
        return read(self.address, self.view.shape, self.dtype)


def module(monkeypatch, name, **entries):
    made = types.ModuleType(name)
    vars(made).update(entries)
    monkeypatch.setitem(sys.modules, name, made)
    return made


@pytest.fixture
def stream():
    """The stream on which the libraries work."""
    return new_stream()


@pytest.fixture
def to_cupy(monkeypatch, stream):
    """How a storage is asked for an array of CuPy."""
    take = partial(Array, stream=stream)
    module(monkeypatch, "cupy", from_dlpack=take, asarray=take, ndarray=Array)
    return lambda storage: storage.to_cupy()


@pytest.fixture
def to_jax(monkeypatch, stream):
    """How a storage is asked for an array of JAX, which asks for the legacy capsule."""

    def from_dlpack(given, *, copy):
        assert copy is False
        array = Array(given, stream)
        array.device = given.__dlpack_device__()
        return array

    config = types.SimpleNamespace(jax_enable_x64=True)
    jax = module(monkeypatch, "jax", config=config, __version_info__=(0, 10, 2))
    jax.dlpack = module(monkeypatch, "jax.dlpack", from_dlpack=from_dlpack)
    return lambda storage: storage.to_jax()


@pytest.fixture(params=["cupy", "jax"])
def ask(request):
    return request.getfixturevalue(f"to_{request.param}")


@every_kind
def test_the_library_gets_the_memory_of_the_device(ask, managed):
    storage = handed(VALUES, managed, layout=(1, 0))
    array = ask(storage)
    assert array.address == address_of(storage)
    assert array.view.strides == (1, 3)
    assert array.view.device_id == 0


@every_kind
def test_the_stream_of_the_library_waits_for_what_is_in_flight(ask, managed, stream):
    inbox, late = Inbox(), Late(VALUES, managed)
    assert np.array_equal(inbox.fetch(ask(late.storage).address, stream), VALUES)


@pytest.mark.stand_in
@every_kind
def test_the_host_does_not_wait_for_the_library(ask, managed):
    late, before = Late(VALUES, managed), stats().syncs
    array = ask(late.storage)
    assert stats().syncs == before
    del array


@pytest.mark.stand_in
@every_kind
def test_the_library_keeps_the_memory_which_is_freed_once(ask, managed):
    storage = handed(VALUES, managed)
    array, before = ask(storage), stats().frees
    buffers = len(storage.__gt_data_interface__) if managed == "gt4py" else 1
    del storage
    collect()
    assert np.array_equal(array.values(), VALUES)
    assert stats().frees < before + buffers  # of a pair the host's buffer may be gone
    del array
    collect()
    assert stats().frees == before + buffers


@every_kind
def test_memory_is_not_freed_under_work_of_the_library(ask, managed, stream):
    inbox, storage = Inbox(), handed(VALUES, managed)
    there = ask(storage).address
    delay(stream)
    call("cuMemcpyDtoHAsync_v2", inbox.address, there, inbox.nbytes, stream)
    del storage  # the array is gone as well, while the copy is on its way
    call("cuStreamSynchronize", stream)
    assert np.array_equal(inbox.values(), VALUES)


def test_cupy_gets_what_the_host_has_written_to_a_pair(to_cupy):
    storage = handed(VALUES, "gt4py")
    with storage.host() as host:
        host[...] = 2 * VALUES
    assert np.array_equal(to_cupy(storage).values(), 2 * VALUES)


@every_kind
def test_what_is_announced_to_jax_is_a_device_that_it_knows(to_jax, managed):
    assert to_jax(handed(VALUES, managed)).device == (2, 0)


@every_kind
def test_jax_makes_the_copies_of_memory_on_a_device(to_jax, managed):
    assert handed(VALUES, managed).to_jax(copy=True) == "a copy that the library makes"


def read_only():
    return dlf.as_storage(OnDevice(VALUES, readonly=True), managed=None)


def test_jax_gets_read_only_memory_since_it_never_writes(to_jax):
    storage = read_only()
    assert to_jax(storage).address == address_of(storage)


WAYS_TO_CUPY = {
    "to_cupy": lambda storage: storage.to_cupy(),
    "to_ndarray": lambda storage: storage.to_ndarray(),
    "device_data": lambda storage: storage.device_data,
}
every_way_to_cupy = pytest.mark.parametrize(("name", "ask_for"), WAYS_TO_CUPY.items())


@every_way_to_cupy
def test_asking_for_cupy_arrays_refuses_read_only_memory(to_cupy, name, ask_for):
    kind = AttributeError if name == "device_data" else BufferError
    with pytest.raises(kind, match=rf"{name}: expected a writable storage"):
        ask_for(read_only())


@every_kind
def test_an_ndarray_of_a_storage_on_a_gpu_is_of_cupy(to_cupy, managed):
    storage = handed(VALUES, managed)
    assert storage.to_ndarray().address == address_of(storage)


@pytest.mark.source(
    "GDP-3", "Attributes and Properties", "`device_data` is the pointer of a device buffer"
)
@every_kind
def test_the_device_data_is_the_pointer_of_cupy(to_cupy, managed):
    storage = handed(VALUES, managed)
    assert storage.device_data.ptr == address_of(storage)


def test_indices_of_memory_on_a_gpu_alone_are_left_to_cupy(to_cupy):
    taken, key = handed(VALUES, None)[[2, 0]]
    assert taken == "taken by the library"
    assert np.array_equal(key, [2, 0])


def test_indices_of_read_only_memory_are_left_to_cupy_too(to_cupy):
    assert read_only()[[2, 0]][0] == "taken by the library"


def test_indices_of_a_pair_are_left_to_numpy(to_cupy):
    assert handed(VALUES, "gt4py")[[2, 0]].tolist() == VALUES[[2, 0]].tolist()


@every_way_to_cupy
def test_without_cupy_its_name_is_in_the_error(monkeypatch, name, ask_for):
    monkeypatch.setitem(sys.modules, "cupy", None)
    kind = AttributeError if name == "device_data" else ImportError
    with pytest.raises(kind, match=rf"{name}: expected CuPy"):
        ask_for(handed(VALUES, None))
