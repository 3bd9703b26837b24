"""All ranks refuse together, with one error, or none does."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dlfield.halo import mpi

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["agree"]

#: What has to be alike on all ranks: the name of each thing, and its value.
Description = dict[str, object]


def agree(
    comm: Any,
    problem: Exception | None,
    description: Description | None = None,
    way_out: str = "make the same plan",
) -> None:
    """Raise the same error on every rank if one has a problem, or describes something else.

    Collective: one reduction, and texts only if something is wrong.

    Parameters
    ----------
    comm
        A communicator of mpi4py; None for a serial run, in which the problem is raised as it is.
    problem
        What this rank has found.
    description
        What has to be the same everywhere.
    way_out
        What to do on every rank where it is not.

    Raises
    ------
    ValueError
        With the rank, and what it has found.
    """
    if comm is None:
        if problem is not None:
            raise problem
        return
    digest = _digest(description)
    failed, most, least = mpi.most(comm, [problem is not None, digest, -digest])
    if not failed and most == -least:
        return
    text = None if problem is None else str(problem)
    verdict = _verdict(comm.allgather((text, description or {})), way_out)
    if verdict is not None:
        raise ValueError(verdict) from problem


def _digest(description: Description | None) -> int:
    text = repr(sorted((description or {}).items()))
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest())


def _verdict(everywhere: Sequence[tuple[str | None, Description]], way_out: str) -> str | None:
    """Say what is wrong: the first rank's problem, else the first difference from rank 0.

    None if nothing is: values that are equal may have another `repr`, as numbers of NumPy do.
    """
    for rank, (text, _) in enumerate(everywhere):
        if text is not None:
            return f"rank {rank}: {text}"
    first = everywhere[0][1]
    for rank, (_, other) in enumerate(everywhere):
        for name in [*first, *other]:
            if name not in other or name not in first or other[name] != first[name]:
                expected, got = (one.get(name, "nothing") for one in (first, other))
                return (
                    f"rank {rank}: {name}: expected {expected}, as on rank 0, got {got}; {way_out} "
                    "on every rank"
                )
    return None
