"""The transpose of an exchange: what a halo received goes back, and is added where it came from.

The derivative of an exchange with respect to the fields is the exchange itself; in reverse, the
cotangents of a halo belong to the points that filled it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield.functions.host import has_host_buffer
from dlfield.halo.engines.packed import Message, with_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlfield._core import Storage
    from dlfield.halo.mpi import Connection
    from dlfield.halo.route import Route

    #: Takes a direction and a function that gives one array for each field. Returns these arrays,
    #: which it has changed in place. What the function raises, all ranks raise.
    Step = Callable[[str, Callable[[], Sequence[Any]]], Sequence[Any]]

__all__ = ["OTHER", "Transposed"]

#: The two directions, and the transpose of each.
OTHER = {"exchange": "transpose", "transpose": "exchange"}


class Transposed:
    """The messages of a route, the other way.

    Parameters
    ----------
    route
        What goes where.
    fields
        The fields of the plan, in memory of the host.
    connection
        Makes requests of the messages.
    """

    def __init__(self, route: Route, fields: Sequence[Storage], connection: Connection) -> None:
        for planned, field in zip(route.fields, fields, strict=True):
            if not has_host_buffer(field):
                expected = "expected memory of the host for a derivative, got a GPU"
                raise NotImplementedError(f"field '{planned.name}': {expected}")
        self._route = route
        self._back, self._returned = (
            [Message(side(fields, edge), gpu_aware=False) for edge in route.messages]
            for side in (route.received, route.sent)
        )
        self._requests = connection.requests(
            with_parts(self._back, route.messages),
            with_parts(self._returned, route.messages),
            back=True,
        )

    def run(self, fields: Sequence[Storage]) -> None:
        """Add what is in halos to the points that fill them, and clear it."""
        route = self._route
        sources, targets = route.copies(fields)
        kept = [halo.to_numpy().copy() for halo in targets]
        for message, edge in zip(self._back, route.messages, strict=True):
            halos = route.received(fields, edge)
            for part, halo in zip(message.parts, halos, strict=True):
                part.to_numpy()[...] = halo.to_numpy()
            targets += halos
        for halo in targets:
            halo.to_numpy()[...] = 0
        self._requests.start()
        self._requests.wait()
        for message, edge in zip(self._returned, route.messages, strict=True):
            sources += route.sent(fields, edge)
            kept += [part.to_numpy() for part in message.parts]
        for points, more in zip(sources, kept, strict=True):
            points.to_numpy()[...] += more

    def free(self) -> None:
        """Free the requests and the buffers."""
        self._requests.free()
        self._back, self._returned = [], []
