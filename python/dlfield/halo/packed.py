"""The engine "packed": one message per neighbour, which CopyBatch packs and unpacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import CopyBatch, GPUStorage, Storage, as_storage, empty
from dlfield.halo.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

    from dlfield.halo._mpi import Requests
    from dlfield.halo.neighbours import Edge
    from dlfield.halo.route import Route

__all__ = ["Packed"]

#: Bytes of the boundary at which each part of a message begins: as much as the largest item needs.
BOUNDARY = 16


class Packed:
    """Messages in buffers that are kept, and the copies between them and the fields.

    Parameters
    ----------
    route
        What goes where.
    fields
        The fields of the plan.
    connect
        Makes persistent requests of the messages to send and to receive.
    """

    name = "packed"

    def __init__(
        self, route: Route, fields: Sequence[Storage], connect: Callable[..., Requests]
    ) -> None:
        self._route = route
        self._sent = [_Buffer(route.sent(fields, edge)) for edge in route.messages]
        self._received = [_Buffer(route.received(fields, edge)) for edge in route.messages]
        self._requests = connect(
            _with_parts(self._sent, route.messages), _with_parts(self._received, route.messages)
        )
        self._planned = Remembered(self._plan)
        self._planned.of(fields)  # what cannot be copied is refused now
        self._unpack: _Copies | None = None

    @staticmethod
    def refuse(_field: Storage) -> str | None:
        """Say why a field cannot go this way: every field can."""
        return None

    def start(self, fields: Sequence[Storage]) -> None:
        """Pack, and start the messages."""
        pack, unpack = self._planned.of(fields)
        pack.run()
        self._requests.start()
        self._unpack = unpack

    def wait(self) -> None:
        """Wait for the messages, and unpack."""
        self._requests.wait()
        unpack, self._unpack = self._unpack, None
        if unpack is not None:
            unpack.run()

    def test(self) -> bool:
        """Tell whether all messages have arrived."""
        return self._requests.test()

    def free(self) -> None:
        """Give requests and copies back."""
        self._requests.free()
        self._planned.clear()
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
        sides = [(isinstance(one, GPUStorage), isinstance(two, GPUStorage)) for one, two in pairs]
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


class _Buffer:
    """The memory of a message on the host, with a storage over each part of it.

    It is pinned if a field has memory of a GPU alone, which is copied from and to there.

    Parameters
    ----------
    views
        What the parts stand for.
    """

    def __init__(self, views: Sequence[Storage]) -> None:
        starts, end = [], 0
        for view in views:
            starts.append(end)
            end += -(-view.nbytes // BOUNDARY) * BOUNDARY
        pinned = {"device": "gpu", "managed": "gt4py"}
        options: dict[str, Any] = (
            pinned if any(isinstance(view, GPUStorage) for view in views) else {}
        )
        self.bytes = empty((end,), dtype="uint8", **options).to_numpy()
        self.parts = [self._part(at, view) for at, view in zip(starts, views, strict=True)]

    def _part(self, start: int, view: Storage) -> Storage:
        items = self.bytes[start : start + view.nbytes].view(view.dtype)
        part: Storage = as_storage(items.reshape(view.shape), dims=view.dims)
        return part


def _with_parts(
    buffers: Sequence[_Buffer], edges: Sequence[Edge]
) -> list[tuple[npt.NDArray[np.uint8], Edge]]:
    """Give the memory of each message that is not empty, and its edge."""
    pairs = zip(buffers, edges, strict=True)
    return [(buffer.bytes, edge) for buffer, edge in pairs if buffer.parts]
