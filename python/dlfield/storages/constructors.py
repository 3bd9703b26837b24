"""Calls of a class of storages: `storage(...)` for its kind of memory (GDP-3)."""

from __future__ import annotations

from typing import Any

from dlfield._core import UNSET, Storage, class_options, device_of, storage

__all__ = ["construct"]


def construct(cls: type, data: tuple[Any, ...], /, **options: Any) -> Storage:
    """Implement `cls(*data, **options)`. `Storage(...)` chooses the class that fits."""
    decided = class_options(cls)
    if decided is None:
        raise TypeError(f"{cls.__name__}: expected Storage or one of its own kinds, got a subclass")
    preset = options.get("backend", UNSET) not in (UNSET, None)  # excludes device=
    for name, value in decided.items():
        given = options.get(name, UNSET)
        if given is not UNSET and not _agree(name, given, value):
            raise ValueError(f"{cls.__name__}: expected {name}={value!r}, got {name}={given!r}")
        if given is UNSET and not (preset and name == "device"):
            options[name] = value
    made = storage(*data, **options)
    if not isinstance(made, cls):
        raise ValueError(
            f"{cls.__name__}: expected options for it, got those of a {type(made).__name__} "
            f"(backend={options.get('backend')!r})"
        )
    return made


def _agree(name: str, given: object, decided: object) -> bool:
    if name == "device":  # on any GPU, or on none
        return (device_of(given) is None) == (decided is None)
    return given == decided
