"""The convention of tangents: ``inp_dot`` in, ``out_dot`` out, on the domain of the stencil."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield.operators.adjoints import checked_names
from dlfield.operators.arguments import check_bound
from dlfield.operators.function import StencilFunction, check_levels, has_derivative

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dlfield._core import BoundStencil, Storage
    from dlfield.stencils.halos import Shape

__all__ = ["Tangent"]


class Tangent:
    """A tangent: it reads the inputs of a stencil and ``inp_dot``, and writes ``out_dot``.

    Parameters
    ----------
    function
        The stencil.
    run
        Its tangent, bound.
    names
        Argument of the tangent for a field, where it is not ``inp_dot``. None for an input that is
        constant by decision.

    Raises
    ------
    ValueError
        If the tangent of an output is missing, or an argument is none of these.
    """

    def __init__(
        self,
        function: StencilFunction,
        run: BoundStencil,
        names: Mapping[str, str | None] | None = None,
    ) -> None:
        check_bound("tangent", run)
        self.function, self.names = function, checked_names(function, names or {})
        check_levels("tangent", function, run.declaration)
        self.run = StencilFunction(run, function.halos.widths, function.halos.order)
        self.called = {
            name: self.names.get(name) or f"{name}_dot" for name in function.halos.fields
        }
        read, written = ({one.name for one in each} for each in (self.run.inputs, self.run.outputs))
        #: The inputs with a direction of their own.
        self.inputs = [one.name for one in function.inputs if self.called[one.name] in read]
        for field in filter(has_derivative, function.outputs):
            if self.called[field.name] not in written:
                needed = f"the argument '{self.called[field.name]}', the tangent of '{field.name}'"
                raise ValueError(f"tangent of '{function.name}': needs {needed}; pass names=")
        for name in self.run.arguments:
            if name not in function.arguments and name not in self.called.values():
                expected = "an input of the stencil, or a direction"
                raise ValueError(
                    f"tangent of '{function.name}': expected {expected}, got '{name}'; pass names="
                )

    def arguments(self, values: Mapping[str, Any], directions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the tangent: what it takes of S, and the directions."""
        given = {name: values[name] for name in self.run.arguments if name in values}
        return given | {self.called[name]: directions[name] for name in self.inputs}

    def shapes(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of its outputs, for inputs of the stencil with these shapes."""
        named = {field.name: one for field, one in zip(self.function.inputs, shapes, strict=True)}
        return list(self.run.halos.output_shapes(self.function.halos.extents(named)).values())

    def __call__(self, values: Mapping[str, Any], directions: Mapping[str, Any]) -> list[Storage]:
        """Return the derivative of every output that has one; missing directions are zero."""
        every = {name: directions.get(name, np.zeros_like(values[name])) for name in self.inputs}
        given = self.arguments(values, every)
        shapes = self.shapes([values[field.name].shape for field in self.function.inputs])
        made = {
            field.name: self.run.memory(shape, field.dtype).zeros()
            for field, shape in zip(self.run.outputs, shapes, strict=True)
        }
        for name in made.keys() & given.keys():
            made[name][...] = given[name]
        self.run.write({**given, **made})
        return [
            made[self.called[one.name]] for one in filter(has_derivative, self.function.outputs)
        ]
