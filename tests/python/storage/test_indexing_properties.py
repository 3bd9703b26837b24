"""Keys, assignments and transpositions of random storages against NumPy, and against the rules."""

import itertools

import dlfield as dlf
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, integer_array_indices

from support.addresses import address_of
from support.view_model import basic_keys, slices, storages

REALS = ["int8", "uint16", "int32", "float32", "float64"]
FEWER = settings(max_examples=80)  # where a simple rule holds for all


def strides_that_count(array):
    return [stride for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1]


def span(array):
    """First byte of an array, and the one after the last."""
    steps = [(e - 1) * stride for e, stride in zip(array.shape, array.strides, strict=True)]
    low = address_of(array) + sum(min(step, 0) for step in steps)
    return low, address_of(array) + sum(max(step, 0) for step in steps) + array.itemsize


def assert_same(view, array):
    """Values, shape and place are those of NumPy's view of the same memory."""
    assert type(view) is dlf.CPUStorage
    np.testing.assert_array_equal(view.to_numpy(), array, strict=True)
    if array.size:
        assert address_of(view) == address_of(array)
        assert strides_that_count(view) == strides_that_count(array)


@st.composite
def chains(draw, storage, model, most=4):
    """Views of views, each with NumPy's view of the same memory and what is known of it."""
    array = storage.to_numpy()
    for _ in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 2)) == 0:
            axes = draw(st.permutations(range(storage.ndim)))
            storage, array, model = (one.transpose(axes) for one in (storage, array, model))
        else:
            key = draw(basic_keys(storage.shape))
            storage, array, model = storage[key], array[key], model.select(key)
        if not isinstance(storage, dlf.Storage):
            break
    return storage, array, model


@given(storages(), st.data())
def test_a_basic_key_gives_what_numpy_gives(made, data):
    storage, _ = made
    key = data.draw(basic_keys(storage.shape))
    found, expected = storage[key], storage.to_numpy()[key]
    if isinstance(expected, np.generic):
        assert type(found) is type(expected)
        assert found == expected
    else:
        assert_same(found, expected)


@given(storages(), st.data())
def test_a_chain_of_views_is_where_numpy_is_and_knows_what_the_rules_say(made, data):
    made[1].check(made[0])
    view, array, model = data.draw(chains(*made))
    assume(isinstance(view, dlf.Storage))
    assert_same(view, array)
    model.check(view)


@given(storages(smallest=1), st.data())
@FEWER
def test_every_byte_of_every_view_lies_in_the_allocation(made, data):
    view, *_ = data.draw(chains(*made))
    assume(isinstance(view, dlf.Storage) and view.size)
    (low, high), (first, past) = span(view), span(made[0])
    assert first <= low < high <= past


@given(storages(smallest=1))
def test_the_aligned_element_of_every_row_lies_on_its_boundary(made):
    storage, _ = made
    assume(storage.size and storage.ndim)
    inner = storage.layout.index(storage.ndim - 1)
    ranges = [range(extent) for extent in storage.shape]
    ranges[inner] = [storage.aligned_index[inner]]
    strides = storage.strides
    for index in itertools.product(*ranges):
        at = address_of(storage) + sum(i * stride for i, stride in zip(index, strides, strict=True))
        assert at % storage.alignment_size == 0


@given(storages(), st.data())
@FEWER
def test_a_domain_view_has_the_points_outside_the_halo(made, data):
    view, array, model = data.draw(chains(*made))
    assume(isinstance(view, dlf.Storage) and view.halo is not None)
    inside = [~(axis.below | axis.above) for axis in model.axes]
    np.testing.assert_array_equal(view.domain_view.to_numpy(), array[np.ix_(*inside)], strict=True)
    assert view.domain_view.halo == ((0, 0),) * view.ndim


@given(storages(), st.data())
@FEWER
def test_transposing_is_what_numpy_does(made, data):
    storage, model = made
    axes = data.draw(st.permutations(range(storage.ndim)))
    counted = [axis - storage.ndim * data.draw(st.booleans()) for axis in axes]
    for view in (storage.transpose(counted), np.transpose(storage, counted)):
        assert_same(view, storage.to_numpy().transpose(axes))
        model.transpose(axes).check(view)
    assert_same(storage.T, storage.to_numpy().T)


@given(storages(), st.data())
@FEWER
def test_a_copy_of_a_view_has_its_values_and_facts_and_none_of_its_memory(made, data):
    view, array, _ = data.draw(chains(*made))
    assume(isinstance(view, dlf.Storage))
    copied = view.copy()
    np.testing.assert_array_equal(copied.to_numpy(), array, strict=True)
    assert (copied.dims, copied.halo) == (view.dims, view.halo)
    assert not np.shares_memory(copied.to_numpy(), array)


@st.composite
def values_for(draw, shape, dtypes):
    """An array that broadcasts to a shape, as it is or in a storage, its strides in any order."""
    kept = [extent if draw(st.integers(0, 3)) else 1 for extent in shape]
    kept = kept[draw(st.integers(0, len(kept))) :] if draw(st.booleans()) else kept
    kept = [1] * draw(st.integers(0, 2)) * (len(kept) == len(shape)) + kept
    count = np.prod(kept, dtype=int)
    value = (np.arange(count) % 100 + 1).reshape(kept).astype(draw(st.sampled_from(dtypes)))
    if draw(st.booleans()):
        return value, value
    layout = draw(st.permutations(range(value.ndim)))
    return dlf.storage(value, layout=layout, alignment_size=draw(st.sampled_from([1, 64]))), value


@given(storages(REALS), st.data())
def test_an_assignment_by_a_basic_key_is_numpys(made, data):
    storage, _ = made
    expected, key = storage.to_numpy().copy(), data.draw(basic_keys(storage.shape))
    shape = expected[key].shape
    single = isinstance(expected[key], np.generic)  # NumPy takes no array of several dimensions
    dtypes = [*REALS, ">f8", "bool"]
    value, plain = (np.int8(5),) * 2 if single else data.draw(values_for(shape, dtypes), "value")
    storage[key] = value
    expected[key] = plain
    np.testing.assert_array_equal(storage.to_numpy(), expected)


@given(array_shapes(min_dims=1, max_dims=3, max_side=5), st.data())
def test_an_advanced_key_gives_and_takes_what_numpy_does(shape, data):
    expected = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 0.5
    storage = dlf.storage(expected, layout=data.draw(st.permutations(range(len(shape)))))
    indices = data.draw(integer_array_indices(shape))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0])), bool)
    key = data.draw(
        st.sampled_from([indices, mask, (..., indices[0] % shape[-1]), [mask.size - 1]])
    )
    np.testing.assert_array_equal(storage[key], expected[key], strict=True)
    value, plain = data.draw(values_for(expected[key].shape, ["float64", "int16"]))
    assume(plain.ndim <= expected[key].ndim)  # as NumPy requires for a mask
    storage[key] = value
    expected[key] = plain
    np.testing.assert_array_equal(storage.to_numpy(), expected)


@st.composite
def overlapping(draw, shape):
    """Two keys that select parts of equal shape, or a source that is repeated."""
    to, source = [], []
    for extent in shape:
        chosen, other = draw(slices(extent)), draw(slices(extent))
        lengths = [len(range(*one.indices(extent))) for one in (chosen, other)]
        if lengths[0] != lengths[1] and not (lengths[1] == 1 and draw(st.booleans())):
            low = draw(st.integers(0, extent - lengths[0]))
            other = slice(low, low + lengths[0])
        to.append(chosen)
        source.append(other)
    return tuple(to), tuple(source)


@given(storages(REALS), st.data())
def test_parts_of_one_storage_are_assigned_as_if_they_lay_apart(made, data):
    storage, _ = made
    expected = storage.to_numpy().copy()
    to, source = data.draw(overlapping(storage.shape))
    assume(expected[to].ndim)
    expected[to] = expected[source].copy()
    value = storage[source]
    seen = data.draw(st.sampled_from([lambda one: one, dlf.Storage.to_numpy, dlf.as_storage]))
    storage[to] = seen(value)
    np.testing.assert_array_equal(storage.to_numpy(), expected)


@given(st.integers(1, 6), st.integers(1, 3), st.data())
def test_a_storage_is_transposed_into_itself_as_if_it_lay_apart(extent, ndim, data):
    shape, axes = (extent,) * ndim, data.draw(st.permutations(range(ndim)))
    storage = dlf.zeros(shape, layout=data.draw(st.permutations(range(ndim))))
    storage.to_numpy()[...] = np.arange(extent**ndim).reshape(shape)
    key = tuple(slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in shape)
    expected = storage.to_numpy().transpose(axes)[key].copy()
    storage[...] = storage.transpose(axes)[key]
    np.testing.assert_array_equal(storage.to_numpy(), expected)


@given(st.permutations("IJK"), st.permutations("IJK"), st.integers(0, 3), st.data())
def test_a_value_with_names_is_where_its_names_say_and_repeated_elsewhere(own, target, kept, data):
    extents = {name: data.draw(st.integers(0, 4)) for name in "IJK"}
    own = own[:kept]
    shape = [extents[name] for name in own]
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1.0
    storage = dlf.zeros([extents[name] for name in target], dims=target)
    storage[...] = dlf.as_storage(value, dims=own)
    inserted = value.transpose([own.index(name) for name in target if name in own])
    for axis, name in enumerate(target):
        inserted = inserted if name in own else np.expand_dims(inserted, axis)
    np.testing.assert_array_equal(storage.to_numpy(), np.broadcast_to(inserted, storage.shape))
