"""The engine "packed": one message per neighbour, which CopyBatch packs and unpacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import CopyBatch, Storage, as_storage, empty, message_part
from dlfield.functions.host import has_host_buffer
from dlfield.halo.engines.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from dlfield.halo.edge import Edge
    from dlfield.halo.fields import PlannedField
    from dlfield.halo.mpi import Connection

__all__ = ["Message", "Packed", "with_parts"]

#: Bytes of the boundary at which each part of a message begins: as much as the largest item needs.
BOUNDARY = 16


class Packed(Engine):
    """Messages in buffers that are kept, and the copies between them and the fields."""

    name = "packed"

    @staticmethod
    def refuse(_field: PlannedField, _storage: Storage) -> None:
        """Refuse nothing."""

    def _connect(self, fields: Sequence[Storage], connection: Connection) -> None:
        route = self._route
        self._sent, self._received = (
            [Message(side(fields, edge), gpu_aware=connection.gpu_aware) for edge in route.messages]
            for side in (route.sent, route.received)
        )
        self._requests = connection.requests(
            with_parts(self._sent, route.messages), with_parts(self._received, route.messages)
        )
        self._unpack: _Copies | None = None

    def start(self, fields: Sequence[Storage]) -> None:
        """Pack, and start the messages."""
        pack, unpack = self._planned.of(fields)
        pack.run()
        for message in self._sent:
            message.send()
        for message in self._received:
            message.expect()
        self._requests.start()
        self._unpack = unpack

    def wait(self) -> None:
        """Wait for the messages, and unpack."""
        self._requests.wait()
        unpack, self._unpack = self._unpack, None
        for message in self._received:
            message.arrive()
        if unpack is not None:
            unpack.run()

    def test(self) -> bool:
        """Return whether all messages have arrived."""
        return self._requests.test()

    def free(self) -> None:
        """Free the requests and the buffers."""
        super().free()
        self._requests.free()
        self._sent, self._received = [], []

    def _plan(self, fields: Sequence[Storage]) -> tuple[_Copies, _Copies]:
        sources, targets = self._route.copies(fields)
        arrived, halos = [], []
        for edge, sent, received in zip(
            self._route.messages, self._sent, self._received, strict=True
        ):
            sources += self._route.sent(fields, edge)
            targets += sent.parts
            arrived += received.parts
            halos += self._route.received(fields, edge)
        return _Copies(sources, targets), _Copies(arrived, halos)


class _Copies:
    """Copies between fields and buffers, each on the side that it needs.

    Memory of the host, and memory of a GPU alone, are a batch each. Between the two, copies are
    assignments, for which the host waits.
    """

    def __init__(self, sources: Sequence[Storage], targets: Sequence[Storage]) -> None:
        pairs = list(zip(sources, targets, strict=True))
        sides = [(not has_host_buffer(one), not has_host_buffer(two)) for one, two in pairs]
        placed = list(zip(pairs, sides, strict=True))
        same = [[pair for pair, side in placed if side == (gpu, gpu)] for gpu in (False, True)]
        self._across = [pair for pair, (one, other) in placed if one != other]
        self._batches = [
            CopyBatch([source for source, _ in some], [target for _, target in some])
            for some in same
        ]

    def run(self) -> None:
        """Make the copies."""
        for batch in self._batches:
            batch.run()
        for source, target in self._across:
            target[...] = source


class Message:
    """The memory of a message, with a storage over each part of it.

    Parts of fields that all lie in memory of a GPU alone are packed and unpacked there, and go
    through pinned memory of the host in one copy, unless MPI takes them from the GPU. Beside others
    they go through the host one by one.

    Parameters
    ----------
    views
        What the parts stand for.
    gpu_aware
        Whether MPI takes memory of a GPU.
    """

    def __init__(self, views: Sequence[Storage], *, gpu_aware: bool) -> None:
        starts, end = [], 0
        for view in views:
            starts.append(end)
            end += -(-view.nbytes // BOUNDARY) * BOUNDARY
        on_gpu = [not has_host_buffer(view) for view in views]
        self._packed_on_gpu = bool(views) and all(on_gpu)
        self._in_mpi_on_gpu = self._packed_on_gpu and gpu_aware
        managed = None if self._in_mpi_on_gpu else "gt4py"
        options: dict[str, Any] = {"device": "gpu", "managed": managed} if any(on_gpu) else {}
        self._row: Storage = empty((end,), dtype="uint8", **options)
        #: What MPI reads or writes.
        self.buffer: Any = self._row if self._in_mpi_on_gpu else self._row.to_numpy()
        side = self._row._device_side() if self._packed_on_gpu else as_storage(self.buffer)
        self.parts: list[Storage] = [
            message_part(side, at, view) for at, view in zip(starts, views, strict=True)
        ]

    def send(self) -> None:
        """Bring what was packed to where MPI reads it."""
        if self._in_mpi_on_gpu:
            self._row._finish()
        elif self._packed_on_gpu:
            self._row.synchronize()

    def expect(self) -> None:
        """Wait until MPI may write: what arrived before may still be unpacked on a GPU."""
        if self._in_mpi_on_gpu:
            self._row._finish()

    def arrive(self) -> None:
        """Bring what MPI has written to where it is unpacked."""
        if self._packed_on_gpu and not self._in_mpi_on_gpu:
            self._row.set_host_modified()
            self._row.synchronize()


def with_parts(
    messages: Sequence[Message], edges: Sequence[Edge]
) -> list[tuple[npt.NDArray[np.uint8] | Storage, Edge]]:
    """Return the memory of each message that is not empty, and its edge."""
    pairs = zip(messages, edges, strict=True)
    return [(message.buffer, edge) for message, edge in pairs if message.parts]
