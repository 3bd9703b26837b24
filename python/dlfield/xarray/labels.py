"""Storages as ``xarray.DataArray`` and back; labels that xarray lacks become attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlfield._core import UNSET, Storage, as_storage
from dlfield.functions.axes import in_origin_order
from dlfield.functions.host import is_on_host_alone

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from typing import Unpack

    from dlfield._core import Array, StorageOptions

__all__ = ["from_xarray", "to_xarray"]


def to_xarray(
    self: Storage,
    coords: Any = None,  # what xarray takes
    name: Hashable | None = None,
    attrs: Mapping[Any, Any] | None = None,
) -> Any:  # xarray is not imported for its types
    """Return an ``xarray.DataArray`` over the memory, with the dims of the storage. Copies nothing.

    Parameters
    ----------
    coords, name
        As for ``xarray.DataArray``.
    attrs
        More attributes. A storage with a halo or a default origin also gets those that
        `from_xarray` reads: ``halo_<dim>`` (points below and above), ``extent_<dim>`` and
        ``origin_<dim>``, or ``halo_unknown``. Nothing else in dlfield reads them, since xarray
        keeps them unchanged in a part of the array.

    Returns
    -------
    xarray.DataArray
        Over host memory it holds the NumPy array of `to_numpy()`, so that all of xarray works. With
        a buffer on a GPU it holds the storage itself, so that each side stays up to date and CuPy
        computes on the GPU; a NumPy array would show the host buffer as it is at the moment.
        ``xarray.DataArray(storage, dims=storage.dims)`` holds the storage in any memory.

    Raises
    ------
    ValueError
        For a storage without dims.
    ImportError
        Without xarray.
    """
    if self.dims is None:
        raise ValueError(
            f"to_xarray: expected a storage with dims, got one of shape {self.shape} without; name "
            "them with dlfield.as_storage(storage, dims=...), or use xarray.DataArray(storage)"
        )
    try:
        from xarray import DataArray
    except ImportError as error:
        raise ImportError("to_xarray: needs xarray; pip install xarray") from error
    data = self.to_numpy() if is_on_host_alone(self) else self
    own = {**_attributes(self, self.dims), **(attrs or {})}
    return DataArray(data, coords=coords, dims=self.dims, name=name, attrs=own)


def from_xarray(array: Array, **options: Unpack[StorageOptions]) -> Storage:
    """Put the memory of a DataArray into a storage, with the labels that `to_xarray` wrote.

    Never copies. Finds the labels after a transposition, and in a file that was read back. A
    DataArray around a storage has the labels of the storage.

    Parameters
    ----------
    array
        An ``xarray.DataArray``.
    **options
        As for `as_storage`. They override the labels in the attributes.

    Returns
    -------
    CPUStorage, GPUStorage, SoftwareManagedGPUStorage or CUDAManagedGPUStorage
        As of `as_storage`. If an extent differs from the written one, the array is a part: the halo
        is unknown, and there is no default origin. A part that is as large as the whole, such as
        one that is reversed or rolled, cannot be noticed.

    Raises
    ------
    TypeError, BufferError, ValueError, DeviceUnavailable
        As `as_storage`. ValueError also for written labels that do not fit.

    Examples
    --------
    >>> import dlfield as dlf
    >>> t = dlf.zeros((6, 5), dims=("lat", "lon"), halo=(1, 1))
    >>> array = t.to_xarray()
    >>> back = dlf.from_xarray(array.transpose("lon", "lat"))
    >>> back.dims, back.halo
    (('lon', 'lat'), ((1, 1), (1, 1)))
    """
    if isinstance(array, Storage) or not hasattr(array, "variable"):
        raise TypeError(
            f"from_xarray: expected an xarray.DataArray, got an object of type "
            f"'{type(array).__name__}'; {_way_out(array)}"
        )
    dims, attrs = tuple(map(str, array.dims)), array.attrs
    if isinstance(array.variable.data, Storage):
        return as_storage(array, **options)
    shape = dict(zip(dims, array.shape, strict=True))
    written_for = {key.removeprefix("extent_") for key in attrs if str(key).startswith("extent_")}
    # Also true if a dimension is gone; then each of the others has an extent of its own.
    is_renamed = not written_for <= set(dims)
    same = all(
        _number(f"extent_{dim}", attrs.get(f"extent_{dim}", -1 if is_renamed else extent)) == extent
        for dim, extent in shape.items()
    )
    labels: StorageOptions = {}
    flag = attrs.get("halo_unknown", 0)  # a pair is the halo of a dimension of that name
    is_unknown = bool(not hasattr(flag, "__len__") and flag)
    written = {
        dim: _pair(dim, attrs[f"halo_{dim}"])
        for dim in dims
        if f"halo_{dim}" in attrs and not (is_unknown and dim == "unknown")
    }
    has_origin = all(f"origin_{dim}" in attrs for dim in dims)
    if same:
        labels["halo"] = written
        if has_origin:
            in_order = in_origin_order(dims)
            labels["default_origin"] = [
                _number(f"origin_{dim}", attrs[f"origin_{dim}"]) for dim in in_order
            ]
    every: StorageOptions = {**labels, **options}
    storage = as_storage(array, **every)
    # xarray drops attributes in which operands differ. A file may have an origin alone.
    is_dropped = written.keys() < written_for & {*dims} and (bool(written) or not has_origin)
    lost = not same or is_unknown or is_dropped
    halo = options.get("halo")
    if lost and (halo is None or halo is UNSET):
        storage.halo = None
    return storage


def _attributes(storage: Storage, dims: tuple[str, ...]) -> dict[str, Any]:
    """Write the labels of a storage that xarray does not know."""
    halo, origin = storage.halo, getattr(storage, "default_origin", None)
    written: dict[str, Any] = {}
    if halo is None:
        written["halo_unknown"] = 1  # netCDF has no bools
    elif any(map(any, halo)) or origin is not None:
        written = {f"halo_{dim}": width for dim, width in zip(dims, halo, strict=True)}
    if origin is not None:
        in_order = in_origin_order(dims)
        written |= {f"origin_{dim}": at for dim, at in zip(in_order, origin, strict=True)}
    if written:
        written |= {f"extent_{dim}": size for dim, size in zip(dims, storage.shape, strict=True)}
    return written


def _way_out(array: Array) -> str:
    """Tell what to call for something else than a DataArray."""
    if not hasattr(array, "data_vars"):
        return "use as_storage(...)"
    name = next(iter(array.data_vars), "...")
    return f"pass one of its variables, for example x[{name!r}]"


def _pair(dim: str, widths: Any) -> tuple[int, int]:
    """Read widths of a halo: a file may have made a list or an array of them."""
    name = f"halo_{dim}"
    if not hasattr(widths, "__len__") or len(widths) != 2:
        raise _wrong(name, "two widths", widths)
    low, high = widths
    return _number(name, low), _number(name, high)


def _number(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(name, "an int", value) from None


def _wrong(name: str, expected: str, value: Any) -> ValueError:
    way_out = "correct or delete it, or pass halo= to as_storage(...)"
    return ValueError(
        f"from_xarray: expected {expected} in the attribute '{name}', got {value!r}; {way_out}"
    )
