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
from dlfield.stencils.next.representation import has_static_domains, static_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dlfield.stencils.next.checks import Checks

__all__ = ["guarded"]


@dataclass
class _Placed:
    """What GT4Py has placed for one stencil, for each of the programs that it has compiled."""

    #: Points that were computed at the first call, by output and dimension.
    points: dict[Any, Mapping[tuple[str, str], int]] = field(default_factory=dict)
    #: The memory that it was placed in.
    memory: dict[Any, list[Any]] = field(default_factory=dict)


_placed = OfObjects(_Placed)


def guarded(stencil: Any, call: Callable[..., Any], checks: Checks) -> Callable[..., Any]:  # noqa: ANN401
    """Give `call`, and in front of it, if the backend has a workspace, the check of its points."""
    backend = stencil.backend
    if not getattr(backend, "external_workspace", None) or checks.program is None:
        return call

    def checked(*, offset_provider: Mapping[str, Any], **arguments: Any) -> None:  # noqa: ANN401
        static = has_static_domains(stencil, checks.program)
        variant = (
            tuple((name, str(arguments.get(name))) for name in sorted(static_names(stencil))),
            tuple(sorted((name, id(table)) for name, table in offset_provider.items())),
        )
        known, points = _placed.of(stencil), {} if static else checks.computed()
        _check(stencil.__name__, known.points.setdefault(variant, points), points)
        memory = list(backend.external_workspace.values())
        call(**arguments, offset_provider=offset_provider)
        known.memory.setdefault(variant, memory)

    return checked


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
