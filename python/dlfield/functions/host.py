"""Which array has the values of a storage: what a refusal tells its reader to use."""

from __future__ import annotations

__all__ = ["way_out"]


def way_out(storage: object) -> str:
    """Name the array that has the values of a storage, for the text of a refusal."""
    if not hasattr(type(storage), "__array_interface__"):
        return "use storage.to_cupy(), or dlfield.storage(..., device='cpu').to_numpy() for a copy"
    if hasattr(type(storage), "sync_state"):
        return "use storage.to_numpy(), or storage.to_cupy() on the GPU"
    return "use storage.to_numpy(), or as_numpy() of a DataArray around it, which copies nothing"
