"""The iterator representation of a program of ``gt4py.next``, which GT4Py's frontend makes."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from dlfield.gt4py_reach import is_known_version

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["representation", "warn_unknown"]


def representation(stencil: Any, kinds: Sequence[Any] | None) -> Any:  # noqa: ANN401
    """Give the representation of a program or operator; None where it cannot be had.

    `kinds` are the types of the arguments of an operator, `out` last; None for a program.
    """
    if not is_known_version():
        return None
    from gt4py.next.iterator.transforms import inline_fundefs

    try:
        program = stencil.gtir if kinds is None else _of_operator(stencil, kinds)
        inlined = inline_fundefs.InlineFundefs().visit(program)
        return inline_fundefs.prune_unreferenced_fundefs(inlined)
    except Exception as reason:  # whatever is in the way, the reach is unknown
        warn_unknown(stencil.__name__, f"{type(reason).__name__}: {reason}")
        return None


def _of_operator(operator: Any, kinds: Sequence[Any]) -> Any:  # noqa: ANN401
    """Make the program that GT4Py makes of an operator which is called with `out`."""
    from gt4py.next.otf import arguments, toolchain

    steps, empty = operator._frontend_transforms, arguments.CompileTimeArgs.empty()
    given = arguments.CompileTimeArgs(tuple(kinds), {}, {}, None, {})
    program = steps.field_view_op_to_prog(toolchain.ConcreteArtifact(operator.foast_stage, given))
    return steps.past_to_itir(toolchain.ConcreteArtifact(program.data, empty)).data


@cache
def warn_unknown(name: str, got: str) -> None:
    """Say once of a program that bounds are not checked."""
    warnings.warn(
        f"{name}: expected a representation that tells which points are read, got {got}; bounds "
        "are not checked",
        stacklevel=2,
    )
