"""Blocks of a grid on one rank without MPI, and the shares of many."""

from math import prod

import dlfield as dlf
import numpy as np
import pytest
from dlfield.halo import decomposition, neighbours
from hypothesis import given
from hypothesis import strategies as st


def test_one_rank_has_the_whole_grid_and_its_halo_around_it():
    block = dlf.halo.decompose((6, 5, 4), None, "IJK", {"I": (2, 1), "J": 1}, {"J": True})
    assert block.domain == block.shape == (6, 5, 4)
    assert block.local_shape == (9, 7, 4)
    assert block.halo == ((2, 1), (1, 1), (0, 0))
    assert (block.divided, block.region) == (("I", "J"), {"I": slice(0, 6), "J": slice(0, 5)})
    assert repr(block).startswith("<dlfield.halo.Block I 0:6, J 0:5 of (6, 5, 4)")
    block.free()


def test_fields_of_a_block_have_its_dims_and_halo_or_some_of_them():
    block = dlf.halo.decompose((6, 5, 4), None, "IJK", (1, (2, 0)))
    whole, plane = block.zeros(dtype="float32"), block.empty(dims="JI", layout=(1, 0))
    assert (whole.dims, whole.shape, whole.dtype) == (("I", "J", "K"), (8, 7, 4), np.float32)
    assert (plane.dims, plane.shape, plane.halo) == (("J", "I"), (7, 8), ((2, 0), (1, 1)))
    with pytest.raises(ValueError, match=r"dims: expected one of \('I', 'J', 'K'\), got 'L'"):
        block.zeros(dims="IL")


def test_only_periodic_dimensions_are_wrapped_around():
    block = dlf.halo.decompose((3, 4), None, "IJ", (1, 1), {"I": True})
    u = block.zeros()
    u.domain_view.to_numpy()[...] = np.arange(1.0, 13).reshape(3, 4)
    dlf.halo_exchange([u], block.cart, dims=block.divided).exchange()
    expected = np.zeros((5, 6))
    expected[:, 1:-1] = np.pad(np.arange(1.0, 13).reshape(3, 4), ((1, 1), (0, 0)), mode="wrap")
    assert np.array_equal(u, expected)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        (
            {"dims": "IJK"},
            ValueError,
            r"shape: expected an extent for each of the dims \('I', 'J',",
        ),
        ({"halo": {"K": 1}}, ValueError, r"halo: expected one of \('I', 'J'\), got 'K'"),
        ({"halo": (1, 1, 1)}, ValueError, r"halo: expected one for each of the dims .*, got 3"),
        ({"halo": 1}, TypeError, r"halo: expected values by name or in the order of .*, got 1"),
        ({"halo": {"J": -1}}, ValueError, r"halo: expected at least 0 points along J, got -1"),
        ({"periodic": True}, TypeError, r"periodic: expected values by name or in the order of"),
        ({"comm": "world"}, TypeError, r"comm: expected a communicator of mpi4py or None, got str"),
        ({"shape": (0, 5)}, ValueError, r"shape: expected at least 1 points along I, one for each"),
    ],
)
def test_what_cannot_be_divided_is_refused(options, kind, text):
    arguments = {"shape": (6, 5), "comm": None, "dims": "IJ"} | options
    with pytest.raises(kind, match=text):
        dlf.halo.decompose(**arguments)


class Ranks:
    """Stand for a communicator of some ranks, of which only the size counts."""

    def __init__(self, size):
        self.size = size


@given(st.integers(1, 64), st.integers(1, 200), st.integers(1, 200))
def test_every_rank_has_points_if_there_is_a_way_and_blocks_are_as_square_as_can_be(size, i, j):
    parts = decomposition._parts((i, j, 3), Ranks(size))
    assert prod(parts) == size
    ways = [
        (p, size // p) for p in range(1, size + 1) if size % p == 0 and p <= i and size // p <= j
    ]
    assert (parts in ways) == bool(ways)

    def edge(parts):
        return (j / parts[1] if parts[0] > 1 else 0) + (i / parts[0] if parts[1] > 1 else 0)

    assert all(edge(parts) <= edge(way) + 1e-9 for way in ways)


def test_a_gathered_field_has_its_domain_in_its_own_order_of_dims():
    block = dlf.halo.decompose((6, 5, 4), None, "IJK", (1, (2, 0)))
    field = block.zeros(dims="KJI", dtype="float32")
    field.domain_view[...] = values = np.arange(120, dtype="float32").reshape(4, 5, 6)
    found = block.gather(field)
    assert np.array_equal(found, values)
    assert found.dtype == np.float32
    assert not np.shares_memory(found, field.to_numpy())


def test_a_rank_that_is_not_there_gets_no_grid():
    block = dlf.halo.decompose((6, 5), None, "IJ")
    with pytest.raises(ValueError, match="root: expected a rank from 0 to 0, got 1"):
        block.gather(block.zeros(), root=1)


@pytest.mark.parametrize(
    ("field", "kind", "text"),
    [
        (dlf.zeros((6, 5), dims="IJ", halo=(1, 0)), ValueError, "expected 6 points .* got 4; make"),
        (np.zeros((6, 5)), TypeError, "expected a storage with dims, got a ndarray; name them"),
        (dlf.zeros((6, 5)), TypeError, "expected a storage with dims, got a CPUStorage without"),
    ],
)
def test_what_is_no_field_of_the_block_is_not_gathered(field, kind, text):
    with pytest.raises(kind, match=f"field: {text}"):
        dlf.halo.decompose((6, 5), None, "IJ").gather(field)


@pytest.mark.parametrize("periodic", [["J"], ("J",), {"J"}, {"J": "no"}])
def test_names_of_periodic_dimensions_are_no_answers(periodic):
    with pytest.raises(TypeError, match="periodic: expected"):
        dlf.halo.decompose((8, 6), None, "IJ", periodic=periodic)


def test_widths_of_a_halo_may_be_an_array_and_extents_no_floats():
    block = dlf.halo.decompose((8, 6), None, "IJ", halo={"I": np.array([1, 2])})
    assert block.halo == ((1, 2), (0, 0))
    with pytest.raises(TypeError, match="shape: expected ints, got"):
        dlf.halo.decompose((8.0, 6), None, "IJ")


def test_an_edge_is_checked_before_it_is_compared():
    for rank, send, text in (("0", {"I": 1}, "ranks that are ints"), (0, "I", "directions by")):
        problem = neighbours._problem_of_edges([dlf.halo.Edge(rank, send, {"I": -1})], 1)
        assert f"edges: expected {text}" in str(problem)
