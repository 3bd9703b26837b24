"""The two sides of a storage as context managers, which mark a side as written when they exit."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from dlfield._core import GPUStorage, Storage

__all__ = ["Device", "host"]


class Device(str):
    """The name of a storage's device, ``"gpu"`` (GDP-3). Calling it gives the buffer there.

    ``with storage.device() as array:`` gives a GPUStorage over the buffer, up to date, which speaks
    DLPack and the CUDA array interface. The exit waits for all work on the device and marks the
    buffer as written, also if the block raises.
    """

    __slots__ = ("_storage",)
    _storage: Storage

    def __new__(cls, storage: Storage) -> Self:
        """Name the device of a storage."""
        name = super().__new__(cls, "gpu")
        name._storage = storage
        return name

    @property
    def device_id(self) -> int | None:
        """Number of the GPU, so that ``device=storage.device`` is the same one."""
        return self._storage.device_id

    def __call__(self) -> AbstractContextManager[GPUStorage]:
        """Return the buffer, to be read and written."""
        return _device(self._storage)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle the name alone."""
        return str, (str(self),)


@contextmanager
def _device(storage: Storage) -> Iterator[GPUStorage]:
    array = storage._device_side()
    try:
        yield array
    finally:
        try:
            storage._finish()  # the block may have written on any stream
        finally:
            if not storage.readonly:
                storage.set_device_modified()


@contextmanager
def host(storage: Storage) -> Iterator[np.ndarray]:
    """Yield the host's buffer as a NumPy array, up to date, and mark it as written at the exit."""
    array = storage.to_numpy()
    try:
        yield array
    finally:
        if not storage.readonly:
            storage.set_host_modified()
