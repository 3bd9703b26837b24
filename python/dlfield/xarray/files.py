"""Files: xarray encodes the values of storages as those of NumPy arrays, for every engine.

Some engines take NumPy's arrays alone (netCDF4), and encoding computes with fill values, scale
factors and the integers of netCDF 3 in ways that storages do not support. All engines call one
function of ``xarray.conventions`` first, which gets the values from here.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from dlfield._core import Storage

__all__ = ["write_values"]

#: Attribute of a function that does so already.
_MARK = "_encodes_storages"


def write_values(conventions: Any) -> None:  # a module of xarray
    """Make ``xarray.conventions`` encode the values of storages. Copies nothing on the host."""
    encode = getattr(conventions, "encode_cf_variable", None)
    if encode is None or hasattr(encode, _MARK):
        return

    @wraps(encode)
    def encode_cf_variable(var: Any, *args: Any, **options: Any) -> Any:
        return encode(_with_values(var), *args, **options)

    setattr(encode_cf_variable, _MARK, True)
    conventions.encode_cf_variable = encode_cf_variable


def _with_values(variable: Any) -> Any:  # an xarray.Variable
    """Return a variable of NumPy arrays for one of storages, also in the chunks of Dask."""
    data = getattr(variable, "_data", None)
    chunk = getattr(data, "_meta", None)
    if isinstance(data, Storage):
        from dlfield.functions.host import values

        return variable.copy(deep=False, data=values(data))
    if isinstance(chunk, Storage):
        return variable.copy(deep=False, data=_chunks_of_values(data, chunk))
    return variable


def _chunks_of_values(chunks: Any, chunk: Storage) -> Any:  # an array of Dask
    import numpy as np

    from dlfield.functions.host import values

    return chunks.map_blocks(
        values, dtype=chunks.dtype, meta=np.empty((0,) * chunk.ndim, chunk.dtype)
    )
