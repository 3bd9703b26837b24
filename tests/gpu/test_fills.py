"""Fresh memory of a GPU holds what it is filled with, in every type, layout and alignment."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations
from hypothesis import given
from hypothesis import strategies as st

from support.cuda import driver
from support.cuda.order import device_count
from support.cuda.places import asked, shapes
from support.optional import library
from support.parameters import ML_DTYPES, NUMPY_DTYPES

KINDS = [None, "gt4py", "cuda"]
every_kind = pytest.mark.parametrize("managed", KINDS)
every_dtype = pytest.mark.parametrize("name", NUMPY_DTYPES + ML_DTYPES)


def dtype_of(name):
    if name in ML_DTYPES:
        return np.dtype(getattr(library("ml_dtypes"), name))
    return np.dtype(name)


def values_of(storage):
    """Return what is on the device, by a copy: of a pair it is newer there."""
    return dlf.storage(storage, device=None, dtype=storage.dtype).to_numpy()


@every_kind
@every_dtype
def test_zeros_and_ones_are_numpys(name, managed):
    dtype = dtype_of(name)
    zeros = dlf.zeros((3, 5), dtype, device="gpu", managed=managed)
    ones = dlf.ones((3, 5), dtype, device="gpu", managed=managed)
    one = np.ones((3, 5)).astype(dtype)
    assert values_of(ones).tobytes() == one.tobytes()
    assert values_of(zeros).tobytes() == bytes(one.nbytes)


#: Values of which no part repeats, and some whose bytes are easily confused.
VALUES = [
    ("int8", -2),
    ("uint16", 0x1234),
    ("float16", 0.1),
    ("int32", -0x12345678),
    ("float32", 0.1),
    ("float32", -0.0),
    ("int64", 0x0102030405060708),
    ("int64", -1),
    ("int64", 0x0000000100000001),
    ("uint64", 2**64 - 2),
    ("float64", 1.0),
    ("float64", 0.1),
    ("float64", -0.0),
    ("float64", np.inf),
    ("float64", np.frombuffer(b"\1\2\3\4\5\6\xf8\x7f")[0]),
    ("complex64", 1.5 - 2.5j),
    ("complex64", 1.5 + 1.5j),
    ("complex128", 1.0 - 2.5j),
    ("complex128", 1.0 + 1.0j),
    ("complex128", 0.0 + 1.0j),
    ("bool", True),
]


@every_kind
@pytest.mark.parametrize(("name", "value"), VALUES, ids=str)
def test_every_byte_of_a_value_is_where_numpy_has_it(name, value, managed):
    field = dlf.full((7, 3), value, name, device="gpu", managed=managed)
    assert values_of(field).tobytes() == np.full((7, 3), value, name).tobytes()


@given(st.data())
def test_a_fill_reaches_every_element_of_any_layout(data):
    shape = data.draw(shapes(most_dims=4))
    name = data.draw(st.sampled_from(["uint8", "int16", "float32", "float64", "complex128"]))
    options = {
        "layout": data.draw(st.permutations(range(len(shape)))),
        "alignment_size": data.draw(st.sampled_from([1, 2, 16, 64, 192, 256, 512, 4096])),
        "aligned_index": [data.draw(st.integers(0, max(n, 1) - 1)) for n in shape],
        "device": ("gpu", data.draw(st.integers(0, min(device_count(), 2) - 1))),
        "managed": data.draw(st.sampled_from(KINDS)),
    }
    value = data.draw(st.sampled_from([0, 1, 77]))
    field = dlf.full(shape, value, name, **options)
    np.testing.assert_array_equal(values_of(field), np.full(shape, value, name))


@every_kind
@pytest.mark.parametrize("name", ["uint8", "float32", "float64", "complex128"])
@pytest.mark.parametrize("count", [1, 255, 256, 257, 4099, 70_001])
def test_any_number_of_elements_is_filled(count, name, managed):
    field = dlf.full(count, 3, name, device="gpu", managed=managed)
    assert (values_of(field) == 3).all()


@every_kind
def test_memory_that_was_filled_before_is_filled_again(managed):
    for value in range(1, 30):
        field = dlf.full((64, 9), value, device="gpu", managed=managed)
        assert (values_of(field) == value).all()
        del field
        assert not values_of(dlf.zeros((64, 9), device="gpu", managed=managed)).any()


@every_kind
def test_fills_of_several_fields_do_not_reach_each_other(managed):
    fields = [dlf.full(n, n, "int16", device="gpu", managed=managed) for n in range(1, 40)]
    for n, field in enumerate(fields, 1):
        assert values_of(field).tolist() == [n] * n


@every_kind
@pytest.mark.parametrize("like", [dlf.full_like, dlf.zeros_like, dlf.ones_like])
def test_memory_like_some_other_is_filled_where_that_is(like, managed):
    last = min(device_count(), 2) - 1
    model = dlf.full((5, 6), 9.0, device=("gpu", last), managed=managed, layout=(1, 0))
    made = like(model, 0.1) if like is dlf.full_like else like(model)
    expected = {dlf.full_like: 0.1, dlf.zeros_like: 0.0, dlf.ones_like: 1.0}[like]
    assert (values_of(made) == expected).all()
    assert (made.device_id, made.layout, type(made)) == (last, (1, 0), type(model))


@every_kind
def test_the_values_of_the_model_are_as_they_were(managed):
    model = dlf.full((5, 6), 9.0, device="gpu", managed=managed)
    made = dlf.full_like(model, 0.1)
    assert (values_of(model) == 9).all()
    assert (values_of(made) == 0.1).all()


@every_kind
def test_a_value_that_does_not_fit_is_refused_as_on_the_host(managed):
    before = live_allocations()
    with pytest.raises(OverflowError, match="fill_value: expected a number that int8 holds"):
        dlf.full((3, 4), 300, "int8", device="gpu", managed=managed)
    assert live_allocations() == before


@pytest.mark.stand_in
@every_kind
@pytest.mark.parametrize(
    ("name", "value", "kernels"),
    [
        ("float64", 0.0, 0),
        ("float32", 0.1, 0),
        ("int64", -1, 0),
        ("int64", 0x100000001, 0),
        ("float64", 1.0, 1),
        ("complex128", 1j, 1),
    ],
)
def test_a_fill_copies_nothing_and_needs_a_kernel_for_long_patterns_only(
    name, value, kernels, managed
):
    made = []

    def fill():
        made.append(dlf.full((30, 40), value, name, device="gpu", managed=managed))

    fill()  # the first kernel of a process is loaded
    assert asked(fill) == ((0, 0, 0), kernels, 0)


@pytest.mark.stand_in
@every_kind
def test_of_no_elements_nothing_is_filled(managed):
    made = []
    fill = lambda: made.append(dlf.full((3, 0), 0.1, device="gpu", managed=managed))  # noqa: E731
    assert asked(fill) == ((0, 0, 0), 0, 0)
    assert made[0].shape == (3, 0)


@every_kind
def test_a_fill_is_in_order_with_a_stream_of_the_users(managed):
    on = driver.stream()
    with dlf.use_stream(on):
        field = dlf.full((30, 40), 0.1, device="gpu", managed=managed)
    other = dlf.zeros((30, 40), device="gpu", managed=managed)
    other[...] = field
    field[...] = dlf.full((30, 40), 7.0, device="gpu", managed=None)
    assert (values_of(other) == 0.1).all()
    assert (values_of(field) == 7).all()
    driver.call("cuStreamSynchronize", on)
