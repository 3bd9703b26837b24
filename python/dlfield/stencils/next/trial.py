"""Small known programs, by which dlfield finds out whether it understands the installed GT4Py.

They go through the same functions as any program, and what comes out is compared with what is known
of them. Nothing is compiled.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from dlfield.stencils.next import internals
from dlfield.stencils.next.dimensions import names_of, ordered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlfield.stencils.footprint import CallFootprint

__all__ = ["problem"]


@cache
def problem() -> str:
    """Return what was not understood of the known programs; empty if nothing was.

    Found once per process: GT4Py translates the programs, which takes some tens of milliseconds.
    """
    try:
        from dlfield.stencils.next import known

        for case in known.cases():
            if found := _difference(case):
                return f"the known program '{case.stencil.__name__}' read as {found}"
    except Warning:  # an error by a filter, which may change
        raise
    except Exception as reason:
        return f"no answer for the known programs ({type(reason).__name__}: {reason})"
    return ""


def _difference(case: Any) -> str:
    """Return what was found, if it differs from what is known."""
    signature = internals.signature_of(case.stencil, None)
    access = {name: signature.access(name) for name in (*signature.fields, *signature.scalars)}
    if access != case.access:
        return str(access)
    found = _footprint(case, signature)
    known: tuple[Any, ...] = (case.reads, case.writes, frozenset(), case.scalars)
    got = (found.reads, found.writes, found.unknown, found.scalars)
    if got != known:
        return f"reads {found.reads}, writes {found.writes}"
    held = [(one.first, one.end, one.column, one.skip) for one in found.rows]
    return f"rows {held}" if held != case.rows else ""


def _footprint(case: Any, signature: Any) -> CallFootprint:
    from dlfield.stencils.next.footprint import ProgramFootprint

    dims = {name: names_of(kind.dims) for name, kind in signature.fields.items()}
    axes = names_of(ordered(dim for kind in signature.fields.values() for dim in kind.dims))
    is_operator = internals.is_operator(case.stencil)
    outputs = ["out"] if is_operator else []
    program = internals.representation(case.stencil, None)
    find = ProgramFootprint(case.stencil, program, dims, axes, signature, outputs, refuses=True)
    fields: Mapping[str, Any] = case.fields
    return find(fields, case.domain, case.given, case.connectivities)
