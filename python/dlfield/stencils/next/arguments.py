"""Arguments of programs and operators of ``gt4py.next``: fields, scalars, collections of them."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield.stencils.declaration import DeclaredCollection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlfield.stencils.declaration import Access

__all__ = ["Collection", "FieldKind", "Kind", "Signature", "class_of"]


@dataclass(frozen=True)
class FieldKind:
    """A field: its ``gtx.Dimension``s and the type of its elements."""

    dims: tuple[Any, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Collection:
    """A tuple (no `keys`), or a named collection of `kind`, whose attributes are `keys`."""

    parts: tuple[Kind, ...]
    keys: tuple[str, ...]
    kind: Any


#: A scalar is its dtype.
Kind = FieldKind | np.dtype[Any] | Collection


@dataclass
class Signature:
    """The arguments of a stencil.

    Parameters
    ----------
    kinds
        By name, in the order of the definition.
    reads, writes
        Names of the arguments that are used so.

    Attributes
    ----------
    fields, scalars
        Kinds by name; of a collection, of each part, which is named as Python names it: ``uv[0]``,
        ``state.u``.
    collections
        Those of the arguments that are collections.
    """

    kinds: dict[str, Kind]
    reads: set[str]
    writes: set[str]
    fields: dict[str, FieldKind] = field(default_factory=dict, init=False)
    scalars: dict[str, np.dtype[Any]] = field(default_factory=dict, init=False)
    collections: dict[str, DeclaredCollection] = field(default_factory=dict, init=False)
    #: The argument that a part belongs to.
    _arguments: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for argument, kind in self.kinds.items():
            parts = self._part(argument, argument, kind)
            if not isinstance(parts, str):
                self.collections[argument] = parts

    def _part(self, argument: str, name: str, kind: Kind) -> str | DeclaredCollection:
        if isinstance(kind, Collection):
            parts = (self._part(argument, *one) for one in _labelled(name, kind))
            return DeclaredCollection(tuple(parts), kind.kind, kind.keys)
        self._arguments[name] = argument
        if isinstance(kind, FieldKind):
            self.fields[name] = kind
        else:
            self.scalars[name] = kind
        return name

    def access(self, name: str) -> Access:
        """Return the use of a part. An unused one counts as read: GT4Py does not take None."""
        argument = self._arguments[name]
        if argument not in self.writes:
            return "read"
        return "update" if argument in self.reads else "write"

    def nested(self) -> Mapping[str, Any]:
        """Return the names of the parts of each collection, as nested tuples."""
        return {name: collection.names() for name, collection in self.collections.items()}


def class_of(argument: str, path: str) -> Any:
    """Return the class of a named collection, which GT4Py tells by module and name."""
    try:
        return pkgutil.resolve_name(path)
    except (AttributeError, ImportError, ValueError) as reason:
        expected = "expected a class at the top of a module, where GT4Py looks for it by its name"
        raise TypeError(
            f"{argument}: {expected}, got '{path}'; move it out of the function"
        ) from reason


def _labelled(name: str, kind: Collection) -> list[tuple[str, Kind]]:
    labels = [f"{name}.{key}" for key in kind.keys]
    labels = labels or [f"{name}[{at}]" for at in range(len(kind.parts))]
    return list(zip(labels, kind.parts, strict=True))
