"""The engine "datatypes": MPI reads and writes the fields themselves, by derived datatypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import CopyBatch
from dlfield.functions.host import is_on_host_alone
from dlfield.halo import mpi
from dlfield.halo.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Storage
    from dlfield.halo.fields import PlannedField
    from dlfield.halo.mpi import Connection
    from dlfield.halo.route import Route

__all__ = ["Datatypes"]


class Datatypes:
    """One message per neighbour, of a datatype that describes the points in all fields.

    Parameters
    ----------
    route
        What goes where.
    fields
        The fields of the plan.
    connection
        Makes requests of the messages to send and to receive.
    """

    name = "datatypes"

    def __init__(
        self,
        route: Route,
        fields: Sequence[Storage],
        connection: Connection,
    ) -> None:
        self._route, self._connection = route, connection
        self._planned = Remembered(self._plan, lambda planned: planned[1].free())
        self._requests: mpi.Requests = self._planned.of(fields)[1]

    @staticmethod
    def refuse(_field: PlannedField, storage: Storage) -> str | None:
        """Say why a storage of a field cannot go this way; None if it can."""
        if is_on_host_alone(storage):
            return None
        return (
            "engine: expected fields in host memory alone for 'datatypes', got "
            f"{type(storage).__name__}; use 'packed'"
        )

    def start(self, fields: Sequence[Storage]) -> None:
        """Copy within this rank, and start the messages."""
        within, self._requests = self._planned.of(fields)
        within.run()
        self._requests.start()

    def wait(self) -> None:
        """Wait for the messages."""
        self._requests.wait()

    def test(self) -> bool:
        """Tell whether all messages have arrived."""
        return self._requests.test()

    def free(self) -> None:
        """Give requests and datatypes back."""
        self._planned.clear()

    def _plan(self, fields: Sequence[Storage]) -> tuple[CopyBatch, mpi.Requests]:
        messages = self._route.messages
        ends = ([], []) if not messages else self._typed(fields)
        requests = self._connection.requests(*ends, memory=fields)
        for (_, _, datatype), _ in [*ends[0], *ends[1]]:
            datatype.Free()  # the requests have it
        return CopyBatch(*self._route.copies(fields)), requests

    def _typed(self, fields: Sequence[Storage]) -> tuple[list[Any], list[Any]]:
        sent, received = (
            [
                (mpi.described(list(map(_place, views))), edge)
                for edge in self._route.messages
                if (views := side(fields, edge))
            ]
            for side in (self._route.sent, self._route.received)
        )
        return sent, received


def _place(view: Storage) -> mpi.Place:
    return view.ptr, view.itemsize, tuple(zip(view.shape, view.strides, strict=True))
