"""Methods of storages that are written in Python.

They import what they need when they are called.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from dlfield._core import check_among
from dlfield.storages.absent import is_absent
from dlfield.xarray import to_xarray

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    import numpy.typing as npt

    from dlfield._core import Array, Storage
    from dlfield.show.drawing import LayoutDrawing
    from dlfield.storages.flags import Flags
else:
    Storage = object

__all__ = ["install_on"]


def _by_name(what: str, mapping: Mapping[str, Any] | None, named: dict[str, Any]) -> dict[str, Any]:
    """Return what is given by name, in a mapping or as keywords."""
    if mapping and named:
        raise ValueError(
            f"{what}: expected a mapping or keywords, got {dict(mapping)} and {named}; "
            "write all of them in the one or the other way"
        )
    return {**(mapping or {}), **named}


class _Methods(Storage):
    """What `install_on` gives to the class of storages."""

    to_xarray = to_xarray

    @property
    def flags(self) -> Flags:
        """Facts about the memory, as `numpy.ndarray.flags`; read-only."""
        from dlfield.storages.flags import Flags

        c, f, writeable, aligned, owndata = self._flags()
        return Flags(c, f, owndata, writeable, aligned)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dimension."""
        return (self[index] for index in range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        return (self[index] for index in reversed(range(len(self))))

    def to_quantity(self, units: str, *, backend: Any) -> Any:  # of NDSL
        """Return an NDSL ``Quantity`` over the memory of this storage. Copies nothing.

        Its origin and extent are those of the domain, and its halo is the storage's. I, J and K
        have NDSL's names; other dims keep theirs.

        Parameters
        ----------
        units
            Units of the values.
        backend
            An ``ndsl.Backend``, or its name, such as "st:gt:cpu:KJI".

        Returns
        -------
        ndsl.Quantity
            It holds the NumPy array of `to_numpy()`, or the CuPy array of `to_cupy()` of a
            storage in memory of a GPU alone.

        Raises
        ------
        ValueError
            For a storage without dims, with an unknown halo, or in a layout or on a device that
            is not the backend's: NDSL would copy.
        ImportError
            Without NDSL.
        """
        from dlfield.xarray.quantity import to_quantity

        return to_quantity(self, units, backend=backend)

    def plot_layout(self, size: int = 240) -> LayoutDrawing:
        """Draw how the storage lies in memory: extents, halo, order, padding, alignment, buffers.

        Parameters
        ----------
        size
            The longer side of the face that is drawn, in pixels.

        Returns
        -------
        LayoutDrawing
            A notebook shows it. `save(path)` writes it as SVG, which is in `svg`. No element is
            read.
        """
        from dlfield.show.drawing import LayoutDrawing

        return LayoutDrawing(self, size)

    def _repr_html_(self) -> str:
        """Show the storage in a notebook."""
        from dlfield.show.html import render

        return render(self)

    def astype(
        self,
        dtype: npt.DTypeLike,
        order: str | None = "K",
        casting: str = "unsafe",
        subok: object = None,
        copy: bool = True,  # noqa: FBT001, FBT002 - as NumPy
    ) -> Self:
        """Copy with another type into the same names, halo, layout and alignment.

        Converts as NumPy does. With `copy=False`, returns the storage itself if it already has that
        type and order. `subok` is ignored.

        Raises
        ------
        TypeError
            If `casting` forbids it.
        """
        from dlfield.functions.copies import converted

        made: Self = converted(self, dtype, order, casting, subok, copy)  # type: ignore[assignment]
        return made

    def view(self, dtype: npt.DTypeLike | None = None) -> Any:  # see Returns
        """Return another storage over the same memory, or its bytes as another type.

        Parameters
        ----------
        dtype : optional
            A type of NumPy, under the rules of `numpy.ndarray.view`.

        Returns
        -------
        Storage or numpy.ndarray
            Without `dtype`, a storage with the same names and halo, on the same device. With
            `dtype`, a NumPy array over the host buffer, without names and halo, which count
            elements of the storage's own type.

        Raises
        ------
        GTNoSuchBufferError
            For a `dtype` without a buffer on the host.
        """
        return self[...] if dtype is None else self.to_numpy().view(dtype)

    def reshape(
        self,
        *shape: int | Sequence[int],
        order: str = "C",
        copy: bool | None = None,
    ) -> Storage:
        """Return a storage of another shape over the same memory, as `numpy.reshape` does."""
        from dlfield.functions.views import reshape

        extents: Any = shape[0] if len(shape) == 1 else shape
        return reshape(self, extents, order, copy=copy)

    def ravel(self, order: str = "C") -> Storage:
        """Return all elements in one dimension: a view if the memory allows it, else a copy."""
        from dlfield.functions.views import ravel

        return ravel(self, order)

    def flatten(self, order: str = "C") -> Storage:
        """Copy all elements into a storage of one dimension without a name."""
        from dlfield.functions.views import flatten

        return flatten(self, order)

    def fill(self, value: Any) -> None:  # a number
        """Write a number into every element, as ``storage[...] = value``."""
        self[...] = value

    def tolist(self) -> Any:  # lists of lists, or a number
        """Copy the values into nested lists of Python numbers."""
        from dlfield.functions.host import values

        return values(self).tolist()

    def rename(self, mapping: Mapping[str, str] | None = None, /, **names: str) -> Self:
        """Return a storage over the same memory with other names; the halo stays with its axis.

        A default origin, which counts in the order of the names, is dropped.

        Parameters
        ----------
        mapping, **names
            New names by old ones, ``rename({"I": "lon"})`` or ``rename(I="lon")`` as in xarray.
            Names that are left out stay.

        Raises
        ------
        ValueError
            For a storage without names, for a name that it does not have, for two equal names, and
            for a mapping beside keywords.
        """
        new = _by_name("rename", mapping, names)
        if self.dims is None:
            raise ValueError(
                f"rename: expected a storage with dims, got one of shape {self.shape} without; "
                "name them with dlfield.as_storage(storage, dims=...)"
            )
        check_among("rename", new, self.dims)
        dims = [new.get(name, name) for name in self.dims]
        return self[...] if tuple(dims) == self.dims else self._with_dims(dims)

    def isel(self, indexers: Mapping[str, Any] | None = None, /, **named: Any) -> Self:
        """Return the view at integers and slices by name, as `isel` of xarray.

        ``storage.isel(K=0)``, ``storage.isel({"K": 0, "I": slice(1, 3)})``. An integer drops its
        dimension; those that are not named stay whole. Shares memory, and keeps what is left of the
        halo.

        Raises
        ------
        ValueError
            For a storage without names, for a name that it does not have, and for a mapping beside
            keywords.
        TypeError
            For lists and masks, which are no views: `numpy.take` has an axis by name.
        """
        from dlfield.storages.by_name import isel

        view: Self = isel(self, _by_name("isel", indexers, named))  # type: ignore[assignment]
        return view

    def broadcast_like(self, other: Any) -> Storage:
        """Return a read-only view, repeated along the dims of `other` that the storage lacks.

        It has the dims of `other` in their order, then those that `other` lacks, as
        `broadcast_like` of xarray. A repeated dimension has no halo.

        Parameters
        ----------
        other
            A storage, a DataArray, or any other array with dims.

        Raises
        ------
        ValueError
            If one of the two has no names, or if an extent differs.
        TypeError
            For a storage with a buffer on a GPU.
        """
        from dlfield.storages.by_name import broadcast_like

        return broadcast_like(self, other)

    def __dir__(self) -> list[str]:
        kind = type(self)
        return [name for name in object.__dir__(self) if not is_absent(kind, name)]

    @property
    def variable(self) -> Any:  # an xarray.Variable
        """Return an `xarray.Variable` around the storage, with which a DataArray computes by name.

        Without dims, the NumPy array, which goes by position. Absent without xarray, and for a
        storage without dims that has a buffer on a GPU.
        """
        if self.dims is None:
            from dlfield.functions.host import is_on_host_alone

            if is_on_host_alone(self):
                return self.to_numpy()
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute 'variable'; use "
                "dlfield.as_storage(storage, dims=...), which names its dims"
            )
        try:
            import xarray as xr
        except ImportError as error:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute 'variable'; use xarray, "
                "which is not installed"
            ) from error
        return xr.Variable(self.dims, self)

    @property
    def real(self) -> Storage:
        """Return the real part: the storage itself if real, else a view, or a copy on a GPU."""
        return _part(self, "real")

    @property
    def imag(self) -> Storage:
        """Return the imaginary part: a view, or a copy on a GPU; zeros if the storage is real."""
        return _part(self, "imag")

    def conj(self) -> Storage:
        """Return complex conjugates, as `numpy.conjugate` does."""
        import numpy as np

        made: Storage = np.conjugate(self)
        return made

    conjugate = conj

    def argsort(self, axis: Any = -1, kind: Any = None, order: Any = None) -> Storage:
        """Return the indices that sort along an axis, as `numpy.argsort` does."""
        import numpy as np

        argsort: Any = np.argsort
        made: Storage = argsort(self, axis, kind, order)
        return made

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Return the indices at which to insert values into this sorted storage, as NumPy does."""
        import numpy as np

        searchsorted: Any = np.searchsorted
        return searchsorted(self, v, side, sorter)

    def round(self, decimals: int | None = None, out: Array = None) -> Any:
        """Round to a number of decimals, as NumPy does."""
        from dlfield.functions.ufuncs import rounded

        return rounded(self, decimals or 0, out)

    __round__ = round

    def clip(self, min: Any = None, max: Any = None, out: Array = None) -> Any:
        """Limit the values to a range, as NumPy does."""
        from dlfield.functions.ufuncs import clip

        return clip(self, min, max, out)


def _part(storage: Storage, name: str) -> Storage:
    """Return the real or the imaginary part; an attribute that cannot be computed is absent."""
    from dlfield.functions import ufuncs

    try:
        part: Storage = getattr(ufuncs, name)(storage)
    except ImportError as error:
        raise AttributeError(str(error)) from error
    return part


def install_on(cls: type) -> None:
    """Install the methods on `cls`."""
    for name, method in vars(_Methods).items():
        if isinstance(method, FunctionType):
            method.__qualname__ = f"{cls.__name__}.{name}"
        if isinstance(method, FunctionType | property):
            setattr(cls, name, method)
