"""What a stencil says of itself: its fields, its scalars and how it is run.

Each kind of stencil is read by a file of its own (``gt4py_cartesian``, ``gt4py_next``,
``callables``), which gives a `Declaration`; `bind` makes a `BoundStencil` of it. Nothing here
imports a framework.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "UNTYPED_BACKENDS",
    "Access",
    "Declaration",
    "DeclaredField",
    "DeclaredScalar",
    "Run",
]

#: Backends that read fields as NumPy arrays; the others are compiled and read typed memory.
UNTYPED_BACKENDS = frozenset({"numpy", "debug"})

#: What a stencil does with a field: "update" is read and write.
Access = Literal["unused", "read", "write", "update"]


class Run(Protocol):
    """What computes. Given arrays and scalars by name, and where to compute."""

    def run(
        self,
        *,
        _domain_: tuple[int, ...],
        _origin_: dict[str, tuple[int, ...]],
        exec_info: dict[str, Any] | None,
        **arguments: Any,  # noqa: ANN401 - arrays and scalars by name
    ) -> None:
        """Compute.

        Arrays come with their axes in the declared order. `_domain_` is in points along
        `Declaration.axes`, `_origin_` the index of its first point in each array.
        """


@dataclass(frozen=True)
class DeclaredField:
    """A field as the stencil declares it.

    Parameters
    ----------
    name
        Of the argument.
    dims
        Names in the order of the axes; data dimensions as decimals, last.
    dtype
        Of an element: anything that ``numpy.dtype`` takes.
    access
        What the stencil does with it.
    data_shape
        Extents of the data dimensions.
    reach
        Points below and above the domain that are touched, for each of `dims`; none by default.
    layout
        Rank of each dimension that the memory must have (0 = largest stride); None: any.
    preset
        Name of a preset with the layout and alignment that the memory must have; None: any. What
        `layout` or `alignment` say counts more.
    alignment
        In elements; None: any.
    """

    name: str
    dims: tuple[str, ...]
    dtype: Any
    access: Access
    data_shape: tuple[int, ...] = ()
    reach: tuple[tuple[int, int], ...] | None = None
    layout: tuple[int, ...] | None = None
    preset: str | None = None
    alignment: int | None = None


@dataclass(frozen=True)
class DeclaredScalar:
    """A parameter that is no field.

    Parameters
    ----------
    name
        Of the argument.
    dtype
        What its type must be to NumPy; None: anything.
    used
        Whether it may not be missing.
    default
        Empty, or a tuple with the one value.
    weak
        Whether a Python number of another type will do, where `dtype` can hold its value.
    """

    name: str
    dtype: Any
    used: bool = True
    default: tuple[()] | tuple[Any] = ()
    weak: bool = False


@dataclass(frozen=True)
class Declaration:
    """All that `bind` needs to know of a stencil.

    Parameters
    ----------
    name
        For messages.
    run
        What computes.
    fields, scalars
        The arguments.
    order
        Names of all arguments in the order of the definition.
    positional
        How many of `order` may be given without their name.
    axes
        Dimensions of the iteration, in the order of ``domain=``.
    min_points
        The fewest points that the domain has along each of `axes`; 1 by default.
    typed
        Whether the memory is read as items of its type, so that misaligned ones are undefined
        behaviour.
    asks_writable
        Whether it wants writable memory also of fields that it only reads, so that those of an
        immutable producer have to be shown so.
    backend
        Name of a preset with the layout and alignment that suit the stencil best. Memory that
        differs works, but is slow. None: no wishes.
    device
        Where it computes: None for the host, "gpu" or ("gpu", number).
    own_call
        Called instead of `run` where times are asked for, with ``domain``, ``origin`` and
        ``exec_info``, because it keeps more of them.
    takes
        Which of "origin" and "domain" mean something to it; the others may not be given.
    decides_domain
        It computes where it likes, as a program of gt4py.next does: its fields need not agree about
        a domain, and every one begins at its own lower halo.
    reach_known
        Whether `DeclaredField.reach` tells all that is read. Otherwise an input must be apart from
        every output.
    """

    name: str
    run: Run
    fields: Sequence[DeclaredField]
    scalars: Sequence[DeclaredScalar]
    order: Sequence[str]
    positional: int
    axes: tuple[str, ...] = ("I", "J", "K")
    min_points: tuple[int, ...] = field(default=())
    typed: bool = True
    asks_writable: bool = False
    backend: str | None = None
    device: str | tuple[str, int] | None = None
    own_call: Callable[..., Any] | None = None
    takes: frozenset[str] = frozenset({"origin", "domain"})
    decides_domain: bool = False
    reach_known: bool = True
