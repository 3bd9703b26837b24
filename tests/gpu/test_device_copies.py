"""Copies between any two layouts on any two sides give NumPy's result and touch nothing else."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cuda.devices import device_view
from support.cuda.order import device_count
from support.cuda.places import DTYPES, HOST, MANAGED, PINNED, Block, plans, shapes
from support.view_model import basic_keys

PLACES = [HOST, PINNED, MANAGED, *range(min(device_count(), 2))]
ON_HOST = (HOST, PINNED)
PAIRS = [(a, b) for a in PLACES for b in PLACES if not (a in ON_HOST and b in ON_HOST)]


def some_bytes(draw, size):
    return np.random.default_rng(draw(st.integers(0, 99))).integers(0, 256, size, np.uint8)


@pytest.mark.parametrize(("source", "target"), PAIRS)
@given(st.data())
@settings(max_examples=40)
def test_a_copy_gives_numpys_values_and_leaves_every_other_byte(source, target, data):
    shape, item = data.draw(shapes()), data.draw(st.sampled_from(list(DTYPES)))
    here = data.draw(plans(shape, item, repeats=True), "source")
    there = data.draw(plans(shape, item), "target")
    values, before = some_bytes(data.draw, here.size), some_bytes(data.draw, there.size)
    expected = before.copy()
    there.view(expected, shape, f"V{item}")[...] = here.view(values, shape, f"V{item}")
    from_block, to_block = Block(values, source), Block(before, target)
    elements = from_block.elements(here, shape, item)
    to_block.elements(there, shape, item)[...] = elements
    del elements
    np.testing.assert_array_equal(to_block.now(), expected)
    np.testing.assert_array_equal(from_block.now(), values)


@st.composite
def options(draw, ndim):
    """Draw where a copy goes, and how it is to lie there."""
    gpus = [("gpu", number) for number in PLACES if isinstance(number, int)]
    return {
        "device": draw(st.sampled_from([None, "gpu", *gpus])),
        "managed": draw(st.sampled_from([None, "gt4py", "cuda"])),
        "layout": draw(st.permutations(range(ndim))),
        "alignment_size": draw(st.sampled_from([1, 64, 192])),
    }


def values_of(storage):
    """Return the values of any storage, through a copy if there is no host buffer."""
    if isinstance(storage, dlf.GPUStorage):
        return device_view(storage)
    return storage.to_numpy().copy()


@pytest.mark.parametrize("source", PLACES)
@given(st.data())
def test_a_new_storage_has_the_values_in_the_layout_that_is_asked_for(source, data):
    shape, item = data.draw(shapes()), data.draw(st.sampled_from(list(DTYPES)))
    plan = data.draw(plans(shape, item, repeats=True))
    values = some_bytes(data.draw, plan.size)
    block, wanted = Block(values, source), data.draw(options(len(shape)))
    dtype = np.dtype(DTYPES[item][0])
    copied = dlf.storage(block.elements(plan, shape, item), **wanted)
    expected = plan.view(values, shape, dtype)
    assert copied.shape == shape
    assert values_of(copied).tobytes() == expected.tobytes()
    order = np.argsort(wanted["layout"])
    steps = [copied.strides[axis] for axis in order if shape[axis] > 1]
    assert steps == sorted(steps, reverse=True)


@st.composite
def fields(draw):
    """Draw a storage with a buffer on a GPU, and what NumPy has of it."""
    shape = draw(shapes(most_dims=4))
    dtype = draw(st.sampled_from(["i2", "f4", "f8", "c16"]))
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    wanted = {**draw(options(len(shape))), "device": "gpu"}
    field = dlf.storage(values, **wanted)
    if draw(st.booleans()) and wanted["managed"] == "gt4py":
        field.host_to_device()
    return field, values


@given(fields(), st.data())
def test_a_part_is_assigned_as_numpy_does_it_wherever_the_value_is(made, data):
    field, expected = made
    key = data.draw(basic_keys(expected.shape))
    part = expected[key]
    kept = [extent if data.draw(st.integers(0, 3)) else 1 for extent in np.shape(part)]
    value = (np.arange(np.prod(kept, dtype=int)) % 97 + 100).reshape(kept).astype(expected.dtype)
    wanted = data.draw(options(value.ndim))
    field[key] = dlf.storage(value, **wanted) if value.ndim else value
    expected[key] = value if value.ndim else value[()]
    np.testing.assert_array_equal(values_of(field), expected)


@given(fields(), st.data())
def test_a_view_is_copied_as_numpy_does_it(made, data):
    field, expected = made
    key = data.draw(basic_keys(expected.shape))
    view = field[key]
    if not isinstance(view, dlf.Storage):
        assert view == expected[key]
        return
    np.testing.assert_array_equal(values_of(view), expected[key])
    np.testing.assert_array_equal(values_of(view.copy()), expected[key])
    np.testing.assert_array_equal(dlf.storage(view, device=None).to_numpy(), expected[key])


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
@pytest.mark.parametrize(
    ("to", "source"),
    [
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-1], np.s_[1:]),
        (np.s_[::-1], np.s_[:]),
        (np.s_[:, 1:], np.s_[:, :1]),
        (np.s_[::2], np.s_[3:]),
    ],
    ids=str,
)
def test_a_part_is_assigned_to_another_as_if_they_lay_apart(managed, to, source):
    expected = np.arange(35.0).reshape(7, 5)[: 6 if to == np.s_[::2] else 7]
    field = dlf.storage(expected, device="gpu", managed=managed)
    field[to] = field[source]
    expected = expected.copy()
    expected[to] = expected[source].copy()
    np.testing.assert_array_equal(values_of(field), expected)


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_a_square_is_transposed_into_itself(managed):
    expected = np.arange(40.0 * 40).reshape(40, 40)
    field = dlf.storage(expected, device="gpu", managed=managed)
    field[...] = field.T
    np.testing.assert_array_equal(values_of(field), expected.T)


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
@pytest.mark.parametrize("value_on", [None, "gpu"])
def test_values_of_another_type_are_converted_as_numpy_does(managed, value_on):
    value = np.array([[1.75, -2.5], [3.0, 300.0]], order="F")
    field = dlf.zeros((3, 2, 2), "i2", device="gpu", managed=managed)
    field[1:] = dlf.storage(value, device=value_on, managed=None)
    np.testing.assert_array_equal(values_of(field)[1:], [value.astype("i2")] * 2)
    assert not values_of(field)[0].any()


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_a_copy_is_made_of_another_type_from_a_device_to_a_device(managed):
    source = dlf.storage(np.arange(6.0).reshape(2, 3), device="gpu", managed=None)
    copied = dlf.storage(source, dtype="i4", device="gpu", managed=managed)
    np.testing.assert_array_equal(values_of(copied), np.arange(6, dtype="i4").reshape(2, 3))
    assert copied.dtype == np.int32
