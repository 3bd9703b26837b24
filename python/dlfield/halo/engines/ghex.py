"""The engine "ghex": the GHEX that the user has installed packs and sends the messages.

`ghex_fields` describes storages to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dlfield._core import CopyBatch
from dlfield.functions.host import is_on_host_alone
from dlfield.halo import mpi
from dlfield.halo.engines.engine import Engine
from dlfield.halo.engines.ghex_fields import problem_of, with_distinct_strides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Storage
    from dlfield.halo.fields import PlannedField
    from dlfield.halo.mpi import Connection
    from dlfield.halo.route import Route

__all__ = ["Ghex"]


class Ghex(Engine):
    """Messages by GHEX: one per neighbour for fields that have the same axes, dtype and layout."""

    name = "ghex"

    @staticmethod
    def refuse(field: PlannedField, storage: Storage) -> str | None:
        """Say why a storage of a field cannot go this way; None if it can."""
        try:
            import ghex  # noqa: F401
        except ImportError as error:
            return f"engine: needs GHEX for 'ghex' ({error}); install ghex, or use 'packed'"
        if not is_on_host_alone(storage):
            got = type(storage).__name__
            return (
                f"engine: expected fields in host memory alone for 'ghex', got {got}; use 'packed'"
            )
        if missing := sorted(set(field.divided) - set(field.dims)):
            return (
                f"engine: expected all divided dimensions for 'ghex', got {field.dims} without "
                f"{missing[0]}; use 'packed'"
            )
        if any(field.shared.values()):
            return f"engine: expected no shared points for 'ghex', got {field.shared}; use 'packed'"
        problem = problem_of(storage)
        return None if problem is None else f"engine: {problem}"

    def _connect(self, _fields: Sequence[Storage], connection: Connection) -> None:
        comm = connection.comm
        self._groups = [] if comm is None else _groups(comm, self._route)
        self._handles: list[Any] = []

    def start(self, fields: Sequence[Storage]) -> None:
        """Start the messages."""
        within, groups = self._planned.of(fields)
        within.run()
        mpi.keep(self)  # GHEX reads and writes until `wait`, whatever becomes of the plan
        self._handles = [exchange(some) for exchange, some in groups]

    def wait(self) -> None:
        """Wait for the messages."""
        for handle in self._handles:
            handle.wait()
        self._handles = []
        mpi.let_go(self)

    def test(self) -> bool:
        """Return whether all messages have arrived."""
        for handle in self._handles:
            handle.progress()
        return all(handle.is_ready() for handle in self._handles)

    def free(self) -> None:
        """Drop GHEX's objects."""
        super().free()
        self._groups = []

    def _plan(self, fields: Sequence[Storage]) -> tuple[CopyBatch, list[tuple[Any, list[Any]]]]:
        """Plan the copies of a run without MPI, and describe the fields of each group."""
        copies = ([], []) if self._groups else self._route.copies(fields)
        return CopyBatch(*copies), [group.described(fields) for group in self._groups]


class _Axes(NamedTuple):
    """A field as GHEX sees it: its axes are in the order of the wire."""

    dims: tuple[str, ...]
    itemsize: int
    #: Points without halo; all points of an axis that is not divided.
    extents: tuple[int, ...]
    #: Width of the halo below them; 0 along an axis that is not divided.
    offsets: tuple[int, ...]
    #: Axes in the order of falling strides.
    order: tuple[int, ...]


def _axes(storage: Storage, divided: Sequence[str]) -> _Axes:
    dims: tuple[str, ...] = storage.dims or ()
    halo = [
        pair if dim in divided else (0, 0)
        for dim, pair in zip(dims, storage.halo or (), strict=True)
    ]
    inside = (n - low - high for n, (low, high) in zip(storage.shape, halo, strict=True))
    array = with_distinct_strides(storage.to_numpy())
    order = sorted(range(len(dims)), key=lambda axis: -array.strides[axis])
    offsets = tuple(low for low, _ in halo)
    return _Axes(dims, storage.itemsize, tuple(inside), offsets, tuple(order))


class _Group:
    """Fields that one communication object of GHEX exchanges together. Collective to make.

    Parameters
    ----------
    context
        Of GHEX.
    number
        Which group of the plan it is: domains of several patterns have different numbers.
    members
        Which fields of the plan these are.
    route
        What goes where.
    comm
        The Cartesian communicator.
    blocks
        For each rank, where it is in the communicator, and its points along the axes of the fields.
    """

    def __init__(
        self,
        context: Any,
        number: int,
        members: Sequence[int],
        route: Route,
        comm: Any,
        blocks: Sequence[tuple[Sequence[int], Sequence[int]]],
    ) -> None:
        from ghex.structured.cartesian_sets import ProductSet, UnitRange
        from ghex.structured.regular import (
            DomainDescriptor,
            HaloGenerator,
            make_communication_object,
            make_pattern,
        )

        self._route, self._members = route, members
        field = route.fields[members[0]]
        self._axes = _axes(route.ordered(field.storage), field.divided)
        own, whole, widths, periodic = [], [], [], []
        for axis, dim in enumerate(self._axes.dims):
            place = field.divided.index(dim) if dim in field.divided else None
            first, points = _along(blocks, comm.rank, place, axis)
            own.append(UnitRange(first, first + self._axes.extents[axis]))
            whole.append(UnitRange(0, points))
            widths.append((0, 0) if place is None else field.boxes.widths[place] or (0, 0))
            periodic.append(place is not None and mpi.periodic_of(comm)[place])
        self._domain = DomainDescriptor(comm.rank + number * comm.size, ProductSet(*own))
        halos = HaloGenerator(ProductSet(*whole), tuple(widths), tuple(periodic))
        self._pattern = make_pattern(context, halos, [self._domain])
        self._object = make_communication_object(context)
        self._context = context  # GHEX's objects do not keep each other alive

    def described(self, fields: Sequence[Storage]) -> tuple[Any, list[Any]]:
        """Return what exchanges fields, and their descriptions. They keep the memory."""
        return self._object.exchange, [self._described(at, fields[at]) for at in self._members]

    def _described(self, at: int, storage: Storage) -> Any:
        from ghex.structured.regular import make_field_descriptor

        ordered, field = self._route.ordered(storage), self._route.fields[at]
        if _axes(ordered, field.divided) != self._axes:
            raise ValueError(
                f"field '{field.name}': expected the layout of the field that the plan was made "
                "with, since 'ghex' sends fields of one layout together, got another; make a new "
                "plan for it"
            )
        array = with_distinct_strides(ordered.to_numpy())
        return self._pattern(
            make_field_descriptor(self._domain, array, self._axes.offsets, array.shape)
        )


def _groups(comm: Any, route: Route) -> list[_Group]:
    """Make the groups of fields that are alike on every rank. Collective."""
    from ghex.context import make_context

    own = [_axes(route.ordered(field.storage), field.divided) for field in route.fields]
    everyone = comm.allgather((tuple(comm.coords), own))
    alike: dict[object, list[int]] = {}
    for at, field in enumerate(route.fields):
        key = (tuple(field.boxes.widths), *(axes[at] for _, axes in everyone))
        alike.setdefault(key, []).append(at)
    context = make_context(comm, mpi.has_threads())
    return [
        _Group(
            context,
            number,
            members,
            route,
            comm,
            [(coords, axes[members[0]].extents) for coords, axes in everyone],
        )
        for number, members in enumerate(alike.values())
    ]


def _along(
    blocks: Sequence[tuple[Sequence[int], Sequence[int]]], rank: int, place: int | None, axis: int
) -> tuple[int, int]:
    """Return the first point of a rank in the whole grid along an axis, and how many there are.

    `place` is the dimension of the communicator along which the axis is divided, if it is.
    """
    own, extents = blocks[rank]
    if place is None:
        return 0, extents[axis]
    line = [one for at, one in enumerate(own) if at != place]
    points = {
        coords[place]: extents[axis]
        for coords, extents in blocks
        if [one for at, one in enumerate(coords) if at != place] == line
    }
    return sum(n for at, n in points.items() if at < own[place]), sum(points.values())
