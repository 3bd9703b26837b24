"""`storage()`: the same values in memory of its own."""

import dlfield as dlf
import numpy as np
import pytest

from support.addresses import address_of
from support.optional import library
from support.parameters import ML_DTYPES, NUMPY_DTYPES, readable


@pytest.mark.source("GDP-3", "Storage Creation", "`copy` is True unless given")
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "`copy` says whether `storage` copies")
@pytest.mark.parametrize("options", [{}, {"copy": True}], ids=str)
def test_copying_is_what_happens_unless_refused(options):
    source = np.zeros(3)
    assert address_of(dlf.storage(source, **options)) != address_of(source)


@pytest.mark.source(
    "GDP-3", "Storage Creation", "`storage(copy=False)` does what `as_storage` does"
)
@pytest.mark.source("GDP-3 draft", "Storage Constructors", "`copy` says whether `storage` copies")
def test_copy_false_shares_the_memory():
    source = np.zeros(3)
    shared = dlf.storage(source, copy=False)
    assert (address_of(shared), shared.door) == (address_of(source), "buffer")


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "after the preset, a missing option comes from the data",
)
def test_a_copy_is_in_the_order_of_the_source_without_its_gaps():
    source = np.zeros((6, 8), order="F")[::2, ::-1]
    assert dlf.storage(source).strides == (8, 24)


def test_a_layout_and_an_alignment_may_be_asked_of_a_copy():
    source = np.arange(60.0).reshape(3, 4, 5)
    copied = dlf.storage(source, layout=(2, 1, 0), alignment_size=64)
    assert (copied.layout, copied.strides) == ((2, 1, 0), (8, 64, 256))
    np.testing.assert_array_equal(copied.to_numpy(), source)


@pytest.mark.source("GDP-3", "Storage Creation", "`dtype` of `storage` is float64 unless given")
def test_without_dtype_the_type_of_the_data_is_kept():
    for name in NUMPY_DTYPES:
        assert dlf.storage(np.ones(3, name)).dtype == np.dtype(name)


@pytest.mark.source("GDP-3", "Storage Creation", "`dtype` of `storage` is the type of the copy")
def test_another_dtype_is_converted_as_numpy_does():
    source = np.array([[1.75, -2.5], [3.0, 300.0]], order="F")
    copied = dlf.storage(source, dtype="int16")
    np.testing.assert_array_equal(copied.to_numpy(), source.astype("int16"), strict=True)
    assert copied.layout == (1, 0)


def test_a_conversion_keeps_a_broadcast_dense():
    source = np.broadcast_to(np.arange(3.0), (4, 3))
    np.testing.assert_array_equal(dlf.storage(source, dtype="float32").to_numpy(), source)
    np.testing.assert_array_equal(dlf.storage(source).to_numpy(), source)


@pytest.mark.source("GDP-3", "Storage Creation", "with data, options must hold for it")
def test_a_dtype_that_needs_a_copy_is_refused_without_one():
    with pytest.raises(ValueError, match=r"expected float64.*copy=False, got float32.*astype"):
        dlf.storage(np.zeros(3), dtype="float32", copy=False)


def test_byte_swapped_data_is_taken_where_it_is_copied():
    copied = dlf.storage(np.arange(3.0).astype(">f8"))
    np.testing.assert_array_equal(copied.to_numpy(), np.arange(3.0), strict=True)


@pytest.mark.parametrize("copy", ["yes", 1, 0.0, None], ids=readable)
def test_copy_is_true_or_false(copy):
    with pytest.raises(TypeError, match="copy"):
        dlf.storage(np.zeros(3), copy=copy)


@pytest.mark.parametrize("options", [{"halo": (1,)}, {"dims": "I"}, {"layout": (0, 0)}], ids=str)
def test_options_are_checked_for_copies_too(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}: expected"):
        dlf.storage(np.zeros((2, 3)), **options)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_a_copy_converts_from_and_to_ml_dtypes(name):
    dtype = np.dtype(getattr(library("ml_dtypes"), name))
    there = dlf.storage(np.array([1.0, 2.0, 4.0]), dtype=dtype)
    back = dlf.storage(there, dtype=float)
    assert there.dtype == dtype
    assert back.to_numpy().tolist() == [1, 2, 4]


def test_every_order_of_three_dimensions_arrives_in_every_other():
    source = np.arange(24.0).reshape(2, 3, 4)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    for order in orders:
        ordered = dlf.storage(source, layout=order)
        for other in orders:
            copied = dlf.storage(ordered, layout=other)
            np.testing.assert_array_equal(copied.to_numpy(), source)
