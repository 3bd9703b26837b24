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

from dlfield._core import HOST_DEVICE_TYPE, DeviceUnavailable
from dlfield.stencils.cartesian.footprint import is_known_version
from dlfield.stencils.declaration import Declaration, DeclaredField, DeclaredScalar
from dlfield.stencils.lifetime import OfObjects
from dlfield.stencils.next.checks import Checks
from dlfield.stencils.next.signatures import dtype_of, is_a, read_operator, read_program
from dlfield.stencils.next.workspace import guarded
from dlfield.stencils.progress import say_what_next_compiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from dlfield.stencils.declaration import DeclaredCollection
    from dlfield.stencils.next.signatures import Signature

__all__ = [
    "NextRun",
    "array_field",
    "declare",
    "domain_of",
    "is_a",
    "is_next",
    "names_of",
    "ordered",
    "unstaggered",
]

#: GT4Py's order of dimensions: by kind, then by name; a staggered one as its counterpart.
_KINDS = ("horizontal", "local", "vertical")

#: For each compiled stencil the connectivities that it was called with, by their ids, however often
#: it is bound.
_kept: OfObjects[dict[int, Any]] = OfObjects(dict)


def is_next(stencil: object) -> bool:
    """Tell whether `stencil` is a program, field operator or scan operator of ``gt4py.next``."""
    return is_a(stencil, "decorator.Program") or is_a(stencil, "decorator.FieldOperator")


def declare(
    stencil: Any,  # noqa: ANN401
    *,
    offset_provider: Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Declaration:
    """Read the arguments of a program or operator, and how it is run.

    Parameters
    ----------
    stencil
        A program, field operator or scan operator with any backend; also
        ``program.with_bound_args(...)``. An operator gets its `out` as one more argument, and
        computes where that is. A program gets every field as a whole, from ``-origin`` on, and
        decides its own domain.
    offset_provider
        The connectivities of an unstructured grid by name, for calls that give none. Held.
    fields
        For a scan operator, whose arguments have no dimensions: ``gtx.Field[...]`` by name.

    Returns
    -------
    Declaration
        Its `run` is a `NextRun`. How far offsets reach is found at each call, by its `check`.

    Raises
    ------
    TypeError
        For anything else, for arguments that are neither fields nor scalars nor collections, and
        for an operator that was made without a definition in Python.
    ValueError
        For a scan operator without `fields`, and for an operator that returns a scalar. For two
        dimensions of one name.
    DeviceUnavailable
        For a GPU backend where CuPy is missing.
    """
    if not is_next(stencil):
        raise TypeError(
            "declare: expected a program or field operator of gt4py.next, got an object of type "
            f"'{type(stencil).__name__}'; decorate the definition with @gtx.program"
        )
    if stencil.definition_stage is None:
        raise TypeError(
            "declare: expected a program or operator that is defined in Python, got an object of "
            f"type '{type(stencil).__name__}', made of GT4Py's own nodes; decorate a definition "
            "with @gtx.field_operator"
        )
    is_operator = is_a(stencil, "decorator.FieldOperator")
    signature = read_operator(stencil, fields) if is_operator else read_program(stencil)
    axes = ordered(dim for kind in signature.fields.values() for dim in kind.dims)
    device = _device(stencil.backend)
    names = {name: names_of(kind.dims) for name, kind in signature.fields.items()}
    outputs = [name for name in names if is_operator and signature.access(name) == "write"]
    if stencil.backend is not None and is_known_version():
        say_what_next_compiles()
    checks = Checks(stencil, names, names_of(axes), signature, outputs)
    typed = stencil.backend is not None and not stencil.backend.name.startswith("roundtrip")
    field_class = array_field(device)
    provider = {} if offset_provider is None else offset_provider
    run = NextRun(
        guarded(stencil, _call_of(stencil), checks),
        field_class,
        field_class.array_ns.asarray,
        {
            name: lru_cache(64)(partial(domain_of, kind.dims))
            for name, kind in signature.fields.items()
        },
        signature.scalars,
        {name: tuple(map(axes.index, signature.fields[name].dims)) for name in outputs},
        tuple(signature.kinds),
        signature.collections,
        None if stencil.backend is None else _kept.of(stencil),
    )
    return Declaration(
        stencil.__name__,
        run,
        [_field(name, kind, signature) for name, kind in signature.fields.items()],
        [
            *(
                DeclaredScalar(name, dtype, signature.access(name) == "read", weak=True)
                for name, dtype in signature.scalars.items()
            ),
            DeclaredScalar("offset_provider", None, used=False, default=(provider,)),
        ],
        order=(*signature.kinds, "offset_provider"),
        positional=len(signature.kinds) - is_operator,
        axes=names_of(axes),
        typed=typed,
        asks_writable=typed,
        device=device,
        takes=frozenset({"origin", "domain"} if is_operator else {"origin"}),
        decided_by="outputs" if is_operator else "stencil",
        collections=signature.collections,
        check=checks,
    )


@dataclass
class NextRun:
    """Runs a program or operator of gt4py.next over arrays, without copying them.

    GT4Py compiles anew for other connectivities.
    """

    #: Calls the stencil with fields and scalars by name, and with its connectivities.
    call: Callable[..., Any]
    #: Class of the fields: (domain, array) to field.
    array_field: Callable[..., Any]
    #: Converts an array that is given to `run` into one that the class takes. Never copies.
    as_array: Callable[[Any], Any]
    #: For each field, (shape, origin) to its domain.
    domains: Mapping[str, Callable[..., Any]]
    #: gt4py.next takes a scalar of its declared type only, and makes int32 of a Python int.
    scalars: Mapping[str, np.dtype[Any]]
    #: For each output of an operator, its axes in ``_domain_``: it is cut to the domain, since an
    #: operator computes wherever its `out` is. Empty for a program.
    cut: Mapping[str, tuple[int, ...]]
    #: Names of the arguments of the stencil, and those that are collections.
    order: Sequence[str]
    collections: Mapping[str, DeclaredCollection]
    #: The connectivities of all calls of a compiled stencil by their ids, by which GT4Py finds the
    #: code for them: another one must not get the id. None if nothing is compiled.
    tables: dict[int, Any] | None

    def run(
        self,
        *,
        _domain_: tuple[tuple[int, int], ...],
        _origin_: dict[str, tuple[int, ...]],
        offset_provider: Mapping[str, Any] | None = None,
        exec_info: dict[str, Any] | None = None,
        **arguments: Any,  # noqa: ANN401
    ) -> None:
        """Compute as `declaration.Run` has it, with the connectivities of the call.

        The fields live for this call. Into `exec_info` go ``call_run_start_time`` and
        ``call_run_end_time``, in seconds of ``time.perf_counter()``.
        """
        for name in self.domains:
            if arguments[name] is not None:
                arguments[name] = self.as_array(arguments[name])
        for name, axes in self.cut.items():
            ends = [_domain_[axis] for axis in axes]
            places = zip(_origin_[name], ends, strict=True)
            window = (*(slice(at + first, at + end) for at, (first, end) in places), ...)
            arguments[name] = arguments[name][window]
            _origin_ = {**_origin_, name: tuple(-first for first, _ in ends)}
        given = {name: self._given(name, value, _origin_) for name, value in arguments.items()}
        if self.collections:
            made = {name: one.built(given) for name, one in self.collections.items()}
            given = {name: made[name] if name in made else given[name] for name in self.order}
        provider = offset_provider or {}
        if self.tables is not None:
            self.tables.update(zip(map(id, provider.values()), provider.values(), strict=True))
        started = time.perf_counter()
        self.call(**given, offset_provider=provider)
        if exec_info is not None:
            exec_info["call_run_start_time"] = started
            exec_info["call_run_end_time"] = time.perf_counter()

    def _given(self, name: str, value: Any, origins: Mapping[str, tuple[int, ...]]) -> Any:  # noqa: ANN401
        if name in self.scalars:
            return _number(name, self.scalars[name], value)
        if value is None:
            raise TypeError(f"{name}: expected an array, got None; unused fields are needed, too")
        return self.array_field(self.domains[name](value.shape, origins[name]), value)


def _call_of(stencil: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Give the call of a stencil; of a compiled program, without its check of types.

    At each call GT4Py derives the type of every argument, which takes most of its time. Here they
    have the declared types. Whatever is hooked into GT4Py's own call is called, too.
    """
    own = getattr(type(stencil).__call__, "__qualname__", "")
    if stencil.backend is None or own != "Program.__call__" or not is_known_version():
        return stencil  # type: ignore[no-any-return]
    from gt4py.next.ffront.decorator import program_call_context

    jit = stencil.compilation_options.enable_jit

    def call(*, offset_provider: Mapping[str, Any], **arguments: Any) -> None:  # noqa: ANN401
        with program_call_context(
            program=stencil,
            args=(),
            offset_provider=offset_provider,
            enable_jit=jit,
            kwargs=arguments,
        ):
            pool = stencil._compiled_programs
            pool(**arguments, offset_provider=offset_provider, enable_jit=jit)

    return call


def _field(name: str, kind: Any, signature: Signature) -> DeclaredField:  # noqa: ANN401
    dims, dtype = names_of(kind.dims), dtype_of(kind.dtype)
    return DeclaredField(name, dims, dtype, signature.access(name), reach_known=False)


def names_of(dims: Iterable[Any]) -> tuple[str, ...]:
    """Give the names of dimensions."""
    return tuple(dim.value for dim in dims)


def ordered(dims: Iterable[Any]) -> list[Any]:
    """Each of `dims` once, in the only order that gt4py.next takes."""

    def place(dim: Any) -> tuple[int, str, str]:  # noqa: ANN401
        return _KINDS.index(str(dim.kind)), unstaggered(dim).value, dim.value

    ordered = sorted(set(dims), key=place)
    if len(set(names_of(ordered))) != len(ordered):
        got = ", ".join(map(str, ordered))
        raise ValueError(f"dims: expected dimensions of different names, got {got}; rename one")
    return ordered


def unstaggered(dim: Any) -> Any:  # noqa: ANN401
    """Give the counterpart of a staggered dimension, and any other as it is."""
    import gt4py.next as gtx

    known = getattr(gtx, "as_non_staggered", None)  # new in GT4Py 1.2
    return dim if known is None else known(dim)


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
