"""What `dlfield.explain` says of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dlfield.functions.host import has_host_buffer

if TYPE_CHECKING:
    from dlfield.halo.edge import Edge
    from dlfield.halo.exchange import HaloExchange

__all__ = ["ExchangeExplanation", "NeighbourSizes"]

#: Why a plan has its engine.
_WHY = {
    "packed": "packed in kept buffers, one message per neighbour for all fields",
    "ghex": "by GHEX, one message per neighbour for fields of one layout",
}

#: How messages of fields in memory of a GPU alone travel, by whether MPI takes them there.
_ROADS = {True: "given to MPI, which takes it", False: "through pinned memory of the host"}


class NeighbourSizes(NamedTuple):
    """A neighbour of a rank, and what goes there and comes from there in one exchange.

    Parameters
    ----------
    rank
        The neighbour.
    edge
        Where it is: the direction of the points that it gets.
    sent, received
        Bytes of the elements.
    """

    rank: int
    edge: str
    sent: int
    received: int


class ExchangeExplanation:
    """Result of `explain` for a plan of a halo exchange. Prints as a few lines, or as a table.

    Attributes
    ----------
    engine : str
        What carries the messages.
    neighbours : tuple of NeighbourSizes
        Other ranks with messages, one entry for each edge and corner.
    copies : tuple of NeighbourSizes
        Edges and corners over which this rank copies within itself.
    """

    def __init__(self, plan: HaloExchange) -> None:
        route = plan._route
        own = [field.storage for field in route.fields]

        def sizes(edge: Edge) -> NeighbourSizes:
            parts = (route.sent(own, edge), route.received(own, edge))
            sent, received = (sum(view.nbytes for view in views) for views in parts)
            return NeighbourSizes(edge.rank, _direction(edge), sent, received)

        self._plan, self._rank = repr(plan), route.rank
        on_gpu = not all(map(has_host_buffer, own))
        self._road = [("memory of a GPU", _ROADS[plan._connection.gpu_aware])] if on_gpu else []
        self._fields = [
            (f"field {one.name}", f"{one.dtype} {one.dims} {one.shape}") for one in route.fields
        ]
        self.engine = plan.engine
        self.neighbours = tuple(map(sizes, route.messages))
        self.copies = tuple(sizes(edge) for edge, _ in route.within)

    def __repr__(self) -> str:
        return "\n  ".join([self._title(), *map(": ".join, self._facts())])

    def _repr_html_(self) -> str:
        """Show the same in a notebook, as a table."""
        from dlfield.show.html import page_of_facts

        return page_of_facts(self._title(), self._facts())

    def _title(self) -> str:
        return f"{self._plan} on rank {self._rank}"

    def _facts(self) -> list[tuple[str, str]]:
        sent = (
            (one.edge, f"{one.sent} bytes to rank {one.rank}, {one.received} back")
            for one in self.neighbours
        )
        copied = ((one.edge, f"{one.sent} bytes copied on this rank") for one in self.copies)
        engine = (f"engine {self.engine}", _WHY[self.engine])
        return [engine, *self._fields, *self._road, *sent, *copied]


def _direction(edge: Edge) -> str:
    """Write a direction as I+ J-."""
    steps = [(dim, step) for dim, step in edge.send.items() if step]
    return " ".join(f"{dim}{'+' if step > 0 else '-'}" for dim, step in steps)
