"""What GT4Py asks of an array, as default accessors of ``xarray.DataArray`` (GDP-3).

Importing dlfield gives ``DataArray`` two properties, as soon as xarray is imported, before or
afterwards; xarray itself is never imported here. Both are computed at each access, copy nothing and
hold no memory: a pointer is good for as long as the DataArray is.

One thing changes. A stencil that is not bound reads ``__gt_dims__``. A DataArray whose dims are all
names of GT4Py (I, J, K, decimals) is from then on ordered by them, and refused by GT4Py where the
field has others. Without dlfield the names are ignored and the axes taken as they come, so that
K, J, I is read as I, J, K without a word. A DataArray with any other name goes in by position, as
ever. Who relies on position with GT4Py's names drops them: ``stencil(array.data, ...)``.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from dlfield._core import Storage

__all__ = ["DefaultAccessor", "install", "is_gt4py", "to_xarray"]


class DefaultAccessor(property):
    """An accessor that dlfield gave to ``DataArray``, as opposed to one of the user's.

    ``xarray.register_dataarray_accessor`` replaces it, with xarray's warning that it does.

    xarray words every AttributeError anew, "object has no attribute". Why an attribute is absent
    is still said by ``xarray.DataArray.__gt_data_interface__.fget(array)``.
    """


def install() -> None:
    """Give ``xarray.DataArray`` the accessors: at once, or when the import of xarray ends.

    An accessor of the same name that is there already is kept. dlfield calls this when it is
    imported. Calling it again does nothing, unless xarray was loaded without an import statement,
    as by ``importlib.util.LazyLoader``, whose end nobody tells.
    """
    if not _installed() and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        _installed()  # another thread may have begun to import xarray before the finder stood there


def to_xarray(
    self: Storage,
    coords: Any = None,  # noqa: ANN401 - what xarray takes
    name: Hashable | None = None,
    attrs: Mapping[Any, Any] | None = None,
) -> Any:  # noqa: ANN401 - xarray is not imported for its types
    """Give an ``xarray.DataArray`` over the memory, with the dims of the storage. Copies nothing.

    Of host memory it holds the NumPy array of `to_numpy()`, so that all of xarray works; the halo
    stays behind, but in its attributes. With a buffer on a GPU it holds the storage itself, which
    NumPy would freeze to what the host has at the moment: each side stays up to date, and
    arithmetic raises TypeError. ``xarray.DataArray(storage, dims=storage.dims)`` holds the storage
    whatever its memory.

    Parameters
    ----------
    coords, name
        As for ``xarray.DataArray``.
    attrs
        Attributes, beside those that say the halo, where there is one: ``halo_<dim>`` for each dim,
        points below and above. dlfield does not read them: xarray leaves them as they are in a part
        of the array.

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
    data = self.to_numpy() if self.device is None else self
    halo = self.halo if self.halo is not None and any(map(any, self.halo)) else ()
    own = {f"halo_{dim}": width for dim, width in zip(self.dims, halo, strict=False)}
    array = _import_xarray().DataArray
    return array(data, coords=coords, dims=self.dims, name=name, attrs={**own, **(attrs or {})})


def _import_xarray() -> Any:  # noqa: ANN401
    try:
        import xarray
    except ImportError as error:
        text = "to_xarray: expected xarray to be installed, got none; pip install xarray"
        raise ImportError(text) from error
    return xarray


def _gt_dims(array: Any) -> tuple[str, ...]:  # noqa: ANN401 - xarray is not imported for its types
    """Names of the axes, for GT4Py: absent unless each is I, J, K or a decimal."""
    dims = tuple(array.dims)
    if not all(map(is_gt4py, dims)):
        raise AttributeError(
            f"__gt_dims__: expected dims among 'I', 'J', 'K' and decimals, got {dims}; rename() "
            "them, or bind the stencil with dlfield.bind(stencil, dims={...})"
        )
    return dims


def _gt_data_interface(array: Any) -> dict[str | None, Any]:  # noqa: ANN401
    """Pointer, shape, strides and dims by device: None is main memory, "gpu" is a GPU.

    Of what the DataArray holds: its own ``__gt_data_interface__``, or else its
    ``__array_interface__`` and ``__cuda_array_interface__``. Absent where it has none of them, and
    where xarray loads the data anew at each access, since the pointer would outlive the memory.
    """
    data, again = array.variable.data, array.variable.data
    interface = _interface(data)
    if again is not data and _interface(again) != interface:  # an index is wrapped anew, in place
        raise AttributeError(
            "__gt_data_interface__: expected a DataArray whose data is in memory, got one that "
            "xarray loads anew at each access; call .load() or .compute() first"
        )
    if not interface:
        raise AttributeError(
            "__gt_data_interface__: expected data with __array_interface__ or "
            f"__cuda_array_interface__, got an object of type '{type(data).__name__}'; "
            "where it is computed on demand, call .compute() first"
        )
    return {device: _named(entry, tuple(array.dims)) for device, entry in interface.items()}


_DEFAULTS = {
    "__gt_data_interface__": DefaultAccessor(_gt_data_interface),
    "__gt_dims__": DefaultAccessor(_gt_dims),
}


def is_gt4py(name: Hashable) -> bool:
    """Say whether GT4Py knows a name: I, J, K, or a decimal."""
    if not isinstance(name, str):
        return False
    text = str(name)  # as GT4Py reads it, also of an enum
    decimal = text.isascii() and text.isdecimal() and (text == "0" or not text.startswith("0"))
    return decimal or text in ("I", "J", "K")


def _interface(data: Any) -> Mapping[str | None, Any]:  # noqa: ANN401
    """Device to description, or to a callable that returns it."""
    own: Mapping[str | None, Any] | None = getattr(data, "__gt_data_interface__", None)
    if own is not None:
        return own
    names = {None: "__array_interface__", "gpu": "__cuda_array_interface__"}
    found = {device: getattr(data, name, None) for device, name in names.items()}
    return {device: entry for device, entry in found.items() if entry is not None}


def _named(entry: Any, dims: tuple[Hashable, ...]) -> Any:  # noqa: ANN401
    """Return a description with `dims`, as a new dict: `entry` belongs to whoever made it."""
    if callable(entry):
        return lambda: _named(entry(), dims)
    own = entry.get("dims")
    own = dims if own is None else tuple(own)
    if own != dims and all(map(is_gt4py, (*own, *dims))):
        raise ValueError(
            f"dims: expected {own} as the data of the DataArray says, got {dims} from the "
            "DataArray; transpose or rename one of them"
        )
    return {**entry, "dims": dims}


def _installed() -> bool:
    """Install into xarray where its import is over; where it is not, have its end told."""
    spec = _names_in(sys.modules.get("xarray")).get("__spec__")
    if getattr(spec, "_initializing", False):
        _watch(spec)
    if getattr(spec, "_initializing", False):  # no `else`: it may have ended in another thread
        return False
    return _install_into(sys.modules.get("xarray"))


def _install_into(module: object) -> bool:
    """Set the accessors that are not there. False where `module` has no DataArray."""
    data_array = _names_in(module).get("DataArray")
    if not isinstance(data_array, type):
        return False
    for name, accessor in _DEFAULTS.items():
        if not hasattr(data_array, name):
            setattr(data_array, name, accessor)
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # A new list: an import in another thread may be half way through this one, and would skip
        # a finder if one before it went away.
        sys.meta_path = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    return True


def _names_in(module: object) -> dict[str, Any]:
    """Return what a module defines, without its ``__getattr__``: a lazy module would load."""
    if not isinstance(module, ModuleType):  # None blocks an import, and mocks have every name
        return {}
    names: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return names


class _Finder:
    """Stands on `sys.meta_path` until xarray is imported, and finds only what the others find."""

    asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Ask the finders behind this one. Those before it were asked and found nothing.

        One of them may do the same and ask this one. The import system holds a lock around each
        call of a finder, so that a flag is enough to know.
        """
        finders = list(sys.meta_path)
        if name != "xarray" or self.asking or self not in finders:
            return None
        self.asking = True
        try:
            spec = _found(finders[finders.index(self) + 1 :], name, path, target)
        finally:
            self.asking = False
        _watch(spec)
        return spec


def _found(finders: list[Any], name: str, *where: object) -> ModuleSpec | None:
    """Return what the first of `finders` to find `name` has found."""
    for finder in finders:
        find_spec = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find_spec(name, *where) if find_spec is not None else None
        if spec is not None:
            return spec
    return None


def _watch(spec: object) -> None:
    """Have `spec` tell when its module is imported. Its loader may serve others, and stays."""
    if type(spec) is ModuleSpec:
        spec.__class__ = _WatchedSpec


class _WatchedSpec(ModuleSpec):
    """The spec of xarray, until the import system says, last of all, that the import is over."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "_initializing" and not value:
            object.__setattr__(self, "__class__", ModuleSpec)
            _install_into(sys.modules.get("xarray"))  # not there if the import has failed
        object.__setattr__(self, name, value)
