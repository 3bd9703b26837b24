"""Ternaries that GT4Py's backend "debug" writes without parentheses, and Python reads otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlfield.stencils.cartesian.nodes import Assign, Branch, Loop, Operation

if TYPE_CHECKING:
    from dlfield.stencils.cartesian.nodes import Expression, Node, Stencil

__all__ = ["first_torn", "torn"]


def torn(one: Node) -> list[Expression]:
    """Return the ternaries among the operands of a node that "debug" makes part of another one.

    Those of operators, and a condition and the first value of a ternary. Calls have parentheses.
    """
    if not isinstance(one, Operation):
        return []
    is_operator = one.name in ("and", "or", "not") or not one.name[0].isalpha()
    operands = one.operands[:2] if one.name == "if" else one.operands if is_operator else ()
    return [each for each in operands if isinstance(each, Operation) and each.name == "if"]


def first_torn(found: Stencil) -> Assign | Branch | Loop | None:
    """Return the first statement with such a ternary; None if there is none."""
    for one in found.walk():
        if isinstance(one, Assign | Branch | Loop):
            read = one if isinstance(one, Assign) else one.condition
            if any(map(torn, read.walk())):
                return one
    return None
