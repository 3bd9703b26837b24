"""Asks `bind` about a call: plans it without running it."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlfield.stencils.binding import bind
from dlfield.stencils.cartesian.declare import WronglyComputed
from dlfield.stencils.next.nodes import UnknownError

if TYPE_CHECKING:
    from dlfield._core import BoundStencil, CallPlan

__all__ = ["Answer", "Asker", "Bound"]

#: What `bind` raises for a call that is wrong. Anything else says nothing about the call.
_REFUSALS = (TypeError, ValueError, BufferError)
#: Part of the error for arrays that overlap where `bind` cannot know which points a call touches:
#: src/stencil/overlap.rs has the same words.
_UNKNOWN = "not all points that a call touches are known before it"


@dataclass(frozen=True)
class Answer:
    """What `bind` says of a call.

    Parameters
    ----------
    stencil
        Its name.
    refusal
        The error that a bound stencil would raise.
    unchecked
        What could not be checked, and why.
    asked
        False if nothing could be checked.
    """

    stencil: str
    refusal: Exception | None = None
    unchecked: str = ""
    asked: bool = True


@dataclass(frozen=True)
class Bound:
    """A stencil, kept alive here, with its bound form, or the reason why it could not be bound."""

    stencil: Any
    name: str
    run: BoundStencil | None = None
    why: str = ""
    refusal: WronglyComputed | None = None


class Asker:
    """Binds stencils, and keeps them as long as it lives."""

    def __init__(self) -> None:
        self._bound: dict[int, Bound] = {}
        self._lock = threading.RLock()

    def ask(self, stencil: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Answer:
        """Plan the call as a bound stencil would."""
        bound = self.bound(stencil, keep=True)
        if bound.refusal is not None:
            return Answer(bound.name, copy.copy(bound.refusal))  # raised, it keeps its frames
        if bound.run is None:
            return Answer(bound.name, unchecked=bound.why, asked=False)
        try:
            plan = bound.run.plan(*args, **keywords)
        except _REFUSALS as refusal:
            if isinstance(refusal.__cause__, UnknownError):
                return Answer(bound.name, unchecked=_text(refusal), asked=False)
            if _UNKNOWN in str(refusal):
                return Answer(bound.name, unchecked=str(refusal))
            # Its traceback would keep the arrays in a cycle with the frames of the program.
            return Answer(bound.name, refusal.with_traceback(None))
        except Exception as reason:  # a producer may raise anything
            return Answer(bound.name, unchecked=_text(reason), asked=False)
        return Answer(bound.name, unchecked="" if plan.checked == "checked" else _unknown(plan))

    def bound(self, stencil: Any, *, keep: bool) -> Bound:
        """Bind a stencil, unless it was before. `keep` it even if that fails."""
        with self._lock:
            found = self._bound.get(id(stencil)) or _bound(stencil)
            if keep or found.run is not None:
                self._bound[id(stencil)] = found
            return found


def _bound(stencil: Any) -> Bound:
    options = getattr(stencil, "options", {"name": type(stencil).__name__})
    name = str(getattr(stencil, "__name__", options["name"])).rpartition(".")[2]
    try:
        return Bound(stencil, name, bind(stencil))
    except WronglyComputed as refusal:
        return Bound(stencil, name, refusal=refusal.with_traceback(None))
    except Exception as reason:  # GT4Py's own code reads its definition
        return Bound(stencil, name, why=_text(reason))


def _unknown(plan: CallPlan) -> str:
    names = [f"'{name}'" for name, field in plan.fields.items() if not field.complete]
    of = f" of {', '.join(names)}" if names else ""
    return f"bounds{of}: {_UNKNOWN}"


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
