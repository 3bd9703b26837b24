"""Storages as fields of ``gt4py.next``, and back. The memory is shared; nothing is copied."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dlfield._core import DeviceUnavailable, Storage, as_storage
from dlfield.functions.axes import in_origin_order
from dlfield.functions.host import is_on_host_alone
from dlfield.stencils.next import internals
from dlfield.stencils.next.dimensions import domain_of, names_of, ordered, unstaggered

if TYPE_CHECKING:
    from dlfield._core import Array, StorageOptions

__all__ = ["as_field", "from_field"]

#: Dimensions that are vertical by default, as GT4Py and icon4py name them. So are the staggered
#: counterparts, `_StaggeredK`.
_VERTICAL = frozenset({"K", "KHalf"})


def as_field(
    data: Array,
    dims: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    origin: Mapping[Any, int] | Sequence[int] | None = None,
    domain: Any = None,
) -> Any:
    """Return a field of gt4py.next over the memory of any array. Never copies the array.

    Its ranges are ``(-origin, extent - origin)``. It holds a reference to the memory, and writes go
    there. If the array is read-only, the field cannot be assigned to, and compiled backends refuse
    it, even as an input: GT4Py asks for writable memory. A bound stencil takes such an input.

    Memory of a GPU becomes a CuPyArrayField, any other a NumPyArrayField. Of a pair it is the
    buffer of the GPU, brought up to date as by ``to_cupy()``; call ``set_device_modified()`` after
    writing through the field. ``as_storage(pair, device="cpu")`` gives the
    buffer of the host.

    Parameters
    ----------
    data
        A storage, or anything that `dlfield.as_storage` takes.
    dims
        ``gtx.Dimension`` by name, for each name that the array has; or one for each axis, in order.
        By default those of `domain`, by name, or in order if the array has no names. Without a
        domain they are made of the array's names: "K", "KHalf" and their staggered
        counterparts vertical, all others horizontal. Dimensions are equal if both name and kind
        are, so give your own if that does not fit. The axes of the field are in GT4Py's order
        (horizontal, local, vertical, by name within a kind, a staggered one as its counterpart),
        whatever order the array has them in.
    origin
        Index, in points, of the element that gets the index 0 in each dimension, in the order of
        the array's axes, or a dict by dimension. Below 0 for a field that begins above 0. By
        default the storage's default origin, else its lower halo.
    domain
        The ranges themselves, in place of an origin: a ``gtx.Domain``, or anything that
        ``gtx.domain`` takes, such as ``{IDim: (5, 12)}``.

    Raises
    ------
    TypeError
        For a type that gt4py.next does not have, such as float16, and as `dlfield.as_storage`.
    ValueError
        Where `dims`, `origin` or `domain` do not fit the array, or are needed.
    BufferError
        As `dlfield.as_storage`, and for read-only memory of a GPU.
    DeviceUnavailable
        For memory of a GPU without CuPy.

    Examples
    --------
    >>> import dlfield as dlf
    >>> import gt4py.next as gtx
    >>> import numpy as np
    >>> IDim = gtx.Dimension("IDim")
    >>> print(dlf.as_field(np.zeros(9), dims=[IDim], origin=(2,)).domain)
    Domain(IDim[horizontal]=(-2:7))
    """
    held = data if isinstance(data, Storage) else as_storage(data, managed=None)
    ranges = None if domain is None else _ranges(domain)
    given = _dimensions(held, dims, ranges)
    start = _origin(held, given, origin, ranges)
    in_order = ordered(given)
    if len(set(map(unstaggered, given))) != held.ndim:  # a field may not have both counterparts
        raise ValueError(f"dims: expected a different one for each axis, got {names_of(given)}")
    axes = [given.index(dim) for dim in in_order]
    field_class, array = _array(held)
    array = array.transpose(axes)
    return field_class(domain_of(in_order, array.shape, [start[axis] for axis in axes]), array)


def from_field(field: Any, *, domain: Any = None) -> Storage:
    """Put the memory of a field of gt4py.next into a storage. Never copies.

    The storage holds a reference to the field's array. Its dims are the names of the field's
    dimensions; their kind is lost. `as_field` of the storage has the domain of the field again.

    The halo is what the field has around `domain`. If the index 0 is not the first point inside the
    halo, as in a field that begins above 0, the storage has a default origin, the index of the
    element with the index 0. It is below 0 where the field begins above 0.

    Parameters
    ----------
    field
        Over a NumPy array; over a CuPy array, which gives a GPUStorage; or over a JAX array, of
        which the storage is read-only.
    domain
        The domain of the computation: a ``gtx.Domain``, or anything that ``gtx.domain`` takes,
        such as ``{IDim: (0, 10)}``.
        Dimensions that it leaves out have no halo. Without it the points below the index 0 are the
        lower halo, and there is no upper one, since a field does not know where its domain ends.

    Raises
    ------
    TypeError
        For anything but a field over an array.
    ValueError
        For a field that is broadcast: its ranges are not the extents of its array. For a field that
        ends below 0. For a domain that exceeds the field.
    BufferError, DeviceUnavailable
        As `dlfield.as_storage` for the array, such as CuPy's.

    Examples
    --------
    >>> import dlfield as dlf
    >>> import gt4py.next as gtx
    >>> IDim = gtx.Dimension("IDim")
    >>> field = gtx.zeros({IDim: (-2, 7)})
    >>> dlf.from_field(field, domain={IDim: (0, 5)}).halo
    ((2, 2),)
    """
    if not internals.is_field(field):
        raise TypeError(
            "from_field: expected a field of gt4py.next over an array, got an object of type "
            f"'{type(field).__name__}'; assign it to a gtx.empty, or call as_storage for an array"
        )
    ranges = _checked(field)
    halo = _halo(ranges, None if domain is None else _ranges(domain))
    names = names_of(ranges)
    labels: StorageOptions = {"dims": names, "halo": halo, "managed": None}
    if any(low != -start for (low, _), (start, _) in zip(halo, ranges.values(), strict=True)):
        first = dict(zip(names, (-start for start, _ in ranges.values()), strict=True))
        labels["default_origin"] = [first[name] for name in in_origin_order(names)]
    return as_storage(field.ndarray, **labels)


def _checked(field: Any) -> dict[Any, tuple[int, int]]:
    """Return the ranges of a field that are the extents of its array."""
    ranges = [(one.start, one.stop) for one in field.domain.ranges]
    extents = tuple(stop - start if isinstance(stop, int) else None for start, stop in ranges)
    if extents != tuple(field.ndarray.shape):
        raise ValueError(
            f"from_field: expected ranges that are the extents {tuple(field.ndarray.shape)} of the "
            f"array, got {field.domain}; assign it to a field of gtx.empty"
        )
    if any(stop < 0 for _, stop in ranges):
        expected = "expected a field that ends at 0 or above in each dimension"
        way_out = "call as_storage for its array, and give as_field the domain"
        raise ValueError(f"from_field: {expected}, got {field.domain}; {way_out}")
    return dict(zip(field.domain.dims, ranges, strict=True))


def _halo(
    ranges: Mapping[Any, tuple[int, int]], domain: Mapping[Any, tuple[int, int]] | None
) -> list[tuple[int, int]]:
    """Points below and above the domain, by default below 0."""
    if domain is None:
        return [(max(0, -start), 0) for start, _ in ranges.values()]
    inner = {dim: domain.get(dim, whole) for dim, whole in ranges.items()}
    halo = [(inner[dim][0] - start, stop - inner[dim][1]) for dim, (start, stop) in ranges.items()]
    if not domain.keys() <= ranges.keys() or any(min(widths) < 0 for widths in halo):
        expected = f"expected a part of the field, which has {_shown(ranges)}"
        raise ValueError(f"domain: {expected}, got {_shown(domain)}")
    return halo


def _ranges(domain: Any) -> dict[Any, tuple[int, int]]:
    """Read a domain: first index and end by dimension."""
    import gt4py.next as gtx

    try:
        place = gtx.domain(domain)
        finite = gtx.Domain.is_finite(place)
    except (AssertionError, AttributeError, TypeError, ValueError) as reason:
        expected = "expected a gtx.Domain, or ranges by gtx.Dimension such as {IDim: (5, 12)}"
        raise ValueError(f"domain: {expected}, got {domain!r}") from reason
    if not finite:
        raise ValueError(f"domain: expected ranges with a first point and an end, got {place}")
    return {one.dim: (int(one.unit_range.start), int(one.unit_range.stop)) for one in place}


def _shown(ranges: Mapping[Any, tuple[int, int]]) -> str:
    return ", ".join(f"{dim.value}=({start}:{stop})" for dim, (start, stop) in ranges.items())


def _array(held: Storage) -> tuple[Any, Any]:
    """Class of the fields for the memory of a storage, and its array there."""
    if is_on_host_alone(held):
        return internals.field_class(gpu=False), _typed(held.to_numpy())
    try:
        return internals.field_class(gpu=True), _typed(held.to_cupy())
    except (DeviceUnavailable, ImportError) as reason:
        raise DeviceUnavailable(
            "as_field: needs CuPy, in whose arrays gt4py.next has memory of a GPU; "
            'install cupy, or copy with dlfield.storage(data, device="cpu")'
        ) from reason


def _typed(array: Array) -> Any:
    """`array`, where gt4py.next has its type: it names them as NumPy does, in capitals."""
    kinds = internals.scalar_types()
    if array.dtype.name not in kinds:
        expected, got = ", ".join(kinds), array.dtype.name
        raise TypeError(f"as_field: expected one of {expected}, got {got}; convert the array")
    return array


def _dimensions(
    held: Storage, dims: Mapping[str, Any] | Sequence[Any] | None, domain: Mapping[Any, Any] | None
) -> list[Any]:
    """One Dimension for each axis of the storage."""
    if dims is None and domain is not None:
        dims = list(domain) if held.dims is None else {dim.value: dim for dim in domain}
    if dims is None or isinstance(dims, Mapping):
        if held.dims is None and held.ndim:
            raise ValueError(
                "dims: needs a gtx.Dimension for each axis, as the array has no names; "
                "give dims=(IDim, ...)"
            )
        found = [_dimension(name, dims) for name in held.dims or ()]
    elif isinstance(dims, Sequence):
        found = list(dims)
    else:
        raise TypeError(f"dims: expected a gtx.Dimension for each axis, got {dims!r}")
    if len(found) != held.ndim:
        raise ValueError(f"dims: expected {held.ndim}, one for each axis, got {len(found)}")
    if any(not internals.is_dimension(dim) for dim in found):
        raise TypeError(f"dims: expected a gtx.Dimension for each axis, got {dims!r}")
    names = tuple(dim.value for dim in found)
    if held.dims not in (None, names) and sorted(held.dims or ()) == sorted(names):
        raise ValueError(
            f"dims: expected the order {held.dims}, as the array says, got {names}; transpose the "
            "array, or give a dict by name"
        )
    return found


def _dimension(name: str, dims: Mapping[str, Any] | None) -> Any:
    from gt4py.next import Dimension, DimensionKind

    if dims is None:
        vertical = unstaggered(Dimension(name)).value in _VERTICAL
        return Dimension(name, DimensionKind.VERTICAL if vertical else DimensionKind.HORIZONTAL)
    if name not in dims:
        raise ValueError(f"dims: expected a gtx.Dimension for '{name}', got {list(dims)}")
    return dims[name]


def _origin(
    held: Storage,
    dims: Sequence[Any],
    origin: Mapping[Any, int] | Sequence[int] | None,
    domain: Mapping[Any, tuple[int, int]] | None,
) -> list[int]:
    """Index of the element with the index 0, by axis."""
    if domain is not None:
        if origin is not None:
            raise ValueError("domain: expected no origin= beside it, got both; give one of them")
        extents = {dim: stop - start for dim, (start, stop) in domain.items()}
        if extents != dict(zip(dims, held.shape, strict=True)):
            expected = f"expected ranges of the extents {held.shape} along"
            names = tuple(dim.value for dim in dims)
            raise ValueError(f"domain: {expected} {names}, got {_shown(domain)}")
        return [-domain[dim][0] for dim in dims]
    if origin is None:
        return _own_origin(held)
    if isinstance(origin, Mapping):
        named = {getattr(dim, "value", dim): at for dim, at in origin.items()}
        if named.keys() != {dim.value for dim in dims}:
            along = tuple(dim.value for dim in dims)
            raise ValueError(f"origin: expected a number along {along}, got {origin!r}")
        origin = [named[dim.value] for dim in dims]
    if not hasattr(origin, "__len__") or len(origin) != held.ndim:
        raise ValueError(f"origin: expected {held.ndim} numbers, got {origin!r}")
    return [operator.index(at) for at in origin]


def _own_origin(held: Storage) -> list[int]:
    """Return the default origin in the order of the axes, else the lower halo."""
    origin = getattr(held, "default_origin", None)
    if origin is not None:
        if held.dims is None:
            return list(origin)
        by_name = dict(zip(in_origin_order(held.dims), origin, strict=True))
        return [by_name[name] for name in held.dims]
    if held.halo is None:
        raise ValueError("origin: expected one, got a storage of unknown halo; give origin=")
    return [low for low, _ in held.halo]
