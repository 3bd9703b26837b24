"""Nodes of a program of ``gt4py.next``: expressions and statements, as dlfield reads them.

`internals` makes them of GT4Py's iterator representation; nothing else reads that. Expressions are
whole, and statements know their line in the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ALL",
    "RUN_TIME",
    "Apply",
    "Assign",
    "Axis",
    "Branch",
    "Call",
    "Function",
    "Infinity",
    "Literal",
    "Move",
    "Name",
    "Node",
    "Offset",
    "Program",
    "Shift",
    "Statement",
    "UnknownError",
    "index_of",
    "inputs_of",
    "is_range",
    "parts_of",
    "walk",
]

#: Shift to all neighbours, and by a number that is known at run time only.
ALL, RUN_TIME = "all", "run time"


class UnknownError(Exception):
    """Something in the representation of a program that dlfield does not know."""


@dataclass(frozen=True)
class Name:
    """An argument of the program, a parameter of a function around, or a builtin."""

    id: str


@dataclass(frozen=True)
class Literal:
    """A constant, and its type."""

    value: str
    kind: str


@dataclass(frozen=True)
class Infinity:
    """The open end of a range."""

    is_positive: bool


@dataclass(frozen=True)
class Axis:
    """A dimension by its name."""

    name: str


@dataclass(frozen=True)
class Offset:
    """The name of a connectivity, or the number of a neighbour."""

    value: str | int


@dataclass(frozen=True)
class Move:
    """A shift along the axis `source`, to the axis `target`."""

    source: str
    target: str


@dataclass(frozen=True)
class Function:
    """A function without a name."""

    parameters: tuple[str, ...]
    body: Node


@dataclass(frozen=True)
class Call:
    """A call of a function."""

    function: Node
    arguments: tuple[Node, ...]

    @property
    def builtin(self) -> str:
        """Return the name of the builtin that is called; empty for anything else."""
        return self.function.id if isinstance(self.function, Name) else ""


@dataclass(frozen=True)
class Shift:
    """One step from a point to a neighbour.

    `by` is a number of points, the number of a neighbour, `ALL` or `RUN_TIME`.
    """

    along: str | Move
    by: int | str


@dataclass(frozen=True)
class Apply:
    """A function of points that is applied to fields.

    Parameters
    ----------
    function
        The function of points.
    arguments
        The fields.
    is_scan
        True if it carries a value from level to level.
    shifts
        For each argument, the shifts at which it is read, each a row of steps.
    problem
        The reason why `shifts` are not known; empty if they are.
    """

    function: Node
    arguments: tuple[Node, ...]
    is_scan: bool
    shifts: tuple[tuple[tuple[Shift, ...], ...], ...] = field(compare=False)
    problem: str = field(default="", compare=False)


Node = Name | Literal | Infinity | Axis | Offset | Move | Function | Call | Apply


@dataclass(frozen=True)
class Assign:
    """Computes a field, or a tuple of fields, on a domain, and writes it."""

    target: Node
    value: Node
    domain: Node
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Branch:
    """Statements that depend on a condition."""

    condition: Node
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


Statement = Assign | Branch


@dataclass(frozen=True)
class Program:
    """A program with the names of its parameters."""

    name: str
    parameters: tuple[str, ...]
    statements: tuple[Statement, ...]

    def assignments(self) -> Iterator[Assign]:
        """Yield every assignment, at any depth."""
        yield from _assignments(self.statements)


def _assignments(statements: tuple[Statement, ...]) -> Iterator[Assign]:
    for one in statements:
        if isinstance(one, Assign):
            yield one
        else:
            yield from _assignments(one.then + one.otherwise)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything inside."""
    yield node
    if isinstance(node, Function):
        yield from walk(node.body)
    elif isinstance(node, Call | Apply):
        for one in (node.function, *node.arguments):
            yield from walk(one)


def parts_of(node: Node) -> Iterator[Node]:
    """Yield the parts of nested tuples, or a node that is no tuple."""
    if not (isinstance(node, Call) and node.builtin == "make_tuple"):
        yield node
        return
    for one in node.arguments:
        yield from parts_of(one)


def index_of(node: Node) -> int:
    """Return the value of an index of a tuple, which is a literal."""
    if isinstance(node, Literal):
        return int(node.value)
    raise UnknownError(node)


def is_range(node: Node) -> bool:
    """Return whether a node asks for the range of a field along an axis."""
    return isinstance(node, Call) and node.builtin == "get_domain_range"


def inputs_of(node: Node) -> Iterator[Node]:
    """Yield the inputs of a pointwise expression.

    If they are one name, GT4Py computes the value where it is read (`FuseAsFieldOp`): a program
    that reads ``(2.0 * cells)(E2C)`` doubles those cells that it reads. A value of several, like
    ``cells + edges(C2E[0])``, goes into memory first, for all points of the mesh.
    """
    if isinstance(node, Apply) and not node.is_scan:
        for one in node.arguments:
            yield from inputs_of(one)
    elif isinstance(node, Call) and node.builtin == "broadcast":
        yield from inputs_of(node.arguments[0])
    elif not isinstance(node, Literal):
        yield node
