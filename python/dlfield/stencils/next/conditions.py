"""Conditions on axes: where ``concat_where`` takes one value, and where the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dlfield.stencils.next.boxes import common
from dlfield.stencils.next.internals import knows_unequal
from dlfield.stencils.next.nodes import Axis, Call, UnknownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlfield.stencils.next.nodes import Node

__all__ = ["where"]

#: The points of an axis for which ``axis OP value`` is true.
_WHERE: dict[str, Callable[[int], list[tuple[float, float]]]] = {
    "less": lambda value: [(-math.inf, value)],
    "less_equal": lambda value: [(-math.inf, value + 1)],
    "greater": lambda value: [(value + 1, math.inf)],
    "greater_equal": lambda value: [(value, math.inf)],
    "eq": lambda value: [(value, value + 1)],
    "not_eq": lambda value: [(-math.inf, value), (value + 1, math.inf)],
    "true": lambda _: [(-math.inf, math.inf)],
}
_NEGATED = {"less": "greater_equal", "less_equal": "greater", "eq": "not_eq"}
_NEGATED |= {other: one for one, other in _NEGATED.items()}
_MIRRORED = {"less": "greater", "less_equal": "greater_equal", "eq": "eq", "not_eq": "not_eq"}
_MIRRORED |= {other: one for one, other in _MIRRORED.items()}


def where(
    node: Node,
    number: Callable[[Node], int],
    *,
    negated: bool,
) -> list[dict[str, tuple[float, float]]]:
    """Find where a condition of axes is true, in boxes that are open where it says nothing.

    Parameters
    ----------
    node
        The condition.
    number
        Returns the value of an expression.
    negated
        True to find where it is false.

    Raises
    ------
    UnknownError
        If it is no condition of axes.
    """
    if not isinstance(node, Call):
        raise UnknownError(node)
    call = node.builtin
    if call == "not_":
        return where(node.arguments[0], number, negated=not negated)
    if call in ("and_", "or_"):
        one, other = (where(part, number, negated=negated) for part in node.arguments)
        if (call == "or_") != negated:
            return one + other
        return [common(left, right) for left in one for right in other]
    if call not in _WHERE:
        raise UnknownError(node)
    left, right = node.arguments
    if isinstance(right, Axis):
        left, right, call = right, left, _MIRRORED[call]
    if not isinstance(left, Axis):
        raise UnknownError(node)
    if negated:  # a GT4Py that takes `!=` for nowhere computes the other value everywhere
        call = "true" if call == "not_eq" and not knows_unequal() else _NEGATED[call]
    return [{left.name: one} for one in _WHERE[call](number(right))]
