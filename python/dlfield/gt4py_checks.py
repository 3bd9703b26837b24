"""Checks of a call of ``gt4py.next``: which points it would touch, and which there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlfield.gt4py_points import Accesses, UnknownError, accesses, representation
from dlfield.gt4py_tables import Tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlfield._boxes import Box

__all__ = ["Checks"]

#: Shape and origin of a field.
Placed = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class _Checked:
    """The last call that was found right."""

    fields: Mapping[str, Placed]
    domain: tuple[int, ...]
    scalars: Mapping[str, Any]
    provider: Mapping[str, Any]
    found: Accesses

    def serves(
        self,
        fields: Mapping[str, Placed],
        domain: tuple[int, ...],
        given: Mapping[str, Any],
        provider: Mapping[str, Any],
    ) -> bool:
        """Tell whether a call touches the same; what tables hold is read again."""
        same = (self.fields is fields or self.fields == fields) and self.domain == domain
        if not same or any(given.get(name) != one for name, one in self.scalars.items()):
            return False
        if not self.found.rows:
            return True
        tables = Tables(provider)
        return all(tables.bounds(rows) == one for rows, one in self.found.rows.items()) and all(
            tables.size(dim) == size for dim, size in self.found.sizes.items()
        )


class Checks:
    """Checks each call of one program or field operator before it is made.

    Parameters
    ----------
    stencil
        The program or field operator.
    dims
        Names of the dimensions of every field.
    axes
        Dimensions of the iteration.
    is_operator
        True for a field operator, which computes on the domain of a call.
    """

    def __init__(
        self,
        stencil: Any,  # noqa: ANN401
        dims: Mapping[str, tuple[str, ...]],
        axes: tuple[str, ...],
        *,
        is_operator: bool,
    ) -> None:
        self.name, self.dims, self.axes = stencil.__name__, dims, axes
        self.is_operator = is_operator
        self.bound: Mapping[str, Any] = getattr(stencil, "bound_args", {})
        self.program = representation(stencil, is_operator=is_operator)
        self.offset_provider: Mapping[str, Any] = {}
        self._last: _Checked | None = None

    def __call__(
        self,
        fields: Mapping[str, Placed],
        domain: tuple[int, ...],
        given: Mapping[str, Any],
    ) -> set[str]:
        """Raise ValueError where the call would touch points that a field does not have.

        Parameters and result are those of `dlfield.declaration.Declaration.check`.
        """
        if self.program is None or len(fields) < len(self.dims):
            return set(self.dims)  # outputs are still to be made
        provider = self.offset_provider
        last = self._last
        if last is not None and last.serves(fields, domain, given, provider):
            return last.found.unknown
        found = self._found(fields, domain, given, provider)
        scalars = {name: given.get(name) for name in found.depends if name not in self.bound}
        self._last = _Checked(fields, domain, scalars, provider, found)
        return found.unknown

    def _found(
        self,
        fields: Mapping[str, Placed],
        domain: tuple[int, ...],
        given: Mapping[str, Any],
        provider: Mapping[str, Any],
    ) -> Accesses:
        boxes = {name: self._box(name, *placed) for name, placed in fields.items()}
        if self.is_operator:
            points = dict(zip(self.axes, domain, strict=True))
            boxes["out"] = {dim: (0, points[dim]) for dim in self.dims["out"]}
        scalars = {**given, **self.bound}
        try:
            found = accesses(self.program, boxes, scalars, self.dims, Tables(provider))
        except UnknownError:
            return Accesses(unknown=set(self.dims))
        for name, box in found.written.items():
            self._inside(name, boxes, box, "writes")
        for name, box in found.read.items():
            self._inside(name, boxes, box, "reads")
        return found

    def _box(self, name: str, shape: tuple[int, ...], origin: tuple[int, ...]) -> Box:
        ends = zip(self.dims[name], shape, origin, strict=True)
        return {dim: (-at, extent - at) for dim, extent, at in ends}

    def _inside(self, name: str, boxes: Mapping[str, Box], touched: Box, does: str) -> None:
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
                    f"'{self.name}' {does}, got {low} to {high} (0 is the origin, the last is not "
                    "among them); pass a larger array, a wider halo, or a smaller domain"
                )
