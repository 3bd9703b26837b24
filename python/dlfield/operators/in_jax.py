"""`JaxCall`: a bound stencil as a function that JAX compiles and differentiates.

XLA calls the stencil with its own buffers (`xla_entries`). Around that call stands a `custom_jvp`,
whose linear part has the tangent and the adjoint (`linear`).
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from dlfield.operators.adjoints import Adjoint, checked_names
from dlfield.operators.arguments import check_like, number_of
from dlfield.operators.function import StencilFunction, has_derivative
from dlfield.operators.linear import Linear, linear
from dlfield.operators.tangents import Tangent
from dlfield.operators.xla_entries import called, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlfield._core import Array, BoundStencil
    from dlfield.stencils.declaration import DeclaredField

__all__ = ["JaxCall"]


class JaxCall:
    """A bound stencil as a function for JAX. Made by `jax_call`."""

    def __init__(
        self,
        function: StencilFunction,
        adjoint: BoundStencil | None,
        tangent: BoundStencil | None,
        names: Mapping[str, str | None] | None,
    ) -> None:
        if function.declaration.device is not None:
            expected = "expected a stencil that computes on the host"
            raise TypeError(f"'{function.name}': {expected}, got {function.declaration.device}")
        checked_names(function, names or {})
        self.function = function
        self.adjoint = None if adjoint is None else Adjoint(function, adjoint, names)
        self.tangent = None if tangent is None else Tangent(function, tangent, names)
        self.constants = [name for name, one in (names or {}).items() if one is None]
        self._inputs = [field.name for field in function.inputs]
        self._outputs = [field.name for field in function.outputs]
        #: The outputs that have derivatives: not integers.
        self._differentiated = [one.name for one in function.outputs if has_derivative(one)]
        self._id = fingerprint(function.run, function.halos)
        self._others = [
            None if self.adjoint is None else fingerprint(self.adjoint.run, self.adjoint.halos),
            None if self.tangent is None else fingerprint(self.tangent.run.run, function.halos),
        ]
        self._functions: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the stencil with its inputs and scalars, in the order of the definition.

        Returns
        -------
        jax.Array or tuple of jax.Array
            The outputs in the order of the definition. A field that is read and written is updated
            in place where its memory is donated and nobody else needs it.
        """
        given = self.function.bound(args, keywords)
        scalars = {
            one.name: self._number(one.name, given[one.name]) for one in self.function.scalars
        }
        arrays = [self._checked(field, given[field.name]) for field in self.function.inputs]
        key = (*map(repr, scalars.values()), *(one.shape for one in arrays))
        call = self._functions.get(key)
        if call is None:
            call = self._functions[key] = self._made(scalars, [one.shape for one in arrays])
        outputs = call(*arrays)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        return f"<dlfield.jax_call of {self.function.run!r}>"

    def _number(self, name: str, value: Any) -> Any:
        if isinstance(value, jax.core.Tracer):
            expected = "expected a Python number, which is static"
            way_out = f"declare '{name}' as a field and pass jnp.broadcast_to({name}, shape)"
            raise TypeError(
                f"'{name}' of {self.function.name}: {expected}, got a tracer; {way_out}"
            )
        value = value.item() if hasattr(value, "item") else value
        kind = next(one.dtype for one in self.function.scalars if one.name == name)
        return value if kind is None else number_of(name, kind, value).item()

    def _checked(self, field: DeclaredField, value: Any) -> Any:
        array = value if isinstance(value, jax.Array) else jnp.asarray(value)
        expected = np.dtype(field.dtype)
        if array.dtype != expected:
            way_out = f"convert it with astype('{expected}')"
            if expected.itemsize == 8 and not jax.config.jax_enable_x64:
                way_out = "set jax.config.update('jax_enable_x64', True) before the first array"
            raise TypeError(
                f"'{field.name}' of {self.function.name}: expected dtype {expected}, got "
                f"{array.dtype}; {way_out}"
            )
        return array

    # -- calls of XLA ----------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> JaxCall:
        return self

    def __reduce__(self) -> NoReturn:
        name = self.function.name
        raise TypeError(f"jax_call of '{name}': cannot be pickled; make it again in that process")

    def _made(self, scalars: Mapping[str, Any], shapes: Sequence[Any]) -> Callable[..., Any]:
        """Return the function of arrays for these numbers and shapes."""
        self.function.plan(shapes)  # refuses shapes that do not fit
        fields = self.function.inputs
        given = dict(zip(self._inputs, _results(fields, shapes), strict=True))
        made = _results(self.function.outputs, self.function.shapes(shapes))
        for name, one in zip(self._outputs, made, strict=True):
            check_like(name, one, given.get(name, one))  # of a field that is read and written

        def plain(*arrays: Array) -> tuple[Any, ...]:
            return self._forward(scalars, arrays)

        call: Callable[..., Any] = jax.jit(self._with_derivatives(plain, scalars, shapes))
        return call

    def _forward(self, scalars: Mapping[str, Any], arrays: Sequence[Any]) -> tuple[Any, ...]:
        owner = (self.function.run, "forward")
        shapes = self.function.shapes([one.shape for one in arrays])
        return _written(self.function, self._id, owner, scalars, arrays, shapes)

    def _backward(
        self,
        scalars: Mapping[str, Any],
        extents: Sequence[int],
        saved: Mapping[str, Any],
        cotangents: Sequence[Any],
    ) -> tuple[Any, ...]:
        """Return a gradient for each input."""
        adjoint, fields = self.adjoint, self.function.halos.fields
        assert adjoint is not None
        shapes = dict(zip(self._inputs, self.function.cut(extents), strict=True))
        named, kept, wanted = self._differentiated, adjoint.saved, list(adjoint.gradients)

        def compute(*memory: Any) -> None:
            first, second = len(named), len(named) + len(kept)
            into = dict(zip(wanted, memory[second:], strict=True))
            for array in into.values():
                array.fill(0)
            values = dict(scalars) | dict(zip(kept, memory[first:second], strict=True))
            adjoint(extents, dict(zip(named, memory[:first], strict=True)), values, into)

        results = called(
            f"adjoint {self._id} {self._others[0]} {sorted(scalars.items())} {list(extents)}",
            (self.function.run, adjoint.run, adjoint.cotangents, adjoint.gradients),
            compute,
            _results([fields[name] for name in wanted], [shapes[name] for name in wanted]),
            # JAX's cotangents are not conjugated, those of the convention are.
            [*map(_conjugate, cotangents), *(saved[name] for name in kept)],
            ranks=[len(fields[name].dims) for name in (*named, *kept, *wanted)],
            asks_writable=adjoint.declaration.asks_writable,
        )
        found = dict(zip(wanted, map(_conjugate, results), strict=True))
        return tuple(
            found[name] if name in found else self._unknown(name, shapes[name])
            for name in self._inputs
        )

    def _unknown(self, name: str, shape: Any) -> Any:
        """Return the gradient of an input that the adjoint does not write: not zero."""
        dtype = np.dtype(self.function.halos.fields[name].dtype)
        if not np.issubdtype(dtype, np.inexact):
            return np.zeros(shape, jax.dtypes.float0)
        return jnp.full(shape, 0 if name in self.constants else jnp.nan, dtype)

    def _along(
        self, scalars: Mapping[str, Any], values: Mapping[str, Any], directions: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return the derivative of the outputs that have one along a direction of the inputs."""
        tangent = self.tangent
        assert tangent is not None
        named = dict(zip(self._inputs, directions, strict=True))
        given = tangent.arguments({**values, **scalars}, named)
        numbers = {one.name: scalars[one.name] for one in tangent.run.scalars}
        arrays = [given[field.name] for field in tangent.run.inputs]
        name, owner = f"tangent {self._id} {self._others[1]}", (self.function.run, tangent.run.run)
        shapes = tangent.shapes([one.shape for one in directions])
        made = _written(tangent.run, name, (*owner, tangent.called), numbers, arrays, shapes)
        found = dict(zip([field.name for field in tangent.run.outputs], made, strict=True))
        lost = [
            jnp.where(jnp.any(named[name] != 0), jnp.nan, 0.0)
            for name in self._inputs
            if name not in tangent.inputs and name not in self.constants and _is_real(named[name])
        ]
        results = [found[tangent.called[name]] for name in self._differentiated]
        return (
            tuple(sum(lost, one).astype(one.dtype) for one in results) if lost else tuple(results)
        )

    # -- rules of JAX ----------------------------------------------------------------------------

    def _kept(self, arrays: Sequence[Any], outputs: Sequence[Any]) -> dict[str, Any]:
        """Return the values of which tangent and adjoint are functions."""
        known = dict(zip(self._outputs, outputs, strict=True))
        known |= dict(zip(self._inputs, arrays, strict=True))
        named = [] if self.adjoint is None else [*self.adjoint.saved]
        if self.tangent is not None:
            named += [name for name in self._inputs if name in self.tangent.run.arguments]
        return {name: known[name] for name in named}

    def _with_derivatives(
        self, plain: Callable[..., Any], scalars: Mapping[str, Any], shapes: Sequence[Any]
    ) -> Callable[..., Any]:
        call, names = jax.custom_jvp(plain), list(self._kept(self._inputs, self._outputs))
        extents = [extent for shape in shapes for extent in shape]

        def along(kept: Sequence[Any], directions: Sequence[Any]) -> tuple[Any, ...]:
            if self.tangent is None:
                raise self._needs("a tangent", "tangent")
            return self._along(scalars, dict(zip(names, kept, strict=True)), directions)

        def transposed(kept: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
            if self.adjoint is None:
                raise self._needs("an adjoint", "adjoint")
            values = dict(zip(names, kept, strict=True))
            return self._backward(scalars, extents, values, cotangents)

        def derivative(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            if self.tangent is None and self.adjoint is None:
                raise self._needs("an adjoint or a tangent", "adjoint")
            self.function.check_extents(shapes)
            outputs = call(*primals)  # the rule again, so that it has derivatives of its own
            named = dict(zip(self._outputs, outputs, strict=True))
            differentiated = [named[name] for name in self._differentiated]
            both = Linear(along, _abstract(differentiated)), Linear(transposed, _abstract(primals))
            kept = list(self._kept(primals, outputs).values())
            made = linear(self.function.name, *both, kept, tangents)
            found = dict(zip(self._differentiated, made, strict=True))
            return outputs, tuple(
                found[name] if name in found else np.zeros(one.shape, jax.dtypes.float0)
                for name, one in named.items()
            )

        call.defjvp(derivative)
        made: Callable[..., Any] = call
        return made

    def _needs(self, what: str, option: str) -> NotImplementedError:
        way_out = f"pass {option}=dlfield.bind(...) to jax_call"
        return NotImplementedError(
            f"'{self.function.name}': needs {what} for this derivative; {way_out}"
        )


def _written(
    function: StencilFunction,
    name: str,
    owner: Any,
    scalars: Mapping[str, Any],
    arrays: Sequence[Any],
    shapes: Sequence[Any],
) -> tuple[Any, ...]:
    """Return the outputs of a stencil, of these shapes, which XLA calls with memory for them.

    `name` and `owner` are as `called` takes them. A field that is read and written begins with the
    values of the input.
    """
    inputs, outputs = ([one.name for one in each] for each in (function.inputs, function.outputs))
    places = {name: at for at, name in enumerate([*inputs, *outputs, *scalars])}  # the last counts
    chosen = itemgetter(*map(places.__getitem__, [*function.arguments, *outputs]))
    fresh = [at for at, field in enumerate(function.outputs) if field.access == "write"]
    first, count, numbers = len(inputs), len(function.arguments), tuple(scalars.values())

    def compute(*memory: Any) -> None:
        for at in fresh:
            function.clear(at, memory[first + at])
        values = chosen((*memory, *numbers))
        last = function.last_write
        if last is None or not last.repeat(function.run, *values):
            function.write_in_order(values[:count], values[count:])

    return called(
        f"{name} {sorted(scalars.items())}",
        owner,
        compute,
        _results(function.outputs, shapes),
        arrays,
        ranks=[len(one.dims) for one in (*function.inputs, *function.outputs)],
        asks_writable=function.declaration.asks_writable,
        aliases={inputs.index(one): outputs.index(one) for one in outputs if one in inputs},
    )


def _abstract(arrays: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(jax.core.ShapedArray(one.shape, one.dtype) for one in arrays)


def _results(fields: Sequence[DeclaredField], shapes: Sequence[Any]) -> list[Any]:
    pairs = zip(fields, shapes, strict=True)
    return [jax.ShapeDtypeStruct(tuple(shape), np.dtype(one.dtype)) for one, shape in pairs]


def _is_real(array: Array) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.inexact))


def _conjugate(array: Array) -> Any:
    return jnp.conj(array) if jnp.iscomplexobj(array) else array
