"""Indices of a GTScript definition that are known at run time only.

GT4Py reports how far a stencil reaches by the offsets that are constants. It says nothing about
``inp[0, 0, index]``, whose `index` is a value, nor about ``inp.at(K=2)``. GT4Py is not imported.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from numbers import Number
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["reads_anywhere"]

#: Names before brackets that are no fields: of parts of the domain, and of axes.
_PLACES = frozenset({"region", "I", "J", "K"})


def reads_anywhere(definition: Callable[..., object]) -> bool:
    """Tell whether a stencil, or a function that it calls, reads levels known at run time only.

    Parameters
    ----------
    definition
        The function that was compiled, with what GT4Py has noted about it.

    Returns
    -------
    bool
        True as well where the source cannot be had, and for an index that is a parameter of a
        ``gtscript.function``: its reach is not known.
    """
    functions: dict[Any, None] = {}
    symbols = dict(_symbols(definition, functions))
    constants = {name for name, value in symbols.items() if isinstance(value, Number)}
    try:
        trees = [ast.parse(textwrap.dedent(inspect.getsource(one))) for one in functions]
    except (OSError, TypeError, SyntaxError):
        return True
    return any(_is_open(node, constants) for tree in trees for node in _expressions(tree))


def _symbols(function: Any, functions: dict[Any, None]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Give what the names of a definition stand for, and collect the functions among it."""
    if function in functions:
        return
    functions[function] = None
    noted = getattr(function, "_gtscript_", {})
    for symbols in (noted.get("nonlocals"), noted.get("externals")):
        for name, value in (symbols or {}).items():
            yield name, value
            if hasattr(value, "_gtscript_"):
                yield from _symbols(value, functions)


def _expressions(tree: ast.AST) -> Iterator[ast.AST]:
    """Give all nodes but those of annotations, whose brackets are no indices."""
    for name, child in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for node in child if isinstance(child, list) else [child]:
            if isinstance(node, ast.AST):
                yield node
                yield from _expressions(node)


def _is_open(node: ast.AST, constants: set[str]) -> bool:
    """Tell whether this is a level of a field that is known at run time only."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "at"
    if not isinstance(node, ast.Subscript) or isinstance(node.value, ast.Subscript):
        return False  # the second brackets are those of data dimensions
    if isinstance(node.value, ast.Attribute):
        return False  # table.A[...], data dimensions too
    if isinstance(node.value, ast.Name) and node.value.id in _PLACES:
        return False
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    names = {one.id for index in indices for one in ast.walk(index) if isinstance(one, ast.Name)}
    by_axes = bool(names & _PLACES) and names <= _PLACES | constants  # field[K + 1]
    # GT4Py takes constants alone along I and J.
    return not (by_axes or _is_constant(indices[-1], constants))


def _is_constant(index: ast.expr, constants: set[str]) -> bool:
    while isinstance(index, ast.UnaryOp):
        index = index.operand
    return isinstance(index, ast.Constant) or ast.unparse(index) in constants
