"""A workspace of the caller, in which GT4Py's dace backend keeps values in between.

GT4Py 1.2 places its values at the first call of a compiled program, for the points of that call,
even if it then refuses a workspace that is too small for them. It does not measure again. So a
bound stencil refuses to compute more points than at first, and keeps the memory that GT4Py writes
to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dlfield.stencils.lifetime import OfObjects
from dlfield.stencils.next import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dlfield.stencils.declaration import DeclaredCollection
    from dlfield.stencils.next.footprint import ProgramFootprint

__all__ = ["guarded"]


@dataclass
class _Layout:
    """The workspace of one stencil, for each of the programs that GT4Py has compiled of it."""

    #: Points that were computed at the first call, by output and dimension.
    points: dict[Any, Mapping[tuple[str, str], int]] = field(default_factory=dict)
    #: The memory that it was placed in.
    memory: dict[Any, list[Any]] = field(default_factory=dict)


_layouts = OfObjects(_Layout)


def guarded(
    stencil: Any,
    call: Callable[..., Any],
    footprint: ProgramFootprint,
) -> Callable[..., Any]:
    """Return `call`, GT4Py's own, with the check of its points in front.

    The points are found from the fields of each call: the guard cannot go by what was checked
    before, since a call may have been refused then.
    """
    workspace = internals.workspace_of(stencil)

    def checked(*, offset_provider: Mapping[str, Any], **arguments: Any) -> None:
        static, _ = internals.compiled_in(stencil) or (frozenset(), False)
        variant = (
            tuple((name, str(arguments.get(name))) for name in sorted(static)),
            tuple(sorted((name, id(table)) for name, table in offset_provider.items())),
        )
        known, points = _layouts.of(stencil), {}
        if not footprint.is_static():
            points = _points(footprint, arguments, offset_provider)
        _check(stencil.__name__, known.points.setdefault(variant, points), points)
        memory = list(workspace.values())
        call(**arguments, offset_provider=offset_provider)
        known.memory.setdefault(variant, memory)

    return checked


def _points(
    footprint: ProgramFootprint, arguments: Mapping[str, Any], provider: Mapping[str, Any]
) -> dict[tuple[str, str], int]:
    """Count the points of a call, by output and dimension."""
    fields, scalars = {}, {}
    for name, value in arguments.items():
        for part, one in _parts(footprint.parts.get(name, name), value):
            if internals.is_field(one):
                fields[part] = one.domain.ranges
            else:
                scalars[part] = one
    placed = {
        name: (tuple(len(one) for one in ranges), tuple(-one.start for one in ranges))
        for name, ranges in fields.items()
    }
    written = footprint(placed, _window(footprint, fields), scalars, provider).writes
    return {
        (name, dim): end - first
        for name, box in written.items()
        for dim, (first, end) in zip(footprint.dims[name], box, strict=True)
    }


def _parts(
    declared: str | DeclaredCollection,
    value: Any,
) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a collection with their names."""
    if isinstance(declared, str):
        yield declared, value
        return
    parts = [getattr(value, key) for key in declared.keys] if declared.keys else value
    for one, part in zip(declared.parts, parts, strict=True):
        yield from _parts(one, part)


def _window(footprint: ProgramFootprint, fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the domain of an operator, which computes wherever its outputs are."""
    window = dict.fromkeys(footprint.axes, (0, 1))
    for name in footprint.outputs:
        ends = ((one.start, one.stop) for one in fields[name])
        window.update(zip(footprint.dims[name], ends, strict=True))
    return tuple(window.values())


def _check(
    name: str, first: Mapping[tuple[str, str], int], points: Mapping[tuple[str, str], int]
) -> None:
    for (output, dim), count in points.items():
        most = first.get((output, dim), count)
        if count > most:
            raise ValueError(
                f"'{name}': expected at most {most} points of '{output}' along {dim}, as at the "
                f"first call, for which GT4Py has laid out its workspace, got {count}; make the "
                "largest call first, or bind the program with_backend(...) anew"
            )
