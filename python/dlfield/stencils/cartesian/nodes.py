"""Nodes of dlfield's own that a stencil of ``gt4py.cartesian`` is read into.

They keep every statement with whole expressions and its line. `internals` makes them of GT4Py's
nodes; nothing else needs to know those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "Access",
    "Assign",
    "Block",
    "Bound",
    "Branch",
    "Cast",
    "Constant",
    "Expression",
    "FieldDeclaration",
    "Index",
    "Interval",
    "Loop",
    "NoDefinition",
    "Node",
    "Operation",
    "Region",
    "Scalar",
    "Section",
    "Statement",
    "Stencil",
    "UnknownNode",
    "VerticalLoop",
    "accesses",
    "changed",
    "known",
    "type_of",
]


class UnknownNode(LookupError):
    """A node of GT4Py's representation is of a class, or has an attribute, that is not known."""


class NoDefinition(LookupError):
    """The definition that a stencil was compiled from cannot be had."""


class Node:
    """Base class of all nodes."""

    def walk(self) -> Iterator[Node]:
        """Yield this node and all nodes below it."""
        yield self
        for value in vars(self).values():
            yield from _walk(value)


def _walk(value: Any) -> Iterator[Node]:  # an attribute of any node
    if isinstance(value, Node):
        yield from value.walk()
    elif isinstance(value, tuple):
        for one in value:
            yield from _walk(one)


@dataclass(frozen=True)
class Constant(Node):
    """A literal: its text, and the name of its dtype."""

    value: str
    dtype: str


@dataclass(frozen=True)
class Scalar(Node):
    """The value of a parameter that is not a field."""

    name: str


@dataclass(frozen=True)
class Index(Node):
    """The index along an axis of the point that is computed."""

    axis: str


@dataclass(frozen=True)
class Access(Node):
    """An element of a field.

    Parameters
    ----------
    name
        Name of the field, which may be temporary.
    offset
        Points from the one that is computed, along I, J and K. None along K: known at run time.
    data_index
        One expression for each data dimension.
    level
        The expression behind an offset that is None.
    absolute
        True if `level` is counted from the lowest one.
    """

    name: str
    offset: tuple[int, int, int | None]
    data_index: tuple[Expression, ...] = ()
    level: Expression | None = None
    absolute: bool = False


@dataclass(frozen=True)
class Operation(Node):
    """An operator or a function: "+", "not", "sqrt"; "if" has condition, value and other value."""

    name: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Cast(Node):
    """A conversion to another dtype."""

    dtype: str
    operand: Expression


Expression: TypeAlias = Constant | Scalar | Index | Access | Operation | Cast


@dataclass(frozen=True)
class Assign(Node):
    """A statement that writes one value. `line` counts from the definition's first line, as 1."""

    target: Access | Scalar
    value: Expression
    line: int | None = None


@dataclass(frozen=True)
class Branch(Node):
    """Statements that are run where a condition holds."""

    condition: Expression
    body: tuple[Statement, ...]
    line: int | None = None


@dataclass(frozen=True)
class Loop(Node):
    """Statements that are repeated while a condition holds."""

    condition: Expression
    body: tuple[Statement, ...]
    line: int | None = None


@dataclass(frozen=True)
class Bound(Node):
    """One end of an interval.

    Parameters
    ----------
    at_end
        True if it is counted from the end of the domain, else from its start.
    offset
        Points from there; an expression: known at run time only.
    """

    at_end: bool
    offset: int | Expression


@dataclass(frozen=True)
class Interval(Node):
    """Part of an axis, without its end; None: all points that there are."""

    start: Bound | None
    end: Bound | None

    @property
    def is_known(self) -> bool:
        """True if no bound is known at run time only."""
        return not any(isinstance(one, Bound) and isinstance(one.offset, Node) for one in self.ends)

    @property
    def ends(self) -> tuple[Bound | None, Bound | None]:
        """Both bounds."""
        return self.start, self.end


@dataclass(frozen=True)
class Region(Node):
    """Statements that are run in a part of the horizontal plane: along I, and along J."""

    bounds: tuple[Interval, Interval]
    body: tuple[Statement, ...]
    line: int | None = None


Statement: TypeAlias = Assign | Branch | Loop | Region


@dataclass(frozen=True)
class Block(Node):
    """Statements that are computed together.

    Parameters
    ----------
    statements
        In their order.
    extents
        First point along I and J, counted from the start of the domain, and last point, counted
        from its end.
    """

    statements: tuple[Statement, ...]
    extents: tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Section(Node):
    """Blocks that are computed for the levels of an interval."""

    interval: Interval
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class VerticalLoop(Node):
    """A loop over levels: in any order, from the lowest, or from the highest."""

    order: Literal["parallel", "forward", "backward"]
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class FieldDeclaration(Node):
    """A field, or a temporary one."""

    name: str
    dtype: str
    axes: str
    data_shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stencil(Node):
    """A stencil. Parameters that it does not use are absent."""

    name: str
    fields: tuple[FieldDeclaration, ...]
    scalars: tuple[Scalar, ...]
    temporaries: tuple[FieldDeclaration, ...]
    loops: tuple[VerticalLoop, ...]

    @property
    def blocks(self) -> list[Block]:
        """All blocks, in their order."""
        return [one for loop in self.loops for section in loop.sections for one in section.blocks]


def accesses(node: Node) -> list[Access]:
    """Return the accesses in a node, those in indices and bounds among them."""
    return [one for one in node.walk() if isinstance(one, Access)]


def known(bound: Bound) -> int:
    """Return the offset of a bound that is no expression."""
    if isinstance(bound.offset, Node):
        raise TypeError(f"a bound that is known at run time only: {bound.offset}")
    return bound.offset


def changed(expression: Expression, change: Callable[[Access | Index], Expression]) -> Expression:
    """Return an expression with other accesses and indices."""
    match expression:
        case Access() | Index():
            return change(expression)
        case Operation(name, operands):
            return Operation(name, tuple(changed(one, change) for one in operands))
        case Cast(dtype, operand):
            return Cast(dtype, changed(operand, change))
    return expression


_LOGICAL = ("<", ">", "<=", ">=", "==", "!=", "and", "or", "not", "isnan", "isinf", "isfinite")


def type_of(expression: Expression, types: Mapping[str, str]) -> str:
    """Return the dtype of an expression, by those of fields and scalars.

    GT4Py has made every conversion explicit.
    """
    match expression:
        case Access(name) | Scalar(name):
            return types[name]
        case Constant(_, dtype) | Cast(dtype):
            return dtype
        case Index():
            return "int64"
        case Operation("if", (_, operand, _)):
            return type_of(operand, types)
        case Operation(name) if name in _LOGICAL:
            return "bool"
    return type_of(expression.operands[0], types)
