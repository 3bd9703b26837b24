"""Neighbours in any topology: turned and mirrored edges, and edges without a counterpart."""

import dlfield as dlf
import numpy as np
import pytest
from dlfield.halo import Edge, Neighbours

from support.halo import ORDERS
from support.ranks import mpi_is_needed, on_ranks

mpi_is_needed()

POINTS, WIDTH, LEVELS = 6, 2, 3

#: How the second of two tiles lies beside the first: its own point for a point of the plane, the
#: edges of both. Rows are x, from 0 to 11 over both tiles; columns are y.
PLACES = {
    "straight": (
        lambda x, y: (x - POINTS, y),
        Edge(1, {"I": 1}, {"I": 1}),
        Edge(0, {"I": -1}, {"I": -1}),
    ),
    "turned by a quarter": (
        lambda x, y: (POINTS - 1 - y, x - POINTS),
        Edge(1, {"I": 1}, {"I": 1}, axes={"I": "J", "J": "I"}, flip=["J"]),
        Edge(0, {"J": -1}, {"J": -1}, axes={"I": "J", "J": "I"}, flip=["I"]),
    ),
    "turned by a half": (
        lambda x, y: (2 * POINTS - 1 - x, POINTS - 1 - y),
        Edge(1, {"I": 1}, {"I": 1}, flip=["I", "J"]),
        Edge(0, {"I": 1}, {"I": 1}, flip=["I", "J"]),
    ),
    "mirrored": (
        lambda x, y: (x - POINTS, POINTS - 1 - y),
        Edge(1, {"I": 1}, {"I": 1}, flip=["J"]),
        Edge(0, {"I": -1}, {"I": -1}, flip=["J"]),
    ),
}


def tile(rank, place, layout):
    """Make a tile, and what it has to be: numbers of its domain and of the halo at its edge."""
    order = tuple(layout.index(dim) for dim in "IJK")
    u = dlf.full(
        (POINTS + 2 * WIDTH,) * 2 + (LEVELS,),
        -1.0,
        dims="IJK",
        halo=(WIDTH, WIDTH, 0),
        layout=order,
    )
    expected = np.full(u.shape, -1.0)
    for x in range(2 * POINTS):
        for y in range(POINTS):
            i, j = (x, y) if rank == 0 else place(x, y)
            near = -WIDTH <= i < POINTS + WIDTH and -WIDTH <= j < POINTS + WIDTH
            if near:
                column = 100 * x + 10 * y + np.arange(LEVELS)
                expected[i + WIDTH, j + WIDTH] = column
    inner = np.s_[WIDTH:-WIDTH, WIDTH:-WIDTH]
    u.to_numpy()[inner] = expected[inner]
    return u, expected


@on_ranks(2)
def test_the_halo_at_a_turned_or_mirrored_edge_goes_on_with_the_neighbour_s_points(comm):
    for place, *edges in PLACES.values():
        neighbours = Neighbours(comm, [edges[comm.rank]])
        u, expected = tile(comm.rank, place, ORDERS[comm.rank + 1])
        with dlf.halo_exchange({"u": u}, neighbours) as plan:
            plan.exchange()
        assert np.array_equal(u, expected)


@on_ranks(1)
def test_a_tile_may_be_its_own_neighbour_around_a_corner(comm):
    edges = [
        Edge(0, {"I": 1}, {"I": 1}, axes={"I": "J", "J": "I"}, flip=["I"], tag=0, receive_tag=1),
        Edge(0, {"J": 1}, {"J": 1}, axes={"I": "J", "J": "I"}, flip=["J"], tag=1, receive_tag=0),
    ]
    u, _ = tile(0, None, "IJK")
    with dlf.halo_exchange({"u": u}, Neighbours(comm, edges)) as plan:
        plan.exchange()
    a, (low, high) = u.to_numpy(), (WIDTH, WIDTH + POINTS)
    for out in range(WIDTH):
        assert np.array_equal(a[high + out, low:high], a[low:high, high - 1 - out])
        assert np.array_equal(a[low:high, high + out], a[high - 1 - out, low:high])


@on_ranks(2, 4)
def test_a_ring_of_edges_with_numbers_is_a_periodic_row(comm):
    up, down = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    edges = [
        Edge(up, {"I": 1}, {"I": 1}, tag=5, receive_tag=9),
        Edge(down, {"I": -1}, {"I": -1}, tag=9, receive_tag=5),
    ]
    u = dlf.as_storage(np.array([-1.0, comm.rank, comm.rank, -1]), dims="I", halo=(1,))
    with dlf.halo_exchange([u], Neighbours(comm, edges), dims="I") as plan:
        plan.exchange()
    assert u.to_numpy().tolist() == [down, comm.rank, comm.rank, up]


@on_ranks(2, 4)
def test_an_edge_without_a_counterpart_is_an_error_on_all_ranks(comm):
    edges = [Edge(1, {"I": 1}, {"I": 1})] if comm.rank == 0 else []
    with pytest.raises(
        ValueError,
        match=r"^rank 0: edges: expected messages from rank 1 with the tags \[0\], got its",
    ):
        Neighbours(comm, edges)


@on_ranks(2)
def test_edges_that_make_no_sense_are_errors_on_all_ranks(comm):
    other = 1 - comm.rank
    good = Edge(other, {"I": 1}, {"I": 1})
    for bad, text in [
        ([3], "edges: expected objects of class Edge, got 3"),
        ([Edge(7, {"I": 1}, {"I": 1})], "edges: expected ranks from 0 to 1, got 7"),
        ([Edge(other, {"I": 1}, {"I": 1}, tag=5000)], "edges: expected tags from 0 to 1023, got"),
        ([good, good], "edges: expected one message with each tag to a rank, got two with tag 0"),
    ]:
        with pytest.raises(ValueError, match=f"^rank 1: {text}"):
            Neighbours(comm, bad if comm.rank == 1 else [good])
    u = dlf.zeros((6, 6), dims="IJ", halo=(1, 1))
    for edge, text in [
        (Edge(other, {"L": 1}, {"I": 1}), r"expected one of \('I', 'J'\), got 'L'"),
        (Edge(other, {"I": 2}, {"I": 1}), "expected -1, 0 or 1 along I, got 2"),
    ]:
        with pytest.raises(ValueError, match=f"^rank 0: edges: {text}"):
            dlf.halo_exchange([u], Neighbours(comm, [edge]))
    with pytest.raises(TypeError, match="comm: expected an intracommunicator of mpi4py, got int"):
        Neighbours(3, [])


@on_ranks(2)
def test_edges_that_cannot_be_read_on_one_rank_are_errors_on_all_ranks(comm):
    other, wrong = 1 - comm.rank, comm.rank == 1
    edge = Edge(float(other) if wrong else other, {"I": 1}, {"I": 1})
    with pytest.raises(ValueError, match=r"^rank 1: edges: expected ranks that are ints, got 0\.0"):
        Neighbours(comm, [edge])
    edge = Edge(other, {"I": 1}, {"I": 1}, axes={"I": "J"} if wrong else {})
    u = dlf.zeros((6, 6), dims="IJ", halo=(1, 1))
    with pytest.raises(ValueError, match=r"^rank 1: field '0': .*'J'"):
        dlf.halo_exchange([u], Neighbours(comm, [edge]))
