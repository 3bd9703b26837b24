"""Hand any array to a GT4Py stencil, and any stencil field to any framework, without copying.

Importing dlfield imports no framework, and changes nothing in those that are imported, but that
``xarray.DataArray`` gets two attributes for GT4Py, see `dlfield.xarray`.
"""

from dlfield import _operators, xarray
from dlfield._core import (
    UNSET,
    BoundStencil,
    CPUStorage,
    CUDAManagedGPUStorage,
    DeviceCopyWarning,
    DeviceUnavailable,
    GPUStorage,
    GTNoSuchBufferError,
    LayoutWarning,
    MemoryCopyWarning,
    SoftwareManagedGPUStorage,
    Storage,
    SyncState,
    __version__,
    as_numpy,
    as_storage,
    empty,
    empty_like,
    free_pool,
    full,
    full_like,
    get_huge_pages,
    get_num_threads,
    get_pool_limit,
    ones,
    ones_like,
    pool_bytes,
    set_huge_pages,
    set_num_threads,
    set_pool_limit,
    storage,
    use_stream,
    zeros,
    zeros_like,
)
from dlfield.binding import bind
from dlfield.explaining import Explanation, PlanExplanation, explain
from dlfield.gt4py_fields import as_field, from_field
from dlfield.protocols import as_cupy, get_dims

__all__ = [
    "UNSET",
    "BoundStencil",
    "CPUStorage",
    "CUDAManagedGPUStorage",
    "CUDASyncedGPUStorage",
    "CudaManagedGPUStorage",
    "DeviceCopyWarning",
    "DeviceUnavailable",
    "Explanation",
    "GPUStorage",
    "GT4PySyncedGPUStorage",
    "GTNoSuchBufferError",
    "LayoutWarning",
    "MemoryCopyWarning",
    "PlanExplanation",
    "SoftwareManagedGPUStorage",
    "Storage",
    "SyncState",
    "__version__",
    "as_cupy",
    "as_field",
    "as_numpy",
    "as_storage",
    "bind",
    "empty",
    "empty_like",
    "explain",
    "free_pool",
    "from_field",
    "full",
    "full_like",
    "get_dims",
    "get_huge_pages",
    "get_num_threads",
    "get_pool_limit",
    "ones",
    "ones_like",
    "pool_bytes",
    "set_huge_pages",
    "set_num_threads",
    "set_pool_limit",
    "storage",
    "use_stream",
    "zeros",
    "zeros_like",
]

#: Names that GDP-3 uses for the same classes.
GT4PySyncedGPUStorage = SoftwareManagedGPUStorage
CUDASyncedGPUStorage = CudaManagedGPUStorage = CUDAManagedGPUStorage

_operators.install_on(Storage)
xarray.install()
