"""Copies from any layout into any other against NumPy's, byte by byte."""

import math

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

#: One for each size of an item, and those of the same size that NumPy copies in another way.
DTYPES = ["bool", "int8", "int16", "float16", "float32", "float64", "complex64", "complex128"]

#: Extents about the sides of the squares that are transposed in registers.
EXTENTS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 64, 65, 130]

FEWER = settings(max_examples=60)


def random_values(shape, dtype):
    """Any bytes, so that no two parts of any item are alike."""
    bits = np.random.default_rng(0).bytes(math.prod(shape) * np.dtype(dtype).itemsize)
    if dtype == "bool":
        return (np.frombuffer(bits, np.uint8) & 1).astype("bool").reshape(shape)
    return np.frombuffer(bits, dtype).reshape(shape)


def assert_same_bytes(storage, expected):
    """NaN is as good as any other value."""
    found = np.asarray(storage)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


@st.composite
def shapes(draw, most=5):
    """Up to 20000 elements; one dimension may have none."""
    shape, left = [], 20_000
    for _ in range(draw(st.integers(1, most))):
        shape.append(min(draw(st.sampled_from(EXTENTS)), left))
        left //= shape[-1]
    if draw(st.integers(0, 19)) == 0:
        shape[-1] = 0
    return tuple(draw(st.permutations(shape)))


@st.composite
def keys(draw, shape):
    """Slices that select `shape` of something larger, and the extents of that."""
    key, whole = [], []
    for extent in shape:
        step = draw(st.sampled_from([1, 1, 1, 1, -1, 2, -3]))
        first, beyond = draw(st.integers(0, 3)), draw(st.integers(0, 2))
        last = first + max(extent - 1, 0) * abs(step)
        part = slice(first, last + 1, step) if step > 0 else slice(last, first - 1, step)
        part = slice(part.start, None, step) if step < 0 and first == 0 else part
        key.append(part if extent else slice(0, 0))
        whole.append(last + 1 + beyond)
    return tuple(key), tuple(whole)


@st.composite
def arrays(draw, shape, dtype):
    """Return an array of NumPy of any order, possibly with gaps and backwards."""
    axes = draw(st.permutations(range(len(shape))))
    key, whole = draw(keys(tuple(shape[axis] for axis in axes)))
    if draw(st.booleans()):  # without gaps
        key, whole = ..., tuple(shape[axis] for axis in axes)
    array = random_values(whole, dtype)[key].transpose(np.argsort(axes))
    assert array.shape == shape
    return array


@st.composite
def fields(draw, shape, dtype):
    """Return a storage of any order, whose rows may be padded, with random values in it."""
    halo = [min(draw(st.integers(0, 3)), extent // 2) for extent in shape]
    field = dlf.empty(
        shape,
        dtype,
        layout=draw(st.permutations(range(len(shape)))),
        alignment_size=draw(st.sampled_from([1, 64, 128])),
        halo=[(width, width) for width in halo],
    )
    field.to_numpy()[...] = random_values(shape, dtype)[(slice(None, None, -1),) * len(shape)]
    return field


# ── any layouts ──


@given(shapes(), st.sampled_from(DTYPES), st.data())
def test_a_storage_of_any_layout_has_the_values_of_its_source(shape, dtype, data):
    source = data.draw(arrays(shape, dtype))
    layout = tuple(data.draw(st.permutations(range(len(shape)))))
    alignment = data.draw(st.sampled_from([1, 64, 128]))
    copied = dlf.storage(source, layout=layout, alignment_size=alignment)
    assert copied.layout == layout
    assert_same_bytes(copied, source)


@given(shapes(), st.sampled_from(DTYPES), st.data())
def test_an_assignment_writes_what_its_key_selects_and_nothing_else(shape, dtype, data):
    key, whole = data.draw(keys(shape))
    target = data.draw(fields(whole, dtype))
    source = data.draw(arrays(shape, dtype))
    expected = target.to_numpy().copy()
    expected[key] = source
    target[key] = data.draw(st.sampled_from([source, dlf.as_storage(source)]))
    assert_same_bytes(target, expected)


@given(shapes(), st.sampled_from(DTYPES), st.data())
def test_the_domain_of_a_field_arrives_in_that_of_another(shape, dtype, data):
    source, target = data.draw(fields(shape, dtype)), data.draw(fields(shape, dtype))
    target.halo = source.halo
    target.to_numpy()[...] = 1
    expected = target.to_numpy().copy()
    inside = tuple(slice(low, n - high) for (low, high), n in zip(source.halo, shape, strict=True))
    expected[inside] = source.to_numpy()[inside]
    target.domain_view[...] = source.domain_view
    assert_same_bytes(target, expected)


@given(shapes(), st.sampled_from(DTYPES), st.data())
def test_a_copy_of_any_view_has_its_values(shape, dtype, data):
    key, whole = data.draw(keys(shape))
    axes = data.draw(st.permutations(range(len(shape))))
    view = data.draw(fields(whole, dtype))[key].transpose(axes)
    assert_same_bytes(view.copy(), view.to_numpy())


@FEWER
@given(shapes(4), st.sampled_from(DTYPES[2:]), st.integers(1, 15), st.data())
def test_memory_at_any_address_is_read_and_written(shape, dtype, offset, data):
    size = math.prod(shape)
    source = random_values(shape, dtype)
    memory = bytearray(offset + source.nbytes)
    array = np.frombuffer(memory, dtype, size, offset).reshape(shape)
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    odd = dlf.as_storage(array)
    odd[...] = source.reshape(array.shape)
    assert_same_bytes(array, source.reshape(array.shape))
    assert memory[:offset] == bytes(offset)
    layout = data.draw(st.permutations(range(len(shape))))
    assert_same_bytes(dlf.storage(odd, layout=layout), array)


@FEWER
@given(shapes(), st.sampled_from(DTYPES), st.data())
def test_a_repeated_source_arrives_everywhere(shape, dtype, data):
    repeated = [extent and data.draw(st.sampled_from([1, extent])) for extent in shape]
    source = random_values(repeated, dtype)
    target = data.draw(fields(shape, dtype))
    target[...] = source
    assert_same_bytes(target, np.broadcast_to(source, shape))


PAIRS = [
    ("float64", "float32"),
    ("int8", "float64"),
    ("bool", "int16"),
    ("complex64", "complex128"),
    ("float32", "float64"),
    ("float64", "int8"),
    ("int16", "bool"),
]


@FEWER
@given(shapes(4), st.sampled_from(PAIRS), st.data())
def test_values_of_another_type_are_converted_as_by_numpy(shape, dtypes, data):
    values = np.arange(math.prod(shape)).reshape(shape) % 113
    layout = data.draw(st.permutations(range(len(shape))))
    source = dlf.storage(values, dtype=dtypes[0], layout=layout)
    target = data.draw(fields(shape, dtypes[1]))
    expected = np.empty(shape, dtypes[1])
    expected[...] = source.to_numpy()
    target[...] = source
    assert_same_bytes(target, expected)


# ── source and target in one storage ──


@pytest.mark.parametrize("shape", [(40_000,), (300, 301), (30, 41, 52), (1100, 70, 70)], ids=repr)
def test_a_storage_is_moved_by_one_as_if_copied_first(shape):
    for layout in (range(len(shape)), range(len(shape))[::-1]):
        for to, source in ((slice(1, None), slice(-1)), (slice(-1), slice(1, None))):
            moved = dlf.storage(random_values(shape, "float32"), layout=layout)
            expected = moved.to_numpy().copy()
            expected[to] = expected[source].copy()
            moved[to] = moved[source]
            assert_same_bytes(moved, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("extent", [16, 129, 600])
def test_a_storage_is_transposed_into_itself_as_if_copied_first(extent, dtype):
    square = dlf.storage(random_values((extent, extent), dtype))
    expected = square.to_numpy().T.copy()
    square[...] = square.T
    assert_same_bytes(square, expected)
