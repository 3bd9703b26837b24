"""What the halo exchange takes from mpi4py: the only file that names it."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield.halo.edge import Edge

__all__ = [
    "TAGS_OF_A_PLAN",
    "Channel",
    "Connection",
    "Requests",
    "cart_neighbour",
    "channel_of",
    "has_threads",
    "is_cart",
    "is_communicator",
    "is_finalized",
    "keep",
    "let_go",
    "loaded",
    "most",
    "periodic_of",
    "persistent",
    "takes_gpu",
]

#: Tags that one plan may take. Plans of one communicator have different ones, so that their
#: messages never meet; the first tags come again after half a million plans.
TAGS_OF_A_PLAN = 1024


def _library() -> Any:  # a module without types
    """Return mpi4py's module MPI, which is imported wherever there is a communicator."""
    from mpi4py import MPI

    return MPI


def is_communicator(comm: object) -> bool:
    """Return whether an object is an intracommunicator of mpi4py. Imports nothing."""
    module = sys.modules.get("mpi4py.MPI")
    return module is not None and isinstance(comm, module.Intracomm) and comm != module.COMM_NULL


def is_cart(comm: object) -> bool:
    """Return whether an object is a Cartesian communicator of mpi4py."""
    return is_communicator(comm) and isinstance(comm, _library().Cartcomm)


def cart_neighbour(comm: Any, direction: Sequence[int]) -> int | None:
    """Return the rank in a direction of a Cartesian communicator; None beyond an edge."""
    extents, periodic, own = comm.Get_topo()
    place = [at + step for at, step in zip(own, direction, strict=True)]
    for axis, extent in enumerate(extents):
        if not periodic[axis] and not 0 <= place[axis] < extent:
            return None
        place[axis] %= extent
    rank: int = comm.Get_cart_rank(place)
    return rank


def periodic_of(cart: Any) -> tuple[bool, ...]:
    """Tell along which dimensions a Cartesian communicator is periodic."""
    return tuple(map(bool, cart.Get_topo()[1]))


def is_finalized() -> bool:
    """Return whether MPI was ended, after which it takes no calls."""
    return bool(_library().Is_finalized())


def has_threads() -> bool:
    """Return whether several threads may call MPI at the same time."""
    mpi = _library()
    return bool(mpi.Query_thread() == mpi.THREAD_MULTIPLE)


def takes_gpu(comm: Any) -> bool:
    """Return whether MPI takes memory of a GPU of CUDA, as far as it says so."""
    return _kinds_of_memory(comm) or _supports_cuda()


def _kinds_of_memory(comm: Any) -> bool:
    """Ask by the info of MPI 4.1."""
    info = comm.Get_info()
    kinds = info.Get("mpi_memory_alloc_kinds") or ""
    info.Free()
    return any(kind.split(":")[0] == "cuda" for kind in kinds.split(","))


@cache
def _supports_cuda() -> bool:
    """Ask the library by the function that Open MPI and MPICH have for it."""
    _library()  # loads it, or nothing is known
    for name in (None, *loaded()):
        try:
            return bool(ctypes.CDLL(name).MPIX_Query_cuda_support())
        except (AttributeError, OSError):
            continue
    return False


def loaded() -> list[str]:
    """Return the paths of the libraries of MPI that this process has loaded, on Linux."""
    try:
        maps = Path("/proc/self/maps").read_text("utf-8")
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/libmpi" in line}
    return sorted(paths)


class Channel:
    """The duplicate of a user's communicator on which all plans of that communicator exchange.

    MPI has few communicators (2046 in MPICH): it is made once, and freed with the user's
    communicator, or with the last plan if that comes later.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm.Dup()
        self.plans = 0
        self._orphaned = False
        self._taken = 0

    def take_tags(self) -> int:
        """Return the first tag of a block for a plan. Every rank makes its plans in one order."""
        mpi = _library()
        bound = mpi.COMM_WORLD.Get_attr(mpi.TAG_UB)  # Open MPI tells it there alone
        blocks = (bound + 1) // TAGS_OF_A_PLAN
        first: int = self._taken % blocks * TAGS_OF_A_PLAN
        self._taken += 1
        return first

    def let_go(self, *_: object) -> None:
        """Free the duplicate once the user's communicator is gone. MPI calls it with that one."""
        self._orphaned = True
        self._free_unused()

    def leave(self) -> None:
        """Count one plan less."""
        self.plans -= 1
        self._free_unused()

    def _free_unused(self) -> None:
        if self._orphaned and not self.plans and not is_finalized():
            self.comm.Free()


_keyval: int | None = None


def channel_of(comm: Any) -> Channel:
    """Return the channel of a communicator. Collective where it does not have one yet."""
    global _keyval
    mpi = _library()
    if _keyval is None:
        _keyval = mpi.Comm.Create_keyval(delete_fn=lambda _comm, _key, channel: channel.let_go())
    channel: Channel | None = comm.Get_attr(_keyval)
    if channel is None:
        channel = Channel(comm)
        comm.Set_attr(_keyval, channel)
    return channel


class Awaited(Protocol):
    """What can be waited for."""

    def wait(self) -> None:
        """Wait until it is done."""


#: Messages that are under way. They keep the memory that MPI reads and writes, whatever becomes of
#: the plan.
_active: dict[int, Awaited] = {}


def keep(messages: Awaited) -> None:
    """Keep messages that are under way until `let_go`. Python waits for them when it ends."""
    _active[id(messages)] = messages


def let_go(messages: Awaited) -> None:
    """Keep messages no longer: they have arrived."""
    _active.pop(id(messages), None)


class Requests:
    """Persistent requests, with all that MPI needs while they are under way.

    Parameters
    ----------
    requests
        Inactive persistent requests; receives first.
    memory
        What must live as long as MPI may read or write it.
    """

    def __init__(self, requests: list[Any], memory: object | None) -> None:
        self._requests = requests
        self._memory = memory

    def start(self) -> None:
        """Start all."""
        if self._requests:
            keep(self)
            _library().Prequest.Startall(self._requests)

    def wait(self) -> None:
        """Wait until all are done."""
        if self._requests:
            _library().Request.Waitall(self._requests)
        let_go(self)

    def test(self) -> bool:
        """Return whether all are done; lets MPI make progress."""
        done = not self._requests or bool(_library().Request.Testall(self._requests))
        if done:
            let_go(self)
        return done

    def free(self) -> None:
        """Free requests that are not under way."""
        requests, self._requests, self._memory = self._requests, [], None
        if requests and not sys.is_finalizing() and not is_finalized():
            for request in requests:
                request.Free()


_process = os.getpid()


@atexit.register
def _finish() -> None:
    """Wait for what is under way when Python ends: MPI would write into freed memory."""
    if os.getpid() != _process:
        return  # a fork has copies of requests that are not its own
    for messages in list(_active.values()):
        if not is_finalized():
            messages.wait()


def persistent(
    comm: Any,
    sends: Sequence[tuple[Any, int, int]],
    receives: Sequence[tuple[Any, int, int]],
) -> Requests:
    """Make persistent requests of (buffer, rank, tag). They keep the buffers."""
    requests = [comm.Recv_init(buffer, rank, tag) for buffer, rank, tag in receives]
    requests += [comm.Send_init(buffer, rank, tag) for buffer, rank, tag in sends]
    return Requests(requests, (sends, receives))


class Connection:
    """The communicator and the tags of one plan.

    Parameters
    ----------
    channel
        Where it exchanges; None for a run of one rank.
    tags
        The first of its tags.
    gpu_aware
        Whether MPI gets messages in memory of a GPU.
    """

    def __init__(self, channel: Channel | None, tags: int, *, gpu_aware: bool) -> None:
        self.channel, self.gpu_aware = channel, gpu_aware
        #: A duplicate of the user's communicator; None for a run of one rank.
        self.comm: Any = None if channel is None else channel.comm
        self._tags = tags

    @property
    def number(self) -> int:
        """The number of the plan among those of its communicator."""
        return self._tags // TAGS_OF_A_PLAN

    def requests(
        self,
        sends: Sequence[tuple[Any, Edge]],
        receives: Sequence[tuple[Any, Edge]],
        *,
        back: bool = False,
    ) -> Requests:
        """Make requests of (buffer, edge) to send and to receive.

        With `back`, each message goes to where one over this edge comes from, under its tag.
        """
        if self.comm is None:
            return Requests([], None)

        def addressed(messages: Sequence[tuple[Any, Edge]], *, arriving: bool) -> list[Any]:
            tags = [edge.expected_tag if arriving else edge.tag for _, edge in messages]
            return [
                (one, edge.rank, self._tags + tag)
                for (one, edge), tag in zip(messages, tags, strict=True)
            ]

        return persistent(
            self.comm, addressed(sends, arriving=back), addressed(receives, arriving=not back)
        )


def most(comm: Any, numbers: Sequence[int]) -> list[int]:
    """Return the largest of the numbers of all ranks, each by itself. Collective."""
    own = np.array(numbers, np.int64)
    largest = np.empty_like(own)
    comm.Allreduce(own, largest, _library().MAX)
    return [int(one) for one in largest]
