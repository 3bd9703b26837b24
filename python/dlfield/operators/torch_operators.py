"""`TorchOperators`: what is registered with PyTorch for a bound stencil.

Four operators, through ``torch.library``: the functional one, for compilers, export and C++; its
form with ``out``; a plain one without derivatives, which eager calls use; and the backward one.
`TorchOp` chooses among them.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dlfield.operators.adjoints import Adjoint, checked_names
from dlfield.operators.torch_functions import register_derivatives
from dlfield.stencils.declaration import DeclaredField

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlfield._core import BoundStencil
    from dlfield.operators.function import StencilFunction
    from dlfield.stencils.declaration import DeclaredScalar

__all__ = ["TorchMemory", "TorchOperators"]

_TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
#: torch.compile does not record such operators in CUDA graphs; older versions have no word for it.
_TAGS_ON_GPU = (*_TAGS, *filter(None, [getattr(torch.Tag, "cudagraph_unsafe", None)]))
_INT = frozenset([int])
#: Types of scalars in a schema, by NumPy's kind of their dtype.
_SCALARS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


class TorchOperators:
    """The registered operators of a bound stencil.

    Attributes
    ----------
    op, out_op
        The functional one, and that with ``out``.
    plain, backward
        The one without derivatives, and that of gradients, which is None without an adjoint.
    """

    op: Any
    out_op: Any
    plain: Any
    backward: Any

    def __init__(
        self,
        function: StencilFunction,
        name: str,
        adjoint: BoundStencil | None,
        names: Mapping[str, str | None] | None,
    ) -> None:
        checked_names(function, names or {})
        namespace, _, short = str(name).partition("::")
        is_free = [one.isidentifier() and not iskeyword(one) for one in (namespace, short)]
        if not all(is_free):
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

    def _place(self, name: str) -> tuple[bool, int]:
        given = name in self._names
        return given, (self._names if given else self._outputs).index(name)

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
