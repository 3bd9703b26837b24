"""What goes over which edge, as views of the fields in the order of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Storage
    from dlfield.halo.edge import Edge
    from dlfield.halo.fields import PlannedField

__all__ = ["Route"]


class Route:
    """The edges of a plan: copies within this rank, and messages to others.

    Views have their axes in the order of the wire, the same on all ranks whatever their layouts,
    and the names and directions of the sender.

    Parameters
    ----------
    fields
        The fields of the plan.
    edges
        The edges of this rank.
    order
        Names of dimensions, slowest first. Others follow them in the order of the alphabet.
    rank
        This rank.
    """

    def __init__(
        self,
        fields: Sequence[PlannedField],
        edges: Sequence[Edge],
        order: Sequence[str],
        rank: int,
    ) -> None:
        self.fields, self.rank, self._order = fields, rank, order
        self.edges = edges
        own = [field.storage for field in fields]
        within = [edge for edge in edges if edge.rank == rank]
        ends = {edge.expected_tag: edge for edge in within}
        #: Pairs of edges of this rank: where points come from, and where they go.
        self.within = [(edge, ends[edge.tag]) for edge in within]
        #: Edges over which there is something to send or to receive.
        self.messages = [
            edge
            for edge in edges
            if edge.rank != rank and (self.sent(own, edge) or self.received(own, edge))
        ]

    def sent(self, storages: Sequence[Storage], edge: Edge) -> list[Storage]:
        """View what goes over an edge."""
        pairs = zip(self.fields, storages, strict=True)
        views = (field.sent(storage, edge) for field, storage in pairs)
        return [self.ordered(view) for view in views if view is not None]

    def received(self, storages: Sequence[Storage], edge: Edge) -> list[Storage]:
        """View the halo that what comes over an edge fills."""
        pairs = zip(self.fields, storages, strict=True)
        views = (field.received(storage, edge) for field, storage in pairs)
        return [self.ordered(view) for view in views if view is not None]

    def copies(self, storages: Sequence[Storage]) -> tuple[list[Storage], list[Storage]]:
        """View what this rank copies to itself, and where to."""
        sources = [view for start, _ in self.within for view in self.sent(storages, start)]
        targets = [view for _, end in self.within for view in self.received(storages, end)]
        return sources, targets

    def problem_of_shapes(self, edge: Edge, got: Shapes) -> ValueError | None:
        """Compare what comes over an edge with the halo that it fills."""
        for field, own, other in zip(self.fields, self.shapes(edge)[1], got, strict=True):
            if own != other:
                return ValueError(
                    f"field '{field.name}': expected {_points(own)} from rank {edge.rank}, as the "
                    f"halo there has, got {_points(other)}; blocks beside each other need the same "
                    "extents"
                )
        return None

    def shapes(self, edge: Edge) -> tuple[Shapes, Shapes]:
        """Return what is sent and received over an edge: extents by dimension, for each field."""
        sent = (field.sent(field.storage, edge) for field in self.fields)
        received = (field.received(field.storage, edge) for field in self.fields)
        return tuple(map(self._extents, sent)), tuple(map(self._extents, received))

    def _extents(self, view: Storage | None) -> tuple[tuple[str, int], ...]:
        if view is None:
            return ()
        ordered = self.ordered(view)
        return tuple(zip(ordered.dims or (), ordered.shape, strict=True))

    def ordered(self, view: Storage) -> Storage:
        """Put the axes of a view in the order of the wire."""
        dims: tuple[str, ...] = view.dims or ()
        known = {name: place for place, name in enumerate(self._order)}
        order = sorted(dims, key=lambda name: (known.get(name, len(known)), name))
        ordered: Storage = view.transpose(*(dims.index(name) for name in order))
        return ordered


#: Extents by dimension, for each field; empty for a field of which nothing goes there.
Shapes = tuple[tuple[tuple[str, int], ...], ...]


def _points(shape: Sequence[tuple[str, int]]) -> str:
    return " x ".join(f"{dim}={extent}" for dim, extent in shape) or "nothing"
