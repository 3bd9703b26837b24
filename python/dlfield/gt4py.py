"""Stencils of ``gt4py.cartesian``, bound so that they take arrays of any framework.

GT4Py is never imported here: a stencil brings what is asked of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dlfield._core import BoundStencil, DeviceUnavailable

if TYPE_CHECKING:
    import inspect

__all__ = ["CartesianStencil", "bind"]

#: Keywords of a stencil's own call that are no arguments of its definition.
_CALL_OPTIONS = frozenset({"domain", "origin", "validate_args", "exec_info"})

#: Backends that read fields as NumPy arrays; the others are compiled and read typed memory.
_UNTYPED_BACKENDS = frozenset({"numpy", "debug"})


@runtime_checkable
class CartesianStencil(Protocol):
    """What is read off a stencil that ``gt4py.cartesian.gtscript.stencil`` made."""

    backend: str
    options: Mapping[str, Any]
    field_info: Mapping[str, Any]
    parameter_info: Mapping[str, Any]
    domain_info: Any

    def run(self, *args: Any, **kwargs: Any) -> None: ...  # noqa: ANN401, D102


def bind(stencil: CartesianStencil, *, dims: Mapping[str, str] | None = None) -> BoundStencil:
    """Bind a GT4Py stencil: the result takes arrays of any framework and copies none of them.

    Axes are ordered by name where an array has names (xarray's dims, ``__gt_dims__``, a storage's
    dims), and by position otherwise. Origin and domain come from the halos of storages unless
    given. Dtype, bounds, alignment, writability and overlap of outputs are checked at every call.

    Parameters
    ----------
    stencil
        Compiled by ``gtscript.stencil`` for a CPU backend.
    dims
        The stencil's dimension for each name that your arrays use, for example
        ``{"lon": "I", "lat": "J", "level": "K"}``. I, J, K and decimals stand for themselves.

    Returns
    -------
    BoundStencil
        Call it as the stencil: ``run(inp, out, origin=None, domain=None, exec_info=None)``.
        `origin` is a tuple along I, J, K, or a dict by field name with ``"_all_"``; both are in
        points and in the stencil's order of dimensions.

    Raises
    ------
    TypeError
        Where `stencil` is no stencil.
    ValueError
        Where `dims` maps to a name that GT4Py does not have, or two names to one.
    DeviceUnavailable
        Where the stencil computes on a GPU.
    """
    if hasattr(stencil, "implementation"):  # a lazy stencil, compiled when it is first needed
        stencil = stencil.implementation
    if isinstance(stencil, type) or not isinstance(stencil, CartesianStencil):
        got = stencil if isinstance(stencil, type) else type(stencil)
        raise TypeError(
            f"bind: expected a stencil made by gtscript.stencil, got {got.__name__}; "
            "decorate the definition with @gtscript.stencil(backend=...)"
        )
    if stencil.backend.endswith("gpu") or ":gpu" in stencil.backend:
        raise DeviceUnavailable(
            f"bind: expected a CPU backend, got '{stencil.backend}' in a build without GPU storages"
        )
    parameters = _signature(stencil)
    return BoundStencil(
        stencil,
        str(stencil.options["name"]),
        [_field(name, info) for name, info in stencil.field_info.items()],
        [_parameter(name, info, parameters) for name, info in stencil.parameter_info.items()],
        list(parameters),
        positional=sum(one.kind is not one.KEYWORD_ONLY for one in parameters.values()),
        min_k=stencil.domain_info.min_sequential_axis_size,
        typed=stencil.backend not in _UNTYPED_BACKENDS,
        dims=_checked(dims or {}),
    )


def _signature(stencil: CartesianStencil) -> dict[str, inspect.Parameter]:
    """Arguments of the definition, in its order."""
    import inspect  # takes milliseconds to import, and is not needed without a stencil

    every = inspect.signature(stencil).parameters  # type: ignore[arg-type]
    return {name: parameter for name, parameter in every.items() if name not in _CALL_OPTIONS}


def _field(name: str, info: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """(name, dims, data shape, dtype, access, reach) as `BoundStencil` takes it."""
    dims = (*info.axes, *(str(number) for number in range(len(info.data_dims))))
    access = _access(info.access)
    reach = [(0, 0)] * 3 if access == "unused" else [tuple(ends) for ends in info.boundary]
    return (name, dims, tuple(info.data_dims), info.dtype, access, reach)


def _access(kind: Any) -> str:  # noqa: ANN401
    """GT4Py's AccessKind is a flag: NONE, READ, WRITE or both."""
    if "WRITE" in kind.name:
        return "write"
    return "read" if kind.name == "READ" else "unused"


def _parameter(name: str, info: Any, signature: dict[str, inspect.Parameter]) -> tuple[Any, ...]:  # noqa: ANN401
    declared = signature[name]
    given = None if declared.default is declared.empty else (declared.default,)
    return (name, info.dtype, info.access.name != "NONE", given)


def _checked(dims: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(dims, Mapping):
        raise TypeError(f"dims: expected a mapping of your names to 'I', 'J', 'K', got {dims!r}")
    for name, target in dims.items():
        if not (isinstance(name, str) and isinstance(target, str)):
            raise TypeError(f"dims: expected names, got {name!r}: {target!r}")
        if target not in ("I", "J", "K") and not target.isdecimal():
            expected = f"expected 'I', 'J', 'K' or a decimal for '{name}'"
            raise ValueError(f"dims: {expected}, got '{target}'")
    if len(set(dims.values())) != len(dims):
        raise ValueError(f"dims: expected a different dimension for each name, got {dict(dims)}")
    return dict(dims)
