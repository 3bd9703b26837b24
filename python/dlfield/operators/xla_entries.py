"""Functions that XLA calls by name, with arrays of NumPy over its own memory.

The handler in Rust, one for all stencils, reads XLA's buffers and looks the name up here. The name
is a text, and the same in each process: a program of XLA's from a cache finds its stencil.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dlfield._core import xla_entries, xla_handler
from dlfield.stencils.cartesian.internals import identity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlfield._core import Array, BoundStencil
    from dlfield.stencils.halos import Halos

__all__ = ["TARGET", "add_entry", "called", "fingerprint"]

#: The name of the handler, by which XLA knows it.
TARGET = "dlfield_call"
_lock = threading.Lock()
_registered: list[str] = []
_numbers = itertools.count()
#: What each entry belongs to, by its name.
_owners: dict[str, Any] = {}


def fingerprint(run: BoundStencil, halos: Halos) -> str:
    """Return a text for a stencil, its halo and its order of axes.

    It is the same in each process for a stencil of GT4Py; one for a callable holds in this process.
    """
    own = identity(run.stencil) or f"process {os.getpid()}, {next(_numbers)}"
    widths = ",".join(f"{axis}{low}+{high}" for axis, (low, high) in halos.widths.items())
    name, backend = run.declaration.name, run.declaration.backend
    return f"{name} {own} {backend} {widths} {''.join(halos.order)}"


def called(
    name: str,
    owner: Any,
    compute: Callable[..., None],
    results: Sequence[jax.ShapeDtypeStruct],
    arrays: Sequence[Any],
    *,
    ranks: Sequence[int],
    asks_writable: bool,
    aliases: Mapping[int, int] | None = None,
) -> tuple[Any, ...]:
    """Return the results of a function, which XLA calls by its name.

    Parameters
    ----------
    name
        Name of the entry. Entries stay for the life of the process.
    owner
        Identifies the function. If an entry of this name has another owner, this one gets another
        name.
    compute
        Takes an array for each of `arrays` and then for each of `results`, and writes the latter.
    results
        Shapes and types of the results.
    arrays
        Arrays of JAX, or tracers.
    ranks
        Number of dimensions of each array and result; dimensions before these are a batch.
    asks_writable
        True if the function asks for writable memory of inputs, which it does not write.
    aliases
        Results, by number, that begin as an array, by number, and lie in its memory if it is free.
    """
    name = _name_for(name, owner)
    add_entry(name, compute, ranks, asks_writable=asks_writable)
    call = jax.ffi.ffi_call(
        TARGET,
        list(results),
        # An array that is also a result has all of the batch.
        vmap_method="broadcast_all" if aliases else "expand_dims",
        input_output_aliases=dict(aliases or {}),
    )
    return tuple(call(*arrays, entry=name))


def add_entry(
    name: str, compute: Callable[..., None], ranks: Sequence[int], *, asks_writable: bool = False
) -> None:
    """Let XLA call a function by a name, unless it is there. Parameters as of `called`."""
    _register()
    xla_entries().setdefault(name, (_for_each(compute, ranks), asks_writable))


def _name_for(name: str, owner: Any) -> str:
    """Return the name, with a number appended if another owner has it."""
    with _lock:
        names = itertools.chain([name], (f"{name} #{number}" for number in itertools.count(2)))
        return next(one for one in names if _owners.setdefault(one, owner) == owner)


def _register() -> None:
    """Register the handler, once for the process."""
    with _lock:
        if not _registered:
            jax.ffi.register_ffi_target(TARGET, xla_handler(), platform="cpu")
            _registered.append(TARGET)


def _for_each(compute: Callable[..., None], ranks: Sequence[int]) -> Callable[..., None]:
    """Return a function that calls another for each element of a batch."""
    rank = ranks[-1]

    def entry(*arrays: Array) -> None:
        lead = arrays[-1].ndim - rank
        if lead == 0:
            compute(*arrays)
            return
        for index in np.ndindex(arrays[-1].shape[:lead]):
            compute(*(_element(one, rank, index) for one, rank in zip(arrays, ranks, strict=True)))

    return entry


def _element(array: Array, rank: int, index: tuple[int, ...]) -> Any:
    """Return one element of a batch; an array of extent 1 has the same for all."""
    lead = array.shape[: array.ndim - rank]
    return array[tuple(at if extent > 1 else 0 for at, extent in zip(index, lead, strict=True))]
