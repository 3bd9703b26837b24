"""What an engine is: `HaloExchange` calls `start`, then `test` any number of times, then `wait`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from dlfield.halo.fields import check_apart
from dlfield.halo.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Storage
    from dlfield.halo.fields import PlannedField
    from dlfield.halo.mpi import Connection
    from dlfield.halo.route import Route

__all__ = ["Engine"]


class Engine(ABC):
    """Moves the messages of a route. Collective to make, which plans the exchange of `fields`.

    Parameters
    ----------
    route
        What goes where.
    fields
        The fields of the plan.
    connection
        The communicator; makes requests of the messages to send and to receive.
    """

    name: ClassVar[str]

    def __init__(self, route: Route, fields: Sequence[Storage], connection: Connection) -> None:
        self._route = route
        self._planned = Remembered(self._plan_apart)
        self._connect(fields, connection)
        self._planned.of(fields)  # what cannot be exchanged is refused now

    def _plan_apart(self, fields: Sequence[Storage]) -> Any:
        """Plan the exchange of fields that share no memory; others are refused by name."""
        check_apart(self._route.fields, fields)
        return self._plan(fields)

    @staticmethod
    @abstractmethod
    def refuse(field: PlannedField, storage: Storage) -> str | None:
        """Say why a storage of a field cannot go this way; None if it can."""

    @abstractmethod
    def _connect(self, fields: Sequence[Storage], connection: Connection) -> None:
        """Prepare what serves every exchange, whatever its fields."""

    @abstractmethod
    def _plan(self, fields: Sequence[Storage]) -> Any:  # the engine's own
        """Plan the exchange of some fields; the last few plans are remembered."""

    @abstractmethod
    def start(self, fields: Sequence[Storage]) -> None:
        """Read the points that are sent, and start the messages."""

    @abstractmethod
    def wait(self) -> None:
        """Wait for the messages, and write the halos."""

    @abstractmethod
    def test(self) -> bool:
        """Return whether all messages have arrived. Lets MPI make progress."""

    def forget_last(self) -> None:
        """Keep the fields of the last exchange no longer. Nothing is under way."""
        self._planned.forget_last()

    def free(self) -> None:
        """Free requests, buffers and plans. Nothing is under way."""
        self._planned.clear()
