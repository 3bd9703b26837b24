"""What to call instead of what a storage refuses."""


def way_out(storage: object) -> str:
    """Say which array has the values."""
    if not hasattr(type(storage), "__array_interface__"):
        return "use storage.to_cupy(), or dlfield.storage(..., device='cpu').to_numpy() for a copy"
    if hasattr(type(storage), "sync_state"):
        return "use storage.to_numpy(), or storage.to_cupy() on the GPU"
    return "use storage.to_numpy(), or as_numpy() of a DataArray around it, which copies nothing"
