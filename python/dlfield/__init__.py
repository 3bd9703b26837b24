"""Hand any array to a GT4Py stencil, and any stencil field to any framework, without copying.

Importing dlfield imports no framework. It changes two things in xarray, once that is imported:
``DataArray`` gets two attributes for GT4Py, and files of storages are written as those of NumPy
arrays, see `dlfield.xarray`.

Its files and subpackages; each uses only those above it and the compiled `_core`::

    annotations         fields in the annotations of a function
    gt4py_storage       a drop-in for ``gt4py.storage``
    functions           NumPy's functions of storages
    xarray              storages as DataArrays, and accessors of GT4Py
    stencils            stencils and programs as `bind` takes them
    derivatives         adjoints and tangents of stencils, derived
    operators           stencils as operators of PyTorch and JAX
    testing             checks of adjoints and tangents
    gt4py_cartesian     the class of a stencil of gt4py.cartesian, by its former name
    show                explanations, drawings, HTML
    storages            methods of storages
    halo                exchange of halos
    fortran             functions that a Fortran or C program calls
    doctor              ``python -m dlfield``
    check               ``python -m dlfield check``
    pytest_check        the checker as a plugin for pytest
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
    copy_settings,
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
    from dlfield import fortran as fortran
    from dlfield import halo as halo
    from dlfield import testing as testing
    from dlfield.check.report import CheckReport, RefusedCallWarning
    from dlfield.check.session import checking
    from dlfield.derivatives.entrances import adjoint, adjoint_source, tangent
    from dlfield.derivatives.expressions import NotDifferentiable
    from dlfield.doctor import show_versions
    from dlfield.halo import ghex_field, halo_exchange
    from dlfield.operators.entrances import jax_call, torch_op
    from dlfield.show.explanation import Explanation, PlanExplanation, explain
    from dlfield.stencils.next.allocator import field_allocator
    from dlfield.stencils.next.fields import as_field, from_field

__all__ = [
    "UNSET",
    "BoundStencil",
    "CPUStorage",
    "CUDAManagedGPUStorage",
    "CUDASyncedGPUStorage",
    "CheckReport",
    "CudaManagedGPUStorage",
    "DeviceCopyWarning",
    "DeviceUnavailable",
    "Explanation",
    "GPUStorage",
    "GT4PySyncedGPUStorage",
    "GTNoSuchBufferError",
    "LayoutWarning",
    "MemoryCopyWarning",
    "NotDifferentiable",
    "PlanExplanation",
    "RefusedCallWarning",
    "SoftwareManagedGPUStorage",
    "Storage",
    "SyncState",
    "__version__",
    "adjoint",
    "adjoint_source",
    "as_cupy",
    "as_field",
    "as_numpy",
    "as_storage",
    "bind",
    "checking",
    "copy_settings",
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
    "jax_call",
    "ones",
    "ones_like",
    "pool_bytes",
    "register_preset",
    "set_huge_pages",
    "set_num_threads",
    "set_pool_limit",
    "show_versions",
    "storage",
    "tangent",
    "torch_op",
    "use_stream",
    "zeros",
    "zeros_like",
]

#: GDP-3's other names of the same classes.
GT4PySyncedGPUStorage = SoftwareManagedGPUStorage
CUDASyncedGPUStorage = CudaManagedGPUStorage = CUDAManagedGPUStorage
#: Not listed by `dir`: those names, and the marker of an option that is not given.
_UNLISTED = {"UNSET", "CUDASyncedGPUStorage", "CudaManagedGPUStorage", "GT4PySyncedGPUStorage"}

#: Suggestions for names that GT4Py and NumPy have.
_MEANT = {
    "from_array": "storage(...), which copies, or as_storage(...)",
    "array": "storage(...), which copies, or as_storage(...)",
    "asarray": "as_storage(...), which never copies",
}


#: The module of each name that is imported on first use.
_LATER = {
    "CheckReport": "check.report",
    "Explanation": "show.explanation",
    "NotDifferentiable": "derivatives.expressions",
    "PlanExplanation": "show.explanation",
    "RefusedCallWarning": "check.report",
    "adjoint": "derivatives.entrances",
    "adjoint_source": "derivatives.entrances",
    "annotations": "annotations",
    "as_field": "stencils.next.fields",
    "checking": "check.session",
    "explain": "show.explanation",
    "field_allocator": "stencils.next.allocator",
    "fortran": "fortran",
    "from_field": "stencils.next.fields",
    "ghex_field": "halo",
    "halo": "halo",
    "halo_exchange": "halo",
    "jax_call": "operators.entrances",
    "show_versions": "doctor",
    "tangent": "derivatives.entrances",
    "testing": "testing",
    "torch_op": "operators.entrances",
}
_MODULES = ("annotations", "fortran", "halo", "testing", "xarray")


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
    return sorted({*__all__, *_MODULES} - _UNLISTED)
