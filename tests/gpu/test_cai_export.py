"""`__cuda_array_interface__` written: the dict of each kind of storage, and its stream."""

import dlfield as dlf
import numpy as np
import pytest

from support.cuda.devices import LEGACY, OnDevice, new_stream, read
from support.cuda.driver import call, stats
from support.cuda.kinds import every_device, every_kind
from support.cuda.order import own_stream, put_from, seen_from
from support.optional import library
from support.parameters import NUMPY_DTYPES

VALUES = np.arange(6.0).reshape(2, 3)


def made(values=VALUES, managed=None, **options):
    """Return a storage on a GPU with these values, and nothing in flight."""
    storage = dlf.storage(values, device="gpu", managed=managed, **options)
    storage.synchronize()
    call("cuCtxSynchronize")
    return storage


def interface(storage):
    return storage.__cuda_array_interface__


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "storages speak the CUDA array interface"
)
@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`__cuda_array_interface__` exists if there is a device buffer",
)
@pytest.mark.source(
    "GDP-3 draft", "Methods", "`__cuda_array_interface__` exists if there is a device buffer"
)
@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`__cuda_array_interface__` is a dict",
    "`shape` is a tuple of ints",
    "the device can access the address",
    "`version` is 3",
)
@every_device
@every_kind
def test_the_dict_says_all_that_version_three_asks_for_and_nothing_else(managed, device):
    storage = dlf.zeros((2, 3), "f4", device=("gpu", device), managed=managed)
    storage.synchronize()
    found = interface(storage)
    address, readonly = found.pop("data")
    assert found.pop("stream", None) in (None, own_stream(device))
    assert found == {"version": 3, "typestr": "<f4", "shape": (2, 3), "strides": None}
    assert readonly is False
    assert not read(address, (2, 3), "f4", device).any()


@pytest.mark.source(
    "CUDA array interface", "Python Interface Specification", "`typestr` is as in NumPy's interface"
)
@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_every_type_of_numpy_has_its_name(name):
    assert interface(made(np.zeros(3, name)))["typestr"] == np.dtype(name).str


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
@every_kind
def test_a_type_that_the_interface_cannot_name_makes_it_absent(managed, name):
    dtype = getattr(library("ml_dtypes"), name)
    storage = dlf.zeros((3,), dtype, device="gpu", managed=managed)
    assert not hasattr(storage, "__cuda_array_interface__")
    with pytest.raises(dlf.GTNoSuchBufferError, match="__cuda_array_interface__: it cannot name"):
        storage.__cuda_array_interface__  # noqa: B018 -- the look itself is refused


def test_a_storage_of_the_host_has_no_such_attribute():
    storage = dlf.zeros((3,))
    assert not hasattr(storage, "__cuda_array_interface__")
    assert not hasattr(type(storage), "__cuda_array_interface__")


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "absent `strides`, or None, means C order",
    "`strides` are in bytes",
)
@pytest.mark.parametrize(
    ("view", "strides"),
    [
        (lambda s: s, None),
        (lambda s: s[1:], None),
        (lambda s: s[:1, :], None),
        (lambda s: s.T, (8, 24)),
        (lambda s: s[:, 1:], (24, 8)),
        (lambda s: s[::-1], (-24, 8)),
        (lambda s: s[:, ::2], (24, 16)),
        (lambda s: s[:, 1], (24,)),
        (lambda s: s[1, 1:2], None),
    ],
)
@every_kind
def test_strides_are_given_where_the_view_is_not_in_c_order(managed, view, strides):
    assert interface(view(made(managed=managed)))["strides"] == strides


@every_kind
def test_the_address_of_a_view_is_that_of_its_first_element(managed):
    storage = made(managed=managed)
    start = interface(storage)["data"][0]
    assert interface(storage[1, 1:])["data"][0] == start + 32
    assert interface(storage[::-1, ::-1])["data"][0] == start + 40


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "an array of size zero has the address 0",
)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5, 2)])
@every_kind
def test_of_no_elements_the_address_is_0_and_nothing_is_in_flight(managed, shape):
    found = interface(dlf.zeros(shape, device="gpu", managed=managed))
    assert (found["data"], found["shape"], found["strides"]) == ((0, False), shape, None)
    assert found["stream"] is None


@every_kind
def test_an_empty_view_has_the_address_0_too(managed):
    assert interface(made(managed=managed)[2:])["data"] == (0, False)


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`data` is an address and a read-only flag",
)
@pytest.mark.parametrize("managed", [None, "gt4py"])
def test_memory_that_must_not_be_written_says_so(managed):
    storage = dlf.as_storage(OnDevice(VALUES, readonly=True), managed=managed)
    assert interface(storage)["data"][1] is True


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`stream` is None or an int to synchronise on",
)
@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "without pending work the stream is absent or None",
)
@every_kind
def test_what_is_done_needs_no_stream(managed):
    assert interface(made(managed=managed))["stream"] is None


@pytest.mark.source(
    "CUDA array interface",
    "Python Interface Specification",
    "`stream` is None or an int to synchronise on",
)
@pytest.mark.source(
    "CUDA array interface", "Interface Requirements", "both options are off by default"
)
@pytest.mark.stand_in
@every_device
@every_kind
def test_work_in_flight_is_on_the_stream_of_dlfield(managed, device):
    storage = dlf.zeros((2, 3), device=("gpu", device), managed=managed)
    assert interface(storage)["stream"] == own_stream(device)
    assert own_stream(device) > 2


@pytest.mark.stand_in
@every_kind
def test_the_stream_is_named_until_the_work_is_done(managed):
    storage = dlf.zeros((2, 3), device="gpu", managed=managed)
    assert interface(storage)["stream"] == interface(storage)["stream"] == own_stream()
    call("cuStreamSynchronize", own_stream())
    assert interface(storage)["stream"] is None


@pytest.mark.source(
    "CUDA array interface",
    "Lifetime management: Streams",
    "a stream lives as long as the object that exported it",
)
@pytest.mark.stand_in
@pytest.mark.parametrize("stream", [LEGACY, "new"])
def test_work_on_a_stream_of_the_user_is_exported_on_that_of_dlfield(stream):
    storage, own = made(), own_stream()
    with dlf.use_stream(new_stream() if stream == "new" else stream):
        storage[...] = dlf.ones((2, 3), device="gpu", managed=None)
        assert interface(storage)["stream"] == own


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "waiting for the stream of a producer waits for all its work on the data",
)
@every_kind
@pytest.mark.parametrize("on", ["own", "new", LEGACY])
def test_waiting_for_the_exported_stream_is_enough(managed, on):
    storage = made(managed=managed)
    source = dlf.full((2, 3), 7.0, device="gpu", managed=None)
    if on == "own":
        storage[...] = source
    else:
        with dlf.use_stream(new_stream() if on == "new" else on):
            storage[...] = source
    found = interface(storage)
    if found["stream"] is not None:
        call("cuStreamSynchronize", found["stream"])
    assert seen_from(new_stream(), found["data"][0], (2, 3)).tolist() == [[7.0] * 3] * 2


@pytest.mark.source(
    "CUDA array interface",
    "Interface Requirements",
    "a consumer that works in the producer's stream may return at once",
)
def test_work_that_is_put_on_the_exported_stream_comes_after_that_of_dlfield():
    storage = made()
    with dlf.use_stream(new_stream()):
        storage[...] = dlf.full((2, 3), 7.0, device="gpu", managed=None)
    found = interface(storage)
    on = found["stream"] or new_stream()
    put_from(on, found["data"][0], VALUES)
    np.testing.assert_array_equal(read(found["data"][0], (2, 3), "f8"), VALUES)


@pytest.mark.stand_in
@every_kind
def test_an_export_waits_for_nothing(managed):
    storage = dlf.zeros((2, 3), device="gpu", managed=managed)
    before = stats().syncs
    interface(storage)
    interface(storage[1:])
    assert stats().syncs == before


def test_a_pair_is_brought_up_to_date_first_and_in_order_with_the_exported_stream():
    storage = made(managed="gt4py")
    with storage.host() as array:
        array[...] = 5
    found = interface(storage)
    assert storage.sync_state.state == dlf.SyncState.SYNC_CLEAN
    call("cuStreamSynchronize", found["stream"] or LEGACY)
    assert seen_from(new_stream(), found["data"][0], (2, 3)).tolist() == [[5.0] * 3] * 2


@pytest.mark.stand_in
def test_a_pair_that_is_up_to_date_is_exported_without_a_copy():
    storage = made(managed="gt4py")
    before = stats().copies
    interface(storage)
    interface(storage)
    assert stats().copies == before


def test_the_halo_of_a_field_is_in_the_memory_that_is_exported():
    storage = dlf.zeros((6, 5), halo=((1, 1), (2, 0)), device="gpu", managed=None)
    inner = storage.domain_view
    assert interface(inner)["data"][0] == interface(storage)["data"][0] + 8 * (5 + 2)
    assert interface(inner)["strides"] == (40, 8)


@pytest.mark.source(
    "GDP-3", "Abstract, Motivation and Scope", "storages speak the CUDA array interface"
)
def test_an_import_of_an_export_shares_the_memory():
    storage = made()
    again = dlf.as_storage(Exported(storage), managed=None)
    again[0, 0] = 99
    assert dlf.storage(storage, device="cpu").to_numpy()[0, 0] == 99


class Exported:
    """Has only the CUDA array interface of a storage."""

    def __init__(self, storage):
        self.storage = storage

    @property
    def __cuda_array_interface__(self):
        return self.storage.__cuda_array_interface__
