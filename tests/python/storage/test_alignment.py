"""Alignment: where elements lie, counted from the address and strides that a storage shows."""

import itertools

import dlfield as dlf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.addresses import address_of


@st.composite
def aligned_fields(draw):
    """Shape, dtype and options, with an alignment that items can meet."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    dtype = np.dtype(draw(st.sampled_from(["int8", "float32", "float64", "complex128"])))
    factor = draw(st.sampled_from([1, 2, 3, 4, 8, 16, 32]))
    options = {
        "layout": draw(st.permutations(range(len(shape)))),
        "aligned_index": tuple(draw(st.integers(0, extent - 1)) for extent in shape),
        "alignment_size": factor * dtype.itemsize,
    }
    return shape, dtype, options


def rows(storage):
    """Index of the aligned element of every row along the contiguous dimension."""
    inner = storage.layout.index(storage.ndim - 1)
    ranges = [range(extent) for extent in storage.shape]
    ranges[inner] = [storage.aligned_index[inner]]
    return itertools.product(*ranges)


def address_at(storage, index):
    steps = zip(storage.strides, index, strict=True)
    return address_of(storage) + sum(stride * at for stride, at in steps)


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "`aligned_index` is the point that is aligned",
    "the address of the aligned point is a multiple of `alignment_size` bytes",
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`aligned_index` is the point that is aligned",
    "the address of the aligned point is a multiple of `alignment_size`",
)
@given(aligned_fields())
def test_the_aligned_element_of_every_row_lies_on_the_boundary(field):
    shape, dtype, options = field
    storage = dlf.empty(shape, dtype, **options)
    for index in rows(storage):
        assert address_at(storage, index) % options["alignment_size"] == 0


@given(aligned_fields())
def test_no_two_elements_share_memory_whatever_the_padding(field):
    shape, dtype, options = field
    storage = dlf.zeros(shape, dtype, **options)
    values = (np.arange(storage.size) % 127).reshape(shape).astype(dtype)
    storage.to_numpy()[...] = values
    np.testing.assert_array_equal(storage.to_numpy(), values)
    distinct = {address_at(storage, index) for index in np.ndindex(shape)}
    assert len(distinct) == storage.size


@given(aligned_fields())
def test_the_contiguous_dimension_has_no_gaps(field):
    shape, dtype, options = field
    storage = dlf.empty(shape, dtype, **options)
    assert storage.strides[storage.layout.index(storage.ndim - 1)] == dtype.itemsize


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "`alignment_size` is 1 unless given: no alignment"
)
@pytest.mark.source(
    "GDP-3 draft", "Storage Constructors", "an alignment of 1, the default, means none"
)
@pytest.mark.source(
    "Allocation note",
    "Optional Keyword-Only Parameters",
    "`alignment_size` is 1 unless given: no alignment",
)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4).flatmap(
        lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))
    )
)
def test_without_alignment_nothing_is_padded_and_the_first_element_is_aligned(field):
    shape, layout = field
    storage = dlf.empty(shape, layout=layout, halo=[0] * len(shape))
    in_order = storage.to_numpy().transpose(np.argsort(layout))
    assert in_order.flags.c_contiguous
    assert address_of(storage) % 64 == 0


@pytest.mark.source(
    "GDP-3", "Optional Keyword-Only Parameters", "`aligned_index` is the lower halo unless given"
)
def test_the_first_point_of_the_domain_is_what_a_halo_aligns():
    storage = dlf.zeros((20, 20, 5), halo=(3, 3, 0), layout=(2, 1, 0), alignment_size=64)
    assert address_at(storage, (3, 0, 0)) % 64 == 0
    assert address_at(storage, (3, 7, 2)) % 64 == 0
    assert address_of(storage.domain_view) % 64 == 0


def test_a_divisor_of_the_item_size_pads_nothing():
    storage = dlf.empty((5, 7), alignment_size=4)
    assert (storage.strides, storage.alignment_size) == ((56, 8), 4)


@pytest.mark.source(
    "GDP-3",
    "Optional Keyword-Only Parameters",
    "the address of the aligned point is a multiple of `alignment_size` bytes",
)
def test_alignments_beyond_a_page_are_met():
    storage = dlf.empty((3, 5), alignment_size=1 << 21)
    assert address_of(storage) % (1 << 21) == 0
    assert storage.strides == (1 << 21, 8)


def test_memory_that_is_aligned_as_asked_is_taken_as_it_is():
    storage = dlf.empty((4, 5), alignment_size=64)
    assert address_of(dlf.as_storage(storage.to_numpy(), alignment_size=64)) == address_of(storage)


def test_memory_that_is_not_aligned_as_asked_is_refused_with_the_way_out():
    array = dlf.empty((4, 5)).to_numpy()
    with pytest.raises(ValueError, match=r"boundary of 64 bytes.*make a copy"):
        dlf.as_storage(array, alignment_size=64)


def test_the_domain_of_a_storage_with_another_aligned_index_is_a_storage_again():
    storage = dlf.zeros((8, 8), halo=(3, 3), aligned_index=(0, 0), alignment_size=64)
    domain = storage.domain_view
    assert address_of(dlf.as_storage(domain)) == address_of(domain)


def test_what_a_storage_says_of_its_alignment_is_true_of_its_domain_too():
    storage = dlf.zeros((8, 8), halo=(3, 3), aligned_index=(1, 5), alignment_size=64)
    domain = storage.domain_view
    assert address_at(domain, domain.aligned_index) % domain.alignment_size == 0


def test_a_storage_whose_lower_halo_fills_it_is_a_storage_again():
    storage = dlf.zeros((2,), dims="I", halo=((2, 0),), alignment_size=32)
    assert storage.aligned_index == (2,)
    for again in (dlf.as_storage(storage), dlf.as_storage(storage.rename(I="x")), storage.copy()):
        assert again.aligned_index == (2,)
