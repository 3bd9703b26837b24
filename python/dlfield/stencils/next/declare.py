"""Programs and operators of ``gt4py.next``: what they declare, and how they run.

gt4py.next takes arrays in its own fields only. They are made for each call, over the memory of the
array; nothing is copied. GT4Py is imported only if one of its objects asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import NextRun
from dlfield.stencils.declaration import Declaration, DeclaredField, DeclaredScalar
from dlfield.stencils.lifetime import OfObjects
from dlfield.stencils.next import internals
from dlfield.stencils.next.dimensions import domain_of, names_of, ordered
from dlfield.stencils.next.footprint import (
    OutputFootprint,
    ProgramFootprint,
    not_understood,
    warn_unknown,
)
from dlfield.stencils.next.nodes import UnknownError
from dlfield.stencils.next.workspace import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlfield.stencils.next.arguments import Signature

__all__ = ["declare", "is_next"]

is_next = internals.is_stencil

#: For each compiled stencil the connectivities that it was called with, by their ids, however often
#: it is bound.
_kept: OfObjects[dict[int, Any]] = OfObjects(dict)


def declare(
    stencil: Any,
    *,
    offset_provider: Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    unchecked: bool = False,
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
    unchecked
        True to leave out the checks of bounds, and of inputs that overlap outputs.

    Returns
    -------
    Declaration
        Its `run` is a `NextRun`. The points that a call touches are found by its `footprint`.

    Raises
    ------
    TypeError
        For anything else, for arguments that are neither fields nor scalars nor collections, and
        for an operator that was made without a definition in Python.
    ValueError
        For a scan operator without `fields`, and for an operator that returns a scalar. For two
        dimensions of one name. For a compiled program that dlfield does not understand, unless it
        is `unchecked`.
    DeviceUnavailable
        For a GPU backend where CuPy is missing.
    """
    if not is_next(stencil):
        raise TypeError(
            "declare: expected a program or field operator of gt4py.next, got an object of type "
            f"'{type(stencil).__name__}'; decorate the definition with @gtx.program"
        )
    if not internals.has_definition(stencil):
        raise TypeError(
            "declare: expected a program or operator that is defined in Python, got an object of "
            f"type '{type(stencil).__name__}', made of GT4Py's own nodes; decorate a definition "
            "with @gtx.field_operator"
        )
    is_operator, backend = internals.is_operator(stencil), internals.backend_of(stencil)
    _check_fields(stencil, fields)
    signature = internals.signature_of(stencil, fields)
    _check_names(stencil, signature)
    outputs = _outputs(stencil, signature) if is_operator else []
    axes = ordered(dim for kind in signature.fields.values() for dim in kind.dims)
    device = "gpu" if internals.on_gpu(stencil) else None
    if backend is not None:
        internals.log_compilations()
    typed = backend is not None and not backend.startswith("roundtrip")
    dims = {name: names_of(kind.dims) for name, kind in signature.fields.items()}
    found = None
    if not unchecked:
        found = _footprint(
            stencil, fields, signature, dims, names_of(axes), outputs, compiled=typed
        )
    rest = OutputFootprint(dims, names_of(axes), outputs, complete=unchecked)
    return Declaration(
        stencil.__name__,
        _run(stencil, signature, axes, outputs, found, gpu=device is not None),
        [_field(name, signature, stencil) for name in signature.fields],
        [
            DeclaredScalar(name, dtype, signature.access(name) == "read", weak=True)
            for name, dtype in signature.scalars.items()
        ],
        order=tuple(signature.kinds),
        positional=len(signature.kinds) - is_operator,
        axes=names_of(axes),
        typed=typed,
        asks_writable=typed,
        device=device,
        decided_by="outputs" if is_operator else "stencil",
        footprint=found or rest,
        checked="checked" if found else "unchecked",
        connectivities={} if offset_provider is None else offset_provider,
        collections=signature.collections,
    )


def _check_names(stencil: Any, signature: Signature) -> None:
    """Refuse arguments that a call could not tell from its options."""
    options = {"origin", "domain", "exec_info", "offset_provider"}
    if taken := options & signature.kinds.keys():
        expected = f"expected arguments without the names of options, got '{min(taken)}'"
        raise ValueError(f"{stencil.__name__}: {expected}; rename it in the definition")


def _check_fields(stencil: Any, fields: Mapping[str, Any] | None) -> None:
    """Refuse `fields` unless it has those of a scan operator."""
    name = stencil.__name__
    if not internals.is_scan(stencil):
        if fields is None or not internals.is_operator(stencil):
            return
        expected = f"it for a scan operator only, got it for '{name}', whose arguments have"
        raise TypeError(f"fields: expected {expected} dimensions")
    known = internals.arguments_of_scan(stencil)
    if fields is None or "out" not in fields:
        given = ", ".join(f"'{one}': ..." for one in known)
        raise ValueError(
            f"fields: needs 'out' of '{name}', a scan operator, whose arguments have no "
            f"dimensions; give bind fields={{{given}}} with gtx.Field[...], or call it in a "
            "@gtx.program"
        )
    if unknown := fields.keys() - {*known}:
        expected = f"arguments of '{name}', {', '.join(known)}"
        raise ValueError(f"fields: expected {expected}, got {min(unknown)!r}")


def _outputs(stencil: Any, signature: Signature) -> list[str]:
    """Return the names of the outputs of an operator, which are fields."""
    if any(signature.access(one) == "write" for one in signature.scalars):
        returns = internals.returned_by(stencil)
        raise ValueError(
            f"{stencil.__name__}: expected an operator that returns fields, got {returns}; return "
            "broadcast(value, dims)"
        )
    return [name for name in signature.fields if signature.access(name) == "write"]


def _footprint(
    stencil: Any,
    fields: Mapping[str, Any] | None,
    signature: Signature,
    dims: dict[str, tuple[str, ...]],
    axes: tuple[str, ...],
    outputs: list[str],
    *,
    compiled: bool,
) -> ProgramFootprint | None:
    """Return what finds the footprint of a call; None for an embedded program of unknown nodes.

    GT4Py checks nothing of a compiled program: one that is not understood is refused.
    """
    from dlfield.stencils.next.trial import problem

    try:
        if found := problem():
            raise UnknownError(found)
        program = internals.representation(stencil, fields)
    except UnknownError as what:
        if compiled:
            raise ValueError(not_understood(stencil, str(what))) from what
        warn_unknown(stencil, str(what))
        return None
    return ProgramFootprint(stencil, program, dims, axes, signature, outputs, refuses=compiled)


def _run(
    stencil: Any,
    signature: Signature,
    axes: list[Any],
    outputs: list[str],
    footprint: ProgramFootprint | None,
    *,
    gpu: bool,
) -> NextRun:
    """Return what makes fields of arrays and calls the stencil.

    An output of an operator is cut to the domain, since an operator computes wherever its `out` is.
    """
    field_class, call = internals.field_class(gpu=gpu), stencil
    compiled = internals.compiled_call(stencil)
    if footprint is not None and internals.workspace_of(stencil):
        call, compiled = guarded(stencil, stencil, footprint), None
    cut = {name: [axes.index(dim) for dim in signature.fields[name].dims] for name in outputs}
    return NextRun(
        call,
        compiled=compiled,
        field_class=field_class,
        origin_cache=internals.origin_cache(field_class),
        as_array=internals.as_array(field_class),
        domain_of=domain_of,
        fields={name: (kind.dims, cut.get(name)) for name, kind in signature.fields.items()},
        scalars={name: dtype.type for name, dtype in signature.scalars.items()},
        order=tuple(signature.kinds),
        collections=signature.collections,
        tables=None if internals.backend_of(stencil) is None else _kept.of(stencil),
    )


def _field(name: str, signature: Signature, stencil: Any) -> DeclaredField:
    kind = signature.fields[name]
    unit = internals.unit_stride(stencil, kind.dims, is_part=name not in signature.kinds)
    access = signature.access(name)
    return DeclaredField(name, names_of(kind.dims), kind.dtype, access, unit_stride=unit)
