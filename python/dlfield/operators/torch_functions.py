"""What PyTorch needs to differentiate an operator, and to call it for each element of a batch.

``torch.library.register_autograd`` serves the registered operators, in compiled code. Eager calls
take a `torch.autograd.Function` of the old form, which costs a tenth of that, and ``torch.func``
one of the new form, since it takes no operator that was registered from Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "are_plain",
    "below_autograd",
    "functions",
    "nobody_listens",
    "register_derivatives",
    "transforms_are_active",
]

#: What torch tells about itself without a public name. Without it, the slow way is always right.
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
_tracing = getattr(torch._C, "_get_tracing_state", lambda: None)
_listeners = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_keys = getattr(torch._C, "_dispatch_keys", None)
#: What a tensor in host memory is to the dispatcher, and nothing else.
_PLAIN = None if _keys is None else _keys(torch.empty(0)).raw_repr()


def transforms_are_active() -> bool:
    """Return whether torch.func is at work, or forward derivatives are."""
    return _transforms() or getattr(forward_ad, "_current_level", 0) >= 0


def nobody_listens() -> bool:
    """Return whether no mode or transformation wants to see operators, as tracers and counters do.

    It asks what `transforms_are_active` asks, without the call, for which every call would pay.
    """
    no_mode = not _listeners() and _tracing() is None
    return no_mode and not _transforms() and getattr(forward_ad, "_current_level", 0) < 0


def are_plain(tensors: Iterable[Any]) -> bool:
    """Return whether all are tensors in host memory that hold their values.

    Others are resolved by the dispatcher: pending negations and conjugations, zeros without memory,
    and the gradients of a batch (``is_grads_batched=True``), which come as one tensor.
    """
    return _keys is not None and all(
        type(one) is torch.Tensor and _keys(one).raw_repr() == _PLAIN for one in tensors
    )


def below_autograd(operator: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call an operator, which records nothing for derivatives."""
    with torch._C._AutoDispatchBelowAutograd():
        return operator(*args)


def functions(op: Any) -> tuple[Any, Any]:
    """Return the two forms of `torch.autograd.Function`: the fast one, and that of torch.func."""

    class Old(torch.autograd.Function):  # type: ignore[misc] # it has no types
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            outputs = op.eager(args)
            _save(op, ctx, args, outputs)
            return outputs

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
            # With create_graph=True torch may differentiate again, which `Backward` refuses.
            call = Backward.apply if torch.is_grad_enabled() else op.eager_backward
            return _differentiate(op, ctx, call, gradients)

    class Backward(torch.autograd.Function):  # type: ignore[misc] # it has no types
        """The backward operator where torch.func is at work; it has no derivative."""

        @staticmethod
        def forward(*args: Any) -> Any:
            return op.backward(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise NotImplementedError(f"{op.name}: an operator of a stencil has one derivative")

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            return _each(Backward.apply, info, in_dims, args)

    class New(torch.autograd.Function):  # type: ignore[misc] # it has no types
        @staticmethod
        def forward(*args: Any) -> Any:
            return op.plain(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            _save(op, ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return _differentiate(op, ctx, Backward.apply, gradients)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            raise NotImplementedError(
                f"{op.name}: needs a tangent for a forward derivative, which torch_op does not "
                "take; use reverse mode"
            )

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            return _each(New.apply, info, in_dims, args)

    return Old, New


def _save(op: Any, ctx: Any, inputs: Sequence[Any], outputs: Any) -> None:
    """Save what the backward operator takes."""
    tensors, ctx.numbers, ctx.extents = op.to_save(inputs, outputs)
    ctx.save_for_backward(*tensors)


def _differentiate(op: Any, ctx: Any, call: Any, gradients: Sequence[Any]) -> tuple[Any, ...]:
    """Call the backward operator with what was saved, and return a gradient for each argument."""
    op.known_adjoint()
    found = call(*gradients, *ctx.saved_tensors, *ctx.numbers, ctx.extents)
    every: tuple[Any, ...] = op.gradients(ctx.needs_input_grad, found)
    return every


def _each(call: Callable[..., Any], info: Any, in_dims: Sequence[Any], args: Sequence[Any]) -> Any:
    """Call an operator for each element of a batch, and stack the results.

    Of an empty batch one call with zeros tells the shapes.
    """
    size = info.batch_size

    def part(value: Any, dim: int | None, at: int) -> Any:
        if dim is None or not isinstance(value, torch.Tensor):
            return value
        return value.select(dim, at) if size else value.new_zeros(value.movedim(dim, 0).shape[1:])

    def stacked(results: Sequence[Any]) -> Any:
        return torch.stack(tuple(results))[:size]

    results = [
        call(*(part(value, dim, at) for value, dim in zip(args, in_dims, strict=True)))
        for at in range(max(size, 1))
    ]
    if isinstance(results[0], torch.Tensor):
        return stacked(results), 0
    return tuple(map(stacked, zip(*results, strict=True))), (0,) * len(results[0])


def register_derivatives(op: Any, library: torch.library.Library, name: str) -> None:
    """Register what compilers and torch.func need of the operators themselves."""

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        _save(op, ctx, inputs, output)

    def backward(ctx: Any, *gradients: Any) -> Any:
        return _differentiate(op, ctx, op.backward, gradients)

    def second(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(f"{op.name}: an operator of a stencil has one derivative")

    torch.library.register_autograd(name, backward, setup_context=setup, lib=library)
    for one, operator in (("", op.op), ("_plain", op.plain), ("_backward", op.backward)):
        if operator is not None:
            rule = _rule(operator)
            torch.library.register_vmap(f"{name}{one}", rule, lib=library)
    if op.backward is not None:
        torch.library.register_autograd(f"{name}_backward", second, lib=library)


def _rule(operator: Any) -> Callable[..., Any]:
    return lambda info, in_dims, *args: _each(operator, info, in_dims, args)
