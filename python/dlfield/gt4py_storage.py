"""The functions of `gt4py.storage`, with the same arguments, that give storages.

A model migrates by one line: ``from dlfield import gt4py_storage as storage`` in place of
``from gt4py import storage``.

Backends have the layouts and alignments that GT4Py has for them, and `dlfield.register_preset` adds
others. `dimensions` name the dimensions of the storage, which GT4Py forgets; storages that are made
without have no names, and compute by position. A GPU backend gives a storage with a buffer on each
side, where GT4Py gives a CuPy array.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from dlfield._core import Array, Storage

__all__ = ["empty", "from_array", "full", "ones", "zeros"]


def empty(
    shape: Sequence[int],
    dtype: npt.DTypeLike = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> Storage:
    """Allocate a storage whose values are not set.

    Parameters
    ----------
    shape : sequence of int
        Extent of each dimension.
    dtype : dtype, optional
        Type of the elements. A pair of a type and a shape, such as ``(np.float64, (2,))``, adds
        data dimensions.
    backend : str
        GT4Py's name of a backend, or that of a preset: it decides layout, alignment and device.
    aligned_index : sequence of int, optional
        The element that lies on a boundary of the alignment; by default the first. An index
        beyond an extent counts as that of the last element.
    dimensions : sequence of str or of axes of gtscript, optional
        Names of the dimensions: I, J, K, and decimals for data dimensions.

    Returns
    -------
    CPUStorage, or SoftwareManagedGPUStorage for a backend of GPUs
        Its memory is freed when the last storage, view and export of it is gone.

    Raises
    ------
    RuntimeError
        For a backend without a preset.
    ValueError, TypeError
        For other options that do not fit, as `dlfield.empty`.

    Examples
    --------
    >>> from dlfield import gt4py_storage
    >>> field = gt4py_storage.empty((4, 3, 5), backend="gt:cpu_ifirst", dimensions="IJK")
    >>> field.dims, field.layout
    (('I', 'J', 'K'), (2, 1, 0))
    """
    shape, dtype, options = _options(shape, dtype, backend, aligned_index, dimensions)
    return _core.empty(shape, dtype, **options)


def zeros(
    shape: Sequence[int],
    dtype: npt.DTypeLike = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> Storage:
    """Allocate a storage of zeros. Parameters, result and errors are those of `empty`.

    Examples
    --------
    >>> from dlfield import gt4py_storage
    >>> gt4py_storage.zeros((4, 3, 5), backend="numpy").sum()
    np.float64(0.0)
    """
    shape, dtype, options = _options(shape, dtype, backend, aligned_index, dimensions)
    return _core.zeros(shape, dtype, **options)


def ones(
    shape: Sequence[int],
    dtype: npt.DTypeLike = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> Storage:
    """Allocate a storage of ones. Parameters, result and errors are those of `empty`.

    Examples
    --------
    >>> from dlfield import gt4py_storage
    >>> gt4py_storage.ones((4, 3, 5), "float32", backend="numpy").sum()
    np.float32(60.0)
    """
    shape, dtype, options = _options(shape, dtype, backend, aligned_index, dimensions)
    return _core.ones(shape, dtype, **options)


def full(
    shape: Sequence[int],
    fill_value: Any,  # a number
    dtype: npt.DTypeLike = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> Storage:
    """Allocate a storage of one value. The other parameters, result and errors as of `empty`.

    Examples
    --------
    >>> from dlfield import gt4py_storage
    >>> gt4py_storage.full((4, 3, 5), 2.0, backend="numpy").sum()
    np.float64(120.0)
    """
    shape, dtype, options = _options(shape, dtype, backend, aligned_index, dimensions)
    return _core.full(shape, dtype.type(fill_value), dtype, **options)


def from_array(
    data: Array,
    dtype: npt.DTypeLike | None = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[int] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> Storage:
    """Copy an array of any framework into a new storage.

    Parameters
    ----------
    data
        What `dlfield.storage` takes. Its names and halo stay, unless `dimensions` gives others.
    dtype : dtype, optional
        Type of the elements, to which values are converted; None for that of the array. A pair of a
        type and a shape, such as ``(np.float64, (2,))``, for an array with these data dimensions.
    backend, aligned_index, dimensions
        As of `empty`.

    Returns
    -------
    CPUStorage, or SoftwareManagedGPUStorage for a backend of GPUs

    Raises
    ------
    RuntimeError
        For a backend without a preset.
    ValueError
        If the array does not end with the data dimensions, and as `empty`.
    TypeError
        As `dlfield.storage`.

    Examples
    --------
    >>> import numpy as np
    >>> from dlfield import gt4py_storage
    >>> field = gt4py_storage.from_array(np.ones((4, 3, 5)), backend="gt:cpu_ifirst")
    >>> field.layout
    (2, 1, 0)
    """
    source = data if hasattr(data, "shape") else np.asarray(data)
    wanted = None if dtype is None else np.dtype(dtype)
    extents, data_dims = tuple(source.shape), () if wanted is None else wanted.shape
    if data_dims and extents[-len(data_dims) :] != data_dims:
        raise ValueError(
            f"data: expected a shape that ends with {data_dims}, the data dimensions of its dtype, "
            f"got {extents}"
        )
    outer = extents[: len(extents) - len(data_dims)]
    kind = np.float64 if wanted is None else wanted
    _, base, options = _options(outer, kind, backend, aligned_index, dimensions)
    return _core.storage(source, dtype=None if wanted is None else base, **options)


def _options(
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    backend: str,
    aligned_index: Sequence[int] | None,
    dimensions: Sequence[Any] | None,
) -> tuple[tuple[int, ...], np.dtype[Any], dict[str, Any]]:
    """Return shape, dtype of an element, and the options for an allocation."""
    try:
        _core.preset(backend)
    except ValueError as error:
        raise RuntimeError(f"backend: {error}") from error
    dtype, shape = np.dtype(dtype), tuple(shape) if np.iterable(shape) else (shape,)
    options: dict[str, Any] = {"backend": backend}
    if aligned_index is not None:
        # GT4Py takes an index beyond the last, as that of a halo which a single column lacks.
        most = (max(extent - 1, 0) for extent in shape)
        if len(aligned_index) == len(shape):
            aligned_index = tuple(map(min, aligned_index, most))
        options["aligned_index"] = (*aligned_index, *(0 for _ in dtype.shape))
    if dimensions is not None:
        options["dims"] = _names(dimensions, shape, dtype)
    elif dtype.shape:  # behind I, J and K, of which the shape may lack some
        names = _names([*"IJK"[: len(shape)], *map(str, range(len(shape) - 3))], shape, dtype)
        order = _core.empty((0,) * len(names), dims=names, backend=backend).layout
        options |= {"backend": None, "defaults": backend, "layout": order}
    return (*shape, *dtype.shape), dtype.base, options


def _names(
    dimensions: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[str, ...]:
    """Name all dimensions: those that are given, and behind them those of the dtype."""
    names = [getattr(axis, "__gt_axis_name__", axis) for axis in dimensions]
    if len(names) != len(shape):
        raise ValueError(
            f"dimensions: expected {len(shape)} names for shape {shape}, got {tuple(names)}"
        )
    numbers = itertools.count(sum(str(name).isdigit() for name in names))
    return (*names, *(str(next(numbers)) for _ in dtype.shape))
