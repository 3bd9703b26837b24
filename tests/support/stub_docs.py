"""Docstrings of the stub ``_core.pyi``, which are those of the compiled module.

They are written once, in Rust. ``make pages`` copies them into the stub, for
editors that read nothing else. Methods that fill Python's own slots, such as ``__getitem__``,
cannot have a docstring in the module: the stub has theirs.
"""

import ast
import inspect
from pathlib import Path
from textwrap import indent

import dlfield
from dlfield import _core

STUB = Path(dlfield.__file__).with_name("_core.pyi")


def rewritten(text):
    """Return the text of the stub with the docstrings of the module."""
    lines = text.splitlines()
    for node, thing in reversed(list(described(ast.parse(text)))):
        if thing is not None:
            put(lines, node, inspect.cleandoc(thing.__doc__))
    return "\n".join(lines) + "\n"


def described(tree):
    """Go through classes and functions of the stub, with what the module has for each, or None."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, getattr(_core, node.name)
        elif isinstance(node, ast.ClassDef) and hasattr(_core, node.name):
            yield node, getattr(_core, node.name)
            own = vars(getattr(_core, node.name))
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    yield method, described_method(method, own.get(method.name))


def described_method(node, method):
    setter = any(isinstance(one, ast.Attribute) for one in node.decorator_list)
    kind = type(method).__name__
    slot = kind in ("wrapper_descriptor", "builtin_function_or_method")
    return None if setter or slot or not getattr(method, "__doc__", None) else method


def put(lines, node, doc):
    """Replace the docstring of a node, or put one there."""
    margin, first = " " * (node.col_offset + 4), node.body[0]
    closed = f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""'
    new = indent(closed, margin).splitlines()
    if ast.get_docstring(node) is not None:
        lines[first.lineno - 1 : first.end_lineno] = new
    elif isinstance(first, ast.Expr):  # the dots, which may stand in the line of the signature
        before = lines[first.lineno - 1][: first.col_offset].rstrip()
        lines[first.lineno - 1 : first.end_lineno] = [before, *new] if before else new
    else:
        start = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))])
        lines[start - 1 : start - 1] = [*new, ""]


if __name__ == "__main__":
    STUB.write_text(rewritten(STUB.read_text()))
