"""What the names in a program of ``gt4py.next`` stand for, inside of the functions around."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from dlfield.stencils.next.nodes import (
    Apply,
    Call,
    Function,
    Name,
    UnknownError,
    index_of,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dlfield.stencils.next.nodes import Node

__all__ = ["Scope", "flat_names"]


@dataclass
class Scope:
    """The arguments of a program, and the parameters of the functions around.

    Parameters
    ----------
    names
        For each argument the name of its field or scalar; of a collection, nested tuples of them.

    Attributes
    ----------
    bound
        For each parameter of the functions around, what is passed for it, and the parameters
        around that.
    """

    names: Mapping[str, Any]
    bound: Mapping[str, tuple[Any, Any]] = field(default_factory=dict, init=False)

    def named(self, node: Node) -> Any:
        """Name what a reference stands for; of a collection, nested tuples of names."""
        if isinstance(node, Name):
            if node.id in self.bound:
                return self.behind(node.id, self.named)
            return self.names.get(node.id, node.id)
        if isinstance(node, Call) and node.builtin == "make_tuple":
            return tuple(map(self.named, node.arguments))
        if isinstance(node, Call) and node.builtin == "tuple_get":
            names = self.named(node.arguments[1])
            if isinstance(names, tuple):
                return names[index_of(node.arguments[0])]
        raise UnknownError(node)

    def behind(self, name: str, use: Callable[[Node], Any]) -> Any:
        """Use the argument that a parameter of a lambda stands for, outside of the lambda."""
        inside = self.bound
        argument, self.bound = inside[name]
        try:
            return use(argument)
        finally:
            self.bound = inside

    def inside(self, node: Call, function: Function, use: Callable[[Node], Any]) -> Any:
        """Use the body of a function that is called, with its parameters bound."""
        around = self.bound
        values = ((value, around) for value in node.arguments)
        self.bound = {**around, **dict(zip(function.parameters, values, strict=True))}
        try:
            return use(function.body)
        finally:
            self.bound = around

    def function_of(self, node: Call) -> Function | None:
        """Return the function without a name that is called, in place or through a parameter."""
        if isinstance(node.function, Function):
            return node.function
        if not (isinstance(node.function, Name) and node.function.id in self.bound):
            return None
        function, around = self.bound[node.function.id]
        if not isinstance(function, Function):
            return None
        names = {one.id for one in walk(function.body) if isinstance(one, Name)}
        for name in names - set(function.parameters):  # it is walked here, not where it was written
            if self.bound.get(name) is not around.get(name):
                raise UnknownError(node)
        return function

    def is_argument(self, node: Node) -> bool:
        """Return whether a reference stands for an argument of the program, or a part of one."""
        while isinstance(node, Call) and node.builtin == "tuple_get":
            node = node.arguments[1]
        if isinstance(node, Name) and node.id in self.bound:
            return bool(self.behind(node.id, self.is_argument))
        return isinstance(node, Name)

    def names_in(self, node: Node, part: tuple[int, ...] = ()) -> set[str]:
        """Name the fields and scalars that an expression, or a part of it, refers to.

        `part` are the indices of nested tuples, from outside. Of a collection, all parts are named.
        """
        try:
            return set(flat_names(reduce(_item, part, self.named(node))))
        except UnknownError:
            if isinstance(node, Name):
                return set(self.behind(node.id, lambda value: self.names_in(value, part)))
            call = node.builtin if isinstance(node, Call) else ""
            if isinstance(node, Call) and call == "tuple_get":
                return self.names_in(node.arguments[1], (index_of(node.arguments[0]), *part))
            if isinstance(node, Call) and call == "make_tuple" and part:
                return self.names_in(node.arguments[part[0]], part[1:])
            if isinstance(node, Call) and isinstance(node.function, Function):
                return set(self.inside(node, node.function, lambda one: self.names_in(one, part)))
            inner: list[Node] = [node.body] if isinstance(node, Function) else []
            if isinstance(node, Call | Apply):
                inner = [node.function, *node.arguments]
            return {name for one in inner for name in self.names_in(one)}


def _item(names: Any, at: int) -> Any:
    return names[at] if isinstance(names, tuple) else names


def flat_names(names: Any) -> Iterator[str]:
    """Yield the names in nested tuples, or the one that stands alone."""
    if isinstance(names, str):
        yield names
        return
    for one in names:
        yield from flat_names(one)
