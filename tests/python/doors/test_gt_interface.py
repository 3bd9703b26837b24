"""GT4Py's data interface, in and out: keys, values, dims, halo, and functions to call."""

import itertools

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.gt_objects import Described, Synchronised
from support.no_driver import without_driver
from support.optional import library
from support.owners import tracked
from support.parameters import ML_DTYPES

ARRAY = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.source(
    "GDP-3",
    "Abstract, Motivation and Scope",
    "any object may describe itself as a field with `__gt_data_interface__`",
)
@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`__gt_data_interface__` is a dict from devices to dicts",
    "the key None stands for main memory",
    "`acquire`, `touch` and `release` may be absent or None",
    "the array interface of a NumPy array can be passed on unchanged",
)
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    "`__gt_interface__` maps devices to functions that return dicts",
    'the key None is main memory, "gpu" a GPU',
)
@pytest.mark.source("Interface note", "Examples", 'an accessor for DataArrays has the key "cpu"')
@pytest.mark.parametrize("name", ["__gt_data_interface__", "__gt_interface__"])
@pytest.mark.parametrize("key", [None, "cpu"])
@pytest.mark.parametrize("lazily", [False, True], ids=["dict", "callable"])
def test_memory_is_shared_and_written_through(name, key, lazily):
    described = Described(ARRAY.copy(), name=name, key=key, lazily=lazily)
    storage = dlf.as_storage(described)
    assert (storage.door, address_of(storage)) == ("gt_data_interface", described.array.ctypes.data)
    storage.to_numpy()[1, 2, 3] = -1
    assert described.array[1, 2, 3] == -1


def test_the_interface_is_read_once():
    described = Described(ARRAY.copy(), lazily=True)
    dlf.as_storage(described)
    assert described.reads == 1


def test_the_object_lives_as_long_as_the_last_view_of_its_memory():
    array, watch = tracked(ARRAY)
    storage = dlf.as_storage(Described(array))
    del array
    view = storage.to_numpy()
    del storage
    assert not watch.freed
    del view
    assert watch.freed


@pytest.mark.source(
    "Allocation note",
    "Supported Buffer Interfaces",
    "the backend chooses among the interfaces of an object",
)
def test_the_interface_wins_over_the_plain_doors():
    class Both(np.ndarray):
        @property
        def __gt_data_interface__(self):
            return {None: {**ARRAY.__array_interface__, "dims": "IJK"}}

    storage = dlf.as_storage(np.zeros((2, 3, 4)).view(Both))
    assert (address_of(storage), storage.dims) == (ARRAY.ctypes.data, ("I", "J", "K"))


@pytest.mark.source("GDP-3", "Data Interface", "each dict has strides")
@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "the entries are a subset of both array interfaces"
)
@pytest.mark.parametrize("strides", [{"strides": None}, {}], ids=["None", "absent"])
def test_strides_that_are_missing_are_c_order(strides):
    described = Described(ARRAY)
    plain = {key: ARRAY.__array_interface__[key] for key in ("shape", "typestr", "data")}
    described.describe = lambda: {**plain, **strides}
    assert dlf.as_storage(described).strides == ARRAY.strides


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "shape, typestr, data and strides mean what they mean in the array interfaces",
)
def test_strides_that_are_given_count():
    described = Described(ARRAY.transpose(2, 0, 1)[::-1])
    np.testing.assert_array_equal(dlf.as_storage(described).to_numpy(), described.array)


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`dims` names the dimensions",
    "`halo` has a pair of widths for each dimension",
)
@pytest.mark.source("Interface note", "`__gt_interface__`", "`dims` names the dimensions")
def test_dims_and_halo_come_in():
    storage = dlf.as_storage(Described(ARRAY, dims=("K", "I", "J"), halo=((0, 1), (1, 1), (0, 0))))
    assert storage.dims == ("K", "I", "J")
    assert storage.halo == ((0, 1), (1, 1), (0, 0))
    assert storage.domain_view.shape == (1, 1, 4)


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`acquire`, `touch` and `release` may be absent or None",
    "`dims` and `halo` may be absent or None, which says nothing",
)
@pytest.mark.source("Interface note", "`__gt_interface__`", "None stands for an absent function")
def test_entries_that_are_none_say_nothing():
    nothing = dict.fromkeys(("dims", "halo", "acquire", "touch", "release"))
    storage = dlf.as_storage(Described(ARRAY, **nothing))
    assert (storage.dims, storage.halo) == (None, ((0, 0),) * 3)
    assert storage.domain_view.shape == ARRAY.shape


def test_an_unknown_halo_has_a_key_of_its_own():
    assert dlf.as_storage(Described(ARRAY, halo_unknown=True)).halo is None
    for says_nothing in (None, False):
        assert dlf.as_storage(Described(ARRAY, halo_unknown=says_nothing)).halo is not None


@pytest.mark.source("GDP-3", "Data Interface", "other keys have no effect")
@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "the entries are a subset of both array interfaces"
)
def test_unknown_entries_have_no_effect():
    assert dlf.as_storage(Described(ARRAY, colour="red")).shape == (2, 3, 4)


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "shape, typestr, data and strides mean what they mean in the array interfaces",
)
def test_a_read_only_data_interface_stays_read_only():
    array = ARRAY.copy()
    array.flags.writeable = False
    assert dlf.as_storage(Described(array)).readonly


@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "a buffer that does not fit is an error: device"
)
@pytest.mark.parametrize("key", ["gpu", ("gpu", 0)])
def test_memory_on_a_gpu_alone_is_out_of_reach(key):
    with pytest.raises(dlf.DeviceUnavailable, match=r"None or 'cpu', got the keys .*gpu"):
        dlf.as_storage(Described(ARRAY, key=key), device="cpu")


@without_driver
@pytest.mark.parametrize("key", ["gpu", ("gpu", 0)])
def test_memory_on_a_gpu_alone_needs_the_driver(key):
    with pytest.raises(dlf.DeviceUnavailable, match=r"memory on cuda:0: CUDA: expected the driver"):
        dlf.as_storage(Described(ARRAY, key=key))


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    'the key "gpu" stands for memory of a GPU',
    "a stencil uses the buffer on the device where it computes",
)
@pytest.mark.source(
    "Interface note",
    "`__gt_interface__`",
    'keys with a number, such as ("gpu", 0), may follow later',
)
def test_the_host_is_taken_where_there_is_a_gpu_too():
    described = Described(ARRAY)
    described._devices = lambda: {"gpu": None, ("gpu", 1): {}, "cpu": described.describe()}
    assert address_of(dlf.as_storage(described)) == ARRAY.ctypes.data


@pytest.mark.parametrize("name", ["__gt_data_interface__", "__gt_interface__"])
def test_an_interface_that_is_none_counts_as_absent(name):
    class Nothing(np.ndarray):
        pass

    setattr(Nothing, name, None)
    assert dlf.as_storage(np.zeros(3).view(Nothing)).door == "buffer"


LIES = [
    (TypeError, "devices", lambda d: setattr(d, "_devices", lambda: [1])),
    (TypeError, "a dict for each device", lambda d: setattr(d, "describe", lambda: 3)),
    (ValueError, "None or 'cpu'", lambda d: setattr(d, "_devices", dict)),
    (ValueError, "'shape'", lambda d: setattr(d, "describe", lambda: {"typestr": "<f8"})),
    (TypeError, "dims", lambda d: d.entries.update(dims=3)),
    (ValueError, "dims: expected one entry", lambda d: d.entries.update(dims="IJ")),
    (ValueError, "'I' twice", lambda d: d.entries.update(dims="IIK")),
    (TypeError, "halo: expected a pair", lambda d: d.entries.update(halo=3)),
    (TypeError, "halo: expected a pair", lambda d: d.entries.update(halo=[1, 1, 1])),
    (TypeError, "halo: expected a pair", lambda d: d.entries.update(halo=[(1, 1, 1)] * 3)),
    (ValueError, "64 bits", lambda d: d.entries.update(halo=[(2**70, 0)] * 3)),
    (ValueError, "fit in extent 2", lambda d: d.entries.update(halo=[(2, 1)] * 3)),
    (ValueError, "at least 0", lambda d: d.entries.update(halo=[(-1, 0)] * 3)),
    (ValueError, "halo: expected one entry", lambda d: d.entries.update(halo=[(0, 0)])),
    (ValueError, "dimension '0'", lambda d: d.entries.update(dims="0IJ", halo=[(1, 0)] * 3)),
    (BufferError, "data: expected an address", lambda d: d.entries.update(data=(0, False))),
    (ValueError, "data: expected an address", lambda d: d.entries.update(data=(-1, False))),
    (BufferError, "bytes below and .* above", lambda d: d.entries.update(data=(2**64 - 8, False))),
    (TypeError, "data: expected a pair", lambda d: d.entries.update(data="x")),
    (TypeError, "dims: expected a sequence", lambda d: d.entries.update(dims=set("IJK"))),
    (TypeError, "halo: expected a pair", lambda d: d.entries.update(halo={(0, 0): 0})),
    (BufferError, "mask", lambda d: d.entries.update(mask=ARRAY)),
    (BufferError, "byte-swapped", lambda d: d.entries.update(typestr=">f8")),
    (ValueError, "strides: expected one for each", lambda d: d.entries.update(strides=(8,))),
    (TypeError, "acquire: expected a function", lambda d: d.entries.update(acquire=3)),
    (TypeError, "touch: expected a function", lambda d: d.entries.update(touch="yes")),
    (TypeError, "release: expected a function", lambda d: d.entries.update(release=ARRAY)),
]  # fmt: skip


@pytest.mark.source(
    "GDP-3",
    "Data Interface",
    "`__gt_data_interface__` is a dict from devices to dicts",
    "each dict has shape, typestr and data",
    "`halo` has a pair of widths for each dimension",
)
@pytest.mark.parametrize(("error", "text", "lie"), LIES, ids=[text for _, text, _ in LIES])
@pytest.mark.parametrize("lazily", [False, True], ids=["dict", "callable"])
def test_a_lie_is_named_and_nothing_is_called(error, text, lie, lazily):
    calls = []
    described = Described(ARRAY, lazily=lazily, acquire=lambda: calls.append("acquire"))
    lie(described)
    with pytest.raises(error, match=text):
        dlf.as_storage(described)
    assert calls == []


def test_an_exception_of_the_interface_passes_unchanged():
    raised = KeyError("of the object")

    class Raising:
        @property
        def __gt_data_interface__(self):
            raise raised

    with pytest.raises(KeyError) as caught:
        dlf.as_storage(Raising())
    assert caught.value is raised


def test_names_that_contradict_those_of_the_interface_are_refused():
    described = Described(ARRAY, dims="IJK")
    described.__gt_dims__ = "KJI"
    with pytest.raises(
        ValueError, match=r"\('K', 'J', 'I'\) from __gt_dims__ and \('I', 'J', 'K'\)"
    ):
        dlf.as_storage(described)


@pytest.mark.source(
    "Interface note", "`__gt_interface__`", "`acquire`, `touch` and `release` take no arguments"
)
def test_the_memory_is_acquired_once_and_released_with_the_last_view():
    field = Synchronised((2, 3))
    storage = dlf.as_storage(field)
    view = memoryview(storage)
    assert field.told == ["acquire"]
    del storage
    assert field.told == ["acquire"]
    del view
    assert field.told == ["acquire", "release"]


def test_a_copy_is_made_between_acquire_and_release():
    field = Synchronised((2, 3))
    dlf.storage(field)
    assert field.told == ["acquire", "release"]


REFUSALS = [{"layout": (1, 0)}, {"halo": (5, 5)}, {"dims": "IJK"}, {"alignment_size": 0}]


@pytest.mark.parametrize("options", REFUSALS, ids=str)
def test_a_refused_view_calls_no_hook(options):
    field = Synchronised((2, 3))
    with pytest.raises(ValueError, match=next(iter(options))):
        dlf.as_storage(field, **options)
    assert field.told == []


@pytest.mark.parametrize("options", REFUSALS[1:], ids=str)
def test_a_refused_copy_calls_no_hook(options):
    field = Synchronised((2, 3))
    with pytest.raises(ValueError, match=next(iter(options))):
        dlf.storage(field, **options)
    assert field.told == []


def test_the_memory_is_there_until_it_was_released():
    field = Synchronised((2, 3))
    array, watch = tracked(field.array)
    field.array = array
    seen = []
    field._told = lambda what: lambda: seen.append((what, watch.freed))
    storage = dlf.as_storage(field)
    del field, array, storage
    assert seen == [("acquire", False), ("release", False)]


def test_a_copy_does_not_take_what_the_interface_of_an_array_refuses():
    class Masked(np.ndarray):
        @property
        def __gt_data_interface__(self):
            return {None: {**ARRAY.__array_interface__, "mask": ARRAY}}

    with pytest.raises(BufferError, match="mask"):
        dlf.storage(np.zeros(3).view(Masked))


def test_names_without_an_end_are_cut_off():
    class Endless(np.ndarray):
        __gt_dims__ = itertools.repeat("I")

    with pytest.raises(ValueError, match=r"dims: .* got more than 64"):
        dlf.as_storage(np.zeros(3).view(Endless))


@pytest.mark.parametrize("dims", [b"IJK", (None, "J", "K"), (1, 2, 3)], ids=repr)
def test_names_must_be_strings(dims):
    with pytest.raises(TypeError, match="dims: expected names"):
        dlf.as_storage(Described(ARRAY, dims=dims))


def test_what_acquire_raises_is_raised_and_nothing_is_released():
    field = Synchronised((2, 3), refuses=("acquire",))
    with pytest.raises(RuntimeError, match="acquire refused"):
        dlf.as_storage(field)
    assert field.told == ["acquire"]


def test_what_release_raises_is_reported_as_unraisable(monkeypatch):
    reported = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: reported.append(args.exc_value))
    dlf.as_storage(Synchronised((2, 3), refuses=("release",)))
    assert [str(error) for error in reported] == ["release refused"]


@pytest.mark.source("GDP-3", "Data Interface", "the key None stands for main memory")
@pytest.mark.source(
    "GDP-3",
    "Attributes and Properties",
    "`__gt_data_interface__` has the array interface under None",
    "`dims` is not in `__gt_data_interface__` of a storage",
)
def test_a_storage_describes_its_host_buffer_with_dims_and_halo():
    storage = dlf.zeros((4, 5), dims="KI", halo=(0, (1, 2)))
    (interface,) = storage.__gt_data_interface__.values()
    assert list(storage.__gt_data_interface__) == [None]
    assert interface["dims"] == ("K", "I")
    assert interface["halo"] == ((0, 0), (1, 2))
    plain = storage.__array_interface__
    assert {key: interface[key] for key in plain} == plain


def test_a_storage_without_names_describes_none():
    assert "dims" not in dlf.zeros((4, 5)).__gt_data_interface__[None]


def test_the_description_of_a_storage_comes_in_unchanged():
    class Relay:
        def __init__(self, storage):
            self.storage = storage
            self.__gt_data_interface__ = storage.__gt_data_interface__

    storage = dlf.zeros((4, 5), dims="KI", halo=(0, (1, 2)), layout=(1, 0))
    again = dlf.as_storage(Relay(storage))
    for name in ("shape", "strides", "dtype", "dims", "halo"):
        assert getattr(again, name) == getattr(storage, name)
    assert address_of(again) == address_of(storage)


@pytest.mark.parametrize("dtype", ML_DTYPES)
def test_types_without_a_typestr_have_no_interface(dtype):
    storage = dlf.zeros(3, dtype=getattr(library("ml_dtypes"), dtype))
    assert not hasattr(storage, "__gt_data_interface__")
    with pytest.raises(dlf.GTNoSuchBufferError, match=f"cannot name {dtype}"):
        _ = storage.__gt_data_interface__
