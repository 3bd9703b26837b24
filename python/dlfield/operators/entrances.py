"""`torch_op` and `jax_call`, which import PyTorch or JAX when they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from dlfield._core import Storage
from dlfield.operators.arguments import check_bound
from dlfield.operators.function import StencilFunction
from dlfield.stencils.binding import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dlfield._core import BoundStencil
    from dlfield.operators.in_jax import JaxCall
    from dlfield.operators.in_torch import TorchOp

__all__ = ["jax_call", "torch_op"]


def torch_op(
    run: BoundStencil,
    name: str,
    halo: Any = None,
    dims: Any = None,
    adjoint: BoundStencil | Literal["derive"] | None = None,
    names: Mapping[str, str | None] | None = None,
) -> TorchOp:
    """Register a bound stencil as an operator of PyTorch.

    Parameters
    ----------
    run
        The bound stencil. Its inputs and outputs become tensors, its scalars Python numbers.
    name
        ``"namespace::operator"``.
    halo
        Points around the domain in every tensor: a number, a number or a pair for each axis, or a
        dict by axis; the reach of the stencil by default. Outputs have the points of the domain
        and the halo, and zeros in the halo and where the stencil does not write, as under a
        condition; a field that is read and written keeps its values there.
    dims
        Order of the axes in the tensors, such as ``"KJI"``; the declared order by default. No
        tensor is copied for it.
    adjoint
        The adjoint, bound: see the page "Derivatives and compiled programs"; or ``"derive"``, for
        that of `dlfield.adjoint`. Without it a derivative raises NotImplementedError.
    names
        Argument of the adjoint for each field, if not ``inp_bar``; None for an input to treat as
        constant.

    Returns
    -------
    TorchOp
        ``op(x)`` returns new tensors, ``op(x, out=y)`` writes.

    Raises
    ------
    ValueError
        For a name that is taken or has no namespace, a halo or an order that does not fit the
        stencil, an adjoint that does not follow the convention.
    TypeError
        For a stencil with collections, or scalars without a type.

    Examples
    --------
    >>> op = dlf.torch_op(run, "model::laplacian")  # doctest: +SKIP
    >>> y = op(x)  # doctest: +SKIP
    """
    from dlfield.operators.in_torch import TorchOp
    from dlfield.operators.torch_operators import TorchMemory

    made = _derivative(run, adjoint, "adjoint", names)
    if run.declaration.device is None:
        function = StencilFunction(run, halo, dims, convert=Storage.to_torch)
    else:
        function = StencilFunction(run, halo, dims, TorchMemory)
    return TorchOp(function, name, made, names)


def jax_call(
    run: BoundStencil,
    halo: Any = None,
    dims: Any = None,
    adjoint: BoundStencil | Literal["derive"] | None = None,
    tangent: BoundStencil | Literal["derive"] | None = None,
    names: Mapping[str, str | None] | None = None,
) -> JaxCall:
    """Make a function of a bound stencil that JAX compiles, differentiates and maps.

    Parameters
    ----------
    run
        The bound stencil. Its fields become arrays, its scalars static Python numbers.
    halo
        Points around the domain in every array: a number, a number or a pair for each axis, or a
        dict by axis; the reach of the stencil by default. Outputs have the points of the domain
        and the halo, and zeros in the halo and where the stencil does not write, as under a
        condition; a field that is read and written keeps its values there.
    dims
        Order of the axes in the arrays, such as ``"KJI"``; the declared order by default. No array
        is copied for it.
    adjoint, tangent
        Bound stencils for reverse and forward mode: see the page "Derivatives and compiled
        programs"; or ``"derive"``, for those of `dlfield.adjoint` and `dlfield.tangent`. Without
        them a derivative is an error.
    names
        Argument of the adjoint and the tangent for each field, if not ``inp_bar`` and ``inp_dot``;
        None for an input to treat as constant.

    Returns
    -------
    JaxCall
        Call it with arrays and numbers in the order of the definition, inside or outside of
        ``jax.jit``.

    Raises
    ------
    ValueError
        For a halo or an order that does not fit the stencil, an adjoint or a tangent that does not
        follow the convention.
    TypeError
        For a stencil with collections, or one that computes on a GPU.

    Examples
    --------
    >>> call = dlf.jax_call(run)  # doctest: +SKIP
    >>> y = jax.jit(call)(x)  # doctest: +SKIP
    """
    from dlfield.operators.in_jax import JaxCall

    backward = _derivative(run, adjoint, "adjoint", names)
    forward = _derivative(run, tangent, "tangent", names)
    return JaxCall(StencilFunction(run, halo, dims), backward, forward, names)


def _derivative(
    run: BoundStencil,
    given: BoundStencil | str | None,
    kind: Literal["adjoint", "tangent"],
    names: Mapping[str, str | None] | None,
) -> BoundStencil | None:
    """Return the given derivative, or derive one for the inputs that are not constant."""
    check_bound("run", run)
    if not isinstance(given, str):
        return given
    if given != "derive":
        raise ValueError(f"{kind}: expected a bound stencil, None or 'derive', got '{given}'")
    from dlfield.derivatives import entrances

    derive: Callable[..., Any] = getattr(entrances, kind)
    inputs = [one for one in run.declaration.fields if one.access in ("read", "update")]
    constant = [name for name, own in (names or {}).items() if own is None]
    derived = {f"{name}_{end}" for name in names or {} for end in ("bar", "grad", "dot")}
    if renamed := [name for name, own in (names or {}).items() if own and own not in derived]:
        expected = f"None for constants alone beside {kind}='derive', which names its arguments"
        raise ValueError(f"names: expected {expected}, got one for '{renamed[0]}'; leave it out")
    varying = [one.name for one in inputs if one.dtype.kind == "f" and one.name not in constant]
    return bind(derive(run, varying if constant else None))
