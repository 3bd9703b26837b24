"""The fields of a plan: what is known of them, and views of their boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlfield._core import HaloBoxes, Storage, as_storage, check_among, first_sharing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlfield.halo.edge import Edge

    Widths = Mapping[str, Any]
    from dlfield._core import Array

__all__ = ["PlannedField", "check_apart", "planned", "wire_dims"]

_DIRECTIONS = "-1, 0 or 1"


class PlannedField:
    """One field of a plan.

    Parameters
    ----------
    name
        Its name in messages.
    array
        A storage, or an array that `as_storage` takes with its dims and halo.
    dims, width, shared
        As of `halo_exchange`.
    """

    def __init__(
        self,
        name: str,
        array: Array,
        dims: Sequence[str],
        width: Widths | None,
        shared: Widths | None,
    ) -> None:
        self.name, self.divided = name, tuple(dims)
        self.storage: Storage = _writable(array)
        self.boxes = HaloBoxes(self.storage, dims, width, shared)
        #: Points at an end of the domain that neighbours have too, by the names of `dims`.
        self.shared = dict(zip(self.divided, self.boxes.shared, strict=True))
        self.dims: tuple[str, ...] = self.storage.dims or ()
        self.dtype, self.shape = self.storage.dtype, self.storage.shape
        self.halo = self.storage.halo

    def description(self) -> dict[str, object]:
        """Return what is the same on all ranks, by the names that messages have for it."""
        whole = {
            dim: extent
            for dim, extent in sorted(zip(self.dims, self.shape, strict=True))
            if dim not in self.divided
        }
        return {
            f"field '{self.name}': dims": tuple(sorted(self.dims)),
            f"field '{self.name}': dtype": str(self.dtype),
            f"field '{self.name}': width": tuple(zip(self.divided, self.boxes.widths, strict=True)),
            f"field '{self.name}': shared": tuple(self.shared.items()),
            f"field '{self.name}': extents that are not divided": whole,
        }

    def accept(self, array: Array) -> Storage:
        """Take another field of the same description.

        Raises
        ------
        ValueError
            For a field of another one.
        """
        if array is self.storage and self.storage.halo == self.halo:
            same: Storage = array  # of which nothing else can change
            return same
        storage = _writable(array)
        expected, got = ((one.dtype, one.shape, one.dims, one.halo) for one in (self, storage))
        if got != expected:
            way_out = "make another plan for it"
            if got[:3] == (*expected[:2], None):
                way_out = (
                    f"pass dlf.as_storage(array, dims={expected[2]}, halo={expected[3]}), which "
                    "says what it is"
                )
            raise ValueError(
                f"field '{self.name}': expected dtype, shape, dims and halo {_shown(*expected)}, "
                f"as when the plan was made, got {_shown(*got)}; {way_out}"
            )
        return storage

    def sent(self, storage: Storage, edge: Edge) -> Storage | None:
        """View the points that go over an edge; None if there are none."""
        key = self.boxes.send(self._direction(edge.send))
        return None if key is None else self._view(storage, key)

    def received(self, storage: Storage, edge: Edge) -> Storage | None:
        """View the halo at an edge as the neighbour sends it: with its names and directions."""
        key = self.boxes.receive(self._direction(edge.receive))
        if key is None:
            return None
        flipped = tuple(
            _backwards(part) if dim in edge.flip else part
            for dim, part in zip(self.dims, key, strict=True)
        )
        names = {own: other for own, other in edge.axes.items() if own in self.dims}
        view = self._view(storage, flipped)
        return view.rename(names) if names else view

    def check(
        self, edges: Sequence[Edge], refuse: Callable[[PlannedField, Storage], str | None] | None
    ) -> None:
        """Refuse edges with other names or directions, or that need more points.

        Parameters
        ----------
        edges
            All edges of this rank.
        refuse
            Says why the engine cannot send a field. None if nothing is sent.

        Raises
        ------
        ValueError
            With the name of the field.
        """
        if refuse is not None:
            self.check_engine(self.storage, refuse)
        for edge in edges:
            self._check_names(edge)
            try:
                self.sent(self.storage, edge)
                self.received(self.storage, edge)
            except ValueError as error:
                raise ValueError(f"field '{self.name}': {error}") from error

    def check_engine(
        self, storage: Storage, refuse: Callable[[PlannedField, Storage], str | None]
    ) -> None:
        """Refuse a storage for this field that the engine cannot send."""
        if (reason := refuse(self, storage)) is not None:
            raise ValueError(f"field '{self.name}': {reason}")

    def _check_names(self, edge: Edge) -> None:
        steps = [*edge.send.items(), *edge.receive.items()]
        names = {*(name for name, _ in steps), *edge.axes, *edge.axes.values(), *edge.flip}
        check_among("edges", sorted(names), self.divided)
        for name, step in steps:
            if step not in (-1, 0, 1):
                raise ValueError(f"edges: expected {_DIRECTIONS} along {name}, got {step}")

    def _direction(self, towards: Mapping[str, int]) -> list[int]:
        return [towards.get(dim, 0) for dim in self.divided]

    def _view(self, storage: Storage, key: tuple[slice, ...]) -> Storage:
        view: Storage = storage[key]
        return view


def _writable(array: Array) -> Storage:
    storage = _storage_of(array)
    if storage.readonly:
        raise ValueError(
            "readonly: expected a field whose halo can be written, got one that is read-only or in "
            "which several indices name one element; exchange a copy()"
        )
    return storage


def _storage_of(array: Array) -> Storage:
    if isinstance(array, Storage):
        return array
    if hasattr(array, "variable"):  # a DataArray, which says what halo it has
        from dlfield.xarray import from_xarray

        return from_xarray(array)
    storage: Storage = as_storage(array)
    return storage


def _shown(dtype: object, *others: object) -> str:
    return ", ".join(map(str, (dtype, *others)))


def _backwards(part: slice) -> slice:
    return slice(part.stop - 1, part.start - 1 if part.start else None, -1)


def planned(
    fields: Any,
    dims: Sequence[str],
    width: Widths | None,
    shared: Widths | None,
) -> list[PlannedField]:
    """Read the fields of a plan. An error names the field.

    Raises
    ------
    ValueError
        For what cannot be exchanged.
    """
    if isinstance(fields, Storage) or hasattr(fields, "dtype"):
        raise ValueError(
            "fields: expected a mapping or a sequence of fields, got one field; put it into a list"
        )
    if not isinstance(fields, Mapping) and not hasattr(fields, "__iter__"):
        raise ValueError(
            f"fields: expected a mapping or a sequence of fields, got {type(fields).__name__}"
        )
    if not isinstance(fields, Mapping):
        fields = {str(number): one for number, one in enumerate(fields)}
    if not fields:
        raise ValueError("fields: needs at least one field; pass a mapping or a sequence of them")
    read = []
    for name, array in fields.items():
        if not isinstance(name, str):
            raise ValueError(f"fields: expected names that are strings, got {name!r}")
        try:
            read.append(PlannedField(name, array, dims, width, shared))
        except Exception as error:
            raise ValueError(f"field '{name}': {error}") from error
    check_apart(read, [one.storage for one in read])
    return read


def check_apart(fields: Sequence[PlannedField], storages: Sequence[Storage]) -> None:
    """Refuse storages for fields that share an element: one's halo may be another's domain."""
    if (sharing := first_sharing(storages)) is not None:
        one, other = (fields[at].name for at in sharing)
        raise ValueError(
            f"field '{other}': expected memory of its own, got that of field '{one}'; give each "
            "field once, and a copy of one that overlaps another"
        )


def wire_dims(first: PlannedField) -> list[str]:
    """Return the names of a field in the order of its memory, largest stride first."""
    layout = first.storage.layout
    return [first.dims[axis] for axis in sorted(range(len(layout)), key=lambda at: layout[at])]
