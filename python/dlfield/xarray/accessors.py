"""Default accessors of ``xarray.DataArray`` for GT4Py (GDP-3).

Importing dlfield gives ``DataArray`` two properties, as soon as xarray is imported, before or
afterwards; dlfield never imports xarray itself. Both are computed at each access, copy nothing and
hold no memory: a pointer is valid as long as the DataArray lives.

One thing changes. A stencil that is not bound reads ``__gt_dims__``. GT4Py then orders the axes of
a DataArray whose dims are all names of GT4Py (I, J, K, decimals), and refuses it if the field has
other dims. Without dlfield, GT4Py ignores the names and takes the axes as they come, so that it
silently reads K, J, I as I, J, K. A DataArray with any other name goes in by position, as before.
To keep GT4Py's names and go by position, pass ``stencil(array.data, ...)``.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dlfield._core import check_names, get_dims, gt4py_names, look_at
from dlfield.xarray.files import write_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dlfield._core import Array

__all__ = ["DefaultAccessor", "install"]


class DefaultAccessor(property):
    """An accessor that dlfield gave to ``DataArray``, as opposed to one of the user's.

    ``xarray.register_dataarray_accessor`` replaces it, with a warning of xarray.

    xarray replaces the text of every AttributeError by "object has no attribute". The reason is
    still raised by ``xarray.DataArray.__gt_data_interface__.fget(array)``.
    """


def install() -> None:
    """Register the accessors of ``xarray.DataArray``: at once, or when the import of xarray ends.

    An accessor of the same name that exists already is kept. dlfield calls this at its own import.
    Another call does nothing, unless xarray was loaded without an import statement, for example by
    ``importlib.util.LazyLoader``: dlfield does not notice the end of such an import.
    """
    if not _installed() and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        _installed()  # another thread may have begun to import xarray before the finder was there


def _gt_dims(array: Array) -> tuple[str, ...]:  # xarray is not imported for its types
    """Names of the axes, for GT4Py: absent unless each is I, J, K or a decimal."""
    dims = gt4py_names(array.dims)
    if dims is None:
        raise AttributeError(
            "__gt_dims__: expected dims among 'I', 'J', 'K' and decimals, got "
            f"{tuple(array.dims)}; rename() them, or bind the stencil with "
            "dlfield.bind(stencil, dims={...})"
        )
    return dims


def _gt_data_interface(array: Array) -> dict[str | None, Any]:
    """Pointer, shape, strides and dims by device: None is main memory, "gpu" is a GPU.

    They are those of the data: its own ``__gt_data_interface__``, else its ``__array_interface__``
    and ``__cuda_array_interface__``. The dims are those that `get_dims` gives. Absent for data
    without interfaces, for dims that are no text, and for data that xarray loads anew at each
    access, since the pointer would outlive the memory.
    """
    data = array.variable.data
    if array.variable.data is not data:  # a new wrapper of the same index, or a file that is read
        try:
            look_at(array)
        except (TypeError, BufferError, ValueError) as error:
            raise AttributeError(f"__gt_data_interface__: {error}") from error
    interface = _interface(data)
    if not interface:
        raise AttributeError(
            "__gt_data_interface__: expected data with __array_interface__ or "
            f"__cuda_array_interface__, got an object of type '{type(data).__name__}'; "
            "call .compute() first if it is computed on demand"
        )
    try:
        dims = get_dims(array)  # a class may state others than xarray's
    except TypeError as error:
        raise AttributeError(f"__gt_data_interface__: {error}") from error
    return {device: _named(entry, dims) for device, entry in interface.items()}


_DEFAULTS = {
    "__gt_data_interface__": DefaultAccessor(_gt_data_interface),
    "__gt_dims__": DefaultAccessor(_gt_dims),
}


def _interface(data: Array) -> Mapping[str | None, Any]:
    """Return a description for each device, or a function that returns it."""
    own: Mapping[str | None, Any] | None = getattr(data, "__gt_data_interface__", None)
    if own is not None:
        return own
    names = {None: "__array_interface__", "gpu": "__cuda_array_interface__"}
    found = {device: getattr(data, name, None) for device, name in names.items()}
    return {device: entry for device, entry in found.items() if entry is not None}


def _named(entry: Any, dims: tuple[str, ...] | None) -> Any:
    """Return a description with `dims` as a new dict: `entry` belongs to the data."""
    if callable(entry):
        return lambda: _named(entry(), dims)
    if (own := entry.get("dims")) is not None:
        check_names(dims, own)
    return {**entry, "dims": dims}


def _installed() -> bool:
    """Install into xarray if its import is over; else watch for the end."""
    spec = _names_in(sys.modules.get("xarray")).get("__spec__")
    if getattr(spec, "_initializing", False):
        _watch(spec)
    if getattr(spec, "_initializing", False):  # no `else`: another thread may have ended it
        return False
    return _install_into(sys.modules.get("xarray"))


def _install_into(module: object) -> bool:
    """Set the accessors that are missing. Return False if `module` has no DataArray."""
    data_array = _names_in(module).get("DataArray")
    if not isinstance(data_array, type):
        return False
    for name, accessor in _DEFAULTS.items():
        if not hasattr(data_array, name):
            setattr(data_array, name, accessor)
    write_values(sys.modules.get("xarray.conventions"))
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # A new list: an import in another thread may be iterating over this one, and would skip a
        # finder if one before it was removed.
        sys.meta_path = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    return True


def _names_in(module: object) -> dict[str, Any]:
    """Return the names of a module without its ``__getattr__``, which would load a lazy module."""
    if not isinstance(module, ModuleType):  # None blocks an import, and a mock has every name
        return {}
    names: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return names


class _Finder:
    """A finder on `sys.meta_path` until xarray is imported. It finds what the others find."""

    asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Ask the finders behind this one. Those before it found nothing.

        One of them may do the same and ask this one. The import system holds a lock around each
        call of a finder, so that a flag is enough to notice this.
        """
        finders = list(sys.meta_path)
        if name != "xarray" or self.asking or self not in finders:
            return None
        self.asking = True
        try:
            for finder in finders[finders.index(self) + 1 :]:
                find_spec = getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find_spec and find_spec(name, path, target)
                if spec is not None:
                    _watch(spec)
                    return spec
        finally:
            self.asking = False
        return None


def _watch(spec: object) -> None:
    """Make `spec` notice the end of the import. Its loader stays, since it may serve others."""
    if type(spec) is ModuleSpec:
        spec.__class__ = _WatchedSpec


class _WatchedSpec(ModuleSpec):
    """The spec of xarray until the import is over, which the import system notes last of all."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "_initializing" and not value:
            object.__setattr__(self, "__class__", ModuleSpec)
            _install_into(sys.modules.get("xarray"))  # missing if the import has failed
        object.__setattr__(self, name, value)
