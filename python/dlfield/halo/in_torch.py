"""An exchange of halos as a differentiable function of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dlfield.halo.transposed import OTHER

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlfield.halo.transposed import Step

__all__ = ["exchanged"]


class _Exchanged(torch.autograd.Function):  # type: ignore[misc]
    """A step in one direction. It is linear: its derivative is itself, in reverse the other one.

    Fields of integers have no derivative. They go along as zeros, since a step takes all fields.
    """

    @staticmethod
    def forward(step: Step, way: str, *tensors: torch.Tensor) -> Any:
        return tuple(step(way, lambda: list(map(_copied, tensors))))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.step, ctx.way, *tensors = inputs
        ctx.zeros = [_zeros_like(one) for one in tensors]

    @staticmethod
    def jvp(ctx: Any, _step: None, _way: None, *directions: torch.Tensor | None) -> Any:
        pairs = list(zip(directions, ctx.zeros, strict=True))
        along = [zeros() if one is None else one for one, zeros in pairs]
        made = _Exchanged.apply(ctx.step, ctx.way, *along)
        return tuple(one if _has_derivative(one) else None for one in made)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        return None, None, *_Exchanged.apply(ctx.step, OTHER[ctx.way], *cotangents)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"fields: expected tensors of PyTorch, got {type(tensor).__name__}; torch.as_tensor "
            "makes one"
        )
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _zeros_like(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Return what makes zeros like a tensor, without keeping it."""
    shape, options = tensor.shape, {"dtype": tensor.dtype, "device": tensor.device}
    return lambda: torch.zeros(shape, **options)


def _has_derivative(tensor: torch.Tensor) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def exchanged(step: Step) -> Callable[..., Any]:
    """Return a function of tensors that has the transpose of an exchange for its derivative.

    Parameters
    ----------
    step
        Exchanges tensors in place, or their cotangents.
    """

    def exchange(*tensors: torch.Tensor) -> Any:  # one tensor, or a tuple
        made = _Exchanged.apply(step, "exchange", *tensors)
        return made[0] if len(made) == 1 else made

    return exchange
