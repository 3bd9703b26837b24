"""Pickles that lie: `rebuild_storage` believes nothing, and nothing of what it refuses stays."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield._core import live_allocations, rebuild_storage

from support.parameters import readable
from support.processes import run_in_fork

NOTHING = (None, None, None, 1, None)
HONEST = {
    "values": bytes(48),
    "dtype": "float64",
    "shape": (2, 3),
    "ranks": (0, 1),
    "known": NOTHING,
}
DIMS, HALO, ALIGNED_INDEX, ALIGNMENT, ORIGIN = range(5)


def rebuilt(**lies):
    return rebuild_storage(*{**HONEST, **lies}.values())


def knowing(place, value):
    """Return the labels of the field, all unset except one."""
    return (*NOTHING[:place], value, *NOTHING[place + 1 :])


def refused(error, text=None, **lies):
    before = live_allocations()
    with pytest.raises(error, match=text):
        rebuilt(**lies)
    assert live_allocations() <= before


def test_an_honest_pickle_is_read():
    assert rebuilt().shape == (2, 3)


@pytest.mark.parametrize("length", [0, 1, 40, 47, 49, 56, 96])
def test_too_few_or_too_many_bytes_are_refused(length):
    refused(ValueError, f"expected 48 of them.*got {length}", values=bytes(length))


@pytest.mark.parametrize("shape", [(0, 3), (0,), (2**31, 0)])
def test_bytes_for_no_element_are_refused(shape):
    ranks = tuple(range(len(shape)))
    refused(ValueError, "expected 0 of them.*got 48", shape=shape, ranks=ranks)


@pytest.mark.parametrize("values", [None, 3, "text" * 12, [0] * 48, object()], ids=readable)
def test_pickled_values_must_be_bytes(values):
    refused(TypeError, "bytes-like", values=values)


def test_values_with_gaps_are_refused():
    refused(TypeError, "C-contiguous", values=memoryview(bytes(96))[::2])


@pytest.mark.parametrize("dtype", ["float65", "V8", "object", ">f8", "float64\0", "x" * 10**6])
def test_a_type_that_no_storage_has_is_refused(dtype):
    refused(ValueError, "dtype: expected bool, int8", dtype=dtype)


@pytest.mark.parametrize("dtype", [None, 3, np.float64], ids=repr)
def test_a_pickled_type_must_be_a_name(dtype):
    refused(TypeError, dtype=dtype)


@pytest.mark.parametrize("shape", [(-2, 3), (2, -3), (-2, -3), (-(2**63), 0)])
def test_negative_extents_are_refused(shape):
    refused((ValueError, BufferError), shape=shape)


@pytest.mark.parametrize(
    "shape", [(2**62, 2**62), (2**60, 3), (2**63 - 1, 1), (2**32, 2**32), (2**62, 2**62, 0)]
)
def test_extents_whose_product_overflows_are_refused(shape):
    refused((ValueError, BufferError), shape=shape, ranks=tuple(range(len(shape))))


@pytest.mark.parametrize("lie", [{"shape": (2**64, 3)}, {"ranks": (0, 2**64)}], ids=str)
def test_numbers_of_more_than_64_bits_are_refused(lie):
    refused(ValueError, **lie)


@pytest.mark.parametrize("ndim", [65, 3000])
def test_too_many_dimensions_are_refused(ndim):
    refused(BufferError, "at most 64 dimensions", shape=(1,) * ndim, ranks=tuple(range(ndim)))


@pytest.mark.parametrize("ranks", [(0, 0), (1, 2), (-1, 0), (0,), (), (2**63 - 1, 0)])
def test_pickled_ranks_must_be_a_permutation(ranks):
    refused(ValueError, "pickle: expected each rank once for the shape", ranks=ranks)


@pytest.mark.parametrize("ranks", [(0, 1, 2), (0, 1, 0), (0, 1, -7)])
def test_more_ranks_than_dimensions_are_refused(ranks):
    refused(ValueError, "pickle: expected each rank once for the shape", ranks=ranks)


@pytest.mark.parametrize("shape", [6, "23", (2.0, 3), (None, 3), None], ids=repr)
def test_a_pickled_shape_must_be_a_sequence_of_ints(shape):
    refused(TypeError, shape=shape)


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (DIMS, ["I"], "dims: expected one entry"),
        (DIMS, ["I", "I"], "dims: expected distinct names"),
        (HALO, [(1, 1)], "halo: expected one entry"),
        (HALO, [(-1, 0), (0, 0)], "halo: expected widths"),
        (HALO, [(2, 1), (0, 0)], "halo: expected widths"),
        (HALO, [(2**63 - 1, 2**63 - 1), (0, 0)], "halo: expected widths"),
        (ALIGNED_INDEX, [0], "aligned_index: expected one entry"),
        (ALIGNED_INDEX, [0, 3], "aligned_index: expected an index inside"),
        (ALIGNED_INDEX, [-1, 0], "aligned_index: expected an index inside"),
        (ALIGNMENT, 12, "alignment_size: expected a multiple"),
        (ORIGIN, [0], "default_origin: expected one entry"),
        (ORIGIN, [0, 4], "default_origin: expected at most"),
    ],
)
def test_knowledge_that_does_not_fit_the_shape_is_refused(place, value, text):
    refused(ValueError, text, known=knowing(place, value))


@pytest.mark.parametrize("alignment", [2**62, 2**63])
def test_an_alignment_that_no_memory_has_is_refused(alignment):
    refused((ValueError, MemoryError), known=knowing(ALIGNMENT, alignment))


@pytest.mark.parametrize(
    "known", [None, (), NOTHING[:4], (*NOTHING, None), (3, None, None, 1, None)], ids=repr
)
def test_knowledge_of_another_form_is_refused(known):
    refused((TypeError, ValueError), known=known)


@pytest.mark.parametrize("place", [DIMS, HALO, ALIGNED_INDEX, ORIGIN])
def test_a_range_without_end_is_refused_at_once(place):
    refused((TypeError, ValueError, BufferError), known=knowing(place, range(10**12)))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (HALO, [(2**70, 0), (0, 0)]),
        (ALIGNED_INDEX, [2**70, 0]),
        (ALIGNMENT, 2**70),
        (ALIGNMENT, -1),
        (ALIGNMENT, 0),
        (ORIGIN, [0, -(2**70)]),
    ],
)
def test_a_number_that_no_label_has_is_refused_by_name(place, value):
    name = ["dims", "halo", "aligned_index", "alignment_size", "default_origin"][place]
    refused(ValueError, f"^{name}: expected", known=knowing(place, value))


@pytest.mark.parametrize(
    "lie",
    [
        {"dtype": "x" * 10**6},
        {"shape": (10**4000, 3)},
        {"managed": ("x" * 10**6,)},
        {"known": knowing(DIMS, ["x" * 10**6, 3])},
        {"known": knowing(HALO, [10**4000, 0])},
    ],
    ids=lambda lie: next(iter(lie)),
)
def test_the_refusal_of_a_pickle_is_short(lie):
    with pytest.raises((TypeError, ValueError)) as caught:
        rebuilt(**lie)
    assert len(str(caught.value)) < 600


def test_a_buffer_of_other_items_is_read_as_bytes():
    ones = np.ones(6)
    assert rebuilt(values=ones).to_numpy().tolist() == [[1, 1, 1], [1, 1, 1]]


def test_no_combination_of_lies_ends_the_process():
    lies = {
        "values": [b"", bytes(48), bytes(1000), None],
        "dtype": ["float64", "bool", "complex128", "bfloat16", "nonsense"],
        "shape": [(2, 3), (), (0, 3), (-1, 3), (2**62, 2), (2**63 - 1, 0), (1,) * 70],
        "ranks": [(0, 1), (1, 0), (), (5, 5), tuple(range(70))],
        "known": [
            NOTHING,
            (["I", "J"], [(0, 0), (1, 1)], [0, 1], 64, [0, 0]),
            (None, [(2**63 - 1, -1)] * 2, [-(2**63)] * 2, 2**61, None),
            (["K"] * 70, [(1, 1)] * 70, [1] * 70, 8, [1] * 70),
        ],
    }
    seen = run_in_fork(f"""
        from itertools import product
        from dlfield._core import live_allocations, rebuild_storage

        outcomes = set()
        for lie in product(*{list(lies.values())!r}):
            try:
                rebuild_storage(*lie).to_numpy()
                outcomes.add("taken")
            except Exception as error:
                outcomes.add(type(error).__name__)
        print(*sorted(outcomes), live_allocations())
    """)
    assert set(seen.split()) <= {
        "taken",
        "BufferError",
        "MemoryError",
        "TypeError",
        "ValueError",
        "0",
    }


def test_a_storage_that_was_rebuilt_is_whole():
    known = (["I", "J"], [(1, 0), (0, 0)], [1, 2], 64, [1, 1])
    made = rebuilt(known=known, ranks=(1, 0))
    assert repr(made) == repr(dlf.storage(made))
