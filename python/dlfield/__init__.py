"""Hand any array to a GT4Py stencil, and any stencil field to any framework, without copying.

Importing dlfield imports no framework, and changes nothing in those that are imported, but that
``xarray.DataArray`` gets two attributes for GT4Py, see `dlfield.xarray`.
"""

from dlfield import _operators, xarray
from dlfield._core import (
    UNSET,
    BoundStencil,
    CPUStorage,
    DeviceUnavailable,
    GTNoSuchBufferError,
    Storage,
    __version__,
    as_numpy,
    as_storage,
    empty,
    full,
    ones,
    storage,
    zeros,
)
from dlfield.explaining import Explanation, explain
from dlfield.gt4py import bind
from dlfield.protocols import as_cupy, get_dims

__all__ = [
    "UNSET",
    "BoundStencil",
    "CPUStorage",
    "DeviceUnavailable",
    "Explanation",
    "GTNoSuchBufferError",
    "Storage",
    "__version__",
    "as_cupy",
    "as_numpy",
    "as_storage",
    "bind",
    "empty",
    "explain",
    "full",
    "get_dims",
    "ones",
    "storage",
    "zeros",
]

_operators.refuse_on(Storage)
xarray.install()
