"""Keys and assignments of random storages on a GPU, and values on either side, against NumPy."""

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, integer_array_indices

from support.cuda.buffers import buffers, values
from support.cuda.devices import OnDevice
from support.cuda.kinds import CLASSES, CLEAN, DEVICE_NEWER, HOST_NEWER
from support.view_model import basic_keys, slices, storages

REALS = ["int8", "uint16", "int32", "float32", "float64"]
FEWER = settings(max_examples=60)
KINDS = st.sampled_from(list(CLASSES))
STATES = st.sampled_from([CLEAN, HOST_NEWER, DEVICE_NEWER])


def on_gpu(data, managed, state=CLEAN):
    """Return a copy on a GPU, of a pair in a state, its older buffer spoilt; and its values."""
    storage, expected = dlf.storage(data, device="gpu", managed=managed), values(data)
    if managed == "gt4py" and state != HOST_NEWER:
        memory = storage.to_numpy()
        storage.synchronize()
        if state == DEVICE_NEWER:
            storage.set_device_modified()
            memory[...] = 1
    return storage, expected


@st.composite
def gpu_storages(draw, **options):
    """A storage on a GPU, of any class, layout and state, and its values."""
    made, _ = draw(storages(**options))
    return on_gpu(made, draw(KINDS), draw(STATES))


@st.composite
def numbers(draw, shape, dtypes):
    """Numbers that broadcast to a shape."""
    kept = [extent if draw(st.integers(0, 3)) else 1 for extent in shape]
    kept = kept[draw(st.integers(0, len(kept))) :] if draw(st.booleans()) else kept
    count = np.prod(kept, dtype=int)
    return (np.arange(count) % 100 + 1).reshape(kept).astype(draw(st.sampled_from(dtypes)))


@st.composite
def values_for(draw, shape, dtypes):
    """A value on either side for a shape, the same for NumPy, and the side that is written."""
    plain = draw(numbers(shape, dtypes))
    kind = draw(st.sampled_from(["NumPy", "host", "CUDA array", *CLASSES]))
    layout = draw(st.permutations(range(plain.ndim)))
    options = {"layout": layout, "alignment_size": draw(st.sampled_from([1, 64]))}
    if kind == "NumPy":
        return plain, plain, HOST_NEWER
    if kind == "host":
        return dlf.storage(plain, **options), plain, HOST_NEWER
    if kind == "CUDA array":
        return OnDevice(plain), plain, DEVICE_NEWER
    state = draw(STATES)
    value, _ = on_gpu(dlf.storage(plain, **options), kind, state)
    on_host = kind == "gt4py" and state == HOST_NEWER
    return value, plain, HOST_NEWER if on_host else DEVICE_NEWER


def assert_holds(storage, expected):
    """What dlfield gives, and both buffers once they are in step."""
    np.testing.assert_array_equal(values(storage), expected, strict=True)
    storage.synchronize()
    for side in buffers(storage):
        if side is not None:
            np.testing.assert_array_equal(side, expected, strict=True)


@st.composite
def chains(draw, storage, array, most=3):
    """Views of views, each with NumPy's."""
    for _ in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 2)) == 0:
            axes = draw(st.permutations(range(storage.ndim)))
            storage, array = storage.transpose(axes), array.transpose(axes)
        else:
            key = draw(basic_keys(storage.shape))
            storage, array = storage[key], array[key]
        if not isinstance(storage, dlf.Storage):
            break
    return storage, array


@pytest.mark.source(
    "GDP-3", "Functionality", "basic indexing of device memory follows CuPy's rules"
)
@given(gpu_storages(), st.data())
def test_a_basic_key_gives_on_a_gpu_what_numpy_gives(made, data):
    storage, array = made
    key = data.draw(basic_keys(storage.shape))
    found, expected = storage[key], array[key]
    if isinstance(expected, np.generic):
        assert type(found) is type(expected)
        assert found == expected
    else:
        assert type(found) is type(storage)
        np.testing.assert_array_equal(values(found), expected, strict=True)


@given(gpu_storages(), st.data())
def test_a_view_of_a_view_has_on_both_sides_what_numpy_has(made, data):
    view, expected = data.draw(chains(*made))
    assume(isinstance(view, dlf.Storage))
    assert_holds(view, expected)


@pytest.mark.source(
    "GDP-3", "Functionality", "basic indexing of device memory follows CuPy's rules"
)
@pytest.mark.source(
    "GDP-3",
    "Choosing the Device",
    "assignment to a synchronised pair runs on the GPU exactly if the value is on a GPU",
    "a synchronised storage is on the GPU unless its host buffer is newer",
)
@given(gpu_storages(dtypes=REALS), st.data())
@settings(max_examples=200)
def test_an_assignment_by_a_basic_key_on_a_gpu_is_numpys(made, data):
    storage, expected = made
    key = data.draw(basic_keys(storage.shape))
    if isinstance(expected[key], np.generic):
        value, plain, state = np.int8(5), np.int8(5), HOST_NEWER
    else:
        value, plain, state = data.draw(values_for(expected[key].shape, [*REALS, "bool"]), "value")
    storage[key] = value
    expected[key] = plain
    if type(storage) is dlf.SoftwareManagedGPUStorage:
        assert storage.sync_state.state == state
    assert_holds(storage, expected)


@given(gpu_storages(dtypes=REALS), st.data())
def test_what_is_assigned_to_a_view_is_in_the_storage(made, data):
    storage, expected = made
    view, array = data.draw(chains(storage, expected, most=2))
    assume(isinstance(view, dlf.Storage))
    value, plain, _ = data.draw(values_for(array.shape, REALS), "value")
    view[...] = value
    array[...] = plain
    assert_holds(storage, expected)


@given(storages(dtypes=REALS), KINDS, STATES, st.data())
def test_a_storage_of_the_host_takes_values_from_a_gpu(made, managed, state, data):
    storage, expected = made[0], made[0].to_numpy().copy()
    plain = data.draw(numbers(storage.shape, REALS))
    storage[...] = on_gpu(plain, managed, state)[0]
    expected[...] = plain
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


@given(gpu_storages(dtypes=REALS), st.data())
def test_parts_of_one_storage_on_a_gpu_are_assigned_as_if_they_lay_apart(made, data):
    storage, expected = made
    to, source = data.draw(overlapping(storage.shape))
    assume(expected[to].ndim)
    expected[to] = expected[source].copy()
    value = storage[source]
    if data.draw(st.booleans()):
        value = value._device_side()  # the same memory as one of a GPU alone
    storage[to] = value
    assert_holds(storage, expected)


@given(st.integers(1, 6), st.integers(1, 3), KINDS, STATES, st.data())
@FEWER
def test_a_storage_on_a_gpu_is_transposed_into_itself_as_if_it_lay_apart(
    extent, ndim, managed, state, data
):
    shape, axes = (extent,) * ndim, data.draw(st.permutations(range(ndim)))
    model = dlf.empty(shape, layout=data.draw(st.permutations(range(ndim))))
    model.to_numpy()[...] = np.arange(extent**ndim).reshape(shape)
    storage, expected = on_gpu(model, managed, state)
    key = tuple(slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in shape)
    storage[...] = storage.transpose(axes)[key]
    assert_holds(storage, expected.transpose(axes)[key])


@given(array_shapes(min_dims=1, max_dims=3, max_side=5), KINDS, STATES, st.data())
def test_an_advanced_key_takes_what_numpy_takes(shape, managed, state, data):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 0.5
    model = dlf.storage(array, layout=data.draw(st.permutations(range(len(shape)))))
    storage, expected = on_gpu(model, managed, state)
    indices = data.draw(integer_array_indices(shape))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0])), bool)
    key = data.draw(
        st.sampled_from([indices, mask, (..., indices[0] % shape[-1]), [mask.size - 1]])
    )
    if managed is not None:  # without a buffer on the host they are CuPy's
        np.testing.assert_array_equal(storage[key], expected[key], strict=True)
    value, plain, _ = data.draw(values_for(expected[key].shape, ["float64", "int16"]))
    storage[key] = value
    expected[key] = plain
    assert_holds(storage, expected)


@given(st.permutations("IJK"), st.permutations("IJK"), st.integers(0, 3), KINDS, KINDS, st.data())
@FEWER
def test_a_value_with_names_is_where_its_names_say(own, target, kept, there, here, data):
    extents = {name: data.draw(st.integers(1, 4)) for name in "IJK"}
    own = own[:kept]
    shape = [extents[name] for name in own]
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1.0
    storage = dlf.zeros([extents[name] for name in target], dims=target, device="gpu", managed=here)
    storage[...] = dlf.storage(array, dims=own, device="gpu", managed=there)
    inserted = array.transpose([own.index(name) for name in target if name in own])
    for axis, name in enumerate(target):
        inserted = inserted if name in own else np.expand_dims(inserted, axis)
    assert_holds(storage, np.broadcast_to(inserted, storage.shape))
