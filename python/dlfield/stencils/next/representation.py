"""The iterator representation of a program of ``gt4py.next``, and what single nodes of it mean."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dlfield.stencils.cartesian.footprint import is_known_version
from dlfield.stencils.next.boxes import common

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "UnknownError",
    "call_of",
    "has_static_domains",
    "inputs_of",
    "representation",
    "shifts_of",
    "static_names",
    "warn_unknown",
    "where",
]

#: What was said of each definition.
_warned: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()

#: The points of an axis for which ``axis OP value`` is true.
_WHERE: dict[str, Callable[[int], list[tuple[float, float]]]] = {
    "less": lambda value: [(-math.inf, value)],
    "less_equal": lambda value: [(-math.inf, value + 1)],
    "greater": lambda value: [(value + 1, math.inf)],
    "greater_equal": lambda value: [(value, math.inf)],
    "eq": lambda value: [(value, value + 1)],
    "not_eq": lambda value: [(-math.inf, value), (value + 1, math.inf)],
    "true": lambda _: [(-math.inf, math.inf)],
}
_NEGATED = {"less": "greater_equal", "less_equal": "greater", "eq": "not_eq"}
_NEGATED |= {other: one for one, other in _NEGATED.items()}
_MIRRORED = {"less": "greater", "less_equal": "greater_equal", "eq": "eq", "not_eq": "not_eq"}
_MIRRORED |= {other: one for one, other in _MIRRORED.items()}


class UnknownError(Exception):
    """Something in the representation that dlfield does not know."""


def representation(stencil: Any, kinds: Sequence[Any] | None) -> Any:  # noqa: ANN401
    """Give the representation of a program or operator; None where it cannot be had.

    `kinds` are the types of the arguments of an operator, `out` last; None for a program.
    """
    if not is_known_version():
        return None
    from gt4py.next.iterator.transforms import inline_fundefs, inline_lambdas

    try:
        program = stencil.gtir if kinds is None else _of_operator(stencil, kinds)
        inlined = inline_fundefs.InlineFundefs().visit(program)
        pruned = inline_fundefs.prune_unreferenced_fundefs(inlined)
        # Operators that call others give names to values; one that is used once loses its name.
        return inline_lambdas.InlineLambdas.apply(pruned, opcount_preserving=True)
    except Exception as reason:  # whatever is in the way, the reach is unknown
        warn_unknown(stencil, f"{type(reason).__name__}: {reason}")
        return None


def _of_operator(operator: Any, kinds: Sequence[Any]) -> Any:  # noqa: ANN401
    """Make the program that GT4Py makes of an operator which is called with `out`."""
    from gt4py.next.otf import arguments

    steps, empty = operator._frontend_transforms, arguments.CompileTimeArgs.empty()
    given = arguments.CompileTimeArgs(tuple(kinds), {}, {}, None, {})
    artifact = _concrete_artifact()
    program = steps.field_view_op_to_prog(artifact(operator.foast_stage, given))
    return steps.past_to_itir(artifact(program.data, empty)).data


def _concrete_artifact() -> Any:  # noqa: ANN401
    """Give the class of a definition with its arguments, which GT4Py 1.2 has moved."""
    try:
        from gt4py.next.otf.workflow import ConcreteArtifact
    except ImportError:
        from gt4py.next.otf.toolchain import ConcreteArtifact
    return ConcreteArtifact


def call_of(node: Any) -> str:  # noqa: ANN401
    """Name the builtin that is called."""
    function: Any = getattr(node, "fun", None)
    return str(function.id) if type(function).__name__ == "SymRef" else ""


def shifts_of(node: Any) -> Sequence[Iterable[tuple[Any, ...]]]:  # noqa: ANN401
    """Give the shifts at which an operation reads each of its arguments."""
    from gt4py.next.iterator.transforms import trace_shifts

    stencil = node.fun.args[0]
    try:
        return trace_shifts.trace_stencil(stencil, num_args=len(node.args))  # type: ignore[no-any-return]
    except Exception as reason:  # it may run nevertheless
        raise UnknownError(f"{type(reason).__name__}: {reason}") from reason


def has_static_domains(stencil: Any, program: Any) -> bool:  # noqa: ANN401
    """Tell whether GT4Py compiles the domains of all statements in, as literals.

    It does for literals of the definition, for scalars that are static parameters, and with static
    domains for the ends of fields. `stencil` may have been compiled ahead for other parameters than
    its options say. An embedded program computes as it is called, and a backend may be told to take
    all points of the mesh nevertheless.
    """
    translation = getattr(getattr(stencil.backend, "executor", None), "translation", None)
    translation = getattr(translation, "step", translation)  # of one that is cached
    takes_all = getattr(translation, "use_max_domain_range_on_unstructured_shift", None)
    if stencil.backend is None or takes_all:
        return False
    static, ends = static_names(stencil), bool(stencil.compilation_options.static_domains)
    if (compiled := _compiled_for(stencil)) is not None:
        ends = "FieldDomainDescriptor" in compiled
    statements = (one for one in program.walk_values() if type(one).__name__ == "SetAt")
    return all(static.issuperset(_names_in(one.domain, ends=ends)) for one in statements)


def static_names(stencil: Any) -> set[str]:  # noqa: ANN401
    """Name the arguments whose values GT4Py compiles in."""
    compiled = _compiled_for(stencil)
    if compiled is None:
        return set(stencil.compilation_options.static_params or ())
    return set(compiled.get("StaticArg", ()))


def _compiled_for(stencil: Any) -> dict[str, Any] | None:  # noqa: ANN401
    """Give the kinds of what is compiled in, with the names of arguments; None if nothing is."""
    pool = vars(stencil).get("_compiled_programs")
    if pool is None:
        return None
    return {one.__name__: names for one, names in pool.argument_descriptor_mapping.items()}


def _names_in(domain: Any, *, ends: bool) -> Iterator[str]:  # noqa: ANN401
    """Name what a domain depends on, where the `ends` of fields may be known."""
    if type(domain).__name__ == "SymRef":
        yield str(domain.id)
    elif not (ends and call_of(domain) == "get_domain_range"):
        for one in getattr(domain, "args", ()):
            yield from _names_in(one, ends=ends)


def inputs_of(node: Any) -> Iterator[Any]:  # noqa: ANN401
    """Give what the operations begin with that a value is computed by, point by point.

    Where that is one name, GT4Py computes the value where it is read (`FuseAsFieldOp`): a program
    that reads ``(2.0 * cells)(E2C)`` doubles those cells that it reads. A value of several, like
    ``cells + edges(C2E[0])``, goes into memory first, for all points of the mesh.
    """
    function: Any = getattr(node, "fun", None)
    if call_of(function) == "as_fieldop" and call_of(function.args[0]) != "scan":
        for one in node.args:
            yield from inputs_of(one)
    elif call_of(node) == "broadcast":
        yield from inputs_of(node.args[0])
    elif type(node).__name__ != "Literal":
        yield node


def where(
    node: Any,  # noqa: ANN401
    number: Callable[[Any], int],
    *,
    negated: bool,
) -> list[dict[str, tuple[float, float]]]:
    """Find where a condition of axes is true, in boxes that are open where it says nothing.

    Parameters
    ----------
    node
        The condition.
    number
        Gives the value of an expression.
    negated
        Whether to find where it is false.

    Raises
    ------
    UnknownError
        If it is no condition of axes.
    """
    call = call_of(node)
    if call == "not_":
        return where(node.args[0], number, negated=not negated)
    if call in ("and_", "or_"):
        one, other = (where(part, number, negated=negated) for part in node.args)
        if (call == "or_") != negated:
            return one + other
        return [common(left, right) for left in one for right in other]
    if call not in _WHERE:
        raise UnknownError(node)
    left, right = node.args
    if type(right).__name__ == "AxisLiteral":
        left, right, call = right, left, _MIRRORED[call]
    if negated:
        call = "true" if call == "not_eq" and not _knows_unequal() else _NEGATED[call]
    return [{left.value: one} for one in _WHERE[call](number(right))]


def _knows_unequal() -> bool:
    """Tell whether `!=` is right: GT4Py 1.1 takes it for a condition that is true nowhere."""
    import gt4py

    return not gt4py.__version__.startswith("1.1.")


def warn_unknown(stencil: Any, got: str) -> None:  # noqa: ANN401
    """Say once of a program that bounds are not checked."""
    said = _warned.setdefault(stencil.definition_stage.definition, set())
    if got in said:
        return
    said.add(got)
    warnings.warn(
        f"{stencil.__name__}: expected a representation that tells which points are read, got "
        f"{got}; bounds are not checked",
        stacklevel=2,
    )
