"""A function that Fortran calls, with its parameters, as the generator and the calls need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlfield.fortran.halos import Halo
    from dlfield.fortran.kinds import Kind

__all__ = ["FLAGS", "Declared", "FieldParameter", "ScalarParameter"]

#: Options that name fields.
FLAGS = ("persistent", "lower_bounds", "pointer", "allocatable", "default_logical")


@dataclass(frozen=True)
class FieldParameter:
    """A parameter that is an array.

    Attributes
    ----------
    dims
        Names of all its dimensions.
    intent
        "in", "out" or "inout".
    halo
        As `as_storage` takes it, or None.
    persistent
        True if Python may keep it after the call.
    lower_bounds
        True if the caller may pass ``lbound``, which tells the halo.
    pointer, allocatable
        True if the dummy is one, which has lower bounds and is never packed.
    default_logical
        True if the dummy is a logical of default kind, which is copied.
    of_stencil
        True if a stencil gets it, which does not write what it only reads.
    """

    name: str
    kind: Kind
    dims: tuple[str, ...]
    intent: str
    optional: bool = False
    halo: Halo | None = None
    persistent: bool = False
    lower_bounds: bool = False
    pointer: bool = False
    allocatable: bool = False
    default_logical: bool = False
    of_stencil: bool = False

    @property
    def is_read_only(self) -> bool:
        """True if Python gets it read-only. Stencils are faster with memory that is writable."""
        return self.intent == "in" and not self.of_stencil

    @property
    def has_bounds(self) -> bool:
        """True if lower bounds come with the array."""
        return self.lower_bounds or self.deferred != ""

    @property
    def deferred(self) -> str:
        """The attribute of a dummy that may have no memory: "pointer", "allocatable" or ""."""
        return "pointer" if self.pointer else "allocatable" if self.allocatable else ""

    def __str__(self) -> str:
        options = ("optional", *FLAGS)
        words = [self.intent, *(option for option in options if getattr(self, option))]
        return f"{self.name}: {self.kind.name}({','.join(self.dims)}) {' '.join(words)}"


@dataclass(frozen=True)
class ScalarParameter:
    """A parameter that is one value; `default` is a tuple, empty if it has none."""

    name: str
    kind: Kind
    default: tuple[Any, ...] = ()

    @property
    def optional(self) -> bool:
        """True if the caller may leave it out."""
        return bool(self.default)

    def __str__(self) -> str:
        return f"{self.name}: {self.kind.name}{' optional' if self.optional else ''}"


@dataclass(frozen=True)
class Declared:
    """A declared function, `call`, with its parameters in the order of Fortran.

    Attributes
    ----------
    by_name
        Parameters that are passed by name only.
    positional
        Those that are passed by position only, with their defaults.
    """

    name: str
    call: Callable[..., object]
    parameters: tuple[FieldParameter | ScalarParameter, ...]
    device: str
    documentation: str
    by_name: frozenset[str]
    positional: tuple[tuple[str, Any], ...] = ()

    @property
    def fields(self) -> list[FieldParameter]:
        """The arrays."""
        return [one for one in self.parameters if isinstance(one, FieldParameter)]

    @property
    def scalars(self) -> list[ScalarParameter]:
        """All but the arrays."""
        return [one for one in self.parameters if isinstance(one, ScalarParameter)]

    @property
    def bounds(self) -> list[str]:
        """Arguments that are lower bounds, which follow the parameters."""
        return [f"{one.name}_lbound" for one in self.fields if one.lower_bounds]

    def __str__(self) -> str:
        return f"({'; '.join(map(str, self.parameters))}) on {self.device}"
