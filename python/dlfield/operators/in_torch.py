"""`TorchOp`: a bound stencil as an operator of PyTorch.

Four operators are registered through ``torch.library``: the functional one, for compilers, export
and C++; its form with ``out``; a plain one without derivatives, which eager calls use; and the
backward one. The callable chooses among them (`TorchOp.__call__`): what PyTorch registers for
derivatives by itself costs more time than a small stencil, and does not work in ``torch.func``.
"""

from __future__ import annotations

import itertools
import operator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dlfield.operators.adjoints import Adjoint
from dlfield.operators.function import check_like
from dlfield.operators.torch_functions import (
    are_plain,
    below_autograd,
    functions,
    nobody_listens,
    register_derivatives,
    transforms_are_active,
)
from dlfield.stencils.declaration import DeclaredField

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlfield._core import Array, BoundStencil
    from dlfield.operators.function import StencilFunction
    from dlfield.stencils.declaration import DeclaredScalar

__all__ = ["TorchMemory", "TorchOp"]

_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
#: torch.compile does not record such operators in CUDA graphs; older versions have no word for it.
_TAGS_ON_GPU = (*_TAGS, *filter(None, [getattr(torch.Tag, "cudagraph_unsafe", None)]))
_INT = frozenset([int])
#: Types of scalars in a schema, by NumPy's kind of their dtype.
_SCALARS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


class TorchOp:
    """A bound stencil as an operator of PyTorch. Made by `torch_op`.

    Attributes
    ----------
    op, out_op
        The registered operators, ``torch.ops.<namespace>.<operator>.default`` and ``.out``.
        Forward derivatives of these are zero without a word: PyTorch asks no operator for them. The
        callable refuses them.
    """

    op: Any
    out_op: Any
    backward: Any

    def __init__(
        self,
        function: StencilFunction,
        name: str,
        adjoint: BoundStencil | None,
        names: Mapping[str, str | None] | None,
    ) -> None:
        namespace, _, short = name.partition("::")
        if not (namespace.isidentifier() and short.isidentifier()):
            expected = "'namespace::operator'"
            raise ValueError(f"name: expected {expected}, got {name!r}")
        packet = getattr(torch.ops, namespace)
        for one in (short, f"{short}_plain", f"{short}_backward"):
            if hasattr(packet, one):
                got = f"'{namespace}::{one}', which is taken"
                raise ValueError(f"name: expected names that are free, got {got}; choose another")
        self.function, self.name = function, name
        self.adjoint = None if adjoint is None else Adjoint(function, adjoint, names)
        self._fields = [isinstance(one, DeclaredField) for one in function.arguments.values()]
        self._names = tuple(function.arguments)
        self._tensors = [at for at, is_field in enumerate(self._fields) if is_field]
        self._numbers = [at for at, is_field in enumerate(self._fields) if not is_field]
        #: The numbers that an int may stand for, as in a schema.
        self._reals = [
            at
            for at in self._numbers
            if getattr(function.arguments[self._names[at]].dtype, "kind", None) == "f"
        ]
        self._outputs = [field.name for field in function.outputs]
        #: Places of what is read and written, among the outputs and among the arguments.
        self._updated = [
            (at, self._names.index(one.name))
            for at, one in enumerate(function.outputs)
            if one.access == "update"
        ]
        updated = [at for _, at in self._updated]
        self._kept = [at for at in range(len(self._names)) if at not in updated]
        known = self.adjoint
        #: What the adjoint takes: True and a place among the arguments, or False and one among the
        #: outputs.
        self._saved = [self._place(name) for name in (known.saved if known else [])]
        scalars = known.scalars if known else []
        self._saved_numbers = [self._names.index(name) for name in scalars]
        #: Extents of inputs that have been found to have a derivative.
        self._differentiated: set[tuple[int, ...]] = set()
        kernels = [self._forward, self._forward_out, self._adjoint_of]
        self._key, self._tags = "CPU", _TAGS
        if function.declaration.device is not None:
            kernels = list(map(self._on_gpu, kernels))
            self._key, self._tags = "CUDA", _TAGS_ON_GPU
        self._compute, self._compute_out, self._compute_backward = kernels
        self._register(namespace, short)
        self._old, self._new = functions(self)

    def _place(self, name: str) -> tuple[bool, int]:
        given = name in self._names
        return given, (self._names if given else self._outputs).index(name)

    def __call__(self, *args: Any, out: Array = None, **keywords: Any) -> Any:
        """Call the stencil with its inputs and scalars, in the order of the definition.

        Parameters
        ----------
        *args, **keywords
            Tensors and numbers. No tensor is made contiguous. A field that is read and written is
            copied, unless it is its own output in `out`.
        out
            The output, or a tuple of them, to be written; the halo stays as it is, but that of a
            field which is read and written becomes that of the argument, which is repeated along
            what the output has more. By default new tensors are made.

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
        if not torch.compiler.is_compiling() and nobody_listens() and are_plain(tensors):
            return self._compute_backward(*args)
        return below_autograd(self.backward, args)

    def _may_pass(self, args: Sequence[Any], outputs: Sequence[Any] = ()) -> bool:
        """Tell whether the dispatcher has nothing to do.

        Nobody compiles, transforms, listens or wants a gradient, and tensors are torch's own.
        """
        if torch.compiler.is_compiling() or not nobody_listens():
            return False
        recording = torch.is_grad_enabled()
        for at in self._tensors:
            one = args[at]
            if type(one) is not torch.Tensor or one.is_meta or (recording and one.requires_grad):
                return False
        for one in outputs:
            if type(one) is not torch.Tensor or one.is_meta or (recording and one.requires_grad):
                return False
        for at in self._numbers:  # noqa: SIM110 (a generator takes twice the time)
            if isinstance(args[at], torch.Tensor):
                return False
        return True

    def _raise_unless_pending(self, args: Sequence[Any]) -> None:
        """Raise the error that the caller handles, unless the dispatcher can resolve a tensor."""
        if not any(args[at].is_neg() or args[at].is_conj() for at in self._tensors):
            raise

    def _may_repeat(self, args: Sequence[Any]) -> bool:
        """Tell whether the dispatcher has nothing to do, if tensors are those of a repeated call.

        Such a call asks each tensor what `_may_pass` asks, and is not made for others.
        """
        if self._updated or torch.compiler.is_compiling() or not nobody_listens():
            return False
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

    def _write(self, args: tuple[Any, ...], out: Array) -> Any:
        """Write into the caller's tensors."""
        outputs = (out,) if isinstance(out, torch.Tensor) else tuple(out)
        if len(outputs) != len(self._outputs):
            expected = f"tensors for {', '.join(self._outputs)}"
            raise TypeError(f"out: expected {expected}, got {len(outputs)}")
        if self._may_repeat(args):  # asked first: compiled code must not depend on the last call
            last = self.function.last_write
            if last is not None and last.repeat(self.function.run, *args, *outputs):
                return out
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
                f"{self.name}: out= needs tensors outside of torch.func; leave it away"
            )
        if torch.is_grad_enabled() and (
            self._wants_gradient(args) or any(one.requires_grad for one in outputs)
        ):
            raise RuntimeError(
                f"{self.name}: functions with out=... support no automatic differentiation, but an "
                "argument requires a gradient; leave out= away, or use torch.no_grad()"
            )

    # -- kernels ---------------------------------------------------------------------------------

    def _on_gpu(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel that makes memory on the GPU of its tensors, and is not recorded."""

        def called(*args: Any, **outputs: Any) -> Any:
            if torch.cuda.is_current_stream_capturing():
                raise RuntimeError(
                    f"{self.name}: a CUDA graph cannot record a stencil, which takes no stream; "
                    "call it outside of torch.cuda.graph"
                )
            given = (*args, *outputs.values())
            tensors = (one for one in given if isinstance(one, torch.Tensor))
            with torch.cuda.device_of(next(tensors)):
                return kernel(*args, **outputs)

        return called

    def _forward(self, *args: Any) -> Any:
        return self.function.new(*args)

    def _forward_out(self, *args: Any, **outputs: Any) -> None:
        names = [self._names[at] for at in self._kept]
        self.function.write(dict(zip(names, args, strict=True)) | outputs)

    def _adjoint_of(self, *args: Any) -> Any:
        adjoint = self.known_adjoint()
        cotangents, rest = args[: len(self._outputs)], args[len(self._outputs) : -1]
        saved = dict(zip([*adjoint.saved, *adjoint.scalars], rest, strict=True))
        named = dict(zip(self._outputs, cotangents, strict=True))
        gradients = adjoint(args[-1], named, saved)
        return _alone(list(map(_tensor, gradients.values())))

    # -- shapes of results, for compilers --------------------------------------------------------

    def _fake(self, *args: Any) -> Any:
        tensors = [one for one, is_field in zip(args, self._fields, strict=True) if is_field]
        shapes = self.function.shapes([one.shape for one in tensors])
        made = [
            tensors[0].new_empty(shape, dtype=_of_numpy(field.dtype))
            for shape, field in zip(shapes, self.function.outputs, strict=True)
        ]
        return _alone(made)

    def _fake_backward(self, *args: Any) -> Any:
        names = [field.name for field in self.function.inputs]
        shapes = dict(zip(names, self.function.cut(args[-1]), strict=True))
        fields = self.function.halos.fields
        return _alone(
            [
                args[0].new_empty(shapes[name], dtype=_of_numpy(fields[name].dtype))
                for name in self._differentiable
            ]
        )

    # -- derivatives -----------------------------------------------------------------------------

    @property
    def _differentiable(self) -> list[str]:
        return [] if self.adjoint is None else list(self.adjoint.gradients)

    def known_adjoint(self) -> Adjoint:
        """Return the adjoint, or raise NotImplementedError that says how to pass one."""
        if self.adjoint is None:
            needed = "an adjoint for a derivative"
            way_out = f"pass adjoint=dlfield.bind(...) to torch_op for '{self.name}'"
            raise NotImplementedError(f"{self.name}: needs {needed}; {way_out}")
        return self.adjoint

    def to_save(self, args: Sequence[Any], outputs: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the tensors, numbers and extents that the backward operator takes."""
        shapes = [extent for at in self._tensors for extent in args[at].shape]
        if self.adjoint is None:
            return [], [], shapes
        are_ints = _INT.issuperset(map(type, shapes))  # symbols of a compiler have no hash
        if not (are_ints and tuple(shapes) in self._differentiated):
            self.function.check_extents(self.function.cut(shapes))
            if are_ints:
                self._differentiated.add(tuple(shapes))
        made = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        tensors = [(args if own else made)[at] for own, at in self._saved]
        return tensors, [args[at] for at in self._saved_numbers], shapes

    def gradients(self, needed: Sequence[bool], found: Sequence[Any]) -> tuple[Any, ...]:
        """Return a gradient for each argument; None for numbers, and for those nobody asks for."""
        found = (found,) if isinstance(found, torch.Tensor) else found
        by_name = dict(zip(self._differentiable, found, strict=True))
        constant = (
            []
            if self.adjoint is None
            else [name for name, one in self.adjoint.names.items() if one is None]
        )
        for name, is_field, wanted in zip(self._names, self._fields, needed, strict=True):
            if wanted and is_field and name not in by_name and name not in constant:
                way_out = (
                    f"write its gradient in it, or pass names={{'{name}': None}} for a constant"
                )
                raise NotImplementedError(
                    f"{self.name}: needs a gradient of '{name}', which the adjoint does not write; "
                    f"{way_out}"
                )
        return tuple(by_name.get(name) for name in self._names)

    # -- registrations ---------------------------------------------------------------------------

    def _register(self, namespace: str, short: str) -> None:
        self._library = library = torch.library.Library(namespace, "FRAGMENT")
        inputs = ", ".join(map(_argument, self.function.arguments.values()))
        result = _results(self._outputs)
        updated = {one.name for one in self.function.outputs if one.access == "update"}
        others = [
            _argument(one) for name, one in self.function.arguments.items() if name not in updated
        ]
        written = [f"Tensor({chr(97 + at)}!) {name}" for at, name in enumerate(self._outputs)]
        self._define(f"{short}({inputs}) -> {result}", self._compute, self._fake)
        self._define(f"{short}_plain({inputs}) -> {result}", self._compute, self._fake)
        schema = f"{short}.out({', '.join([*others, '*', *written])}) -> ()"
        self._define(schema, self._compute_out, lambda *_, **__: None)
        if self.adjoint is not None:
            takes, gives = ", ".join(self._backward_arguments()), _results(self._differentiable)
            schema = f"{short}_backward({takes}) -> {gives}"
            self._define(schema, self._compute_backward, self._fake_backward)
        packet = getattr(torch.ops, namespace)
        self.op, self.out_op = getattr(packet, short).default, getattr(packet, short).out
        self.plain = getattr(packet, f"{short}_plain").default
        self.backward = getattr(packet, f"{short}_backward").default if self.adjoint else None
        register_derivatives(self, library, f"{namespace}::{short}")

    def _define(self, schema: str, kernel: Callable[..., Any], fake: Callable[..., Any]) -> None:
        library, name = self._library, schema.partition("(")[0]
        library.define(schema, tags=self._tags)
        library.impl(name, kernel, self._key)
        torch.library.register_fake(f"{library.ns}::{name}", fake, lib=library)

    def _backward_arguments(self) -> list[str]:
        adjoint = self.known_adjoint()
        known = self.function.arguments
        arguments = [f"Tensor cotangent_{name}" for name in self._outputs]
        arguments += [f"Tensor {name}" for name in adjoint.saved]
        arguments += [_argument(known[name]) for name in adjoint.scalars]
        return [*arguments, "SymInt[] extents_of_inputs"]


class TorchMemory:
    """Makes tensors of one shape and dtype, on torch's current GPU or another device.

    On a GPU the pool of torch keeps what is given back. The driver would map new memory for each
    call, which takes longer than many a stencil.
    """

    def __init__(self, shape: Sequence[int], dtype: Any, device: str = "cuda") -> None:
        self._options = {"size": tuple(shape), "dtype": _of_numpy(dtype), "device": device}

    def zeros(self) -> torch.Tensor:
        """Allocate a tensor of zeros."""
        return torch.zeros(**self._options)

    def empty(self) -> torch.Tensor:
        """Allocate a tensor whose values are undefined."""
        return torch.empty(**self._options)


def _tensor(made: Any) -> Any:
    """Return what memory made: torch's own as it is, a storage as a tensor over it."""
    return made if isinstance(made, torch.Tensor) else made.to_torch()


def _results(names: Sequence[str]) -> str:
    """Return the results of an operator as a schema writes them."""
    tensors = ", ".join("Tensor" for _ in names)
    return tensors if len(names) == 1 else f"({tensors})"


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


def _alone(results: list[Any]) -> Any:
    """Return a result by itself if it is the only one."""
    return results[0] if len(results) == 1 else tuple(results)


def _argument(declared: DeclaredField | DeclaredScalar) -> str:
    """Return an argument as a schema writes it."""
    if isinstance(declared, DeclaredField):
        return f"Tensor {declared.name}"
    kind = getattr(declared.dtype, "kind", None)
    if kind not in _SCALARS:
        expected = "expected a float, an int or a bool"
        raise TypeError(f"'{declared.name}': {expected} for an operator, got {declared.dtype}")
    return f"{_SCALARS[kind]} {declared.name}"


def _of_numpy(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype
