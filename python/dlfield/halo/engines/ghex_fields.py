"""Describes storages to GHEX, which exchanges the halos of such field descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield.functions.host import is_on_host_alone

if TYPE_CHECKING:
    import numpy.typing as npt

    from dlfield._core import CPUStorage, Storage

__all__ = ["ghex_field", "problem_of", "with_distinct_strides"]

#: Size of an item in bytes, and the dtype of that size by which GHEX moves it.
_MOVED = {1: np.bool_, 4: np.int32, 8: np.int64}


def ghex_field(storage: CPUStorage, domain: Any) -> Any:  # of GHEX
    """Describe a storage to GHEX as a field of a domain of a regular grid. Copies nothing.

    Parameters
    ----------
    storage
        In host memory, with a halo; its axes are those of the domain. GHEX moves items of 1, 4 and
        8 bytes.
    domain
        A `ghex.structured.regular.DomainDescriptor`.

    Returns
    -------
    field descriptor
        For GHEX's patterns. It keeps the memory.

    Raises
    ------
    ModuleNotFoundError
        Without GHEX.
    ValueError
        For a storage that is read-only, has an unknown halo, items of another size, or strides that
        are not positive.
    TypeError
        For another object than a storage in host memory.

    Examples
    --------
    >>> described = dlfield.ghex_field(storage, domain)  # doctest: +SKIP
    >>> exchange = communication_object.exchange([pattern(described)])  # doctest: +SKIP
    """
    from ghex.structured.regular import make_field_descriptor
    from ghex.util import Architecture

    if not is_on_host_alone(storage):
        raise TypeError(
            f"storage: expected one in host memory alone, got {type(storage).__name__}; give a copy"
        )
    if (problem := problem_of(storage)) is not None:
        raise ValueError(f"storage: {problem}")
    if storage.halo is None:
        raise ValueError("storage: expected a known halo, got a view whose halo is unknown")
    offsets = tuple(low for low, _ in storage.halo)
    array = with_distinct_strides(storage.to_numpy())
    return make_field_descriptor(domain, array, offsets, array.shape, arch=Architecture.CPU)


def problem_of(storage: Storage) -> str | None:
    """Say why GHEX cannot read a storage in host memory."""
    if storage.readonly:
        return "expected one that can be written, got a read-only one; exchange a copy()"
    if storage.itemsize not in _MOVED:
        sizes = ", ".join(map(str, _MOVED))
        got = f"{storage.dtype}; use the engine 'packed'"
        return f"expected items of {sizes} bytes for GHEX, got {got}"
    axes = zip(storage.strides, storage.shape, strict=True)
    if any(step <= 0 and extent > 1 for step, extent in axes):
        return (
            f"expected steps forwards for GHEX, got strides of {storage.strides} bytes; exchange a "
            "copy()"
        )
    return None


def with_distinct_strides(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """View an array as a dtype that GHEX moves, with a different stride for each axis.

    GHEX orders axes by stride, and the stride of an axis of one point is arbitrary: it gets a large
    one.
    """
    moved: npt.NDArray[Any] = array.view(_MOVED[array.itemsize])
    strides, far = list(moved.strides), max(moved.nbytes, *moved.strides)
    for axis, extent in enumerate(moved.shape):
        if extent == 1:
            far *= 2
            strides[axis] = far
    return np.lib.stride_tricks.as_strided(moved, strides=strides)
