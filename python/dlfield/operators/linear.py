"""A linear function for JAX that has its own transpose: a tangent with its adjoint.

`jax.custom_derivatives.linear_call` is this without a rule for batches, and has to be transposed by
all of its arguments. Here each of the two functions may be missing: it is called only where JAX
needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Linear", "linear"]

_linear = Primitive("dlfield_linear")
_linear.multiple_results = True


@dataclass(frozen=True)
class Linear:
    """One of the two functions.

    Parameters
    ----------
    call
        Takes the values that it depends on, and its arguments, and returns its results.
    results
        The abstract values of its results.
    """

    call: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
    results: tuple[jax.core.ShapedArray, ...]

    def in_batches(self, size: int, kept: tuple[int | None, ...]) -> Linear:
        """Return the function for a batch: of its arguments, and of some values it depends on."""
        dims = None if all(dim is None for dim in kept) else kept
        mapped = jax.vmap(lambda kept, arguments: tuple(self.call(kept, arguments)), (dims, 0))
        results = [jax.core.ShapedArray((size, *one.shape), one.dtype) for one in self.results]
        return Linear(lambda kept, args: mapped(tuple(kept), tuple(args)), tuple(results))


def linear(
    name: str, along: Linear, transposed: Linear, kept: Sequence[Any], arguments: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the results of `along`, which is linear in `arguments`.

    In reverse mode JAX calls `transposed`. The derivative by `kept` is not known, and refused with
    this name.
    """
    both = {"along": along, "transposed": transposed}
    return tuple(_linear.bind(*kept, *arguments, count=len(kept), name=name, **both))


def _computed(*args: Any, count: int, along: Linear, **_: Any) -> list[Any]:
    return list(along.call(args[:count], args[count:]))


def _differentiated(
    primals: Sequence[Any], tangents: Sequence[Any], *, count: int, name: str, **both: Any
) -> tuple[Any, Any]:
    if any(type(one) is not ad.Zero for one in tangents[:count]):
        raise NotImplementedError(
            f"'{name}': needs the derivative of a derivative by the values that this depends on; a "
            "stencil has one"
        )
    directions = [ad.instantiate_zeros(one) for one in tangents[count:]]
    every = (primals, (*primals[:count], *directions))
    results = [_linear.bind(*args, count=count, name=name, **both) for args in every]
    return results[0], results[1]


def _transposed(
    cotangents: Sequence[Any], *args: Any, count: int, along: Linear, transposed: Linear, name: str
) -> list[Any]:
    given = [ad.instantiate_zeros(one) for one in cotangents]
    both = {"along": transposed, "transposed": along}
    found = _linear.bind(*args[:count], *given, count=count, name=name, **both)
    wanted = map(ad.is_undefined_primal, args[count:])
    return [None] * count + [
        one if asked else None for one, asked in zip(found, wanted, strict=True)
    ]


def _in_batches(
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    count: int,
    along: Linear,
    transposed: Linear,
    name: str,
) -> tuple[Any, Any]:
    size = next(one.shape[dim] for one, dim in zip(args, dims, strict=True) if dim is not None)
    # Every argument is part of the batch, so that the transpose has a result for each element.
    arguments = [
        batching.bdim_at_front(one, dim, size)
        for one, dim in zip(args[count:], dims[count:], strict=True)
    ]
    first, second = (one.in_batches(size, tuple(dims[:count])) for one in (along, transposed))
    made = linear(name, first, second, args[:count], arguments)
    return made, [0] * len(made)


_linear.def_impl(_computed)
_linear.def_abstract_eval(lambda *_, along, **__: list(along.results))
ad.primitive_jvps[_linear] = _differentiated
ad.primitive_transposes[_linear] = _transposed
batching.primitive_batchers[_linear] = _in_batches
mlir.register_lowering(_linear, mlir.lower_fun(_computed, multiple_results=True))
