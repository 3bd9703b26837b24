"""One edge of a block: what the topology, the messages and the plan all speak of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["Edge"]


@dataclass(frozen=True)
class Edge:
    """An edge or a corner of a block, and the neighbour there.

    Parameters
    ----------
    rank
        The neighbour; may be the own rank.
    send, receive
        Directions, with -1 or 1 by the names of dimensions: ``{"I": 1}`` is the upper edge along I.
        The points inside the edge `send` go to the neighbour; the halo outside the edge `receive`
        is filled with what it sends.
    axes
        The neighbour's dimension for each own one, where they differ: ``{"I": "J", "J": "I"}``
        across an edge at which the neighbour is turned.
    flip
        Own dimensions along which the neighbour counts the other way round.
    tag
        Number of the message that is sent, from 0 to 1023. Messages to one rank have different
        tags.
    receive_tag
        Number of the message that is received: the `tag` of the neighbour's edge. `tag` by default.

    Examples
    --------
    >>> from dlfield.halo import Edge
    >>> above = Edge(rank=1, send={"I": 1}, receive={"I": 1})
    >>> above.rank, above.expected_tag
    (1, 0)
    """

    rank: int
    send: Mapping[str, int]
    receive: Mapping[str, int]
    axes: Mapping[str, str] = field(default_factory=dict)
    flip: Collection[str] = ()
    tag: int = 0
    receive_tag: int | None = None

    @property
    def expected_tag(self) -> int:
        """The tag of the message that is received."""
        return self.tag if self.receive_tag is None else self.receive_tag
