"""Checks of a call of ``gt4py.next``: which points it would touch, and which there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlfield.stencils.next.footprint import Accesses, accesses
from dlfield.stencils.next.representation import (
    UnknownError,
    has_static_domains,
    representation,
    warn_unknown,
)
from dlfield.stencils.next.tables import Tables, checked_provider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dlfield.stencils.next.boxes import Box
    from dlfield.stencils.next.signatures import Signature

__all__ = ["Checks"]

#: How the names of backends begin that compute a value in between where it is read, if they can.
#: An embedded program computes it for all points, as those of dace may do.
_FUSING = ("run_gtfn", "roundtrip")
#: Shape and origin of a field.
Placed = tuple[tuple[int, ...], tuple[int, ...]]
#: First point and the end behind the last along each axis; of a program, what means nothing.
Domain = tuple[Any, ...]


@dataclass(frozen=True)
class _Checked:
    """The last call that was found right."""

    fields: Mapping[str, Placed]
    domain: Domain
    scalars: Mapping[str, Any]
    provider: Mapping[str, Any]
    found: Accesses

    def serves(
        self,
        fields: Mapping[str, Placed],
        domain: Domain,
        given: Mapping[str, Any],
        provider: Mapping[str, Any],
    ) -> bool:
        """Tell whether a call touches the same; rows of tables that are used are read again."""
        same = (self.fields is fields or self.fields == fields) and self.domain == domain
        if not same or any(given.get(name) != one for name, one in self.scalars.items()):
            return False
        known, tables = self.provider, Tables(provider)
        if len(known) != len(provider):
            return False
        if any(provider.get(tag) is not table for tag, table in known.items()):
            return False
        return all(tables.bounds(rows) == one for rows, one in self.found.rows.items())


class Checks:
    """Checks each call of one program or operator before it is made.

    Parameters
    ----------
    stencil
        The program or operator.
    dims
        Names of the dimensions of every field.
    axes
        Dimensions of the iteration.
    signature
        What it takes.
    outputs
        The outputs of an operator, which computes on the domain of a call. Empty for a program.
    """

    def __init__(
        self,
        stencil: Any,  # noqa: ANN401
        dims: Mapping[str, tuple[str, ...]],
        axes: tuple[str, ...],
        signature: Signature,
        outputs: Sequence[str],
    ) -> None:
        self.stencil, self.dims, self.axes = stencil, dims, axes
        self.names = {name: name for name in dims} | dict(signature.nested())
        self.outputs = outputs
        self.bound: Mapping[str, Any] = getattr(stencil, "bound_args", {})
        kinds = tuple(signature.kinds.values())
        self.program = representation(stencil, kinds if outputs else None)
        self.fuses = getattr(stencil.backend, "name", "").startswith(_FUSING)
        self._last: _Checked | None = None

    def __call__(
        self,
        fields: Mapping[str, Placed],
        domain: Domain,
        given: Mapping[str, Any],
    ) -> set[str]:
        """Raise ValueError where the call would touch points that a field does not have.

        Parameters and result are those of `dlfield.stencils.declaration.Declaration.check`.
        """
        if len(fields) < len(self.dims):
            return set(self.dims)  # outputs are still to be made
        provider = checked_provider(given.get("offset_provider"))
        last = self._last
        if last is not None and last.serves(fields, domain, given, provider):
            return last.found.unknown
        found = self._found(fields, domain, given, provider)
        scalars = {name: given.get(name) for name in found.depends if name not in self.bound}
        self._last = _Checked(fields, domain, scalars, dict(provider), found)
        return found.unknown

    def computed(self) -> dict[tuple[str, str], int]:
        """Count the points of the last call, by output and dimension."""
        written = {} if self._last is None else self._last.found.written
        return {
            (name, dim): end - first
            for name, box in written.items()
            for dim, (first, end) in box.items()
        }

    def _found(
        self,
        fields: Mapping[str, Placed],
        domain: Domain,
        given: Mapping[str, Any],
        provider: Mapping[str, Any],
    ) -> Accesses:
        boxes = {name: self._box(name, *placed) for name, placed in fields.items()}
        window = dict(zip(self.axes, domain, strict=True))
        for name in self.outputs:
            boxes[name] = {dim: window[dim] for dim in self.dims[name]}
        found = self._accesses(boxes, {**given, **self.bound}, provider)
        if found is None:  # an operator reads its domain; of a program nothing is known
            computed = {dim for name in self.outputs for dim in self.dims[name]}
            read = {
                name: {dim: window[dim] for dim in dims if dim in computed}
                for name, dims in self.dims.items()
            }
            found = Accesses(read=read, unknown=set(self.dims))
        program = self.stencil.__name__
        for name, box in found.written.items():
            self._inside(name, boxes, box, f"'{program}' writes")
        for name, box in found.read.items():
            self._inside(name, boxes, box, f"'{program}' reads")
        return found

    def _accesses(
        self, boxes: Mapping[str, Box], scalars: Mapping[str, Any], provider: Mapping[str, Any]
    ) -> Accesses | None:
        if self.program is None:
            return None
        try:
            return accesses(
                self.program,
                boxes,
                scalars,
                self.dims,
                self.names,
                Tables(provider),
                fuses=self.fuses,
                static=has_static_domains(self.stencil, self.program),
            )
        except UnknownError as what:
            warn_unknown(self.stencil, f"'{what}' in its representation")
            return None

    def _box(self, name: str, shape: tuple[int, ...], origin: tuple[int, ...]) -> Box:
        ends = zip(self.dims[name], shape, origin, strict=True)
        return {dim: (-at, extent - at) for dim, extent, at in ends}

    def _inside(self, name: str, boxes: Mapping[str, Box], touched: Box, use: str) -> None:
        if name not in boxes:
            return
        for dim, (first, end) in touched.items():
            low, high = boxes[name].get(dim, (first, end))
            if end < first:
                raise ValueError(
                    f"argument '{name}': expected a domain of 0 points or more along {dim}, got "
                    f"{end - first}; correct the scalars, or pass a larger array"
                )
            if first < end and (first < low or end > high):
                raise ValueError(
                    f"argument '{name}': expected points {first} to {end} along {dim}, which "
                    f"{use}, got {low} to {high} (0 is the origin, the last is not "
                    "among them); pass a larger array, a wider halo, or a smaller domain"
                )
