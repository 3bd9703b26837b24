"""`tangent`, `adjoint` and `adjoint_source`: derived stencils, and their text."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dlfield._core import BoundStencil
from dlfield.derivatives.expressions import NotDifferentiable
from dlfield.derivatives.for_gt4py import fit, keeping
from dlfield.derivatives.sweeps import adjoint_sweeps, needed, tangent_sweeps
from dlfield.derivatives.versions import components, in_single_assignment
from dlfield.stencils.cartesian import internals as cartesian
from dlfield.stencils.cartesian.declare import declare
from dlfield.stencils.cartesian.levels import ALL
from dlfield.stencils.cartesian.nodes import (
    Access,
    Bound,
    Interval,
    NoDefinition,
    Scalar,
    UnknownNode,
)
from dlfield.stencils.cartesian.places import places_of
from dlfield.stencils.cartesian.source import source_of
from dlfield.stencils.compilation import compile_again, compile_or_fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dlfield.derivatives.program import Program
    from dlfield.stencils.cartesian.levels import Levels
    from dlfield.stencils.cartesian.nodes import FieldDeclaration, Stencil

__all__ = ["adjoint", "adjoint_source", "tangent"]

_LOWEST, _HIGHEST = ((False, 0), (False, 1)), ((True, -1), (True, 0))


def adjoint(stencil: Any, wrt: Iterable[str] | None = None) -> Any:
    """Derive the adjoint of a stencil, as a stencil.

    Parameters
    ----------
    stencil
        A stencil of ``gt4py.cartesian``, or one that is bound.
    wrt
        The inputs that it computes gradients of; by default all of a floating type.

    Returns
    -------
    gt4py.cartesian.StencilObject
        It takes the cotangents ``out_bar``, what it needs of the inputs and scalars, and writes the
        gradients ``inp_bar``, as the page "Derivatives and compiled programs" says; compiled for
        the backend and with the options of the original. A gradient has the dims I, J and K; sum it
        along those that the input lacks, as `torch_op` and `jax_call` do.

    Raises
    ------
    NotDifferentiable
        A ValueError that names the line: for ``while``, levels and data indices that are known at
        run time only, writing at other levels, and functions without a derivative. There is never
        a gradient that lacks a term.
    ValueError
        For a name in `wrt` that is not such an input, an input whose name the derivative needs, or
        a stencil that its backend computes wrong, which `bind` refuses.
    TypeError
        For anything but a stencil of ``gt4py.cartesian``, such as a program of ``gt4py.next``.

    Examples
    --------
    >>> op = dlf.torch_op(run, "model::step", adjoint=dlf.bind(dlf.adjoint(step)))  # doctest: +SKIP
    """
    return _compiled(stencil, wrt, _adjoint)


def tangent(stencil: Any, wrt: Iterable[str] | None = None) -> Any:
    """Derive the tangent of a stencil, as a stencil.

    It takes the inputs and the directions ``inp_dot``, and writes the derivatives ``out_dot``.
    Parameters and errors are those of `adjoint`.

    Examples
    --------
    >>> call = dlf.jax_call(run, tangent=dlf.bind(dlf.tangent(step)))  # doctest: +SKIP
    """
    return _compiled(stencil, wrt, _tangent)


def adjoint_source(stencil: Any, wrt: Iterable[str] | None = None) -> str:
    """Return the text of `adjoint`: a module with one definition, to be read, changed and kept.

    Parameters and errors are those of `adjoint`. Comments are the statements of the original.

    Examples
    --------
    >>> Path("step_adjoint.py").write_text(dlf.adjoint_source(step))  # doctest: +SKIP
    """
    return _text(_Original(stencil, wrt), _adjoint)


class _Original:
    """A stencil, and what is asked of its derivative."""

    def __init__(self, stencil: Any, wrt: Iterable[str] | None) -> None:
        stencil = stencil.stencil if isinstance(stencil, BoundStencil) else stencil
        self.stencil: Any = compile_or_fail(lambda around: cartesian.compiled(stencil, around))
        if not cartesian.is_compiled(self.stencil):
            expected = "a stencil of gt4py.cartesian, whose definition can be read"
            raise TypeError(f"stencil: expected {expected}, got {type(stencil).__name__}")
        declaration = declare(self.stencil)
        self.reach = declaration.reach()
        self.nodes, self.levels = _on_one_level(_read(self.stencil))
        self.scalars = {one.name: str(one.dtype) for one in declaration.scalars if one.used}
        access = {one.name: one.access for one in declaration.fields}
        self.inputs = [one for one in self.nodes.fields if access[one.name] in ("read", "update")]
        self.outputs = [one for one in self.nodes.fields if access[one.name] in ("write", "update")]
        known = [one.name for one in self.inputs if one.dtype.startswith("float")]
        if isinstance(wrt, str):
            raise TypeError(f"wrt: expected names in a list, got {wrt!r}; write [{wrt!r}]")
        self.wrt = known if wrt is None else list(wrt)
        for name in self.wrt:
            if name not in known:
                expected = f"inputs of a floating type ({', '.join(known)})"
                raise ValueError(f"wrt: expected {expected}, got '{name}'")

    def program(
        self,
        kind: str,
        arguments: Sequence[tuple[str, str]],
        wider: Mapping[str, Any] | None = None,
    ) -> Program:
        """Return it in single assignment, for a derivative with such names for its own."""
        inputs, outputs = ([one.name for one in each] for each in (self.inputs, self.outputs))
        for old, new in arguments:
            if new in inputs or new in self.scalars:
                without = "" if old in outputs else f", or leave '{old}' out by wrt="
                raise ValueError(
                    f"'{self.nodes.name}': expected another name than '{new}', which the {kind} "
                    f"has for '{old}'; rename it{without}"
                )
        taken = {*(new for _, new in arguments), *inputs, *self.scalars, "I", "J", "K", "np"}
        return in_single_assignment(
            self.nodes, self.scalars, inputs, taken, wider or {}, self.levels
        )


def _read(stencil: Any) -> Stencil:
    try:
        return cartesian.representation_of(stencil)
    except (NoDefinition, UnknownNode) as error:
        name = stencil.options["name"]
        raise NotDifferentiable(f"'{name}': its definition cannot be read: {error}") from None


def _on_one_level(found: Stencil) -> tuple[Stencil, Levels]:
    """Return a stencil whose fields have no levels as it computes on its lowest one alone.

    A call has one level. Where levels leave values to each other, it is returned as it is.
    """
    places, before = list(places_of(found)), set[Any]()
    written = {(one.section, name) for one in places for name in one.written}
    if any("K" in one.axes for one in found.fields):
        return found, ALL
    for one in places:
        for read in (read for read, _ in one.reads if id(read) not in one.own):
            key = one.section, read.name
            is_left = one.levels == ALL and read.name in one.flat and key in written - before
            if is_left or read.offset[2] != 0:
                return found, ALL
        if one.levels not in (ALL, _LOWEST, _HIGHEST):
            return found, ALL
        before |= {(one.section, name) for name in one.written}
    lowest = Interval(*(Bound(*bound) for bound in _LOWEST))
    loops = (
        replace(loop, sections=tuple(replace(one, interval=lowest) for one in loop.sections))
        for loop in found.loops
    )
    return replace(found, loops=tuple(loops)), _LOWEST


def _adjoint(original: _Original) -> Stencil:
    both = {one.name for one in original.inputs} & {one.name for one in original.outputs}
    floating = [one for one in original.outputs if one.dtype.startswith("float")]
    cotangents = {one.name: f"{one.name}_bar" for one in floating}
    gradients = {name: f"{name}_{'grad' if name in both else 'bar'}" for name in original.wrt}
    arguments = [*cotangents.items(), *gradients.items()]
    program = original.program("adjoint", arguments, original.reach)
    read = _named(program, floating, cotangents)
    results = [replace(one, axes="IJK") for one in original.inputs]
    written = _named(program, results, gradients)
    reverse = adjoint_sweeps(program, read, written, original.reach)
    sweeps = [*program.sweeps, *reverse]
    program.sweeps = needed(sweeps, written.values())
    fit(program, original.stencil.backend)
    return program.stencil(
        f"{original.nodes.name}_adjoint",
        [*_renamed(floating, cotangents), *original.inputs, *_renamed(results, gradients)],
    )


def _tangent(original: _Original) -> Stencil:
    directions = {name: f"{name}_dot" for name in original.wrt}
    floating = [one for one in original.outputs if one.dtype.startswith("float")]
    outputs = {one.name: f"{one.name}_dot" for one in floating}
    program = original.program("tangent", [*directions.items(), *outputs.items()])
    read = _named(program, original.inputs, directions)
    written = _named(program, floating, outputs)
    sweeps = needed(tangent_sweeps(program, read, written), written.values())
    program.sweeps = keeping(sweeps, set(read.values()) & set(written.values()))
    fit(program, original.stencil.backend)
    results = [one for one in original.outputs if one.name not in directions]
    return program.stencil(
        f"{original.nodes.name}_tangent",
        [*original.inputs, *_renamed(original.inputs, directions), *_renamed(results, outputs)],
    )


def _renamed(
    fields: Iterable[FieldDeclaration], names: Mapping[str, str]
) -> list[FieldDeclaration]:
    return [replace(one, name=names[one.name]) for one in fields if one.name in names]


def _named(
    program: Program, fields: Iterable[FieldDeclaration], names: Mapping[str, str]
) -> dict[str, str]:
    """Make fields known under other names; return the variables of their components."""
    found = {}
    for one, new in (
        (one, replace(one, name=names[one.name])) for one in fields if one.name in names
    ):
        pairs = zip(components(one), components(new), strict=True)
        for (old_key, _), (new_key, index) in pairs:
            program.declare_field(new_key, new, index)
            found[old_key] = new_key
    return found


def _text(original: _Original, derive: Callable[[_Original], Stencil]) -> str:
    name, kind = original.nodes.name, derive.__name__.strip("_")
    options = original.stencil.options
    try:
        derived = derive(original)
    except NotDifferentiable as error:
        raise NotDifferentiable(f"'{name}': {error}") from None
    used = {one.name for one in derived.walk() if isinstance(one, Access | Scalar)}
    used |= {f"{one.name}_bar" for one in original.outputs}  # the convention asks for all
    derived = replace(derived, fields=tuple(one for one in derived.fields if one.name in used))
    return source_of(
        derived,
        {name: kind for name, kind in original.scalars.items() if name in used},
        f"The {kind} of '{name}'.",
        _statements(original.stencil.definition_func),
        literals=[f"{kind}{options[f'literal_{kind}_precision']}" for kind in ("float", "int")],
    )


def _statements(definition: Any) -> dict[int, str]:
    """Return the statements of a definition by their lines, the first of which is 1."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(definition))).body[0]
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    before = tree.lineno - 1  # decorators, which GT4Py leaves out
    return {one.lineno - before: ast.unparse(one).splitlines()[0] for one in reversed(found)}


def _compiled(
    stencil: Any,
    wrt: Iterable[str] | None,
    derive: Callable[[_Original], Stencil],
) -> Any:
    """Return the derived stencil, compiled as the original was; GT4Py finds its text."""
    original = _Original(stencil, wrt)
    text, name = _text(original, derive), f"{original.nodes.name}{derive.__name__}"
    file = f"<{name} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    options = cartesian.options_of(original.stencil)
    module = options["name"].rpartition(".")[0]
    scope: dict[str, Any] = {"__name__": module}
    exec(compile(text, file, "exec"), scope)
    options["name"] = f"{module}.{name}"
    return compile_again(scope[name], {}, options)
