"""Calling a class of storages: the same as `storage(...)` for its kind of memory (GDP-3)."""

from __future__ import annotations

from typing import Any

from dlfield._core import (
    UNSET,
    CPUStorage,
    CUDAManagedGPUStorage,
    GPUStorage,
    SoftwareManagedGPUStorage,
    Storage,
    storage,
)

__all__ = ["construct"]

#: What the name of a class decides about host and device. Host memory needs no option.
_DECIDED: dict[type, dict[str, Any]] = {
    Storage: {},
    CPUStorage: {},
    GPUStorage: {"device": "gpu", "managed": None},
    SoftwareManagedGPUStorage: {"device": "gpu", "managed": "gt4py"},
    CUDAManagedGPUStorage: {"device": "gpu", "managed": "cuda"},
}


def construct(cls: type, data: tuple[Any, ...], /, **options: Any) -> Storage:  # noqa: ANN401
    """Give what `cls(*data, **options)` is. `Storage(...)` is of the class that fits."""
    decided = _DECIDED.get(cls)
    if decided is None:
        raise TypeError(f"{cls.__name__}: expected Storage or one of its own kinds, got a subclass")
    _check_device(cls, options.get("device", UNSET))
    preset = options.get("backend", UNSET) not in (UNSET, None)  # which excludes a device
    if cls is CPUStorage and not preset and options.get("device", UNSET) is UNSET:
        options["device"] = None  # whatever `defaults` is for
    for name, value in decided.items():
        given = options.get(name, UNSET)
        if given is UNSET and not (preset and name == "device"):
            options[name] = value
        if name == "managed" and options[name] != value:
            raise ValueError(f"{cls.__name__}: expected managed={value!r}, got {given!r}")
    made = storage(*data, **options)
    if not isinstance(made, cls):
        raise ValueError(
            f"{cls.__name__}: expected options for it, got those of a {type(made).__name__} "
            f"(backend={options.get('backend')!r})"
        )
    return made


def _check_device(cls: type, device: Any) -> None:  # noqa: ANN401
    """Refuse a device of the other kind; what is no device at all is refused by `storage`."""
    on_gpu = device == "gpu" or (isinstance(device, tuple) and device[:1] == ("gpu",))
    on_host = device is None or device == "cpu"
    if (on_gpu and cls is CPUStorage) or (on_host and "device" in _DECIDED[cls]):
        expected = "host memory" if cls is CPUStorage else "a GPU"
        raise ValueError(f"{cls.__name__}: expected {expected}, got device={device!r}")
