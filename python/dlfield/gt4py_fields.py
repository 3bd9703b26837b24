"""Storages as fields of ``gt4py.next``, and back. The memory is shared; nothing is copied."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dlfield._core import Storage, as_storage

if TYPE_CHECKING:
    import numpy as np

__all__ = ["as_field", "from_field"]

#: Dimensions that are vertical by default, as GT4Py and icon4py name them.
_VERTICAL = frozenset({"K", "KHalf"})


def as_field(
    data: Any,  # noqa: ANN401 - any array
    dims: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    origin: Sequence[int] | None = None,
) -> Any:  # noqa: ANN401
    """Give a NumPyArrayField of gt4py.next over the memory of any array. Never copies.

    Its ranges are ``(-origin, extent - origin)``. It holds a reference to the memory, and writes go
    there. Where the array is read-only it cannot be assigned to, and compiled backends refuse it,
    even as an input, since GT4Py asks for writable memory. A bound stencil takes such an input.

    Parameters
    ----------
    data
        A storage, or anything that `dlfield.as_storage` takes.
    dims
        ``gtx.Dimension`` by name, for each name that the array has; or one for each axis, in order.
        By default they are made of the storage's names: "K" and "KHalf" vertical, all others
        horizontal. Dimensions are equal if both name and kind are, so give your own if that does
        not fit. The axes of the field are in GT4Py's order (horizontal, local, vertical, by
        name within a kind), whatever order the array has them in.
    origin
        Index, in points, of the element that gets the index 0 in each dimension, in the order of
        the array's axes. The lower halo by default.

    Raises
    ------
    TypeError
        For a type that gt4py.next does not have, such as float16, and as `dlfield.as_storage`.
    ValueError
        Where `dims` or `origin` do not fit the array, or are needed.
    BufferError
        As `dlfield.as_storage`.
    """
    from dlfield.gt4py_next import array_field, domain_of, names_of, ordered

    held = as_storage(data)
    given, start = _dimensions(held, dims), _origin(held, origin)
    in_order = ordered(given)
    if len(in_order) != held.ndim:
        raise ValueError(f"dims: expected a different one for each axis, got {names_of(given)}")
    axes = [given.index(dim) for dim in in_order]
    array = _typed(held.to_numpy()).transpose(axes)
    domain = domain_of(in_order, array.shape, [start[axis] for axis in axes])
    return array_field(None)(domain, array)


def from_field(field: Any) -> Storage:  # noqa: ANN401
    """Put the memory of a field of gt4py.next into a storage. Never copies.

    The storage holds a reference to the field's array. Its dims are the names of the field's
    dimensions; their kind is lost. Its lower halo is what the field has below the index 0. A field
    does not know where its domain ends: the upper halo is 0, set ``storage.halo`` if you know
    better. A field that begins above 0 has no halo, and where it begins is lost.

    Parameters
    ----------
    field
        Over a NumPy array, or over a JAX array, of which the storage is read-only.

    Raises
    ------
    TypeError
        For anything but a field over an array.
    ValueError
        For a field that is broadcast: its ranges are not the extents of its array.
    BufferError, DeviceUnavailable
        As `dlfield.as_storage` for the array, such as CuPy's.
    """
    from dlfield.gt4py_next import is_a, names_of

    if not is_a(field, "nd_array_field.NdArrayField"):
        raise TypeError(
            "from_field: expected a field of gt4py.next over an array, got an object of type "
            f"'{type(field).__name__}'; assign it to a gtx.empty, or call as_storage for an array"
        )
    ranges = [(one.start, one.stop) for one in field.domain.ranges]
    extents = tuple(stop - start if isinstance(stop, int) else None for start, stop in ranges)
    if extents != tuple(field.ndarray.shape):
        raise ValueError(
            f"from_field: expected ranges that are the extents {tuple(field.ndarray.shape)} of the "
            f"array, got {field.domain}; assign it to a field of gtx.empty"
        )
    halo = [(max(0, -start), 0) for start, _ in ranges]
    return as_storage(field.ndarray, dims=names_of(field.domain.dims), halo=halo)


def _typed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`array`, where gt4py.next has its type: it names them as NumPy does, in capitals."""
    from gt4py.next.type_system.type_specifications import ScalarKind

    kinds = [kind.lower() for kind in ScalarKind.__members__ if kind != "STRING"]
    if array.dtype.name not in kinds:
        expected, got = ", ".join(kinds), array.dtype.name
        raise TypeError(f"as_field: expected one of {expected}, got {got}; convert the array")
    return array


def _dimensions(held: Storage, dims: Mapping[str, Any] | Sequence[Any] | None) -> list[Any]:
    """One Dimension for each axis of the storage."""
    from dlfield.gt4py_next import is_a

    if dims is None or isinstance(dims, Mapping):
        if held.dims is None:
            expected = "expected a gtx.Dimension for each axis, as the array has no names"
            raise ValueError(f"dims: {expected}, got none; give dims=(IDim, ...)")
        found = [_dimension(name, dims) for name in held.dims]
    else:
        found = list(dims)
    if len(found) != held.ndim:
        raise ValueError(f"dims: expected {held.ndim}, one for each axis, got {len(found)}")
    if any(not is_a(dim, "common.Dimension") for dim in found):
        raise TypeError(f"dims: expected a gtx.Dimension for each axis, got {dims!r}")
    return found


def _dimension(name: str, dims: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
    from gt4py.next import Dimension, DimensionKind

    if dims is None:
        vertical = name in _VERTICAL
        return Dimension(name, DimensionKind.VERTICAL if vertical else DimensionKind.HORIZONTAL)
    if name not in dims:
        raise ValueError(f"dims: expected a gtx.Dimension for '{name}', got {list(dims)}")
    return dims[name]


def _origin(held: Storage, origin: Sequence[int] | None) -> list[int]:
    if origin is None:
        if held.halo is None:
            raise ValueError("origin: expected one, got a storage of unknown halo; give origin=")
        return [low for low, _ in held.halo]
    if len(origin) != held.ndim:
        raise ValueError(f"origin: expected {held.ndim} numbers, got {tuple(origin)}")
    return [operator.index(at) for at in origin]
