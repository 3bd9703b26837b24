"""`__array_interface__`: the dict of others read, and ours written. No memory is copied."""

from collections.abc import Mapping
from types import MappingProxyType

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.owners import Watch, tracked
from support.parameters import ML_DTYPES, NUMPY_DTYPES


class Interface:
    """Has only the array interface."""

    def __init__(self, array, **changes):
        self.array = array
        self.interface = {**array.__array_interface__, **changes}
        self.reads = 0

    @property
    def __array_interface__(self):
        self.reads += 1
        return self.interface


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "an object with only an array interface counts as host memory",
)
@pytest.mark.source(
    "GDP-3", "Data Interface", "without the interface, an array interface counts as host memory"
)
@pytest.mark.source(
    "Interface note",
    "Storages without the interface",
    "objects without the interface are read through `__array_interface__`",
)
@pytest.mark.source(
    "Allocation note", "Supported Buffer Interfaces", "`__array_interface__` is accepted"
)
@pytest.mark.parametrize(
    "view",
    [
        np.arange(24.0).reshape(2, 3, 4),
        np.arange(24.0).reshape(2, 3, 4).T,
        np.arange(24.0).reshape(4, 6)[::-1, ::-2],
        np.arange(24.0).reshape(4, 6)[1:3, 2:5],
        np.array(7.0),
        np.zeros((0, 3)),
    ],
    ids=["c", "transposed", "reversed", "padded", "scalar", "empty"],
)
def test_every_view_comes_in_with_its_address_and_strides(view):
    storage = dlf.as_storage(Interface(view))
    assert (storage.door, storage.shape) == ("array_interface", view.shape)
    assert address_of(storage) == address_of(view)
    assert storage.strides == view.strides or view.size == 0
    np.testing.assert_array_equal(storage.to_numpy(), view)


def test_a_write_through_the_array_interface_is_seen_on_the_other_side():
    source = np.zeros((2, 3))
    dlf.as_storage(Interface(source)).to_numpy()[1, 2] = 5
    assert source[1, 2] == 5


def test_the_exporting_object_is_held_until_the_last_view_is_gone():
    exporter = Interface(np.arange(3.0))
    watch = Watch(exporter)
    array = dlf.as_storage(exporter).to_numpy()
    del exporter
    assert not watch.freed
    assert array.tolist() == [0, 1, 2]
    del array
    assert watch.freed


def test_a_read_only_array_interface_stays_read_only():
    source = np.zeros(3)
    source.flags.writeable = False
    storage = dlf.as_storage(Interface(source))
    assert storage.readonly
    assert storage.__array_interface__["data"][1] is True


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_every_numpy_type_comes_in_through_its_array_interface(name):
    source = np.ones(3, name)
    storage = dlf.as_storage(Interface(source))
    np.testing.assert_array_equal(storage.to_numpy(), source, strict=True)


@pytest.mark.parametrize("typestr", ["<f8", "=f8", "|f8"])
def test_native_order_has_three_spellings(typestr):
    assert dlf.as_storage(Interface(np.zeros(3), typestr=typestr, descr=None)).dtype == np.float64


@pytest.mark.parametrize("strides", [None, (24, 8)])
def test_no_strides_are_c_order(strides):
    assert dlf.as_storage(Interface(np.zeros((2, 3)), strides=strides)).strides == (24, 8)


def test_the_array_interface_is_read_once():
    exporter = Interface(np.zeros(3))
    dlf.as_storage(exporter)
    assert exporter.reads == 1


@pytest.mark.parametrize("version", [0, 3, 99, "3", None])
def test_the_version_does_not_matter(version):
    assert dlf.as_storage(Interface(np.zeros(3), version=version)).shape == (3,)


def test_any_mapping_is_accepted_as_an_array_interface():
    exporter = Interface(np.zeros(3))
    exporter.interface = MappingProxyType(exporter.interface)
    assert dlf.as_storage(exporter).shape == (3,)


def test_an_array_interface_is_copied_when_it_is_read():
    exporter = Interface(np.zeros((2, 3)))
    storage = dlf.as_storage(exporter)
    exporter.interface.update(shape=(99,), strides=(1,))
    assert (storage.shape, storage.strides) == ((2, 3), (24, 8))


@pytest.mark.parametrize("offset", [None, 0, 16])
def test_a_buffer_in_place_of_an_address_is_held_and_its_offset_counts(offset):
    memory = bytearray(48)
    exporter = Interface(np.zeros(4), data=memory, offset=offset)
    storage = dlf.as_storage(exporter)
    storage.to_numpy()[...] = [1, 2, 3, 4]
    first = (offset or 0) // 8
    assert np.frombuffer(memory)[first : first + 4].tolist() == [1, 2, 3, 4]


def test_a_buffer_in_place_of_an_address_may_not_be_resized_while_it_is_used():
    memory = bytearray(32)
    storage = dlf.as_storage(Interface(np.zeros(4), data=memory))
    with pytest.raises(BufferError):
        memory.clear()
    del storage
    memory.clear()


def test_a_buffer_may_be_walked_backwards_from_its_end():
    memory = bytearray(np.arange(4.0).tobytes())
    storage = dlf.as_storage(Interface(np.zeros(4), data=memory, offset=24, strides=(-8,)))
    assert storage.to_numpy().tolist() == [3, 2, 1, 0]


def test_a_read_only_buffer_makes_a_read_only_storage():
    assert dlf.as_storage(Interface(np.zeros(4), data=bytes(32))).readonly


def test_an_error_in_the_property_reaches_the_user():
    class Raising:
        @property
        def __array_interface__(self):
            raise RuntimeError("broken on purpose")

    with pytest.raises(RuntimeError, match="broken on purpose"):
        dlf.as_storage(Raising())


class Broken(Mapping):
    """A mapping that has every key and gives none."""

    def __getitem__(self, _key):
        raise RuntimeError("broken on purpose")

    def __iter__(self):
        return iter(["shape", "typestr", "data"])

    def __len__(self):
        return 3


def test_an_error_in_the_mapping_reaches_the_user():
    exporter = Interface(np.zeros(3))
    exporter.interface = Broken()
    with pytest.raises(RuntimeError, match="broken on purpose"):
        dlf.as_storage(exporter)


def test_a_class_without_a_module_is_as_good_as_any():
    exporter = type("Bare", (Interface,), {"__module__": None})(np.zeros(3))
    assert dlf.as_storage(exporter).shape == (3,)


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_every_numpy_type_is_written_as_numpy_writes_it(name):
    ours = dlf.zeros((2, 3), name).__array_interface__
    theirs = np.zeros((2, 3), name).__array_interface__
    assert (ours["typestr"], ours["shape"]) == (theirs["typestr"], theirs["shape"])


@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`__array_interface__` exists if there is a host buffer",
)
def test_strides_are_always_explicit_and_in_bytes():
    assert dlf.zeros((2, 3)).__array_interface__["strides"] == (24, 8)
    assert dlf.zeros(()).__array_interface__["strides"] == ()
    padded = dlf.zeros((2, 3), alignment_size=64)
    assert padded.__array_interface__["strides"] == (64, 8)


def test_the_version_is_three():
    assert dlf.zeros((2, 3)).__array_interface__["version"] == 3


@pytest.mark.source("GDP-3", "Abstract, Motivation and Scope", "storages speak the array interface")
def test_what_goes_out_comes_in_again():
    field = dlf.full((2, 3), 4.0, layout=(1, 0))
    array = np.asarray(Interface(field))
    array[0, 0] = 9
    assert (array.strides, field.to_numpy()[0, 0]) == (field.strides, 9)


def test_a_broadcast_is_written_as_read_only():
    repeated = np.lib.stride_tricks.as_strided(np.zeros(3), (4, 3), (0, 8))
    assert dlf.as_storage(repeated).__array_interface__["data"][1] is True


@pytest.mark.parametrize("name", ML_DTYPES)
def test_a_type_that_it_cannot_name_has_no_interface(name):
    storage = dlf.zeros((2,), getattr(library("ml_dtypes"), name))
    assert not hasattr(storage, "__array_interface__")
    with pytest.raises(dlf.GTNoSuchBufferError, match=f"cannot name {name}"):
        _ = storage.__array_interface__


@pytest.mark.source("GDP-3", "Abstract, Motivation and Scope", "storages speak the array interface")
def test_every_door_of_a_storage_describes_the_same_memory():
    source, _ = tracked(np.arange(24.0).reshape(4, 6))
    storage = dlf.as_storage(source[1:3, 2:5])
    views = (
        np.asarray(Interface(storage)),
        np.asarray(memoryview(storage)),
        np.from_dlpack(storage),
    )
    for view in (*views, storage.to_numpy(), np.asarray(storage)):
        assert (view.ctypes.data, view.strides) == (address_of(storage), storage.strides)
