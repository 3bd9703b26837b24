"""Plans for the last few sets of fields: models swap time levels from step to step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlfield._core import Storage

__all__ = ["Remembered"]

#: The number of sets whose plans are kept. The fields of these sets are kept alive.
_REMEMBERED = 4


class Remembered:
    """Plans by the memory of their fields.

    Parameters
    ----------
    plan
        Called with a new set of fields; returns what it plans for them.
    """

    def __init__(self, plan: Callable[[Sequence[Storage]], Any]) -> None:
        self._plan = plan
        self._sets: list[tuple[Sequence[Storage], Any]] = []

    def of(self, fields: Sequence[Storage]) -> Any:  # what `plan` gave
        """Return what is planned for a set of fields."""
        for at, (known, planned) in enumerate(self._sets):
            if all(map(_is_alike, known, fields)):
                self._sets.insert(0, self._sets.pop(at))
                return planned
        planned = self._plan(fields)
        self._sets.insert(0, (fields, planned))
        del self._sets[_REMEMBERED:]
        return planned

    def forget_last(self) -> None:
        """Forget the set that was asked for last."""
        del self._sets[:1]

    def clear(self) -> None:
        """Forget all sets."""
        self._sets.clear()


def _is_alike(one: Storage, other: Storage) -> bool:
    """Return whether a plan for one storage suits another of the same shape.

    A pair and one of its sides differ.
    """
    if one is other:
        return True
    return type(one) is type(other) and (one.ptr, one.strides) == (other.ptr, other.strides)
