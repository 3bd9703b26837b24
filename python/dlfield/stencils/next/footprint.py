"""Which points a program of ``gt4py.next`` reads and writes, walked in its own representation.

gt4py.next tells neither the domain of a program nor how far its offsets reach. Both stand in the
iterator representation that GT4Py's frontend makes of a definition. `accesses` goes through it from
every output to the arguments, with the extents, scalars and connectivities of one call. This file
and gt4py_representation.py are the only ones that know that representation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dlfield.stencils.next.boxes import has_points, hull, join, leaves, moved, union, within
from dlfield.stencils.next.representation import (
    UnknownError,
    call_of,
    inputs_of,
    shifts_of,
    where,
)
from dlfield.stencils.next.tables import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dlfield.stencils.next.boxes import Box, Needed
    from dlfield.stencils.next.tables import Tables

__all__ = ["Accesses", "accesses"]

_ARITHMETIC: dict[str, Callable[..., int]] = {
    "plus": lambda one, other: one + other,
    "minus": lambda one, other: one - other,
    "multiplies": lambda one, other: one * other,
    "floordiv": lambda one, other: one // other,
    "mod": lambda one, other: one % other,
    "minimum": min,
    "maximum": max,
    "neg": lambda one: -one,
    "cast_": lambda one, _: int(one),
}


@dataclass
class Accesses:
    """What one call touches.

    Parameters
    ----------
    read, written
        The points, by the name of the field, in GT4Py's numbers.
    unknown
        Names of fields that are read nobody knows where.
    rows
        Rows of connectivities, with the indices that they hold.
    sizes
        Points that dimensions have by all rows of all tables, where GT4Py may compute for all.
    depends
        Names of the scalars that decide about it.
    """

    read: dict[str, Box] = field(default_factory=dict)
    written: dict[str, Box] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    rows: dict[Rows, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    depends: set[str] = field(default_factory=set)


def accesses(
    program: Any,  # noqa: ANN401
    fields: Mapping[str, Box],
    scalars: Mapping[str, Any],
    dims: Mapping[str, tuple[str, ...]],
    names: Mapping[str, Any],
    tables: Tables,
    *,
    fuses: bool,
    static: bool,
) -> Accesses:
    """Walk through a program.

    Parameters
    ----------
    program
        What `representation` gave.
    fields
        The points of every field that is given.
    scalars
        Scalars by name, among other things.
    dims
        Dimensions of every field.
    names
        For each argument the name of its field or scalar; of a collection, nested tuples of them.
    tables
        The connectivities of the call.
    fuses
        Whether the backend computes a value in between where it is read, if it can.
    static
        Whether the domains are compiled in, and the points of values in between with them.

    Raises
    ------
    UnknownError
        For something that dlfield does not know.
    ValueError
        For connectivities that do not serve the program.
    """
    walk = _Walk(fields, scalars, dims, names, tables, fuses, static)
    for statement in program.body:
        walk.statement(statement)
    return walk.found


@dataclass
class _Walk:
    fields: Mapping[str, Box]
    scalars: Mapping[str, Any]
    dims: Mapping[str, tuple[str, ...]]
    names: Mapping[str, Any]
    tables: Tables
    fuses: bool
    static: bool
    found: Accesses = field(default_factory=Accesses)
    #: For each parameter of the lambdas around, the argument, and the parameters around that.
    bound: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def statement(self, node: Any) -> None:  # noqa: ANN401
        if type(node).__name__ == "IfStmt":
            self.depend(node.cond)
            for one in (*node.true_branch, *node.false_branch):
                self.statement(one)
            return
        targets = list(_flat_names(self.named(node.target)))
        boxes = [self.box(domain) for domain in _flat(node.domain)]
        for target, box in zip(targets, boxes * (len(targets) // len(boxes)), strict=True):
            join(self.found.written, target, box)
        needed = self.structure(node.domain, iter(boxes))
        self.expression(node.expr, needed, {})

    def named(self, node: Any) -> Any:  # noqa: ANN401
        """Name what a reference stands for; of a collection, nested tuples of names."""
        if type(node).__name__ == "SymRef":
            name = str(node.id)
            return (
                self.behind(name, self.named) if name in self.bound else self.names.get(name, name)
            )
        if call_of(node) == "make_tuple":
            return tuple(map(self.named, node.args))
        if call_of(node) == "tuple_get":
            names = self.named(node.args[1])
            if isinstance(names, tuple):
                return names[int(node.args[0].value)]
        raise UnknownError(node)

    def behind(self, name: str, use: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """Use the argument that a parameter of a lambda stands for, outside of the lambda."""
        inside = self.bound
        argument, self.bound = inside[name]
        try:
            return use(argument)
        finally:
            self.bound = inside

    def structure(self, domain: Any, boxes: Iterator[Box]) -> Needed:  # noqa: ANN401
        if call_of(domain) == "make_tuple":
            return tuple(self.structure(one, boxes) for one in domain.args)
        return next(boxes)

    def box(self, domain: Any) -> Box:  # noqa: ANN401
        if call_of(domain) not in ("cartesian_domain", "unstructured_domain"):
            raise UnknownError(domain)
        ranges = (one.args for one in domain.args)
        return {axis.value: (self.number(low), self.number(high)) for axis, low, high in ranges}

    def number(self, node: Any) -> int:  # noqa: ANN401
        kind = type(node).__name__
        if kind == "Literal":
            return int(node.value)
        call = call_of(node)
        if call == "tuple_get" and call_of(node.args[1]) == "get_domain_range":
            of, axis = node.args[1].args
            return self.fields[self.named(of)][axis.value][int(node.args[0].value)]
        if kind == "SymRef" and str(node.id) in self.bound:
            return int(self.behind(str(node.id), self.number))
        if kind == "SymRef" or call == "tuple_get":
            name = self.named(node)
            if name not in self.scalars:
                raise UnknownError(node)
            self.found.depends.add(name)
            return int(self.scalars[name])
        if call == "cast_":
            return self.number(node.args[0])
        if call in _ARITHMETIC:
            return _ARITHMETIC[call](*map(self.number, node.args))
        raise UnknownError(node)

    def depend(self, node: Any) -> None:  # noqa: ANN401
        self.found.depends |= self.names_in(node) & self.scalars.keys()

    def names_in(self, node: Any) -> set[str]:  # noqa: ANN401
        """Name the fields and scalars that an expression refers to; of collections, the parts."""
        try:
            return set(_flat_names(self.named(node)))
        except UnknownError:
            if type(node).__name__ == "SymRef":
                return set(self.behind(str(node.id), self.names_in))
            inner = [getattr(node, "fun", None), getattr(node, "expr", None)]
            inner = [one for one in (*inner, *getattr(node, "args", ())) if one is not None]
            return {name for one in inner for name in self.names_in(one)}

    def expression(self, node: Any, needed: Needed, local: dict[str, Needed]) -> None:  # noqa: ANN401
        """Find what an expression reads that is `needed` somewhere.

        A box without points counts where it is joined with others, as it does in GT4Py.
        """
        kind, call = type(node).__name__, call_of(node)
        if needed is None or kind == "Literal":
            return
        if kind == "SymRef":
            self.reference(node, needed, local)
        elif call == "make_tuple":
            parts = needed if isinstance(needed, tuple) else (needed,) * len(node.args)
            for one, part in zip(node.args, parts, strict=False):
                self.expression(one, part, local)
        elif call == "tuple_get":
            at = int(node.args[0].value)
            self.expression(node.args[1], (*(None,) * at, needed), local)
        elif call == "if_":
            self.depend(node.args[0])
            for one in node.args[1:]:
                self.expression(one, needed, local)
        elif call == "concat_where":
            self.concatenation(node, needed, local)
        elif call == "broadcast":
            self.expression(node.args[0], needed, local)
        elif type(getattr(node, "fun", None)).__name__ == "Lambda":
            self.let(node, needed, local)
        elif call_of(getattr(node, "fun", None)) == "as_fieldop":
            self.operation(node, needed, local)
        else:
            self.unknown(node)

    def reference(self, node: Any, needed: Needed, local: dict[str, Needed]) -> None:  # noqa: ANN401
        name = str(node.id)
        if name in self.bound and self.is_argument(node):
            self.behind(name, lambda argument: self.expression(argument, needed, local))
        elif name in self.bound:
            local[name] = union(local[name], needed)
        elif name in self.names:
            self.read(self.names[name], needed)

    def read(self, names: Any, needed: Needed) -> None:  # noqa: ANN401
        """Note that a field, or those of a collection, are read where they are needed."""
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
        """Keep the dimensions that a field has. Of a local one, all neighbours are read."""
        box = {dim: needed[dim] for dim in self.dims[name] if dim in needed}
        for table in self.tables.provider.values():
            if hasattr(table, "ndarray"):
                local = table.__gt_type__().neighbor_dim.value
                if local in self.dims[name] and local not in box:
                    box[local] = (0, table.ndarray.shape[1])
        return box

    def unknown(self, node: Any) -> None:  # noqa: ANN401
        """Note the fields in an expression that is computed nobody knows where."""
        self.found.unknown |= self.names_in(node) & self.dims.keys()
        if any(call_of(one) == "as_fieldop" for one in node.walk_values()):
            raise UnknownError(node)

    def let(self, node: Any, needed: Needed, local: dict[str, Needed]) -> None:  # noqa: ANN401
        names = [str(one.id) for one in node.fun.params]
        inner = {**local, **dict.fromkeys(names)}
        around = self.bound
        self.bound = {
            **around,
            **{name: (value, around) for name, value in zip(names, node.args, strict=True)},
        }
        self.expression(node.fun.expr, needed, inner)
        self.bound = around
        for name in local.keys() - set(names):
            local[name] = inner[name]
        for name, value in zip(names, node.args, strict=True):
            self.expression(value, inner[name], local)

    def operation(self, node: Any, needed: Needed, local: dict[str, Needed]) -> None:  # noqa: ANN401
        box = hull(leaves(needed))
        for value, shifts in zip(node.args, shifts_of(node), strict=True):
            direct = self.is_direct(value)
            if type(value).__name__ == "Literal" or (direct and not has_points(box)):
                continue
            if any(self.is_dynamic(shift) for shift in shifts):
                self.unknown(value)
                continue
            reached = [self.shifted(box, shift, direct=direct) for shift in shifts]
            self.expression(value, hull(reached) if reached else None, local)

    def is_direct(self, value: Any) -> bool:  # noqa: ANN401
        """Tell whether a value is an argument, or GT4Py computes it of one where it is read."""
        parts = {str(one): one for one in (inputs_of(value) if self.fuses else [value])}
        return len(parts) == 1 and all(map(self.is_argument, parts.values()))

    def is_argument(self, node: Any) -> bool:  # noqa: ANN401
        """Tell whether a reference stands for an argument of the program, or a part of one."""
        while call_of(node) == "tuple_get":
            node = node.args[1]
        name = str(getattr(node, "id", ""))
        if name in self.bound:
            return bool(self.behind(name, self.is_argument))
        return type(node).__name__ == "SymRef"

    @staticmethod
    def is_dynamic(shift: tuple[Any, ...]) -> bool:
        return any(str(one) == "VALUE" for one in shift[1::2])

    def shifted(self, box: Box, shift: tuple[Any, ...], *, direct: bool) -> Box:
        reads, box = has_points(box), dict(box)
        for offset, by in zip(shift[::2], shift[1::2], strict=True):
            if type(offset).__name__ == "CartesianOffset":
                box = moved(box, offset.domain.value, offset.codomain.value, by.value)
                continue
            table = self.tables.get(offset.value)
            if not hasattr(table, "ndarray"):
                name = getattr(table, "value", None) or table.__gt_type__().codomain.value
                box = moved(box, name, name, by.value)
                continue
            kind = table.__gt_type__()
            if (source := kind.source_dim.value) not in box:
                raise ValueError(
                    f"offset_provider['{offset.value}']: expected rows along {' or '.join(box)}, "
                    f"got them along {source}; give gtx.as_connectivity the dimension of the rows "
                    "first"
                )
            first, end = box.pop(source)
            column = None if str(by) == "ALL_NEIGHBORS" else by.value
            rows = Rows(offset.value, source, first, end, column)
            if reads and rows not in self.found.rows:
                self.found.rows[rows] = self.tables.bounds(rows)
            box[kind.codomain.value] = self.reached(kind.codomain.value, rows, direct, reads)
        return box

    def reached(self, codomain: str, rows: Rows, direct: bool, reads: bool) -> tuple[int, int]:  # noqa: FBT001
        """Find the points that rows lead to. What stands in between goes into memory first."""
        if direct:
            return self.found.rows[rows]
        if self.static:
            return self.tables.compiled(rows) if reads else (0, 0)
        return 0, self.size(codomain)

    def size(self, dim: str) -> int:
        if dim not in self.found.sizes:
            self.found.sizes[dim] = self.tables.size(dim)
        return self.found.sizes[dim]

    def concatenation(self, node: Any, needed: Needed, local: dict[str, Needed]) -> None:  # noqa: ANN401
        self.depend(node.args[0])
        for value, negated in zip(node.args[1:], (False, True), strict=True):
            for part in where(node.args[0], self.number, negated=negated):
                self.expression(value, within(needed, part), local)


def _flat_names(names: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(names, str):
        yield names
        return
    for one in names:
        yield from _flat_names(one)


def _flat(node: Any) -> Iterator[Any]:  # noqa: ANN401
    if call_of(node) != "make_tuple":
        yield node
        return
    for one in node.args:
        yield from _flat(one)
