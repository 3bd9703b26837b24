"""Arrays without labels: the points around the domain that each has, and what follows from them.

Tensors and arrays of JAX have no halo. The caller says how many points every array has around the
domain. Then the shapes of the inputs tell the domain and the shapes of the outputs. Extents are
added and subtracted, but only `check_extents` compares them: they may be symbols, such as torch's
``SymInt``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlfield._core import BoundStencil
    from dlfield.stencils.declaration import Declaration, DeclaredField

__all__ = ["Halos", "Shape", "outputs"]

#: Extents of an array; each is an int, or a symbol that stands for one.
Shape = tuple[Any, ...]


class Halos:
    """The points that every array of a stencil has below and above the domain.

    Parameters
    ----------
    declaration
        The stencil.
    halo
        A number for all axes, a number or a pair for each, or a dict of these by axis, 0 for axes
        that it lacks. None: the reach of the stencil.
    dims
        Order of the axes in the arrays of the caller; None: the declared order. Data dimensions
        stay last.

    Raises
    ------
    TypeError, ValueError
        For widths that are not ints of at least 0; for a halo or an order that does not fit the
        axes of the stencil; without `halo`, for a stencil whose reach is known at run time only.
    """

    def __init__(self, declaration: Declaration, halo: Any = None, dims: Any = None) -> None:
        self.declaration = declaration
        #: Points below and above, by axis.
        self.widths: dict[str, tuple[int, int]] = _widths(declaration, halo)
        self.order = declaration.axes if dims is None else _order(declaration, dims)
        self.fields = {field.name: field for field in declaration.fields}
        #: The fields that are read, which the caller passes.
        self.inputs = [one for one in declaration.fields if one.access in ("read", "update")]
        self.outputs = [one for one in declaration.fields if one.access in ("write", "update")]

    def dims(self, field: DeclaredField) -> tuple[str, ...]:
        """Return the dimensions of an array of the caller, in its order."""
        axes = tuple(axis for axis in self.order if axis in field.dims)
        return axes + tuple(dim for dim in field.dims if dim not in axes)

    def axes(self, field: DeclaredField) -> tuple[int, ...] | None:
        """Return the axes of the caller's array in the declared order; None if they already are."""
        dims = self.dims(field)
        return None if dims == field.dims else tuple(map(dims.index, field.dims))

    def check_shape(self, field: DeclaredField, shape: Sequence[Any]) -> None:
        """Refuse an array of another number of dimensions than the field has."""
        dims = self.dims(field)
        if len(shape) != len(dims):
            expected = f"{len(dims)} dimensions, {', '.join(dims)}"
            raise ValueError(f"'{field.name}': expected {expected}, got the shape {tuple(shape)}")

    def check_extents(self, shapes: Mapping[str, Shape]) -> None:
        """Refuse an input that has fewer points along an axis than the first one that has the axis.

        The stencil may need no more points, but the gradient has the same halo as other arrays.
        """
        expected = self.extents(shapes)
        for field in self.inputs:
            for dim, extent in zip(self.dims(field), shapes[field.name], strict=True):
                if dim in self.widths and extent < expected[dim]:
                    raise ValueError(
                        f"'{field.name}': expected at least {expected[dim]} points along {dim} for "
                        f"a derivative, as the first input with {dim} has, got {extent}"
                    )

    def extents(self, shapes: Mapping[str, Shape]) -> dict[str, Any]:
        """Return the extent along each axis, from the first of these fields that has it."""
        found: dict[str, Any] = {}
        for field in (*self.inputs, *self.outputs):
            if field.name not in shapes:
                continue
            for dim, extent in zip(self.dims(field), shapes[field.name], strict=True):
                if dim in self.widths:
                    found.setdefault(dim, extent)
        return found

    def domain(self, extents: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the number of points along each axis, 1 along an axis without an extent."""
        inner = {axis: extents[axis] - sum(self.widths[axis]) for axis in extents}
        return tuple(inner.get(axis, 1) for axis in self.declaration.axes)

    def origin(self, field: DeclaredField) -> tuple[int, ...]:
        """Return the index of the first point of the domain, along the declared dimensions."""
        return tuple(self.widths.get(dim, (0, 0))[0] for dim in field.dims)

    def output_shapes(self, extents: Mapping[str, Any]) -> dict[str, Shape]:
        """Return the shape of each output: the points of the domain and the halo.

        Raises
        ------
        ValueError
            For an output with an axis that no input has.
        """
        return {field.name: self._output_shape(field, extents) for field in self.outputs}

    def _output_shape(self, field: DeclaredField, extents: Mapping[str, Any]) -> Shape:
        missing = [dim for dim in field.dims if dim in self.widths and dim not in extents]
        if missing:
            needed = f"an input that has {missing[0]}, as the output '{field.name}' has"
            raise ValueError(
                f"{self.declaration.name}: needs {needed}; declare a field that is read along it"
            )
        behind = dict(zip(map(str, range(len(field.data_shape))), field.data_shape, strict=True))
        return tuple(behind[dim] if dim in behind else extents[dim] for dim in self.dims(field))


def outputs(
    run: BoundStencil,
    shapes: Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]],
    halo: Any = None,
    dims: Any = None,
) -> dict[str, Shape]:
    """Implement `BoundStencil.outputs`."""
    halos = Halos(run.declaration, halo, dims)
    if not isinstance(shapes, Mapping):
        names = [field.name for field in halos.inputs]
        if len(shapes) != len(names):
            expected = f"the shapes of {', '.join(names)}"
            raise TypeError(f"shapes: expected {expected}, got {len(shapes)}")
        shapes = dict(zip(names, shapes, strict=True))
    for field in halos.inputs:
        if field.name not in shapes:
            dims = ", ".join(halos.dims(field))
            raise TypeError(f"shapes: needs that of '{field.name}', along {dims}")
        halos.check_shape(field, shapes[field.name])
    return halos.output_shapes(halos.extents({name: tuple(one) for name, one in shapes.items()}))


def _widths(declaration: Declaration, halo: Any) -> dict[str, tuple[int, int]]:
    """Read `halo=`."""
    axes = declaration.axes
    if halo is None:
        return declaration.reach()
    if isinstance(halo, Mapping):
        unknown = [name for name in halo if name not in axes]
        if unknown:
            expected = f"widths for {', '.join(axes)}"
            raise ValueError(f"halo: expected {expected}, got one for {unknown[0]!r}")
        return {axis: _width(halo.get(axis, 0)) for axis in axes}
    if not isinstance(halo, (tuple, list)):
        return dict.fromkeys(axes, _width(halo))
    if len(halo) != len(axes):
        expected = f"a width for each of {', '.join(axes)}"
        raise ValueError(f"halo: expected {expected}, got {halo!r}")
    return dict(zip(axes, map(_width, halo), strict=True))


def _width(width: Any) -> tuple[int, int]:
    """Read points below and above: an int for both, or a pair."""
    low, high = width if isinstance(width, (tuple, list)) and len(width) == 2 else (width, width)
    try:
        if isinstance(low, bool) or isinstance(high, bool):
            raise TypeError
        low, high = operator.index(low), operator.index(high)
    except TypeError:
        expected = "an int or a pair of ints for each axis"
        raise TypeError(f"halo: expected {expected}, got {width!r}") from None
    if min(low, high) < 0:
        raise ValueError(f"halo: expected at least 0 points, got {width!r}")
    return low, high


def _order(declaration: Declaration, dims: Any) -> tuple[str, ...]:
    """Read `dims=`: each axis of the stencil once."""
    given: Iterable[Any] = dims if isinstance(dims, Iterable) else (dims,)
    order: tuple[str, ...] = tuple(getattr(dim, "value", dim) for dim in given)
    if sorted(order, key=str) != sorted(declaration.axes):
        expected = f"each of {', '.join(declaration.axes)} once"
        raise ValueError(f"dims: expected {expected}, got {dims!r}")
    return order
