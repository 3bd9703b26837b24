"""Where the values of a storage are: on the host, on a GPU alone, or on both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlfield import _core
from dlfield._core import CPUStorage, GPUStorage, GTNoSuchBufferError, Storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dlfield._core import Array


def has_host_buffer(array: object) -> bool:
    """Return True unless the values are on a GPU alone."""
    return not isinstance(array, GPUStorage)


def is_on_host_alone(storage: object) -> bool:
    """Return True for a storage without a buffer on a GPU."""
    return isinstance(storage, CPUStorage)


def values(given: Array) -> Array:
    """Return what NumPy can read, also in lists: the host buffer, or a copy from a GPU alone."""
    if isinstance(given, dict):
        return {name: values(one) for name, one in given.items()}
    if isinstance(given, list | tuple):
        return [*map(values, given)] if isinstance(given, list) else tuple(map(values, given))
    if not has_host_buffer(given):
        return _core.storage(given, device="cpu").to_numpy()
    return given.to_numpy() if isinstance(given, Storage) else given


def each(given: Iterable[Array]) -> Iterator[Array]:
    """Yield arguments, and those in the lists among them."""
    for one in given:
        yield from each(one) if isinstance(one, list | tuple) else (one,)


def on_host(what: str, given: Array) -> Array:
    """Return the host buffer of a storage, and any other argument as it is."""
    if not isinstance(given, Storage):
        return given
    check_host(what, (given,))
    return given.to_numpy()


def check_host(what: str, given: Iterable[Array]) -> None:
    """Refuse memory that NumPy cannot reach."""
    if not all(map(has_host_buffer, given)):
        raise GTNoSuchBufferError(
            f"{what}: expected storages with a buffer on the host, got a GPUStorage; use "
            f"cupy.{what} with storage.to_cupy(), or dlfield.storage(..., device='cpu') for a copy"
        )


def check_host_alone(what: str, storage: Storage) -> None:
    """Refuse a storage with a buffer on a GPU, of which an array of NumPy shows one side."""
    if not is_on_host_alone(storage):
        raise TypeError(
            f"{what}: expected a storage in host memory alone, got a {type(storage).__name__}; "
            f"{way_out(storage)}"
        )


def way_out(storage: object) -> str:
    """Name the array that has the values of a storage, for the text of a refusal."""
    if not has_host_buffer(storage):
        return "use storage.to_cupy(), or dlfield.storage(..., device='cpu').to_numpy() for a copy"
    if hasattr(type(storage), "sync_state"):
        return "use storage.to_numpy(), or storage.to_cupy() on the GPU"
    return "use storage.to_numpy(), or as_numpy() of a DataArray around it, which copies nothing"
