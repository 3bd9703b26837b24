"""Refusals of what users often pass: the text names the argument and the way out, in short."""

import inspect

import dlfield as dlf
import numpy as np
import pytest
from dlfield import halo
from dlfield.annotations import Field

FIELDS = dict.fromkeys(("a", "out"), Field[np.float64, ("I", "J", "K")])


@pytest.mark.parametrize("take", [dlf.as_storage, dlf.storage])
@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_times_are_refused_as_such(take, dtype):
    times = np.zeros(2, dtype)
    with pytest.raises(BufferError, match=r"dtype: expected numbers, got .*64\[.\]; .*astype"):
        take(times)
    assert dlf.storage(times.astype("int64")).dtype == np.int64


def test_as_storage_of_nothing_says_what_is_missing():
    with pytest.raises(TypeError, match=r"as_storage: expected an array as data or .*, got None; "):
        dlf.as_storage()


@pytest.mark.parametrize("take", [dlf.as_storage, dlf.storage])
def test_host_memory_as_device_data_is_a_wrong_device(take):
    with pytest.raises(BufferError, match=r"device_data: expected .*memory on cpu; pass it as"):
        take(device_data=np.zeros(3))


@pytest.mark.parametrize("make", [dlf.empty, dlf.zeros, dlf.ones, lambda x: dlf.full(x, 1)])
@pytest.mark.parametrize("shape", [np.zeros((2, 3)), dlf.zeros((2, 3)), np.zeros((2, 3), int)])
def test_an_array_for_a_shape_is_refused_with_the_function_for_it(make, shape):
    with pytest.raises(
        TypeError, match=r"shape: expected .*, got a 2-dimensional array; use .*_like"
    ):
        make(shape)


def test_a_row_of_floats_for_a_shape_is_refused_with_the_function_for_it():
    with pytest.raises(TypeError, match=r"shape: .*, got a 1-dimensional array; use .*empty_like"):
        dlf.empty(np.zeros(3))


def test_names_of_gt4py_and_numpy_lead_to_those_of_dlfield():
    for name in ["from_array", "array", "asarray"]:
        with pytest.raises(AttributeError, match=rf"'{name}'; use dlfield\.(as_)?storage"):
            getattr(dlf, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = dlf.nonsense
    assert not hasattr(dlf, "from_array")


class Showing:
    """Show an interface."""

    def __init__(self, name, interface):
        setattr(self, name, interface)


@pytest.mark.parametrize("key", ["typestr", "shape", "data"])
@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("__array_interface__", lambda interface: interface),
        ("__cuda_array_interface__", lambda interface: interface),
        ("__gt_data_interface__", lambda interface: {None: interface}),
    ],
)
def test_a_missing_key_is_one_of_the_protocol_that_was_read(name, around, key):
    array = np.zeros(2)
    interface = {"typestr": "<f8", "shape": (2,), "data": (array.ctypes.data, False), "version": 3}
    del interface[key]
    with pytest.raises(ValueError, match=f"^{name}: (array interface: )?expected the key '{key}'"):
        dlf.as_storage(Showing(name, around(interface)), managed=None)


HUGE = 10**4000
LONG = {
    "fill_value": lambda: dlf.full(3, HUGE),
    "fill_value of text": lambda: dlf.full(3, "x" * 5000),
    "shape": lambda: dlf.zeros(HUGE),
    "alignment": lambda: dlf.zeros(3, alignment_size=HUGE),
    "halo": lambda: dlf.zeros(3, halo=(HUGE,)),
    "device": lambda: dlf.zeros(3, device=("gpu", HUGE)),
    "managed": lambda: dlf.zeros(3, managed="x" * 5000),
    "backend": lambda: dlf.zeros(3, backend="x" * 5000),
    "dims": lambda: dlf.zeros((3, 3), dims=("x" * 5000, "y" * 5000, "z")),
    "item": lambda: dlf.zeros(3).__setitem__(0, HUGE),
    "index": lambda: dlf.zeros(3)[HUGE],
    "state": lambda: setattr(dlf.SyncState(), "state", HUGE),
    "too many digits": lambda: dlf.full(3, 10**6000),
}


@pytest.mark.parametrize("call", LONG.values(), ids=LONG)
def test_what_is_too_large_makes_no_text_that_is(call):
    with pytest.raises((ValueError, OverflowError, IndexError)) as refusal:
        call()
    assert len(str(refusal.value)) < 1000


def scaled(a, out, *, factor=1.0, domain, origin):
    """Multiply, so that there is something to bind."""
    out[...] = a * factor


@pytest.mark.parametrize(
    ("mistake", "meant"),
    [
        (lambda _: dlf.empty((3,), dim="I"), "dims"),
        (lambda _: dlf.empty((3,), backend="gt:cpu_kfrist"), "gt:cpu_kfirst"),
        (lambda _: dlf.empty((3, 2), dims=["lat", "lon"], halo={"lo": 1}), "lon"),
        (lambda field: field.isel(i=0), "I"),
        (lambda field: field.rename(k="level"), "K"),
        (lambda field: dlf.halo_exchange([field], None, engine="Packed"), "packed"),
        (lambda field: dlf.halo_exchange([field], None, width={"j": 1}), "J"),
        (lambda field: halo.decompose((4, 4, 3), None, halo={"i": 1}), "I"),
        (lambda field: dlf.bind(scaled, fields=FIELDS)(field, field, facter=2.0), "factor"),
    ],
)
def test_an_unknown_name_leads_to_the_one_that_is_written_most_alike(mistake, meant):
    field = dlf.zeros((4, 4, 3), dims="IJK", halo=(1, 1, 0))
    with pytest.raises((TypeError, ValueError), match=rf"; did you mean '{meant}'\?$"):
        mistake(field)


def test_a_name_like_no_other_is_given_no_other_meaning():
    with pytest.raises(ValueError, match=r"got 'height'; use one of them$"):
        dlf.zeros((4, 4, 3), dims="IJK").isel(height=0)


@pytest.mark.parametrize("packed", [True, False])
def test_an_array_with_fields_leads_to_a_copy_of_one_of_them(packed):
    records = np.zeros(3, [("t", "f8"), ("q", "f8" if packed else "i4")])
    with pytest.raises(BufferError, match=r"pass a copy of .*, such as x\['name'\].copy\(\)$"):
        dlf.as_storage(records)
    assert dlf.as_storage(records["t"].copy()).dtype == np.float64


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_the_help_of_a_reduction_says_that_the_halo_counts(name):
    assert "Halo points count" in inspect.getdoc(getattr(dlf.Storage, name))


def test_a_reduction_takes_numpys_word_for_an_axis_alone():
    field = dlf.ones((2, 3), dims="IK")
    assert field.mean(axis="K").dims == ("I",)
    with pytest.raises(TypeError, match=r"mean\(\) got an unexpected keyword argument 'dim'"):
        field.mean(dim="K")
