"""The footprint of a program or operator of ``gt4py.next``: which points one call touches."""

from __future__ import annotations

import warnings
from importlib import metadata
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dlfield.stencils.footprint import CallFootprint
from dlfield.stencils.next import internals
from dlfield.stencils.next.boxes import has_points
from dlfield.stencils.next.nodes import Call, Name, UnknownError
from dlfield.stencils.next.tables import Tables, checked_provider
from dlfield.stencils.next.walk import Accesses, accesses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dlfield.stencils.next.arguments import Signature
    from dlfield.stencils.next.boxes import Box
    from dlfield.stencils.next.nodes import Node, Program

__all__ = ["OutputFootprint", "ProgramFootprint", "not_understood", "warn_unknown"]

#: Prefixes of the names of backends that fuse intermediate values into their readers, if they can.
#: An embedded program computes such a value for all points, as those of dace may do.
_FUSING = ("run_gtfn", "roundtrip")

#: What was said of each definition.
_warned: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


class OutputFootprint:
    """The footprint of a program or operator of which only the domain of outputs is known.

    Parameters
    ----------
    dims, axes, outputs
        As `ProgramFootprint` has them.
    complete
        True if nothing else is to be checked. Otherwise no memory is shared, and an operator reads
        its domain.
    """

    def __init__(
        self,
        dims: Mapping[str, tuple[str, ...]],
        axes: tuple[str, ...],
        outputs: Sequence[str],
        *,
        complete: bool,
    ) -> None:
        self.dims, self.axes, self.outputs, self.complete = dims, axes, outputs, complete

    def __call__(
        self,
        fields: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]],
        domain: tuple[Any, ...],
        scalars: Mapping[str, Any],
        connectivities: Any,
    ) -> CallFootprint:
        """Find it; see `dlfield.stencils.footprint.FindFootprint`."""
        del scalars
        checked_provider(connectivities)
        window = dict(zip(self.axes, domain, strict=True))
        computed = {dim for name in self.outputs for dim in self.dims[name]}
        boxes = {}
        for name, (shape, origin) in fields.items() if self.outputs else ():
            whole = [(-at, extent - at) for extent, at in zip(shape, origin, strict=True)]
            ranges = zip(self.dims[name], whole, strict=True)
            boxes[name] = tuple(window[dim] if dim in computed else own for dim, own in ranges)
        written = {name: boxes.pop(name) for name in self.outputs}
        if self.complete:
            return CallFootprint({}, written)
        return CallFootprint(boxes, written, frozenset(self.dims))


class ProgramFootprint:
    """Finds the footprint of a call of one program or operator.

    Parameters
    ----------
    stencil
        The program or operator.
    program
        Its nodes.
    dims
        Names of the dimensions of every field.
    axes
        Dimensions of the iteration.
    signature
        Its arguments.
    outputs
        The outputs of an operator, which computes on the domain of a call. Empty for a program.
    refuses
        True to refuse a call whose points cannot be found: compiled code checks nothing.
    """

    def __init__(
        self,
        stencil: Any,
        program: Program,
        dims: Mapping[str, tuple[str, ...]],
        axes: tuple[str, ...],
        signature: Signature,
        outputs: Sequence[str],
        *,
        refuses: bool,
    ) -> None:
        self.stencil, self.program, self.dims, self.axes = stencil, program, dims, axes
        self.names = {name: name for name in dims} | dict(signature.nested())
        self.parts = signature.collections
        self.outputs, self.refuses = outputs, refuses
        self.bound = internals.bound_arguments(stencil)
        self.fuses = (internals.backend_of(stencil) or "").startswith(_FUSING)

    def __call__(
        self,
        fields: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]],
        domain: tuple[Any, ...],
        scalars: Mapping[str, Any],
        connectivities: Any,
    ) -> CallFootprint:
        """Find it; see `dlfield.stencils.footprint.FindFootprint`.

        Raises
        ------
        ValueError
            For connectivities that do not serve the program, a domain of less than no points, and,
            of a compiled program, for something that dlfield does not understand.
        TypeError
            For connectivities that are none.
        """
        tables = Tables(checked_provider(connectivities), internals.connectivity)
        boxes = {name: self._box(name, *placed) for name, placed in fields.items()}
        window = dict(zip(self.axes, domain, strict=True)) if self.outputs else {}
        for name in self.outputs:
            boxes[name] = {dim: window[dim] for dim in self.dims[name]}
        found = self._accesses(boxes, {**scalars, **self.bound}, tables)
        if found is None:
            rest = OutputFootprint(self.dims, self.axes, self.outputs, complete=False)
            return rest(fields, domain, scalars, connectivities)
        return CallFootprint(
            self._ranges(found.read, boxes),
            self._ranges(found.written, boxes),
            frozenset(found.unknown),
            tuple(sorted(found.depends - self.bound.keys())),
            tuple(map(tables.depends, found.rows)),
        )

    def _accesses(
        self, boxes: Mapping[str, Box], scalars: Mapping[str, Any], tables: Tables
    ) -> Accesses | None:
        try:
            return accesses(
                self.program,
                boxes,
                scalars,
                self.dims,
                self.names,
                tables,
                fuses=self.fuses,
                static=self.is_static(),
            )
        except UnknownError as what:
            if self.refuses:
                raise ValueError(not_understood(self.stencil, str(what))) from what
            warn_unknown(self.stencil, f"'{what}' in its representation")
            return None

    def _ranges(
        self, found: Mapping[str, Box], boxes: Mapping[str, Box]
    ) -> dict[str, tuple[tuple[int, int], ...]]:
        touched = {name: box for name, box in found.items() if name in boxes and has_points(box)}
        return {name: self._along(name, box, boxes[name]) for name, box in touched.items()}

    def _along(self, name: str, box: Box, whole: Box) -> tuple[tuple[int, int], ...]:
        """Order a box as the dimensions of a field; where it says nothing, all points count."""
        return tuple(box.get(dim, whole.get(dim, (0, 0))) for dim in self.dims[name])

    def _box(self, name: str, shape: tuple[int, ...], origin: tuple[int, ...]) -> Box:
        ends = zip(self.dims[name], shape, origin, strict=True)
        return {dim: (-at, extent - at) for dim, extent, at in ends}

    def is_static(self) -> bool:
        """Return whether GT4Py compiles the domains of all statements in, as literals.

        It does for literals of the definition, for scalars that are static parameters, and with
        static domains for the ends of fields.
        """
        compiled = internals.compiled_in(self.stencil)
        if compiled is None:
            return False
        static, ends = compiled
        names = (_names_in(one.domain, ends=ends) for one in self.program.assignments())
        return all(static.issuperset(one) for one in names)


def _names_in(domain: Node, *, ends: bool) -> Iterator[str]:
    """Name what a domain depends on, where the `ends` of fields may be known."""
    if isinstance(domain, Name):
        yield domain.id
    elif isinstance(domain, Call) and not (ends and domain.builtin == "get_domain_range"):
        for one in domain.arguments:
            yield from _names_in(one, ends=ends)


def not_understood(stencil: Any, what: str) -> str:
    """Return the refusal of a compiled program that dlfield does not understand."""
    return (
        f"{stencil.__name__}: expected a program that dlfield understands, since GT4Py "
        f"{metadata.version('gt4py')} checks no bounds of compiled programs, got {what}; "
        "bind(..., unchecked=True) runs it without checks of bounds"
    )


def warn_unknown(stencil: Any, got: str) -> None:
    """Warn once of a program that its bounds are not checked."""
    said = _warned.setdefault(internals.definition_of(stencil), set())
    if got in said:
        return
    said.add(got)
    warnings.warn(
        f"{stencil.__name__}: expected a representation that tells which points are read, got "
        f"{got} (GT4Py {metadata.version('gt4py')}); bounds are not checked",
        stacklevel=2,
    )
