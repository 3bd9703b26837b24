"""`TorchOp`: a bound stencil as an operator of PyTorch.

The callable chooses among the registered operators (`TorchOp.__call__`): what PyTorch registers for
derivatives by itself costs more time than a small stencil, and does not work in ``torch.func``.
"""

from __future__ import annotations

import itertools
import operator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch.compiler import is_dynamo_compiling

from dlfield.operators.arguments import check_like
from dlfield.operators.torch_functions import (
    are_plain,
    below_autograd,
    functions,
    nobody_listens,
    transforms_are_active,
)
from dlfield.operators.torch_operators import TorchOperators

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield._core import Array

__all__ = ["TorchOp"]


class TorchOp(TorchOperators):
    """A bound stencil as an operator of PyTorch. Made by `torch_op`.

    Attributes
    ----------
    op, out_op
        The registered operators, ``torch.ops.<namespace>.<operator>.default`` and ``.out``.
        Their forward derivatives are silently zero, since PyTorch asks no operator for them; the
        callable raises instead.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._old, self._new = functions(self)

    def __call__(self, *args: Any, out: Array = None, **keywords: Any) -> Any:
        """Call the stencil with its inputs and scalars, in the order of the definition.

        Parameters
        ----------
        *args, **keywords
            Tensors and numbers. No tensor is made contiguous. A field that is read and written is
            copied, unless it is its own output in `out`.
        out
            The output tensor, or a tuple of them, to write. The halo of an output keeps its values;
            that of a field that is read and written is copied from its argument, which is broadcast
            to the output. By default new tensors are made.

        Returns
        -------
        torch.Tensor or tuple of torch.Tensor
            The outputs in the order of the definition.
        """
        if keywords or len(args) != len(self._names):
            args = tuple(self.function.bound(args, keywords).values())
        for at in self._reals:
            if type(args[at]) is int:
                args = (*args[:at], float(args[at]), *args[at + 1 :])
        if out is not None:
            return self._write(args, out)
        if self._may_pass(args):
            try:
                return self._compute(*args)
            except BufferError:
                self._raise_unless_pending(args)
                return self.plain(*args)
        if torch.compiler.is_compiling():
            return self.op(*args)
        if transforms_are_active():
            self._refuse_tensors_for_numbers(args)
            return self._new.apply(*args)
        if torch.is_grad_enabled() and self._wants_gradient(args):
            return self._old.apply(*args)
        return self.plain(*args)

    def eager(self, args: tuple[Any, ...]) -> Any:
        """Compute without derivatives, past the dispatcher where nobody listens to it."""
        if self._may_pass(args):
            try:
                return self._compute(*args)
            except BufferError:
                self._raise_unless_pending(args)
        return self.plain(*args)

    def eager_backward(self, *args: Any) -> Any:
        """Compute gradients, past the dispatcher where nobody listens to it."""
        tensors = args[: len(self._outputs) + len(self._saved)]
        if not is_dynamo_compiling() and nobody_listens() and are_plain(tensors):
            return self._compute_backward(*args)
        return below_autograd(self.backward, args)

    def _may_pass(self, args: Sequence[Any], outputs: Sequence[Any] = ()) -> bool:
        """Return whether the dispatcher has nothing to do.

        That is: without a compiler, transform, mode or gradient, if all tensors are plain.
        Compilers other than Dynamo show as modes.
        """
        if is_dynamo_compiling() or not nobody_listens():
            return False
        recording = torch.is_grad_enabled()
        for at in self._tensors:
            one = args[at]
            if type(one) is not torch.Tensor or one.is_meta or (recording and one.requires_grad):
                return False
        for one in outputs:
            if type(one) is not torch.Tensor or one.is_meta or (recording and one.requires_grad):
                return False
        return self._has_numbers(args)

    def _raise_unless_pending(self, args: Sequence[Any]) -> None:
        """Raise the error that the caller handles, unless the dispatcher can resolve a tensor."""
        if not any(args[at].is_neg() or args[at].is_conj() for at in self._tensors):
            raise

    def _has_numbers(self, args: Sequence[Any]) -> bool:
        """Return whether no tensor stands where a number does."""
        for at in self._numbers:  # noqa: SIM110 (a generator takes twice the time)
            if isinstance(args[at], torch.Tensor):
                return False
        return True

    def __repr__(self) -> str:
        return f"<dlfield.torch_op {self.name} of {self.function.run!r}>"

    def _wants_gradient(self, args: Sequence[Any]) -> bool:
        self._refuse_tensors_for_numbers(args)
        for at in self._tensors:  # noqa: SIM110 (a generator takes twice the time)
            if getattr(args[at], "requires_grad", False):
                return True
        return False

    def _refuse_tensors_for_numbers(self, args: Sequence[Any]) -> None:
        for at in self._numbers:
            if isinstance(args[at], torch.Tensor):
                name = self._names[at]
                way_out = (
                    f"declare '{name}' as a field and pass {name}.expand(...), or {name}.item()"
                )
                raise TypeError(
                    f"'{name}' of {self.name}: expected a number, which has no gradient, got a "
                    f"tensor; {way_out}"
                )

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchOp:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.name}: cannot be pickled; make it again in that process")

    def _write(self, args: tuple[Any, ...], out: Array) -> Any:
        """Write into the caller's tensors."""
        is_one = isinstance(out, torch.Tensor) or not isinstance(out, tuple | list)
        outputs = (out,) if is_one else tuple(out)
        # Asked first: compiled code must not depend on the last call.
        if not (self._updated or is_dynamo_compiling()) and nobody_listens():
            # `repeat` takes no tensors beside arrays, and asks each tensor what `_may_pass` asks.
            is_torchs = bool(outputs) and type(outputs[0]) is torch.Tensor
            last = self.function.last_write if is_torchs else None
            has_numbers = not self._numbers or self._has_numbers(args)
            if last and has_numbers and last.repeat(self.function.run, *args, *outputs):
                return out
        if len(outputs) != len(self._outputs) or not _are_tensors(outputs):
            expected = f"tensors for {', '.join(self._outputs)}"
            got = ", ".join(type(one).__name__ for one in outputs)
            raise TypeError(f"out: expected {expected}, got {got or 'none'}")
        may_pass = self._may_pass(args, outputs)
        if not may_pass:
            self._refuse_pending(outputs)
            self._refuse_derivatives(args, outputs)
        written = list(outputs)
        for at, own in self._updated:
            output = outputs[at]
            if output is not args[own]:
                if args[own].dtype != output.dtype:
                    check_like(self._names[own], output, args[own])
                written[at] = torch.empty_like(output).copy_(args[own])
        if any(map(operator.is_not, written, outputs)):
            self._refuse_overlap(outputs)
        try:
            self._write_into(args, written, may_pass=may_pass)
        except BufferError:
            self._refuse_pending(outputs)
            self._raise_unless_pending(args)
            self._write_into(args, written, may_pass=False)
        for output, values in zip(outputs, written, strict=True):
            if values is not output:
                output.copy_(values)
        return out

    def _write_into(self, args: Sequence[Any], outputs: Sequence[Any], *, may_pass: bool) -> None:
        if may_pass and self._key == "CPU":
            self.function.write_in_order(args, outputs)
            return
        write = self._compute_out if may_pass else self.out_op
        write(*[args[at] for at in self._kept], **dict(zip(self._outputs, outputs, strict=True)))

    def _refuse_pending(self, outputs: Sequence[Any]) -> None:
        """Refuse outputs that do not hold their values, for which the dispatcher has no answer."""
        if torch.compiler.is_compiling():
            return  # a compiler cannot ask
        if any(one.is_neg() or one.is_conj() for one in outputs):
            expected = "tensors whose memory holds their values"
            got = "a pending negation or conjugation"
            way_out = "call resolve_neg() or resolve_conj() first"
            raise BufferError(f"{self.name}: out: expected {expected}, got {got}; {way_out}")

    def _refuse_overlap(self, outputs: Sequence[Any]) -> None:
        """Refuse outputs that share memory, of which the stencil gets copies."""
        if torch.compiler.is_compiling() or any(type(one) is not torch.Tensor for one in outputs):
            return
        for one, other in itertools.combinations(map(_place, outputs), 2):
            if np.shares_memory(one, other):
                expected = "outputs in separate memory, got tensors that overlap"
                raise BufferError(f"{self.name}: out: expected {expected}; pass others")

    def _refuse_derivatives(self, args: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Refuse a call with out= that torch would have to differentiate."""
        if transforms_are_active():
            raise RuntimeError(
                f"{self.name}: out= needs tensors outside of torch.func; leave it out"
            )
        if torch.is_grad_enabled() and (
            self._wants_gradient(args) or any(one.requires_grad for one in outputs)
        ):
            raise RuntimeError(
                f"{self.name}: functions with out=... support no automatic differentiation, but an "
                "argument requires a gradient; leave out out=, or use torch.no_grad()"
            )


def _are_tensors(outputs: Sequence[Any]) -> bool:
    return all(isinstance(one, torch.Tensor) for one in outputs)


def _place(tensor: torch.Tensor) -> Array:
    """Return an array with the address and the layout of a tensor, on any device. Never read it."""
    size = tensor.element_size()
    described = {
        "data": (tensor.data_ptr(), True),
        "shape": tuple(tensor.shape),
        "strides": tuple(step * size for step in tensor.stride()),
        "typestr": f"|V{size}",
        "version": 3,
    }
    return np.asarray(SimpleNamespace(__array_interface__=described))
