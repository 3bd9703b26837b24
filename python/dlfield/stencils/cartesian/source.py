"""GTScript of nodes: the text of a definition that GT4Py reads as these nodes again."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dlfield.stencils.cartesian.nodes import (
    Access,
    Assign,
    Cast,
    Constant,
    Index,
    Operation,
    Region,
    Scalar,
    known,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dlfield.stencils.cartesian.nodes import (
        Bound,
        Expression,
        FieldDeclaration,
        Interval,
        Statement,
        Stencil,
        VerticalLoop,
    )

__all__ = ["source_of"]

#: Names of functions in GTScript, where they differ from those in nodes.
_CALLED = {f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
#: The import of the one name used here that ``import *`` leaves out.
_TABLES = "from gt4py.cartesian.gtscript import GlobalTable"
_BINARY = {"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div(), "pow": ast.Pow()}
_UNARY = {"-": ast.USub(), "+": ast.UAdd(), "not": ast.Not()}
_LOGICAL = {"and": ast.And(), "or": ast.Or()}
_COMPARED: dict[str, ast.cmpop] = dict(
    zip(
        ("<", ">", "<=", ">=", "==", "!="),
        (ast.Lt(), ast.Gt(), ast.LtE(), ast.GtE(), ast.Eq(), ast.NotEq()),
        strict=True,
    )
)


def source_of(
    stencil: Stencil,
    scalars: Mapping[str, str],
    summary: str,
    comments: Mapping[int, str],
    *,
    literals: Collection[str],
) -> str:
    """Return the text of a module with one definition.

    Parameters
    ----------
    stencil
        Its loops have one section; its statements are assignments and regions of these.
    scalars
        Types of its scalars.
    summary
        Docstring of the definition.
    comments
        Comments by the line of a statement.
    literals
        Types of numbers that are written without one.
    """
    writer = _Writer(stencil, literals)
    arguments = [f"    {one.name}: {_annotation(one)}," for one in stencil.fields]
    if scalars:
        arguments += ["    *,", *(f"    {one}: np.{kind}," for one, kind in scalars.items())]
    tables = [] if all(one.axes for one in stencil.fields) else [_TABLES]
    head = [
        *("import numpy as np", "from gt4py.cartesian.gtscript import *", *tables, "", ""),
        *(f"def {stencil.name}(", *arguments, "):"),
        f'    """{summary}"""',
    ]
    body = [line for one in stencil.loops for line in writer.block(one, comments)]
    return "\n".join([*head, *body, ""])


def _annotation(one: FieldDeclaration) -> str:
    kind = f"(np.{one.dtype}, {one.data_shape})" if one.data_shape else f"np.{one.dtype}"
    if not one.axes:
        return f"GlobalTable[{kind}]"
    return f"Field[{kind}]" if one.axes == "IJK" else f"Field[{one.axes}, {kind}]"


class _Writer:
    """Turns our nodes into those of Python, and these into text."""

    def __init__(self, stencil: Stencil, literals: Collection[str]) -> None:
        self.axes = {one.name: one.axes for one in stencil.fields}
        self.literals = literals

    def block(self, loop: VerticalLoop, comments: Mapping[int, str]) -> Iterator[str]:
        interval = _interval(loop.sections[0].interval)
        yield f"    with computation({loop.order.upper()}), interval({interval}):"
        for one in (one for block in loop.sections[0].blocks for one in block.statements):
            yield from (f"        {line}" for line in self.statement(one, comments))

    def statement(self, one: Statement, comments: Mapping[int, str]) -> Iterator[str]:
        """Yield the lines of a statement."""
        if one.line is not None and one.line in comments:
            yield f"# {comments[one.line]}"
        if isinstance(one, Region):
            slices = map(_slice, "IJ", one.bounds)
            yield f"with horizontal(region[{', '.join(slices)}]):"
            for inner in one.body:
                yield from (f"    {line}" for line in self.statement(inner, comments))
        elif isinstance(one, Assign):
            target, value = self.python(one.target), self.python(one.value)
            yield f"{ast.unparse(target)} = {ast.unparse(value)}"
        else:
            raise AssertionError(one)

    def python(self, one: Expression) -> ast.expr:
        """Return Python's node of an expression."""
        match one:
            case Access():
                return self.access(one)
            case Scalar(name) | Index(name):
                return ast.Name(name)
            case Constant(value, "bool"):
                return ast.Constant(value in ("True", "true", "1"))
            case Cast("bool", operand):
                return _operation("!=", [self.python(operand), ast.Constant(0)])
            case Cast(dtype, Constant(value, "int32" | "int64")):
                return self.literal(f"{value}.0" if "float" in dtype else value, dtype)
            case Constant(value, dtype):
                return self.literal(value, dtype)
            case Cast(dtype, operand):
                return _call(dtype, [self.python(operand)])
            case Operation(name, operands):
                return _operation(name, [self.python(operand) for operand in operands])
        raise AssertionError(one)

    def literal(self, value: str, dtype: str) -> ast.expr:
        plain = ast.parse(value, mode="eval").body
        return plain if dtype in self.literals else _call(dtype, [plain])

    def access(self, one: Access) -> ast.expr:
        has = self.axes.get(one.name, "IJK")
        steps = [step for axis, step in zip("IJK", one.offset, strict=True) if axis in has]
        at: list[ast.expr] = [ast.Constant(step) for step in steps]
        if one.level is not None:
            at[-1] = self.python(one.level)
        found: ast.expr = ast.Name(one.name)
        if not has:
            found = ast.Attribute(found, "A")
            steps = []
        if any(step != 0 for step in steps) or (steps and one.data_index):
            found = _item(found, at)
        return _item(found, list(map(self.python, one.data_index))) if one.data_index else found


def _operation(name: str, operands: list[ast.expr]) -> ast.expr:
    match name, operands:
        case "if", [condition, one, other]:
            return ast.IfExp(condition, one, other)
        case _, [one, other] if name in _BINARY:
            return ast.BinOp(one, _BINARY[name], other)
        case _, [one] if name in _UNARY:
            return ast.UnaryOp(_UNARY[name], one)
        case _, [one, other] if name in _COMPARED:
            return ast.Compare(one, [_COMPARED[name]], [other])
        case _ if name in _LOGICAL:
            return ast.BoolOp(_LOGICAL[name], operands)
    return _call(_CALLED.get(name, name), operands)


def _call(name: str, arguments: list[ast.expr]) -> ast.expr:
    return ast.Call(ast.Name(name), arguments, [])


def _item(found: ast.expr, index: list[ast.expr]) -> ast.expr:
    return ast.Subscript(found, index[0] if len(index) == 1 else ast.Tuple(index))


def _slice(axis: str, interval: Interval) -> str:
    """Return the part of a region along an axis; bounds count from its first or its last point."""
    return ":".join("" if one is None else _anchored(axis, one) for one in interval.ends)


def _anchored(axis: str, bound: Bound) -> str:
    offset = known(bound)
    first, more = ("[-1]", offset + 1) if bound.at_end else ("[0]", offset)
    return f"{axis}{first} + {more}".replace("+ -", "- ")


def _interval(interval: Interval) -> str:
    start, end = (one for one in interval.ends if one is not None)
    if (start.at_end, start.offset, end.at_end, end.offset) == (False, 0, True, 0):
        return "..."
    last = None if (end.at_end, end.offset) == (True, 0) else end.offset
    return f"{start.offset}, {last}"
