"""`like=` of `as_storage` and `storage`: the labels of a model, and the layout of a copy."""

from functools import partial

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.errors import refused
from support.optional import library
from support.owners import tracked
from support.parameters import KNOWN

LABELS = ("dims", "halo", "default_origin")
MAKERS = {
    "as_storage": dlf.as_storage,
    "storage": dlf.storage,
    "copy=False": partial(dlf.storage, copy=False),
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def labels(storage):
    return tuple(getattr(storage, name, None) for name in LABELS)


@pytest.fixture
def model():
    """A field that is unusual in every respect."""
    options = {"halo": (1, (0, 2)), "layout": (1, 0), "alignment_size": 64}
    return dlf.zeros(
        (6, 7), "int16", dims="IJ", aligned_index=(2, 3), default_origin=(1, 0), **options
    )


@pytest.fixture
def values():
    return np.arange(42.0).reshape(6, 7)


@every_maker
def test_an_array_gets_the_labels_of_the_model(make, model, values):
    made = make(values, like=model)
    assert labels(made) == labels(model)
    np.testing.assert_array_equal(made.to_numpy(), values)
    assert made.dtype == values.dtype


@pytest.mark.parametrize("make", [dlf.as_storage, MAKERS["copy=False"]])
def test_memory_stays_where_and_as_it_is(make, model, values):
    made = make(values, like=model)
    assert address_of(made) == address_of(values)
    assert (made.strides, made.alignment_size) == (values.strides, 1)


def test_a_copy_is_laid_out_as_the_model(model, values):
    made = dlf.storage(values, like=model)
    assert {name: getattr(made, name) for name in KNOWN if name != "dtype"} == {
        name: getattr(model, name) for name in KNOWN if name != "dtype"
    }
    assert (address_of(made) + 2 * made.strides[0] + 3 * made.strides[1]) % 64 == 0


def test_lists_are_copied_into_a_storage_like_the_model(model, values):
    made = dlf.storage(values.tolist(), like=model, dtype="float32")
    assert (labels(made), made.layout, made.dtype) == (labels(model), (1, 0), np.float32)


OPTIONS = {
    "dims": ({"dims": "KJ"}, "dims", ("K", "J")),
    "no dims": ({"dims": None}, "dims", None),
    "halo": ({"halo": (0, 1)}, "halo", ((0, 0), (1, 1))),
    "halo by name": ({"halo": {"J": 1}}, "halo", ((0, 0), (1, 1))),
    "default_origin": ({"default_origin": (2, 2)}, "default_origin", (2, 2)),
}


@every_maker
@pytest.mark.parametrize(("options", "name", "expected"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_precedes_the_model(make, model, values, options, name, expected):
    assert getattr(make(values, like=model, **options), name) == expected


COPIED = {
    "layout": ({"layout": (0, 1)}, "layout", (0, 1)),
    "defaults": ({"defaults": "C"}, "layout", (0, 1)),
    "the data's layout": ({"layout": None}, "layout", (0, 1)),
    "alignment_size": ({"alignment_size": 1}, "alignment_size", 1),
    "aligned_index": ({"aligned_index": (0, 0)}, "aligned_index", (0, 0)),
    "backend": ({"backend": "gt:cpu_kfirst"}, "layout", (0, 1)),
}


@pytest.mark.parametrize(("options", "name", "expected"), COPIED.values(), ids=COPIED)
def test_an_option_of_a_copy_precedes_the_model(model, values, options, name, expected):
    made = dlf.storage(values, like=model, **options)
    assert (getattr(made, name), labels(made)) == (expected, labels(model))


@every_maker
@pytest.mark.parametrize("none", [None, dlf.UNSET], ids=repr)
def test_no_model_changes_nothing(make, values, none):
    assert labels(make(values, dims="JI", like=none)) == (("J", "I"), ((0, 0), (0, 0)), None)


@every_maker
def test_a_label_that_the_model_lacks_is_that_of_the_data(make, model):
    made = make(model, like=np.zeros(model.shape))
    assert labels(made) == labels(model)


@every_maker
def test_an_unknown_halo_of_the_model_stays_unknown(make, model, values):
    assert make(values[::2], like=model[::2]).halo is None


@every_maker
def test_an_origin_is_dropped_with_the_names_that_it_was_given_for(make, model):
    origin = dlf.as_storage(model, dims=None, default_origin=(1, 2))
    made = make(origin, like=dlf.zeros(model.shape, dims="KI"))
    assert labels(made) == (("K", "I"), ((0, 0), (0, 0)), None)


@every_maker
def test_names_of_a_data_array_are_taken_from_it(make, values):
    xr = library("xarray")
    model = xr.DataArray(np.zeros((6, 7)), dims=("lon", "lat"))
    assert make(values, like=model).dims == ("lon", "lat")
    assert make(xr.DataArray(values), like=model).dims == ("lon", "lat")  # xarray has numbered them
    assert make(model, like=xr.DataArray(values)).dims == ("lon", "lat")


@every_maker
@pytest.mark.parametrize("shape", [(6, 8), (6,), (6, 7, 1), ()], ids=str)
def test_a_model_of_another_shape_is_refused(make, values, shape):
    with refused(
        ValueError, f"like: expected a model of shape [6, 7], as the array has, got {list(shape)}"
    ):
        make(values, like=dlf.zeros(shape))


@every_maker
def test_names_in_another_order_than_those_of_the_data_are_refused(make):
    data, model = dlf.zeros((3, 3), dims="JI"), dlf.zeros((3, 3), dims="IJ")
    with refused(ValueError, "dims of like: expected ('J', 'I') as the array says, got ('I', 'J')"):
        make(data, like=model)


@every_maker
@pytest.mark.parametrize("model", [3, "text", [1.0, 2.0]], ids=repr)
def test_a_model_must_be_an_array(make, model):
    with refused(TypeError, "like: array: expected one that speaks", f"'{type(model).__name__}'"):
        make(np.zeros(2), like=model)


def test_a_model_alone_makes_no_storage(model):
    with refused(TypeError, "storage: expected data beside like=, got none; empty_like(model)"):
        dlf.storage(like=model)


@pytest.mark.parametrize("make", [dlf.zeros, dlf.ones, dlf.empty])
def test_fresh_memory_is_made_like_a_model_by_the_functions_for_it(make, model):
    with refused(TypeError, "option 'like': expected one of", "empty_like, zeros_like"):
        make((6, 7), like=model)


@every_maker
def test_a_model_is_not_kept_and_no_value_of_it_is_read(make, values):
    class Model:
        def __init__(self):
            nowhere = {"typestr": "<f8", "shape": (6, 7), "data": (4096, False)}  # no such page
            self.__array_interface__ = {"version": 3, **nowhere}
            self.__gt_dims__ = ("K", "I")

    model, watch = tracked(np.zeros((6, 7)))
    made = make(values, like=model)
    del model
    assert (watch.freed, made.shape) == (True, (6, 7))
    assert make(values, like=Model()).dims == ("K", "I")


def test_a_class_takes_a_model_too(model, values):
    assert labels(dlf.CPUStorage(values, like=model)) == labels(model)
