"""The declaration of a stencil: its fields, its scalars and how it is run.

Each kind of stencil is read by a file of its own (``cartesian/declare.py``,
``next/declare.py``, ``plain.py``), which returns a `Declaration`; `bind` makes a `BoundStencil` of
it. Rust reads these classes by the names and types of their attributes. Nothing here imports a
framework.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dlfield.stencils.footprint import AffineFootprint

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dlfield.stencils.footprint import FindFootprint

__all__ = [
    "Access",
    "DecidedBy",
    "Declaration",
    "DeclaredCollection",
    "DeclaredField",
    "DeclaredScalar",
    "Run",
]

#: Use of a field by the stencil: "update" is read and write.
Access = Literal["unused", "read", "write", "update"]


class Run(Protocol):
    """The object that computes. It gets arrays and scalars by name, origins and the domain."""

    def run(
        self,
        *,
        _domain_: tuple[Any, ...],
        _origin_: dict[str, tuple[int, ...]],
        exec_info: dict[str, Any] | None,
        **arguments: Any,  # arrays and scalars by name
    ) -> None:
        """Compute.

        Arrays come with their axes in the declared order. `_domain_` is along `Declaration.axes`,
        in points or as `Declaration.decided_by` has it, `_origin_` the index of the origin in each
        array: the first point of the domain, where it is in points.
        """


#: What decides where a stencil computes; see `Declaration`.
DecidedBy = Literal["fields", "arrays", "arrays, origin", "arrays, domain", "outputs", "stencil"]

#: Options of a call that say where to compute.
_GIVEN: dict[DecidedBy, tuple[str, ...]] = {
    "fields": ("origin", "domain"),
    "arrays": (),
    "arrays, origin": ("origin",),
    "arrays, domain": ("domain",),
    "outputs": ("origin", "domain"),
    "stencil": ("origin",),
}


@dataclass(frozen=True)
class DeclaredField:
    """A field as the stencil declares it.

    Parameters
    ----------
    name
        Name of the argument.
    dims
        Names in the order of the axes; data dimensions as decimals, last.
    dtype
        Type of an element: anything that ``numpy.dtype`` takes.
    access
        Use by the stencil.
    data_shape
        Extents of the data dimensions.
    layout
        Rank of each dimension that the memory must have (0 = largest stride); None: any.
    preset
        Name of a preset with the layout and alignment that the memory must have; None: any.
        `layout` and `alignment` override it.
    alignment
        In elements; None: any.
    unit_stride
        The dimension along which neighbours lie side by side in memory; None: any.
    """

    name: str
    dims: tuple[str, ...]
    dtype: Any
    access: Access
    data_shape: tuple[int, ...] = ()
    layout: tuple[int, ...] | None = None
    preset: str | None = None
    alignment: int | None = None
    unit_stride: str | None = None


@dataclass(frozen=True)
class DeclaredScalar:
    """A parameter that is not a field.

    Parameters
    ----------
    name
        Name of the argument.
    dtype
        NumPy's dtype of its type; None: anything.
    used
        True if it may not be missing.
    default
        Empty, or a tuple with the one value.
    weak
        True if a Python number of another type will do, if `dtype` can hold its value.
    """

    name: str
    dtype: Any
    used: bool = True
    default: tuple[()] | tuple[Any] = ()
    weak: bool = False


@dataclass(frozen=True)
class DeclaredCollection:
    """An argument that is a tuple, or a named collection, of fields, scalars and collections.

    Parameters
    ----------
    parts
        Names of fields and scalars, and collections.
    kind
        Class of the object: ``tuple``, or one that takes its attributes by name.
    keys
        Names of its attributes; none for a tuple.
    """

    parts: tuple[str | DeclaredCollection, ...]
    kind: Any = tuple
    keys: tuple[str, ...] = ()

    def built(self, values: Mapping[str, Any]) -> Any:
        """Make the object of the values of its parts by name."""
        parts = [values[one] if isinstance(one, str) else one.built(values) for one in self.parts]
        return self.kind(**dict(zip(self.keys, parts, strict=True))) if self.keys else tuple(parts)

    def flat(self) -> Iterator[str]:
        """Return the names of all parts, one after the other."""
        for one in self.parts:
            yield from (one,) if isinstance(one, str) else one.flat()

    def names(self) -> tuple[Any, ...]:
        """Return the names of all parts, nested as they are."""
        return tuple(one if isinstance(one, str) else one.names() for one in self.parts)


@dataclass(frozen=True)
class Declaration:
    """Everything that `bind` needs to know about a stencil.

    Parameters
    ----------
    name
        For messages.
    run
        The object that computes.
    fields, scalars
        The arguments.
    order
        Names of all arguments in the order of the definition.
    collections
        Those of the arguments that are collections, by name. All others are a field or a scalar.
    positional
        The number of arguments that may be given without their name.
    axes
        Dimensions of the iteration, in the order of ``domain=``.
    typed
        True if the memory is read as items of its type, so that misaligned ones are undefined
        behaviour.
    asks_writable
        True if it asks for writable memory even for fields that it only reads, so that the array of
        an immutable producer has to claim to be writable.
    backend
        Name of a preset with the layout and alignment that suit the stencil best. Memory that
        differs works, but is slow. None: no preference.
    device
        Device that it computes on: None for the host, "gpu" or ("gpu", number).
    in_order
        True if `run` puts its work on the legacy default stream of its GPU and does not wait for
        it. Then dlfield does not wait either, but orders the work before and after it on the GPU.
    own_call
        Called instead of `run` if the caller passes `exec_info`, with ``domain``, ``origin`` and
        ``exec_info``: it records more times.
    decided_by
        What decides where it computes, and which of origin and domain a caller may pass. "fields":
        all fields share a domain; both. "arrays": all arrays have one extent, since the stencil is
        told neither, or only one of the two; none, or with "arrays, origin" and "arrays, domain"
        the one that it is told. "outputs": the ranges of the outputs, as for a field operator of
        gt4py.next; both. "stencil": the stencil itself, as for a program of gt4py.next, whose
        fields need not share a domain and each begin at their own lower halo; origin. With
        "outputs", a domain has a first point and an end along each of `axes`, counted from the
        origin, instead of a number of points.
    footprint
        The points that a call touches: boxes that grow with the domain, or a function that finds
        them for one call. Rust checks them against the arrays.
    checked
        "checked" if the footprint covers everything that calls touch, "partly checked" if it is all
        that GT4Py itself tells, "unchecked" if nothing is known of what they read.
    connectivities
        The connectivities by name of calls that give none as ``offset_provider``. None for a
        stencil that takes none.
    runs_empty
        True if it also runs on a domain without points, as on an MPI rank that has none.
        Otherwise such a call checks and touches its arguments and does not run: compiled code of
        GT4Py may divide by the number of points.
    ignores
        Options of the stencil's own call that change nothing, since every check is made.
    """

    name: str
    run: Run
    fields: Sequence[DeclaredField]
    scalars: Sequence[DeclaredScalar]
    order: Sequence[str]
    positional: int
    axes: tuple[str, ...] = ("I", "J", "K")
    typed: bool = True
    asks_writable: bool = False
    backend: str | None = None
    device: str | tuple[str, int] | None = None
    in_order: bool = False
    own_call: Callable[..., Any] | None = None
    decided_by: DecidedBy = "fields"
    footprint: AffineFootprint | FindFootprint = field(default_factory=lambda: AffineFootprint({}))
    checked: Literal["checked", "partly checked", "unchecked"] = "checked"
    connectivities: Mapping[str, Any] | None = None
    runs_empty: bool = False
    collections: Mapping[str, DeclaredCollection] = field(default_factory=dict)
    ignores: tuple[str, ...] = ()

    def knows_reach(self) -> bool:
        """Return whether the reach is the same for all arguments."""
        return isinstance(self.footprint, AffineFootprint)

    def reach(self) -> dict[str, tuple[int, int]]:
        """Return how many points outside of the domain the stencil touches, below and above.

        By axis; of a domain that is not too small for the stencil's intervals.

        Raises
        ------
        ValueError
            If this depends on the arguments of a call, as for a program of gt4py.next.
        """
        if not isinstance(self.footprint, AffineFootprint):
            depends = f"the reach of '{self.name}' depends on the arguments of the call"
            raise ValueError(f"halo: needs a width for each axis, since {depends}; pass halo=")
        widest = dict.fromkeys(self.axes, (0, 0))
        for one in self.fields:
            touched = self.footprint.fields.get(one.name)
            axes = [dim for dim in one.dims if dim in widest]
            for spans in (touched.reads, touched.writes) if touched else ():
                for axis, span in zip(axes, spans or (), strict=False):
                    low, high = widest[axis]
                    widest[axis] = max(low, span.below), max(high, span.above)
        return widest

    def covers(self, name: str) -> bool:
        """Return whether each call is known to write every point of the domain of a field."""
        if not isinstance(self.footprint, AffineFootprint):
            return False
        known = self.footprint.fields.get(name)
        return known is not None and known.covered

    def takes(self) -> tuple[str, ...]:
        """Return which of origin and domain a call may be given."""
        return _GIVEN[self.decided_by]

    def signature(self) -> inspect.Signature:
        """Return the signature of the bound stencil: the arguments, then the options of a call."""
        import inspect  # takes milliseconds to import

        kind, empty = inspect.Parameter, inspect.Parameter.empty
        defaults = {one.name: one.default[0] for one in self.scalars if one.default}
        # Parameters after one with a default need defaults, too: None for a field.
        first = next(
            (at for at, name in enumerate(self.order) if name in defaults), self.positional
        )
        defaults = dict.fromkeys(self.order[first : self.positional]) | defaults
        arguments = [
            kind(
                name,
                kind.POSITIONAL_OR_KEYWORD if at < self.positional else kind.KEYWORD_ONLY,
                default=defaults.get(name, empty),
            )
            for at, name in enumerate(self.order)
        ]
        options = [*self.takes(), "exec_info", *self.ignores]
        if self.connectivities is not None:
            options.insert(0, "offset_provider")
        arguments += [kind(name, kind.KEYWORD_ONLY, default=None) for name in options]
        return inspect.Signature(arguments, return_annotation=None)
