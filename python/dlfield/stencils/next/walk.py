"""Finds the points that a ``gt4py.next`` program reads and writes, by a walk through its nodes.

GT4Py reports neither the domain of a program nor how far its offsets reach; both are in its
representation. `accesses` walks from every output to the arguments, with the extents, scalars and
connectivities of one call.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dlfield.stencils.next.boxes import has_points, hull, join, leaves, moved, union, within
from dlfield.stencils.next.conditions import where
from dlfield.stencils.next.nodes import (
    ALL,
    RUN_TIME,
    Apply,
    Axis,
    Branch,
    Call,
    Function,
    Literal,
    Move,
    Name,
    UnknownError,
    index_of,
    inputs_of,
    is_range,
    parts_of,
    walk,
)
from dlfield.stencils.next.scope import Scope, flat_names
from dlfield.stencils.next.tables import Connectivity, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dlfield.stencils.next.boxes import Box, Needed
    from dlfield.stencils.next.nodes import Node, Program, Shift, Statement
    from dlfield.stencils.next.tables import Tables

__all__ = ["Accesses", "accesses"]


def _operands(one: int, other: int) -> tuple[int, int]:
    """Refuse a division by 0, and negative operands: Python rounds down, and C++ towards 0."""
    if one < 0 or other <= 0:
        raise UnknownError(f"a division of {one} by {other} in a domain")
    return one, other


_ARITHMETIC: dict[str, Callable[..., int]] = {
    "plus": lambda one, other: one + other,
    "minus": lambda one, other: one - other,
    "multiplies": lambda one, other: one * other,
    "floordiv": lambda one, other: operator.floordiv(*_operands(one, other)),
    "mod": lambda one, other: operator.mod(*_operands(one, other)),
    "minimum": min,
    "maximum": max,
    "neg": lambda one: -one,
}


@dataclass
class Accesses:
    """Points that one call touches.

    Parameters
    ----------
    read, written
        The points by the name of the field, as GT4Py's indices.
    unknown
        Names of fields that are read at unknown points.
    rows
        For each set of rows that is read, the range of the indices in it.
    depends
        Names of the scalars on which this depends.
    """

    read: dict[str, Box] = field(default_factory=dict)
    written: dict[str, Box] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    rows: dict[Rows, tuple[int, int]] = field(default_factory=dict)
    depends: set[str] = field(default_factory=set)


def accesses(
    program: Program,
    fields: Mapping[str, Box],
    scalars: Mapping[str, Any],
    dims: Mapping[str, tuple[str, ...]],
    names: Mapping[str, Any],
    tables: Tables,
    *,
    fuses: bool,
    static: bool,
) -> Accesses:
    """Find the points that one call of a program touches.

    Parameters
    ----------
    program
        Its nodes.
    fields
        The points of every field that is given.
    scalars
        Values of the scalars by name. Other names are ignored.
    dims
        Dimensions of every field.
    names
        For each argument the name of its field or scalar; of a collection, nested tuples of them.
    tables
        The connectivities of the call.
    fuses
        True if the backend fuses an intermediate value into its readers where it can.
    static
        True if the domains are compiled in, and the points of intermediate values with them.

    Raises
    ------
    UnknownError
        For something that dlfield does not know.
    ValueError
        For a domain of fewer than 0 points, and connectivities that do not fit the program.
    TypeError
        For an offset whose entry is no connectivity.
    """
    walker = _Walk(names, fields, scalars, dims, tables, fuses, static)
    for statement in program.statements:
        walker.statement(statement)
    return walker.found


@dataclass
class _Walk(Scope):
    fields: Mapping[str, Box]
    scalars: Mapping[str, Any]
    dims: Mapping[str, tuple[str, ...]]
    tables: Tables
    fuses: bool
    static: bool
    found: Accesses = field(default_factory=Accesses)
    sizes: dict[str, int] = field(default_factory=dict)

    def statement(self, node: Statement) -> None:
        if isinstance(node, Branch):
            self.depend(node.condition)
            for one in (*node.then, *node.otherwise):
                self.statement(one)
            return
        targets = list(flat_names(self.named(node.target)))
        boxes = [self.box(domain) for domain in parts_of(node.domain)]
        for target, box in zip(targets, boxes * (len(targets) // len(boxes)), strict=True):
            self.check_domain(target, box)
            join(self.found.written, target, box)
        needed = self.structure(node.domain, iter(boxes))
        self.expression(node.value, needed, {})

    @staticmethod
    def check_domain(target: str, box: Box) -> None:
        for dim, (first, end) in box.items():
            if end < first:
                raise ValueError(
                    f"argument '{target}': expected a domain of 0 points or more along {dim}, got "
                    f"{end - first}; correct the scalars, or pass a larger array"
                )

    def structure(self, domain: Node, boxes: Iterator[Box]) -> Needed:
        if isinstance(domain, Call) and domain.builtin == "make_tuple":
            return tuple(self.structure(one, boxes) for one in domain.arguments)
        return next(boxes)

    def box(self, domain: Node) -> Box:
        kinds = ("cartesian_domain", "unstructured_domain")
        if not (isinstance(domain, Call) and domain.builtin in kinds):
            raise UnknownError(domain)
        return dict(map(self.range, domain.arguments))

    def range(self, node: Node) -> tuple[str, tuple[int, int]]:
        if isinstance(node, Call) and len(node.arguments) == 3:
            axis, low, high = node.arguments
            if isinstance(axis, Axis):
                return axis.name, (self.number(low), self.number(high))
        raise UnknownError(node)

    def number(self, node: Node) -> int:
        if isinstance(node, Literal):
            return int(node.value)
        if isinstance(node, Name) and node.id in self.bound:
            return int(self.behind(node.id, self.number))
        call = node.builtin if isinstance(node, Call) else ""
        if isinstance(node, Call) and call == "tuple_get" and is_range(node.arguments[1]):
            of, axis = node.arguments[1].arguments  # type: ignore[union-attr]
            return self.fields[self.named(of)][axis.name][index_of(node.arguments[0])]  # type: ignore[union-attr]
        if isinstance(node, Name) or call == "tuple_get":
            name = self.named(node)
            if name not in self.scalars:
                raise UnknownError(node)
            self.found.depends.add(name)
            return int(self.scalars[name])
        if isinstance(node, Call) and call == "cast_":
            return self.number(node.arguments[0])
        if isinstance(node, Call) and call in _ARITHMETIC:
            return _ARITHMETIC[call](*map(self.number, node.arguments))
        raise UnknownError(node)

    def depend(self, node: Node) -> None:
        self.found.depends |= self.names_in(node) & self.scalars.keys()

    def expression(self, node: Node, needed: Needed, local: dict[str, Needed]) -> None:
        """Find what an expression reads if it is computed at `needed`.

        A box without points still counts when it is joined with others, as in GT4Py.
        """
        if needed is None or isinstance(node, Literal):
            return
        if isinstance(node, Name):
            self.reference(node, needed, local)
        elif isinstance(node, Apply):
            self.operation(node, needed, local)
        elif isinstance(node, Call) and (function := self.function_of(node)):
            self.let(node, function, needed, local)
        elif isinstance(node, Call):
            self.call(node, needed, local)
        else:
            self.note_unknown(node)

    def call(self, node: Call, needed: Needed, local: dict[str, Needed]) -> None:
        if node.builtin == "make_tuple":
            parts = needed if isinstance(needed, tuple) else (needed,) * len(node.arguments)
            for one, part in zip(node.arguments, parts, strict=False):
                self.expression(one, part, local)
        elif node.builtin == "tuple_get":
            at = index_of(node.arguments[0])
            self.expression(node.arguments[1], (*(None,) * at, needed), local)
        elif node.builtin == "if_":
            self.depend(node.arguments[0])
            for one in node.arguments[1:]:
                self.expression(one, needed, local)
        elif node.builtin == "concat_where":
            self.concatenation(node, needed, local)
        elif node.builtin == "broadcast":
            self.expression(node.arguments[0], needed, local)
        else:
            self.note_unknown(node)

    def reference(self, node: Name, needed: Needed, local: dict[str, Needed]) -> None:
        if node.id in self.bound and self.is_argument(node):
            self.behind(node.id, lambda argument: self.expression(argument, needed, local))
        elif node.id in self.bound:
            local[node.id] = union(local[node.id], needed)
        elif node.id in self.names:
            self.read(self.names[node.id], needed)

    def read(self, names: Any, needed: Needed) -> None:
        """Note that a field, or each field of a collection, is read where it is needed."""
        if needed is None:
            return
        if isinstance(names, tuple):
            parts = needed if isinstance(needed, tuple) else (needed,) * len(names)
            for one, part in zip(names, parts, strict=False):
                self.read(one, part)
        elif isinstance(needed, tuple):
            raise UnknownError(names)
        elif names in self.fields and has_points(needed):
            join(self.found.read, names, self.own(names, needed))

    def own(self, name: str, needed: Box) -> Box:
        """Restrict a box to the dimensions of a field. Local dimensions are read in full."""
        box = {dim: needed[dim] for dim in self.dims[name] if dim in needed}
        for dim in self.dims[name]:
            if dim not in box and (width := self.tables.width(dim)):
                box[dim] = (0, width)
        return box

    def note_unknown(self, node: Node) -> None:
        """Note that the fields in an expression are read at unknown points.

        Raises UnknownError if it computes fields.
        """
        self.found.unknown |= self.names_in(node) & self.dims.keys()
        if any(isinstance(one, Apply) for one in walk(node)):
            raise UnknownError(node)

    def let(self, node: Call, function: Function, needed: Needed, local: dict[str, Needed]) -> None:
        names = function.parameters
        inner = {**local, **dict.fromkeys(names)}
        self.inside(node, function, lambda body: self.expression(body, needed, inner))
        for name in local.keys() - set(names):
            local[name] = inner[name]
        for name, value in zip(names, node.arguments, strict=True):
            self.expression(value, inner[name], local)

    def operation(self, node: Apply, needed: Needed, local: dict[str, Needed]) -> None:
        if node.problem:
            raise UnknownError(node.problem)
        box = hull(leaves(needed))
        for value, shifts in zip(node.arguments, node.shifts, strict=True):
            direct = self.is_direct(value)
            if isinstance(value, Literal) or (direct and not has_points(box)):
                continue
            if any(step.by == RUN_TIME for shift in shifts for step in shift):
                self.found.unknown |= self.names_in(value) & self.dims.keys()
            reached = [self.shifted(box, shift, direct=direct) for shift in shifts]
            self.expression(value, hull(reached) if reached else None, local)

    def is_direct(self, value: Node) -> bool:
        """Return True if a value is an argument, or made of a single one where it is read."""
        parts = set(inputs_of(value) if self.fuses else [value])
        return len(parts) == 1 and all(map(self.is_argument, parts))

    def shifted(self, box: Box, shift: tuple[Shift, ...], *, direct: bool) -> Box:
        reads, box = has_points(box), dict(box)
        for step in shift:
            if isinstance(step.along, Move):
                box = moved(box, step.along.source, step.along.target, step.by)
                continue
            table = self.tables.get(step.along)
            if not isinstance(table, Connectivity):
                box = moved(box, table, table, step.by)
                continue
            if step.by == RUN_TIME:
                raise UnknownError(f"a neighbour in '{step.along}' by a number known at run time")
            if table.source not in box:
                raise ValueError(
                    f"offset_provider['{step.along}']: expected rows along {' or '.join(box)}, "
                    f"got rows along {table.source}; give gtx.as_connectivity the dimension of the "
                    "rows first"
                )
            first, end = box.pop(table.source)
            column = None if step.by == ALL else int(step.by)
            rows = Rows(step.along, table.source, first, end, column)
            if reads and rows not in self.found.rows:
                self.found.rows[rows] = self.tables.bounds(rows)
            box[table.codomain] = self.reached(table.codomain, rows, direct, reads)
        return box

    def reached(self, codomain: str, rows: Rows, direct: bool, reads: bool) -> tuple[int, int]:  # noqa: FBT001
        """Return the range of points that rows lead to.

        An intermediate value is computed in memory first: for all points, unless the domain is
        compiled in.
        """
        if direct:
            return self.found.rows[rows]
        if self.static:
            return self.tables.compiled(rows) if reads else (0, 0)
        return 0, self.size(codomain)

    def size(self, dim: str) -> int:
        if dim not in self.sizes:
            self.sizes[dim] = self.tables.size(dim)
        return self.sizes[dim]

    def concatenation(self, node: Call, needed: Needed, local: dict[str, Needed]) -> None:
        self.depend(node.arguments[0])
        for value, negated in zip(node.arguments[1:], (False, True), strict=True):
            for part in where(node.arguments[0], self.number, negated=negated):
                self.expression(value, within(needed, part), local)
