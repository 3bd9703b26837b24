"""What programs and operators of ``gt4py.next`` take: fields, scalars, collections of them."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield.stencils.declaration import DeclaredCollection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dlfield.stencils.declaration import Access

__all__ = ["Signature", "dtype_of", "is_a", "read_operator", "read_program"]


@dataclass
class Signature:
    """What a stencil takes.

    Parameters
    ----------
    reads, writes
        Names of the arguments that are used so.
    kinds
        Types of all arguments by name, in the order of the definition.
    fields, scalars
        Types of the fields, and dtypes of the scalars; of a collection, of each part, which is
        named as Python names it: ``uv[0]``, ``state.u``.
    collections
        Those of the arguments that are collections.
    """

    reads: set[str]
    writes: set[str]
    kinds: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    scalars: dict[str, np.dtype[Any]] = field(default_factory=dict)
    collections: dict[str, DeclaredCollection] = field(default_factory=dict)
    #: The argument that a part belongs to.
    _arguments: dict[str, str] = field(default_factory=dict)

    def add(self, argument: str, kind: Any) -> None:  # noqa: ANN401
        """Append an argument."""
        self.kinds[argument] = kind
        parts = self._part(argument, argument, kind)
        if not isinstance(parts, str):
            self.collections[argument] = parts

    def _part(self, argument: str, name: str, kind: Any) -> str | DeclaredCollection:  # noqa: ANN401
        from gt4py.next.type_system import type_specifications as types

        if isinstance(kind, types.TupleType | types.NamedCollectionType):
            keys = tuple(getattr(kind, "keys", ()))
            labels = [f"{name}.{key}" for key in keys] or [f"{name}[{i}]" for i in range(len(kind))]
            parts = (self._part(argument, *one) for one in zip(labels, kind, strict=True))
            return DeclaredCollection(tuple(parts), _maker(name, kind, keys), keys)
        self._arguments[name] = argument
        if isinstance(kind, types.FieldType):
            self.fields[name] = kind
        elif isinstance(kind, types.ScalarType):
            self.scalars[name] = dtype_of(kind)
        else:
            expected = "expected a field, a scalar or a collection of them"
            raise TypeError(f"{name}: {expected}, got {kind}; declare each part as an argument")
        return name

    def access(self, name: str) -> Access:
        """Tell the use of a part. An unused one counts as read: GT4Py does not take None for it."""
        argument = self._arguments[name]
        if argument not in self.writes:
            return "read"
        return "update" if argument in self.reads else "write"

    def nested(self) -> Mapping[str, Any]:
        """Give the names of the parts of each collection, as nested tuples."""
        return {name: collection.names() for name, collection in self.collections.items()}


def read_program(program: Any) -> Signature:  # noqa: ANN401
    """Read the arguments of a program, without those that are bound."""
    node = program.past_stage.past_node
    bound = getattr(program, "bound_args", {})
    signature = Signature(set(), set())
    for call in node.body:
        for keyword, value in call.kwargs.items():
            uses = signature.writes if keyword == "out" else signature.reads
            uses.update(_names_in(value))
        signature.reads.update(*map(_names_in, call.args))
    for node_of_argument in node.params:
        if node_of_argument.id not in bound:
            signature.add(str(node_of_argument.id), node_of_argument.type)
    return signature


def _names_in(expression: Any) -> set[str]:  # noqa: ANN401
    """Names at any depth: within slices, tuples, domains and calls."""
    from gt4py.next.ffront.program_ast import Name

    names: Iterable[Any] = expression.pre_walk_values().if_isinstance(Name)
    return {str(name.id) for name in names}


def read_operator(stencil: Any, fields: Mapping[str, Any] | None) -> Signature:  # noqa: ANN401
    """Read the arguments of an operator: it writes `out` and reads the others."""
    kind, name = stencil.__gt_type__(), stencil.__name__
    inputs = {**kind.definition.pos_or_kw_args, **kind.definition.kw_only_args}
    if is_scan := hasattr(kind, "axis"):
        del inputs[next(iter(inputs))]  # what it carries from level to level
    every = {**inputs, "out": kind.definition.returns}
    if is_scan:
        every = _with_dimensions(name, every, fields)
    elif fields is not None:
        raise TypeError(
            f"fields: expected it for a scan operator only, got it for '{name}', whose arguments "
            "have dimensions"
        )
    signature = Signature(set(inputs), {"out"})
    for one, kind_of_argument in every.items():
        signature.add(one, kind_of_argument)
    if any(signature.access(one) == "write" for one in signature.scalars):
        returns = kind.definition.returns
        raise ValueError(
            f"{name}: expected an operator that returns fields, got {returns}; return "
            "broadcast(value, dims)"
        )
    return signature


def _with_dimensions(
    name: str, every: Mapping[str, Any], fields: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Give the arguments of a scan operator, which are scalars, the dimensions of `fields`."""
    from gt4py.next.type_system import type_specifications as types
    from gt4py.next.type_system import type_translation

    if fields is None or "out" not in fields:
        given = ", ".join(f"'{one}': ..." for one in every)
        raise ValueError(
            f"fields: expected the fields of '{name}', a scan operator, whose arguments have no "
            f"dimensions, got none for 'out'; give bind fields={{{given}}} with gtx.Field[...], or "
            "call it in a @gtx.program"
        )
    if unknown := fields.keys() - every.keys():
        known = ", ".join(every)
        raise ValueError(f"fields: expected arguments of '{name}', {known}, got {min(unknown)!r}")

    def widened(kind: Any, dims: list[Any]) -> Any:  # noqa: ANN401
        if isinstance(kind, types.TupleType):
            return types.TupleType(types=[widened(one, dims) for one in kind])
        if isinstance(kind, types.NamedCollectionType):
            return types.NamedCollectionType(
                types=[widened(one, dims) for one in kind],
                keys=kind.keys,
                original_python_type=kind.original_python_type,
            )
        return types.FieldType(dims=dims, dtype=kind)

    found = dict(every)
    for one, hint in fields.items():
        kind = type_translation.from_type_hint(hint)
        if not isinstance(kind, types.FieldType):
            raise TypeError(f"fields: expected gtx.Field[...] for '{one}', got {hint!r}")
        found[one] = widened(every[one], list(kind.dims))
    return found


def _maker(name: str, kind: Any, keys: tuple[str, ...]) -> Any:  # noqa: ANN401
    if not keys:
        return lambda *parts: parts
    try:
        made: Any = pkgutil.resolve_name(kind.original_python_type)
    except (AttributeError, ImportError, ValueError) as reason:
        expected = "expected a class at the top of a module, where GT4Py looks for it by its name"
        got = f"got '{kind.original_python_type}'; move it out of the function"
        raise TypeError(f"{name}: {expected}, {got}") from reason
    return lambda *parts: made(**dict(zip(keys, parts, strict=True)))


def dtype_of(scalar_type: Any) -> np.dtype[Any]:  # noqa: ANN401
    """Give the dtype of a type of gt4py.next."""
    return np.dtype(str(scalar_type.kind.name).lower())


def is_a(value: object, name: str) -> bool:
    """Tell a class of gt4py.next by its name and the last part of its module's."""
    names = (f"{base.__module__}.{base.__name__}" for base in type(value).__mro__)
    return any(one.startswith("gt4py.next.") and one.endswith(f".{name}") for one in names)
