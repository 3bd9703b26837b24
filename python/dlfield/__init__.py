"""Hand any array to a GT4Py stencil, and any stencil field to any framework, without copying.

Importing dlfield imports no framework. It changes two things in xarray, once that is imported:
``DataArray`` gets two attributes for GT4Py, and files of storages are written as those of NumPy
arrays, see `dlfield.xarray`.

Its rooms and files, each of which uses only those above it, and the compiled `_core`::

    annotations         fields in the annotations of a function
    gt4py_storage       a drop-in for ``gt4py.storage``
    functions           NumPy's functions of storages
    xarray              storages as DataArrays, and accessors of GT4Py
    stencils            stencils and programs as `bind` takes them
    gt4py_cartesian     the class of a stencil of gt4py.cartesian, by its former name
    show                explanations, drawings, HTML
    storages            methods of storages
    halo                exchange of halos
    doctor              ``python -m dlfield``
"""

import importlib
import sys
from typing import TYPE_CHECKING

from dlfield import storages, xarray
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
    as_cupy,
    as_numpy,
    as_storage,
    empty,
    empty_like,
    free_pool,
    full,
    full_like,
    get_dims,
    get_huge_pages,
    get_num_threads,
    get_pool_limit,
    ones,
    ones_like,
    pool_bytes,
    register_preset,
    set_huge_pages,
    set_num_threads,
    set_pool_limit,
    storage,
    use_stream,
    zeros,
    zeros_like,
)
from dlfield.stencils.binding import bind
from dlfield.xarray import from_xarray

if TYPE_CHECKING:
    from dlfield import annotations as annotations
    from dlfield import halo as halo
    from dlfield.doctor import show_versions
    from dlfield.halo import ghex_field, halo_exchange
    from dlfield.show.explanation import Explanation, PlanExplanation, explain
    from dlfield.stencils.next.allocator import field_allocator
    from dlfield.stencils.next.fields import as_field, from_field

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
    "field_allocator",
    "free_pool",
    "from_field",
    "from_xarray",
    "full",
    "full_like",
    "get_dims",
    "get_huge_pages",
    "get_num_threads",
    "get_pool_limit",
    "ghex_field",
    "halo_exchange",
    "ones",
    "ones_like",
    "pool_bytes",
    "register_preset",
    "set_huge_pages",
    "set_num_threads",
    "set_pool_limit",
    "show_versions",
    "storage",
    "use_stream",
    "zeros",
    "zeros_like",
]

#: GDP-3's other names of the same classes.
GT4PySyncedGPUStorage = SoftwareManagedGPUStorage
CUDASyncedGPUStorage = CudaManagedGPUStorage = CUDAManagedGPUStorage

#: What is meant by names of GT4Py and NumPy.
_MEANT = {
    "from_array": "storage(...), which copies, or as_storage(...)",
    "array": "storage(...), which copies, or as_storage(...)",
    "asarray": "as_storage(...), which never copies",
}


#: Modules that are imported when they or their functions are first used: few programs do.
_LATER = {
    "Explanation": "show.explanation",
    "PlanExplanation": "show.explanation",
    "annotations": "annotations",
    "as_field": "stencils.next.fields",
    "explain": "show.explanation",
    "field_allocator": "stencils.next.allocator",
    "from_field": "stencils.next.fields",
    "ghex_field": "halo",
    "halo": "halo",
    "halo_exchange": "halo",
    "show_versions": "doctor",
}
_MODULES = ("annotations", "halo", "xarray")


def __getattr__(name: str) -> object:
    if name in _LATER:
        module = importlib.import_module(f"dlfield.{_LATER[name]}")
        found = globals()[name] = module if name in _MODULES else getattr(module, name)
        return found
    way_out = f"; use dlfield.{_MEANT[name]}" if name in _MEANT else ""
    message = f"module 'dlfield' has no attribute '{name}'{way_out}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


storages.install_on(Storage)
xarray.install()


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
