"""An array of the program, as Python sees it while a call lasts."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from dlfield._core import Storage, as_storage, first_held

if TYPE_CHECKING:
    from dlfield.fortran.halos import Halo
    from dlfield.fortran.parameters import FieldParameter

__all__ = ["check_not_kept", "storage_over", "which_is_held"]

_TYPESTRS = {
    "float32": "<f4",
    "float64": "<f8",
    "int32": "<i4",
    "int64": "<i8",
    "bool": "|b1",
    "complex64": "<c8",
    "complex128": "<c16",
}


class Memory:
    """Memory of the program at an address. The storage over it and its views hold this object."""

    __slots__ = ("__array_interface__", "__cuda_array_interface__", "__weakref__", "described")

    def __init__(self, interface: dict[str, Any], described: str, device: str) -> None:
        self.described = described
        if device == "gpu":
            self.__cuda_array_interface__ = interface
        else:
            self.__array_interface__ = interface


#: Memory that Python may keep.
_PERSISTENT: WeakSet[Memory] = WeakSet()


def storage_over(what: str, field: FieldParameter, words: tuple[int, ...], device: str) -> Storage:
    """Put an array into a storage; `words` are its address, extents, strides and lower bounds."""
    rank = len(field.dims)
    address, shape, strides = words[0], words[1 : 1 + rank], words[1 + rank : 1 + 2 * rank]
    label = f"argument '{field.name}' of '{what}'"
    if any(extent < 0 for extent in shape):
        raise ValueError(f"{label}: expected extents of 0 or more, got {shape}")
    if address == 0 and 0 not in shape:
        raise ValueError(
            f"{label}: expected the address of {shape} elements, got NULL; is it allocated?"
        )
    interface = {
        "version": 3,
        "typestr": _TYPESTRS[field.kind.name],
        "shape": shape,
        "strides": None if 0 in shape else _strides(shape, strides),
        "data": (address, field.is_read_only),
    }
    memory = Memory(interface, label, device)
    if field.persistent:
        _PERSISTENT.add(memory)
    halo = field.halo
    if field.has_bounds and (halo is None or field.lower_bounds):
        halo = _told(label, halo, _halo(label, words[1 + 2 * rank :]))
    try:
        if device == "gpu":
            return as_storage(device_data=memory, dims=field.dims, halo=halo, managed=None)
        return as_storage(memory, dims=field.dims, halo=halo)
    except Exception as error:
        raise type(error)(f"{label}: {error}") from error


def _strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in bytes; along an extent of 1, for which nothing was measured, as if contiguous."""
    found, dense = [], 0
    for extent, stride in zip(shape, strides, strict=True):
        found.append(stride if extent > 1 else dense or stride)
        dense = abs(found[-1]) * extent
    return tuple(found)


def _told(label: str, declared: Halo | None, told: Halo | None) -> Halo | None:
    """Return the halo that is declared, or else told by lower bounds; refuse two that differ."""
    if declared is None or told is None:
        return told if declared is None else declared
    pairs = tuple(one if isinstance(one, tuple) else (one, one) for one in declared)
    if pairs != told:
        expected = f"lower bounds that tell the halo {pairs}, which is declared"
        raise ValueError(f"{label}: expected {expected}, got {told}; leave one of the two away")
    return declared


def _halo(label: str, lower: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    """Return the halo that lower bounds tell: a domain begins at 1."""
    if _NO_BOUND in lower:
        return None
    if any(bound > 1 for bound in lower):
        raise ValueError(f"{label}: expected lower bounds of at most 1, got {lower}")
    return tuple((1 - bound, 1 - bound) for bound in lower)


#: A lower bound if the caller has passed none.
_NO_BOUND = -(2**63)


def which_is_held(storages: tuple[Storage, ...]) -> int | None:
    """Return the index of the first storage that something else holds; a cycle is collected."""
    held = first_held(storages)
    if held is None:
        return None
    gc.collect()
    return first_held(storages)


def check_not_kept(address: int) -> None:
    """Raise if Python still holds an array at this address that it was allowed to keep."""
    gc.collect()
    for memory in list(_PERSISTENT):
        interface = getattr(memory, "__array_interface__", None) or memory.__cuda_array_interface__
        if interface["data"][0] == address:
            raise ValueError(
                f"dlfield_deallocate: expected an array that Python does not hold, got one that it "
                f"has as {memory.described}; let go of it there, and of all views"
            )
