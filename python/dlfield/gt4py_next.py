"""Stencils of ``gt4py.next``: what they declare, and how they run.

gt4py.next takes arrays in its own fields only. They are made here for each call, over the memory of
the array; nothing is copied. GT4Py is imported only if one of its objects asks for it.
"""

from __future__ import annotations

import operator
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import HOST_DEVICE_TYPE, DeviceUnavailable
from dlfield.declaration import Access, Declaration, DeclaredField, DeclaredScalar
from dlfield.gt4py_checks import Checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Described = tuple[dict[str, Any], set[str], set[str]]

__all__ = [
    "NextRun",
    "array_field",
    "declare",
    "domain_of",
    "is_a",
    "is_next",
    "names_of",
    "ordered",
]

#: GT4Py's order of dimensions: by kind, then by name.
_KINDS = ("horizontal", "local", "vertical")


def is_next(stencil: object) -> bool:
    """Tell whether `stencil` is a program, field operator or scan operator of ``gt4py.next``."""
    return is_a(stencil, "decorator.Program") or is_a(stencil, "decorator.FieldOperator")


def declare(stencil: Any, *, offset_provider: Mapping[str, Any] | None = None) -> Declaration:  # noqa: ANN401
    """Read the arguments of a program or field operator, and how it is run.

    Parameters
    ----------
    stencil
        A program or field operator with any backend; also ``program.with_bound_args(...)``. A field
        operator gets its `out` as one more field, and computes on the domain. A program gets every
        field as a whole, from ``-origin`` on, and decides its own domain.
    offset_provider
        The connectivities of an unstructured grid by name, as for a call of `stencil`. Held.

    Returns
    -------
    Declaration
        Its `run` is a `NextRun`. The reach of offsets is not known: no field has a `reach`.

    Raises
    ------
    TypeError
        For anything else, and for arguments that are neither fields nor scalars.
    ValueError
        For scan operators, and for field operators that return anything but one field: a program
        around them declares fields. For two dimensions of one name.
    DeviceUnavailable
        For a GPU backend where CuPy is missing.
    """
    if not is_next(stencil):
        raise TypeError(
            "declare: expected a program or field operator of gt4py.next, got an object of type "
            f"'{type(stencil).__name__}'; decorate the definition with @gtx.program"
        )
    is_operator = is_a(stencil, "decorator.FieldOperator")
    types, reads, writes = _operator(stencil) if is_operator else _program(stencil)
    fields = {name: kind for name, kind in types.items() if _is_field(name, kind)}
    scalars = {name: _dtype(kind) for name, kind in types.items() if name not in fields}
    axes = ordered(dim for kind in fields.values() for dim in kind.dims)
    device = _device(stencil.backend)
    names = {name: names_of(kind.dims) for name, kind in fields.items()}
    checks = Checks(stencil, names, names_of(axes), is_operator=is_operator)
    typed = stencil.backend is not None and not stencil.backend.name.startswith("roundtrip")
    field_class = array_field(device)
    run = NextRun(
        stencil,
        field_class,
        field_class.array_ns.asarray,
        {name: lru_cache(64)(partial(domain_of, kind.dims)) for name, kind in fields.items()},
        scalars,
        tuple(axes.index(dim) for dim in fields["out"].dims) if is_operator else None,
        {} if offset_provider is None else offset_provider,
    )
    checks.offset_provider = run.offset_provider
    return Declaration(
        stencil.__name__,
        run,
        [_field(name, kind, reads, writes) for name, kind in fields.items()],
        [DeclaredScalar(one, dtype, one in reads, weak=True) for one, dtype in scalars.items()],
        order=tuple(types),
        positional=len(types) - is_operator,
        axes=names_of(axes),
        typed=typed,
        asks_writable=typed,
        device=device,
        takes=frozenset({"origin", "domain"} if is_operator else {"origin"}),
        decides_domain=not is_operator,
        check=checks,
    )


@dataclass
class NextRun:
    """Runs a program or field operator of gt4py.next over arrays, without copying them.

    `offset_provider` goes along with each call; GT4Py compiles anew for other connectivities.
    """

    stencil: Any
    #: Class of the fields: (domain, array) to field.
    array_field: Callable[..., Any]
    #: Converts an array that is given to `run` into one that the class takes. Never copies.
    as_array: Callable[[Any], Any]
    #: For each field, (shape, origin) to its domain.
    domains: Mapping[str, Callable[..., Any]]
    #: gt4py.next takes a scalar of its declared type only, and makes int32 of a Python int.
    scalars: Mapping[str, np.dtype[Any]]
    #: For a field operator, the axes of ``_domain_`` that `out` has: it is cut to the domain, since
    #: an operator computes wherever its `out` is. None for a program.
    cut: tuple[int, ...] | None
    offset_provider: Mapping[str, Any]

    def run(
        self,
        *,
        _domain_: tuple[int, ...],
        _origin_: dict[str, tuple[int, ...]],
        exec_info: dict[str, Any] | None = None,
        **arguments: Any,  # noqa: ANN401
    ) -> None:
        """Compute, as `dlfield.declaration.Run` has it.

        The fields live for this call. Into `exec_info` go ``call_run_start_time`` and
        ``call_run_end_time``, in seconds of ``time.perf_counter()``.
        """
        for name in self.domains:
            if arguments[name] is not None:
                arguments[name] = self.as_array(arguments[name])
        if self.cut is not None:
            points = [_domain_[axis] for axis in self.cut]
            ends = zip(_origin_["out"], points, strict=True)
            arguments["out"] = arguments["out"][tuple(slice(at, at + n) for at, n in ends)]
            _origin_ = {**_origin_, "out": (0,) * len(points)}
        given = {name: self._given(name, value, _origin_) for name, value in arguments.items()}
        started = time.perf_counter()
        self.stencil(**given, offset_provider=self.offset_provider)
        if exec_info is not None:
            exec_info["call_run_start_time"] = started
            exec_info["call_run_end_time"] = time.perf_counter()

    def _given(self, name: str, value: Any, origins: Mapping[str, tuple[int, ...]]) -> Any:  # noqa: ANN401
        if name in self.scalars:
            return _number(name, self.scalars[name], value)
        if value is None:
            raise TypeError(f"{name}: expected an array, got None; unused fields are needed, too")
        return self.array_field(self.domains[name](value.shape, origins[name]), value)


def is_a(value: object, name: str) -> bool:
    """Tell a class of gt4py.next by its name and the last part of its module's."""
    names = (f"{base.__module__}.{base.__name__}" for base in type(value).__mro__)
    return any(one.startswith("gt4py.next.") and one.endswith(f".{name}") for one in names)


def _program(program: Any) -> Described:  # noqa: ANN401
    """Types of the arguments, and names that are read and that are written."""
    node = program.past_stage.past_node
    bound = getattr(program, "bound_args", {})
    reads: set[str] = set()
    writes: set[str] = set()
    for call in node.body:
        for keyword, value in call.kwargs.items():
            (writes if keyword == "out" else reads).update(_names_in(value))
        reads.update(*map(_names_in, call.args))
    return {str(one.id): one.type for one in node.params if one.id not in bound}, reads, writes


def _names_in(expression: Any) -> set[str]:  # noqa: ANN401
    """Names at any depth: within slices, tuples, domains and calls."""
    from gt4py.next.ffront.program_ast import Name

    names: Iterable[Any] = expression.pre_walk_values().if_isinstance(Name)
    return {str(name.id) for name in names}


def _operator(stencil: Any) -> Described:  # noqa: ANN401
    """Give what `_program` gives, for a field operator: it writes `out` and reads the others."""
    kind, name = stencil.__gt_type__(), stencil.__name__
    if hasattr(kind, "axis"):
        raise ValueError(
            f"{name}: expected a field operator or program, got a scan operator, whose arguments "
            "have no dimensions; call it in a @gtx.program that declares fields"
        )
    returns, inputs = kind.definition.returns, dict(kind.definition.pos_or_kw_args)
    if not hasattr(returns, "dims"):
        raise ValueError(
            f"{name}: expected a field operator that returns one field, got {returns}; call it in "
            "a @gtx.program that has its outputs as arguments"
        )
    return {**inputs, "out": returns}, set(inputs), {"out"}


def _field(name: str, kind: Any, reads: set[str], writes: set[str]) -> DeclaredField:  # noqa: ANN401
    """Declare a field. An unused one counts as read: GT4Py does not take None for it."""
    access: Access = "read" if name not in writes else "update" if name in reads else "write"
    dtype = _dtype(kind.dtype)
    return DeclaredField(name, names_of(kind.dims), dtype, access, reach_known=False)


def _is_field(name: str, kind: Any) -> bool:  # noqa: ANN401
    from gt4py.next.type_system import type_specifications as types

    if isinstance(kind, types.FieldType | types.ScalarType):
        return isinstance(kind, types.FieldType)
    expected = "expected a field or a scalar"
    raise TypeError(f"{name}: {expected}, got {kind}; declare each part as an argument")


def _dtype(scalar_type: Any) -> np.dtype[Any]:  # noqa: ANN401
    return np.dtype(str(scalar_type.kind.name).lower())


def names_of(dims: Iterable[Any]) -> tuple[str, ...]:
    """Give the names of dimensions."""
    return tuple(dim.value for dim in dims)


def ordered(dims: Iterable[Any]) -> list[Any]:
    """Each of `dims` once, in the only order that gt4py.next takes."""
    ordered = sorted(set(dims), key=lambda dim: (_KINDS.index(str(dim.kind)), dim.value))
    if len(set(names_of(ordered))) != len(ordered):
        got = ", ".join(map(str, ordered))
        raise ValueError(f"dims: expected dimensions of different names, got {got}; rename one")
    return ordered


def _device(backend: Any) -> str | None:  # noqa: ANN401
    allocator = getattr(backend, "allocator", None)
    kind = getattr(allocator, "__gt_device_type__", HOST_DEVICE_TYPE)  # DLPack's and GT4Py's
    return None if kind == HOST_DEVICE_TYPE else "gpu"


def array_field(device: str | None) -> Any:  # noqa: ANN401
    """Give the class of fields for arrays of the host (None) or of a GPU."""
    from gt4py.next.embedded import nd_array_field

    if device is None:
        return nd_array_field.NumPyArrayField
    if not hasattr(nd_array_field, "CuPyArrayField"):
        raise DeviceUnavailable("declare: expected CuPy for a GPU backend, got none; install cupy")
    return nd_array_field.CuPyArrayField


def domain_of(dims: Sequence[Any], shape: Sequence[int], origin: Sequence[int]) -> Any:  # noqa: ANN401
    """Give the ranges ``(-origin, extent - origin)``, in points."""
    from gt4py.next.common import Domain, UnitRange

    ends = zip(shape, origin, strict=True)
    return Domain(dims=dims, ranges=[UnitRange(-at, extent - at) for extent, at in ends])


def _number(name: str, dtype: np.dtype[Any], value: Any) -> Any:  # noqa: ANN401
    try:
        return dtype.type(operator.index(value) if dtype.kind in "iu" else value)
    except (TypeError, ValueError, OverflowError) as reason:
        raise TypeError(f"{name}: expected a number of {dtype}, got {value!r}") from reason
