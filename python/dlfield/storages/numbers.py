"""Conversions of a storage with a single element. Operators are compiled."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dlfield.functions.host import way_out

#: Without these, Python would read a storage of bytes as the text of a number.
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "complex": complex,
}


def _conversion(name: str, convert: Callable[[Any], Any]) -> Any:
    def to_number(self: Any) -> Any:  # a storage, and a number of some kind
        return convert(_only(name, self))

    to_number.__name__ = to_number.__qualname__ = name
    return to_number


def _only(name: str, storage: Any) -> Any:
    """Return the only element."""
    if storage.size != 1:
        got = f"a {type(storage).__name__} of shape {storage.shape}"
        raise TypeError(f"{name}: expected one element, got {got}; {way_out(storage)}")
    return storage.item()


def _index(self: Any) -> int:
    """Return an element without dimensions as an integer.

    With dimensions it is an array of indices, even of a single one: NumPy asks for this first.
    """
    value = _only("__index__", self)
    if self.ndim:
        got = f"a {type(self).__name__} of shape {self.shape}"
        raise TypeError(f"__index__: expected no dimensions, got {got}; use storage.item()")
    if isinstance(value, bool):  # as a key it is a mask, as in NumPy
        raise TypeError("__index__: expected an integer, got a bool; use bool(storage)")
    return operator.index(value)


def _bool(self: Any) -> bool:
    """Return the truth of a single element; NumPy's ValueError for any other number of them."""
    if self.size != 1:
        raise ValueError(
            f"bool: expected one element, got a {type(self).__name__} of shape {self.shape}, whose "
            "truth is ambiguous; use storage.any() or storage.all()"
        )
    return bool(self.item())


def _format(self: Any, spec: str) -> str:
    """Format a single element without dimensions as its number, as NumPy does."""
    if spec and self.ndim:
        raise TypeError(
            f"format: expected no dimensions for {spec!r}, got a {type(self).__name__} of shape "
            f"{self.shape}; use numpy.array2string(storage, precision=...)"
        )
    return format(self.item(), spec) if spec else str(self)


def _contains(self: Any, value: object) -> bool:  # a storage
    """Return whether an element equals `value`, as NumPy does."""
    return bool(np.any(self == value))


def install_on(cls: type) -> None:
    """Install the conversions of a single element on `cls`."""
    for name, convert in _CONVERSIONS.items():
        setattr(cls, f"__{name}__", _conversion(f"__{name}__", convert))
    cls.__index__ = _index  # type: ignore[attr-defined]
    cls.__bool__ = _bool  # type: ignore[attr-defined]
    cls.__format__ = _format  # type: ignore[assignment, method-assign]
    cls.__contains__ = _contains  # type: ignore[operator]
