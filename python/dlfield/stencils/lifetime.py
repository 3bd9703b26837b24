"""Remember a value for each of GT4Py's objects, as long as the object lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import finalize

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OfObjects"]

Remembered = TypeVar("Remembered")


class OfObjects(Generic[Remembered]):
    """One value for each object, by its identity.

    GT4Py's objects compare by value or have no hash, so a `WeakKeyDictionary` cannot hold them.

    Parameters
    ----------
    make
        Makes the value of an object that has none yet.
    """

    def __init__(self, make: Callable[[], Remembered]) -> None:
        self._make = make
        self._values: dict[int, Remembered] = {}

    def of(self, key: object) -> Remembered:
        """Return the value of an object. It is dropped with the object."""
        if id(key) not in self._values:
            finalize(key, self._values.pop, id(key), None)  # first: nothing stays if it refuses
            self._values.setdefault(id(key), self._make())
        return self._values[id(key)]
