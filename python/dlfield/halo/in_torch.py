"""An exchange of halos as a differentiable function of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dlfield.halo.transposed import OTHER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlfield.halo.transposed import Step

__all__ = ["exchanged"]


class _Exchanged(torch.autograd.Function):  # type: ignore[misc]
    """A step in one direction. It is linear: its derivative is itself, in reverse the other one."""

    @staticmethod
    def forward(step: Step, way: str, *tensors: torch.Tensor) -> Any:
        return _with_copies(step, way, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.step, ctx.way = inputs[:2]

    @staticmethod
    def jvp(ctx: Any, _step: None, _way: None, *directions: torch.Tensor) -> Any:
        return _Exchanged.apply(ctx.step, ctx.way, *directions)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        return None, None, *_Exchanged.apply(ctx.step, OTHER[ctx.way], *cotangents)


def _with_copies(step: Step, way: str, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    copies = tuple(one.detach().clone(memory_format=torch.contiguous_format) for one in tensors)
    step(way, copies)
    return copies


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
