"""An exchange of halos as a differentiable function of JAX.

XLA makes the exchanges of a process in the order of the program: each takes the token of the one
before. JAX passes such tokens on for an ordered effect, a class that it does not publish.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

import jax
from jax._src import effects
from jax._src.core import abstract_token
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from dlfield._core import xla_entries
from dlfield.halo.transposed import OTHER
from dlfield.operators.xla_entries import TARGET, add_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlfield._core import Array
    from dlfield.halo.transposed import Step

__all__ = ["exchanged"]

_numbers = itertools.count()


class _Order(effects.Effect):  # type: ignore[misc]
    """What an exchange does to those that follow."""

    def __str__(self) -> str:
        return "halo exchange"


_ORDER = _Order()
for _known in (
    effects.ordered_effects,
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    effects.remat_allowed_effects,
):
    _known.add_type(_Order)

_exchange = Primitive("dlfield_halo_exchange")
_exchange.multiple_results = True


def exchanged(
    plan: object, step: Step, check: Callable[[Sequence[Any]], None], ranks: Sequence[int]
) -> Callable[..., Any]:
    """Return a function of arrays that is linear, and has the transpose of an exchange.

    Parameters
    ----------
    plan
        Whose exchange it is. XLA does not keep it alive; the returned function does.
    step
        A method of the plan: exchanges arrays in place, or their cotangents.
    check
        Refuses arrays that do not fit.
    ranks
        Number of dimensions of each array.
    """
    name = f"halo exchange {next(_numbers)}"
    for way in OTHER:
        entry = f"{name}, {way}"
        add_entry(entry, _in_place(weakref.WeakMethod(step), way), (*ranks, *ranks))
        weakref.finalize(plan, xla_entries().pop, entry)

    def exchange(*arrays: Array) -> Any:  # one array, or a tuple
        given = [jax.numpy.asarray(one) for one in arrays]
        check(given)
        made = _exchange.bind(*given, name=name, way="exchange")
        return made[0] if len(made) == 1 else tuple(made)

    return exchange


def _in_place(step: weakref.WeakMethod[Any], way: str) -> Callable[..., None]:
    """Return what XLA calls: results begin as the inputs, in the same memory if that is free."""

    def entry(*memory: Any) -> None:
        made = step()
        assert made is not None  # the entry goes with the plan
        made(way, memory[len(memory) // 2 :])

    return entry


def _abstract(*arrays: Array, **_: str) -> tuple[list[Any], set[effects.Effect]]:
    return [jax.core.ShapedArray(one.shape, one.dtype) for one in arrays], {_ORDER}


def _lowered(ctx: Any, *arrays: Array, name: str, way: str) -> Any:
    """Write the call with the token of the one before in front, and hand its own on."""
    lower = jax.ffi.ffi_lowering(
        TARGET,
        operand_output_aliases={number: number for number in range(1, 1 + len(arrays))},
        has_side_effect=True,
    )
    avals_in, avals_out = ([abstract_token, *avals] for avals in (ctx.avals_in, ctx.avals_out))
    inner = ctx.replace(avals_in=avals_in, avals_out=avals_out)
    token, *made = lower(inner, ctx.tokens_in.get(_ORDER), *arrays, entry=f"{name}, {way}")
    ctx.set_tokens_out(mlir.TokenSet({_ORDER: token}))
    return made


def _differentiated(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    **both: str,
) -> tuple[Any, Any]:
    directions = map(ad.instantiate_zeros, tangents)
    return _exchange.bind(*primals, **both), _exchange.bind(*directions, **both)


def _transposed(cotangents: Sequence[Any], *_: Any, name: str, way: str) -> Any:
    return _exchange.bind(*map(ad.instantiate_zeros, cotangents), name=name, way=OTHER[way])


def _in_batches(arrays: Sequence[Any], dims: Sequence[Any], **both: str) -> tuple[Any, Any]:
    """Make one call for a batch, which exchanges its elements one by one."""
    pairs = list(zip(arrays, dims, strict=True))
    size = next(one.shape[dim] for one, dim in pairs if dim is not None)
    batches = [batching.bdim_at_front(one, dim, size) for one, dim in pairs]
    return _exchange.bind(*batches, **both), [0] * len(arrays)


_exchange.def_impl(jax.jit(_exchange.bind, static_argnames=("name", "way")))
_exchange.def_effectful_abstract_eval(_abstract)
ad.primitive_jvps[_exchange] = _differentiated
ad.primitive_transposes[_exchange] = _transposed
batching.primitive_batchers[_exchange] = _in_batches
mlir.register_lowering(_exchange, _lowered, platform="cpu")
