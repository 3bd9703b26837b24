"""What an array's axes are called, and its GPU memory as a CuPy array."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from dlfield._core import GTNoSuchBufferError, dims_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["as_cupy", "get_dims"]


def get_dims(
    storage: Any,  # noqa: ANN401 - any array
    annotation: Any = None,  # noqa: ANN401 - GT4Py's Field has no public type
) -> tuple[str, ...] | None:
    """Give the names of an array's axes, else those that a stencil assumes.

    Parameters
    ----------
    storage
        A storage, a DataArray, or an object with ``__gt_dims__`` (attribute or method) or
        ``__gt_data_interface__``. Its memory is not touched.
    annotation
        What counts where the array has no names: a ``gtscript.Field[...]``, whose data dimensions
        are called "0", "1", ..., or a sequence of names.

    Returns
    -------
    tuple of str or None
        In the order of the axes. None where nobody knows.

    Raises
    ------
    TypeError
        Where the names are no texts.
    ValueError
        Where the annotation has another number of names than the array has axes.

    Notes
    -----
    Storage allocation note, "Dimension Mapping".
    """
    own: tuple[str, ...] | None = dims_of(storage)
    if own is not None or annotation is None:
        return own
    names = _names(annotation)
    ndim = getattr(storage, "ndim", len(names))
    if ndim != len(names):
        raise ValueError(f"get_dims: expected an array with the axes {names}, got {ndim} axes")
    return names


def _names(annotation: Any) -> tuple[str, ...]:  # noqa: ANN401
    axes = getattr(annotation, "axes", None)
    if axes is None:
        return _texts(annotation)
    data_dims = range(len(getattr(annotation, "data_dims", ())))
    return (*(str(axis) for axis in axes), *(str(number) for number in data_dims))


def _texts(names: Sequence[str]) -> tuple[str, ...]:
    unordered = isinstance(names, type | Mapping | AbstractSet)
    texts = () if unordered else tuple(names)
    if unordered or not all(isinstance(name, str) for name in texts):
        raise TypeError(f"annotation: expected gtscript.Field[...] or names, got {names!r}")
    return texts


def as_cupy(data: Any) -> Any:  # noqa: ANN401 - CuPy has no types
    """Give a CuPy array over the memory of any array on a GPU. Never copies.

    Parameters
    ----------
    data
        A CuPy array, or an object with ``__gt_data_interface__`` that has a "gpu" buffer, with
        ``__cuda_array_interface__``, or with ``__dlpack__`` on a CUDA or ROCm device.

    Returns
    -------
    cupy.ndarray
        `data` itself where it is one; else an array that keeps `data` alive.

    Raises
    ------
    ImportError
        Without CuPy.
    GTNoSuchBufferError
        Where `data` has no memory on a GPU. Copying is left to ``cupy.asarray``.

    Notes
    -----
    Storage allocation note, "Supported Buffer Interfaces".
    """
    cupy = _import_cupy()
    if isinstance(data, cupy.ndarray):
        return data
    interface = _gpu_interface(data)
    if interface is not None:
        return cupy.asarray(_Described(data, interface))
    if getattr(data, "__cuda_array_interface__", None) is not None:
        return cupy.asarray(data)
    if hasattr(data, "__dlpack_device__") and data.__dlpack_device__()[0] in _GPU_CODES:
        return cupy.from_dlpack(data)
    raise GTNoSuchBufferError(
        f"as_cupy: expected memory on a GPU, got {type(data).__name__} without any; "
        "copy it there with cupy.asarray(dlfield.as_numpy(...))"
    )


#: DLPack's device types whose memory CuPy takes: CUDA, ROCm, CUDA managed.
_GPU_CODES = (2, 10, 13)


def _import_cupy() -> Any:  # noqa: ANN401
    try:
        import cupy  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        text = "as_cupy: expected CuPy to be installed, got none; pip install cupy-cuda12x"
        raise ImportError(text) from error
    return cupy


def _gpu_interface(data: Any) -> Any:  # noqa: ANN401
    """Return what GT4Py's data interface says of the first GPU."""
    devices = getattr(data, "__gt_data_interface__", getattr(data, "__gt_interface__", None))
    for device, entry in (devices or {}).items():
        if device == "gpu" or (isinstance(device, tuple) and device[:1] == ("gpu",)):
            return entry() if callable(entry) else entry
    return None


class _Described:
    """Says what an object says of its GPU buffer, and keeps the object.

    CuPy keeps this as the owner of the memory: acquired now, released with the last array.
    """

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {"version": 3, **interface}
        acquire, release = interface.get("acquire"), interface.get("release")
        if acquire is not None:
            acquire()
        if release is not None:
            weakref.finalize(self, release)
