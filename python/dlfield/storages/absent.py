"""Attributes that storages do not have, each with the array that has it."""

from __future__ import annotations

from typing import Any

from dlfield.functions.host import way_out

__all__ = ["Absent", "install_on", "is_absent"]

#: Attributes of other arrays by the library that has them.
_ELSEWHERE = {
    "NumPy": """
        byteswap ctypes diagonal dot dump dumps flat getfield mT put resize setfield setflags tofile
        trace
    """,
    "numpy.FUNCTION": """
        argpartition argsort choose compress conj conjugate nonzero partition repeat searchsorted
        sort squeeze swapaxes take
    """,
    "xarray": """
        assign_attrs assign_coords attrs chunk coords coarsen compute drop_vars encoding groupby
        indexes interp isnull load loc name notnull plot quantile resample rolling sel shift
        sizes stack to_dataset to_netcdf to_pandas to_zarr values where
    """,
    "torch": """
        backward clone contiguous cpu cuda detach dim numel numpy permute requires_grad to unsqueeze
    """,
    "JAX": "at block_until_ready",
    "CuPy": "get",
}
_WAYS = {
    "numpy.FUNCTION": "use numpy.{name}(storage)",
    "xarray": "use storage.to_xarray()",
    "torch": "use storage.to_torch()",
    "JAX": "use storage.to_jax()",
    "CuPy": "use storage.to_cupy()",
}


class Absent:
    """An attribute that a class does not have, with the reason: `hasattr` of it is False.

    Unlike a ``__getattr__`` of the class it costs nothing when other attributes are looked up.
    """

    __slots__ = ("_library", "_name")

    def __init__(self, name: str, library: str) -> None:
        """Remember the name, and the library whose arrays have it."""
        self._name, self._library = name, library

    def __get__(self, obj: object, owner: type) -> Any:  # noqa: ANN401 - never returns
        """Raise AttributeError with the way out."""
        if obj is None:
            raise AttributeError(f"type object '{owner.__name__}' has no attribute '{self._name}'")
        way = _WAYS.get(self._library, "{way_out}").format(name=self._name, way_out=way_out(obj))
        raise AttributeError(f"'{owner.__name__}' object has no attribute '{self._name}'; {way}")


def is_absent(kind: type, name: str) -> bool:
    """Tell if a class explains why it lacks an attribute."""
    return any(isinstance(vars(one).get(name), Absent) for one in kind.__mro__)


def install_on(cls: type) -> None:
    """Install the reasons on `cls`."""
    for library, names in _ELSEWHERE.items():
        for name in names.split():
            setattr(cls, name, Absent(name, library))
