"""Calling a class of storages: the same as `storage(...)` for its kind of memory (GDP-3)."""

from __future__ import annotations

from typing import Any

from dlfield._core import (
    CPUStorage,
    CUDAManagedGPUStorage,
    GPUStorage,
    SoftwareManagedGPUStorage,
    Storage,
    storage,
)

__all__ = ["install"]

#: What the name of a class decides.
_DECIDED: dict[type, dict[str, Any]] = {
    Storage: {},
    CPUStorage: {"device": None},
    GPUStorage: {"device": "gpu", "managed": None},
    SoftwareManagedGPUStorage: {"device": "gpu", "managed": "gt4py"},
    CUDAManagedGPUStorage: {"device": "gpu", "managed": "cuda"},
}


def install() -> None:
    """Make the classes callable. `Storage(...)` gives an object of the class that fits."""
    for cls in _DECIDED:
        cls.__new__ = _new  # type: ignore[method-assign,assignment]


def _new(cls: type, *data: Any, **options: Any) -> CPUStorage:  # noqa: ANN401
    decided = _DECIDED.get(cls)
    if decided is None:
        raise TypeError(f"{cls.__name__}: expected Storage or one of its own kinds, got a subclass")
    for name, value in decided.items():
        if options.setdefault(name, value) != value:
            raise ValueError(f"{cls.__name__}: expected {name}={value!r}, got {options[name]!r}")
    return storage(*data, **options)
