"""Expressions: made, moved and differentiated.

There is one set of rules: what each read of an expression receives for a seed, as in reverse mode.
A tangent is the sum of these for the seed 1, each times the tangent of what is read.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from dlfield.stencils.cartesian.nodes import (
    Access,
    Cast,
    Constant,
    Index,
    Operation,
    accesses,
    changed,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from dlfield.stencils.cartesian.nodes import Expression

__all__ = [
    "NotDifferentiable",
    "is_finite",
    "minus",
    "moved",
    "number",
    "partials",
    "plus",
    "times",
    "where",
    "zero_of",
]

#: Derivatives of functions of one argument; "" where it is zero wherever there is one.
_DERIVATIVES = {
    "sin": "cos(x)",
    "cos": "-sin(x)",
    "tan": "1 + tan(x) * tan(x)",
    "arcsin": "1 / sqrt(1 - x * x)",
    "arccos": "-1 / sqrt(1 - x * x)",
    "arctan": "1 / (1 + x * x)",
    "sinh": "cosh(x)",
    "cosh": "sinh(x)",
    "tanh": "1 - tanh(x) * tanh(x)",
    "arcsinh": "1 / sqrt(x * x + 1)",
    "arccosh": "1 / sqrt(x * x - 1)",
    "arctanh": "1 / (1 - x * x)",
    "sqrt": "0.5 / sqrt(x)",
    "cbrt": "1 / (3 * cbrt(x) * cbrt(x))",
    "exp": "exp(x)",
    "log": "1 / x",
    "log10": "0.4342944819032518 / x",
    "erf": "1.1283791670955126 * exp(-x * x)",
    "erfc": "-1.1283791670955126 * exp(-x * x)",
    **dict.fromkeys(("floor", "ceil", "trunc", "round", "round_away_from_zero"), ""),
}
#: Functions that are one of their arguments, or the argument with another sign: as a choice.
_CHOICES = {
    "min": "x if x <= y else y",
    "max": "x if x >= y else y",
    "abs": "x if x >= 0 else -x",
}

#: Operations that may be infinite, or none, for a number.
_INFINITE = {
    *("/", "pow", "mod", "log", "log10", "sqrt", "exp", "sinh", "cosh", "gamma"),
    *("arcsin", "arccos", "arccosh", "arctanh"),
}


class NotDifferentiable(ValueError):
    """A stencil has no derivative, or one that no stencil can compute."""


def number(value: float, dtype: str) -> Constant:
    """Return a literal."""
    return Constant(repr(float(value)), dtype)


def _is(expression: Expression, value: float) -> bool:
    return isinstance(expression, Constant) and float(expression.value) == value


def minus(one: Expression) -> Expression:
    """Return the negative of an expression."""
    match one:
        case Operation("-", (operand,)):
            return operand
        case Constant(value) if float(value) == 0:
            return one
    return Operation("-", (one,))


def plus(one: Expression, other: Expression) -> Expression:
    """Return a sum; of two choices with the same condition, one choice."""
    if _is(one, 0):
        return other
    match one, other:
        case Operation("if", (condition, way, zero)), Operation("if", (same, more, none)):
            if same == condition and _is(zero, 0) and _is(none, 0):
                return Operation("if", (condition, plus(way, more), zero))
        case Operation("if", _), Operation("-", (Operation("if", (same, more, none)),)):
            if _is(none, 0):
                return plus(one, Operation("if", (same, minus(more), none)))
    if isinstance(other, Operation) and other.name == "-" and len(other.operands) == 1:
        return Operation("-", (one, *other.operands))
    return one if _is(other, 0) else Operation("+", (one, other))


def times(one: Expression, other: Expression) -> Expression:
    """Return a product. Where a choice is zero it stays so, whatever the other factor is."""
    match one, other:
        case Operation("if", (condition, way, zero)), _ if _is(zero, 0):
            return where(condition, times(way, other), zero)
        case Operation("if", (condition, zero, way)), _ if _is(zero, 0):
            return where(condition, zero, times(way, other))
        case Operation("-", (operand,)), _:
            return minus(times(operand, other))
        case _, Operation("-", (operand,)):
            return minus(times(one, operand))
        case Operation("/", (numerator, denominator)), _ if _is(numerator, 1):
            return _over(other, denominator)
        case _, Operation("/", (numerator, denominator)) if _is(numerator, 1):
            return _over(one, denominator)
    if _is(one, 1):
        return other
    return one if _is(other, 1) else Operation("*", (one, other))


def _over(one: Expression, other: Expression) -> Expression:
    match one:
        case Operation("-", (operand,)):
            return minus(_over(operand, other))
    return Operation("/", (one, other))


def _cast(dtype: str, one: Expression) -> Expression:
    return replace(one, dtype=dtype) if isinstance(one, Constant) else Cast(dtype, one)


def where(condition: Expression, one: Expression, other: Expression) -> Expression:
    """Return a choice."""
    match one, other:
        case Operation("-", (operand,)), Constant(value) if float(value) == 0:
            return minus(where(condition, operand, other))
        case Constant(value), Operation("-", (operand,)) if float(value) == 0:
            return minus(where(condition, one, operand))
    return Operation("if", (condition, one, other))


def moved(expression: Expression, by: tuple[int, int, int], axes: Mapping[str, str]) -> Expression:
    """Return an expression as it is so many points away."""

    def move(one: Access | Index) -> Expression:
        if isinstance(one, Index):
            step = by["IJK".index(one.axis)]
            return Operation("+", (one, Constant(str(step), "int64"))) if step else one
        if one.level is not None:
            raise NotDifferentiable(f"'{one.name}' is read at a level known at run time")
        has = axes.get(one.name, "IJK")
        steps = zip("IJK", one.offset, by, strict=True)
        i, j, k = ((at or 0) + (step if axis in has else 0) for axis, at, step in steps)
        return replace(one, offset=(i, j, k))

    return changed(expression, move) if any(by) else expression


def partials(
    expression: Expression,
    seed: Expression,
    types: Mapping[str, str],
    is_active: Callable[[str], bool],
) -> Iterator[tuple[Access, Expression]]:
    """Yield each read of an active variable, with the derivative for it times a seed."""
    if not any(is_active(one.name) for one in accesses(expression)):
        return
    if isinstance(expression, Access):
        if expression.level is not None:
            raise NotDifferentiable(f"'{expression.name}' is read at a level known at run time")
        yield expression, seed
        return
    dtype = type_of(expression, types)
    if dtype == "bool":
        return
    if isinstance(expression, Cast):
        own = type_of(expression.operand, types)
        if not dtype.startswith("float"):
            raise NotDifferentiable(f"a value with a derivative is converted to {dtype}")
        if own.startswith("float"):
            yield from partials(expression.operand, _cast(own, seed), types, is_active)
        return
    if isinstance(expression, Operation):
        for operand, factor in _factors(expression, seed, types):
            if factor is None and any(is_active(one.name) for one in accesses(operand)):
                raise NotDifferentiable(f"'{expression.name}' has no derivative that is known")
            yield from partials(operand, factor or seed, types, is_active)
        if expression.name == "if":
            yield from _chosen(expression, seed, types, is_active)


def _chosen(
    expression: Operation,
    seed: Expression,
    types: Mapping[str, str],
    is_active: Callable[[str], bool],
) -> Iterator[tuple[Access, Expression]]:
    """Yield those of both ways, each zero where it is not taken, whatever it would be there."""
    condition, one, other = expression.operands
    for access, factor in partials(one, seed, types, is_active):
        zero = number(0, types[access.name])
        yield access, where(condition, factor, zero)
    for access, factor in partials(other, seed, types, is_active):
        zero = number(0, types[access.name])
        yield access, where(condition, zero, factor)


def _factors(
    expression: Operation, seed: Expression, types: Mapping[str, str]
) -> Iterator[tuple[Expression, Expression | None]]:
    """Yield the operands that count, with the seed of each; None: no derivative is known."""
    dtype = type_of(expression, types)
    match expression.name, expression.operands:
        case "if", _:
            return
        case "+", operands:
            yield from ((one, seed) for one in operands)
        case "-", (one,):
            yield one, minus(seed)
        case "-", (one, other):
            yield from ((one, seed), (other, minus(seed)))
        case "*", (one, other):
            yield from ((one, times(seed, other)), (other, times(seed, one)))
        case "/", (one, other):
            yield one, _over(seed, other)
            yield other, minus(times(_over(seed, other), expression))
        case "pow", (base, exponent):
            by_base = times(seed, _power_rule(base, exponent, types))
            by_exponent = times(seed, times(expression, Operation("log", (base,))))
            zero, none = number(0, dtype), zero_of(type_of(exponent, types))
            at_zero = Operation("==", (base, zero)), Operation(">=", (exponent, none))
            match _literal(exponent):
                case None:
                    yield base, where(Operation("==", (exponent, none)), zero, by_base)
                case value if value != 0:
                    yield base, by_base
            yield exponent, where(Operation("and", at_zero), zero, by_exponent)
        case "mod", (one, other):
            wholes = _over(Operation("-", (one, expression)), other)  # of either sign's rule
            yield from ((one, seed), (other, minus(times(seed, wholes))))
        case name, operands if name in _CHOICES:
            named = dict(zip("xy", operands, strict=False))
            yield _made(_CHOICES[name], named, dtype), seed
        case name, (one,) if name in _DERIVATIVES:
            if _DERIVATIVES[name]:
                yield one, times(seed, _made(_DERIVATIVES[name], {"x": one}, dtype))
        case _, operands:
            yield from ((one, None) for one in operands)


def zero_of(dtype: str) -> Constant:
    """Return the literal 0 of a type."""
    return number(0, dtype) if dtype.startswith("float") else Constant("0", dtype)


def _literal(one: Expression) -> float | None:
    """Return the value of an expression that is a literal, also with a sign or a type."""
    match one:
        case Constant(value):
            return float(value)
        case Cast(_, operand) | Operation("-", (operand,)):
            return _literal(operand)
    return None


def is_finite(expression: Expression, others: Collection[str] = ()) -> bool:
    """Return True if an expression is finite, whatever it reads, without these other variables."""
    for one in expression.walk():
        match one:
            case Access(name) if name in others:
                return False
            case Operation("/", (_, by)) if _literal(by):
                continue
            case Operation("pow", (_, by)) if (value := _literal(by)) and value in range(1, 9):
                continue
            case Operation(name) if name in _INFINITE:
                return False
    return True


def _power_rule(base: Expression, exponent: Expression, types: Mapping[str, str]) -> Expression:
    """Return the derivative of a power by its base."""
    dtype = type_of(base, types)
    match exponent:
        case Constant(value) | Cast(_, Constant(value)) if float(value) == 2:
            return times(number(2, dtype), base)
        case Constant(value, "int32" | "int64" as kind):
            less: Expression = Constant(str(int(value) - 1), kind)
        case _:
            less = Operation("-", (exponent, number(1, type_of(exponent, types))))
    factor = exponent if type_of(exponent, types) == dtype else Cast(dtype, exponent)
    return times(factor, Operation("pow", (base, less)))


_NAMES = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.LtE: "<=", ast.GtE: ">="}


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _made(text: str, operands: Mapping[str, Expression], dtype: str) -> Expression:
    """Return the expression of a text, with other expressions for its names."""

    def make(node: ast.expr) -> Expression:
        match node:
            case ast.Name(name):
                return operands[name]
            case ast.Constant(value):
                return number(value, dtype)  # type: ignore[arg-type]
            case ast.UnaryOp(_, operand):
                return minus(make(operand))
            case ast.BinOp(left, operator, right):
                return Operation(_NAMES[type(operator)], (make(left), make(right)))
            case ast.Compare(left, [operator], [right]):
                return Operation(_NAMES[type(operator)], (make(left), make(right)))
            case ast.Call(ast.Name(name), [argument]):
                return Operation(name, (make(argument),))
            case ast.IfExp(test, body, orelse):
                return Operation("if", (make(test), make(body), make(orelse)))
        raise AssertionError(ast.dump(node))

    return make(_parsed(text))
