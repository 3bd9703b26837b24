"""An exchange of halos as a differentiable function of JAX.

XLA makes the exchanges of a process in the order of the program: each takes the token of the one
before. JAX passes such tokens on for an ordered effect, a class that it does not publish.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

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

    from dlfield._core import Array, Storage
    from dlfield.halo.transposed import Step

__all__ = ["exchanged"]

_numbers = itertools.count()


class _Order(effects.Effect):  # type: ignore[misc]
    """Keeps exchanges in the order of the program."""

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
    plan: object,
    step: Step,
    check: Callable[[Sequence[Any]], None],
    fields: Sequence[Storage],
    *,
    alone: bool,
) -> Callable[..., Any]:
    """Return a function of arrays that is linear, and has the transpose of an exchange.

    Parameters
    ----------
    plan
        Whose exchange it is. XLA does not keep it alive; the returned function does.
    step
        A method of the plan: exchanges arrays in place, or their cotangents.
    check
        Refuses another number of arrays.
    fields
        The fields of the plan.
    alone
        True for a single rank, which refuses arrays at once. Otherwise the step is taken all the
        same, so that all ranks refuse together.
    """
    name, kept = f"halo exchange {next(_numbers)}", weakref.WeakMethod(step)

    def add(way: str, entry: Callable[..., None]) -> None:
        text = f"{name}, {way}"
        add_entry(text, entry, [one.ndim for one in fields] * 2)
        weakref.finalize(plan, xla_entries().pop, text)

    for way in OTHER:
        add(way, _in_place(kept, way))

    def exchange(*arrays: Array) -> Any:  # one array, or a tuple
        way = "exchange"
        try:
            check(arrays)
            given = [jax.numpy.asarray(one) for one in arrays]
        except Exception as error:
            if alone:
                raise
            way = f"refused {next(_numbers)}"
            add(way, _refusing(kept, error))
            given = [jax.numpy.zeros(one.shape, one.dtype) for one in fields]
        made = _exchange.bind(*given, name=name, way=way)
        if way != "exchange":
            jax.block_until_ready(made)  # raises now, unless this is traced
        return made[0] if len(made) == 1 else tuple(made)

    return exchange


def _in_place(step: weakref.WeakMethod[Any], way: str) -> Callable[..., None]:
    """Return what XLA calls: results begin as the inputs, in the same memory if that is free."""

    def entry(*memory: Any) -> None:
        made = step()
        assert made is not None  # the entry goes with the plan
        made(way, lambda: memory[len(memory) // 2 :])

    return entry


def _refusing(step: weakref.WeakMethod[Any], problem: Exception) -> Callable[..., None]:
    """Return what XLA calls for arrays that were refused: a step that all ranks refuse."""
    text = str(problem)

    def arrays() -> NoReturn:
        raise ValueError(text)

    def entry(*_memory: Any) -> None:
        made = step()
        assert made is not None  # the entry goes with the plan
        made("exchange", arrays)

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
    """Exchange tangents as well. Integers have none; zeros go along in their place."""
    directions = list(map(_direction, primals, tangents))
    made, along = _exchange.bind(*primals, **both), _exchange.bind(*directions, **both)
    pairs = zip(made, along, strict=True)
    return made, [
        one if _has_derivative(one.dtype) else _no_direction(primal) for primal, one in pairs
    ]


def _no_direction(primal: Any) -> Any:
    return ad.Zero(jax.core.ShapedArray(primal.shape, jax.dtypes.float0))


def _direction(primal: Any, tangent: Any) -> Any:
    if not _has_derivative(primal.dtype):
        return jax.numpy.zeros(primal.shape, primal.dtype)
    return ad.instantiate_zeros(tangent)


def _transposed(cotangents: Sequence[Any], *arrays: Any, name: str, way: str) -> Any:
    linear = list(map(ad.is_undefined_primal, arrays))
    avals = [one.aval if ours else one for one, ours in zip(arrays, linear, strict=True)]
    given = list(map(_direction, avals, cotangents))
    made = _exchange.bind(*given, name=name, way=OTHER.get(way, way))
    return [one if ours else None for one, ours in zip(made, linear, strict=True)]


def _has_derivative(dtype: Any) -> bool:
    return bool(jax.numpy.issubdtype(dtype, jax.numpy.inexact))


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
