"""Which rank is where: the edges over which a plan exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from dlfield.halo import mpi
from dlfield.halo.agreement import agree
from dlfield.halo.edge import Edge

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Neighbours", "OneRank"]


class Neighbours:
    """The neighbours of a rank in any topology. Collective.

    Components of vectors are exchanged as they are: turning them, and their signs, are the
    caller's.

    Parameters
    ----------
    comm
        A communicator of mpi4py.
    edges
        The edges of this rank. For each there is one of the neighbour that sends what it receives,
        and receives what it sends.

    Raises
    ------
    ValueError
        On all ranks, if an edge of one has no counterpart.

    Examples
    --------
    Two tiles side by side; the second one is turned by a quarter:

    >>> from dlfield.halo import Edge, Neighbours
    >>> quarter = {"I": "J", "J": "I"}
    >>> edges = [
    ...     [Edge(1, {"I": 1}, {"I": 1}, axes=quarter, flip=["J"])],  # of rank 0
    ...     [Edge(0, {"J": -1}, {"J": -1}, axes=quarter, flip=["I"])],  # of rank 1
    ... ]
    >>> neighbours = Neighbours(comm, edges[comm.rank])  # doctest: +SKIP
    """

    def __init__(self, comm: Any, edges: Sequence[Edge]) -> None:
        if not mpi.is_communicator(comm):
            raise TypeError(
                f"comm: expected an intracommunicator of mpi4py, got {type(comm).__name__}"
            )
        self.comm = comm
        channel = mpi.channel_of(comm)
        problem: Exception | None
        try:
            self.edges = tuple(edges)
            problem = _problem_of_edges(self.edges, channel.comm.size)
        except Exception as error:
            problem = error
        agree(channel.comm, problem)
        sent: list[list[int]] = [[] for _ in range(channel.comm.size)]
        for edge in self.edges:
            sent[edge.rank].append(edge.tag)
        agree(channel.comm, _problem_of_pairs(self.edges, channel.comm.alltoall(sent)))

    def __repr__(self) -> str:
        ranks = sorted({edge.rank for edge in self.edges})
        return f"Neighbours({len(self.edges)} edges, ranks {ranks})"


def _problem_of_edges(edges: Sequence[Edge], size: int) -> ValueError | None:
    for edge in edges:
        if not isinstance(edge, Edge):
            return ValueError(f"edges: expected objects of class Edge, got {edge!r}")
        for what, number in (("ranks", edge.rank), ("tags", edge.tag), ("tags", edge.expected_tag)):
            if not hasattr(number, "__index__"):
                return ValueError(f"edges: expected {what} that are ints, got {number!r}")
        if not 0 <= edge.rank < size:
            return ValueError(f"edges: expected ranks from 0 to {size - 1}, got {edge.rank}")
        for steps in (edge.send, edge.receive):
            if not isinstance(steps, Mapping):
                return ValueError(f"edges: expected directions by dimension, got {steps!r}")
        for tag in (edge.tag, edge.expected_tag):
            if not 0 <= tag < mpi.TAGS_OF_A_PLAN:
                last = mpi.TAGS_OF_A_PLAN - 1
                return ValueError(f"edges: expected tags from 0 to {last}, got {tag}")
    return _problem_of_repeats(edges) or _problem_of_directions(edges)


def _problem_of_directions(edges: Sequence[Edge]) -> ValueError | None:
    filled: dict[frozenset[tuple[str, int]], int] = {}
    for edge in edges:
        for what, steps in (("send", edge.send), ("receive", edge.receive)):
            if not any(steps.values()):
                return ValueError(
                    f"edges: expected a direction of -1 or 1 to {what} along a dimension, got "
                    f"{dict(steps)} at the edge to rank {edge.rank}; {{'I': 1}} is the upper edge "
                    "along I"
                )
        halo = frozenset((dim, step) for dim, step in edge.receive.items() if step)
        if halo in filled:
            return ValueError(
                f"edges: expected one edge for each halo, got two that fill that of "
                f"{dict(edge.receive)}, from ranks {filled[halo]} and {edge.rank}; leave one out"
            )
        filled[halo] = edge.rank
    return None


def _problem_of_repeats(edges: Sequence[Edge]) -> ValueError | None:
    for what in ("tag", "expected_tag"):
        seen = set()
        for edge in edges:
            if (one := (edge.rank, getattr(edge, what))) in seen:
                verb = "to" if what == "tag" else "from"
                return ValueError(
                    f"edges: expected one message with each tag {verb} a rank, got two with tag "
                    f"{one[1]} {verb} rank {one[0]}; number them"
                )
            seen.add(one)
    return None


def _problem_of_pairs(edges: Sequence[Edge], sent: Sequence[list[int]]) -> ValueError | None:
    for rank, tags in enumerate(sent):
        expected = sorted(edge.expected_tag for edge in edges if edge.rank == rank)
        if sorted(tags) != expected:
            return ValueError(
                f"edges: expected messages from rank {rank} with the tags {expected}, got its "
                f"edges with the tags {sorted(tags)}; each edge needs its counterpart there"
            )
    return None


@dataclass(frozen=True)
class OneRank:
    """What stands for a Cartesian communicator in a run without MPI.

    Parameters
    ----------
    periodic
        For each dimension, whether the block is its own neighbour along it.
    """

    periodic: tuple[bool, ...]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.periodic)


def edges_of_grid(dims: Sequence[str], grid: Any) -> tuple[Edge, ...]:
    """Return the edges of a Cartesian communicator, or of one rank, whose dimensions are `dims`.

    They are in the order of directions. A message has the number of the sender's direction.
    """
    directions = [one for one in product((-1, 0, 1), repeat=len(dims)) if any(one)]
    edges = []
    for number, direction in enumerate(directions):
        rank = _neighbour(grid, direction)
        if rank is not None:
            towards = dict(zip(dims, direction, strict=True))
            opposite = len(directions) - 1 - number
            edges.append(Edge(rank, towards, towards, tag=number, receive_tag=opposite))
    return tuple(edges)


def _neighbour(grid: Any, direction: Sequence[int]) -> int | None:
    if isinstance(grid, OneRank):
        steps = zip(direction, grid.periodic, strict=True)
        return None if any(step and not periodic for step, periodic in steps) else 0
    return mpi.cart_neighbour(grid, direction)
