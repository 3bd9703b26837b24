"""The two sides of a storage as context managers, which say at the end what was written."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from dlfield._core import GPUStorage, Storage

__all__ = ["Device", "host"]


class Device(str):
    """The name of a storage's device, ``"gpu"`` (GDP-3); called, its buffer there.

    ``with storage.device() as array:`` gives a GPUStorage over the buffer, which speaks DLPack and
    the CUDA array interface, up to date. At the end dlfield waits for all work on the device, and
    notes that the buffer was written, also where the block has raised.
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
        """Give the buffer, to be read and written."""
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
            storage._finish()  # whoever wrote may have used any stream
        finally:
            if not storage.readonly:
                storage.set_device_modified()


def host(storage: Storage) -> AbstractContextManager[np.ndarray]:
    """Give the buffer of the host as a NumPy array, up to date, and note that it was written."""
    return _host(storage)


@contextmanager
def _host(storage: Storage) -> Iterator[np.ndarray]:
    array = storage.to_numpy()
    try:
        yield array
    finally:
        if not storage.readonly:
            storage.set_host_modified()
