"""Hand any array to a GT4Py stencil, and any stencil field to any framework, without copying.

Importing dlfield imports no framework, and changes nothing in those that are imported.
"""

from dlfield import _operators
from dlfield._core import (
    UNSET,
    BoundStencil,
    CPUStorage,
    DeviceUnavailable,
    GTNoSuchBufferError,
    Storage,
    __version__,
    as_storage,
    empty,
    full,
    ones,
    storage,
    zeros,
)
from dlfield.gt4py import bind

__all__ = [
    "UNSET",
    "BoundStencil",
    "CPUStorage",
    "DeviceUnavailable",
    "GTNoSuchBufferError",
    "Storage",
    "__version__",
    "as_storage",
    "bind",
    "empty",
    "full",
    "ones",
    "storage",
    "zeros",
]

_operators.refuse_on(Storage)
