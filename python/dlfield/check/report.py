"""What a check has found."""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["CheckReport", "Finding", "RefusedCallWarning"]


class RefusedCallWarning(UserWarning):
    """A call of GT4Py that `bind` would refuse, found by `checking`. GT4Py makes it anyway."""


@dataclass
class Finding:
    """Calls from one line of the program that `bind` would refuse for one reason.

    Parameters
    ----------
    stencil
        Name of the stencil, program or operator.
    file, line
        The place in the program: the innermost line that is not of GT4Py, dlfield, the standard
        library or an installed package, if there is one.
    text
        What is wrong and the way out, as `bind` says it of the first call.
    calls
        The number of these calls.
    """

    stencil: str
    file: str
    line: int
    text: str
    calls: int = 0
    #: True if a warning has shown it.
    warned: bool = False


class CheckReport:
    """What a check has seen and found. Prints as the summary.

    Attributes
    ----------
    stencils : Counter
        Calls that were checked, by the name of the stencil.
    findings : list of Finding
        Calls that `bind` would refuse; those of one line for one reason are one finding.
    unchecked : Counter
        Calls of which something could not be checked, by a text that says what and why.
    error : bool
        True if such a call raises what `bind` raises, and is not made.
    ended_by : str
        Name of the exception that has ended the block or program, or nothing.

    Examples
    --------
    >>> import dlfield as dlf
    >>> with dlf.checking() as report:
    ...     pass  # the model
    >>> report
    dlfield check: 0 stencils, 0 calls checked, 0 findings
      not checked: no call of a stencil of GT4Py was made in this process
    """

    def __init__(self, *, error: bool = False) -> None:
        self.error, self.ended_by = error, ""
        self.stencils: Counter[str] = Counter()
        self.unchecked: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "\n  ".join([self._title(), *self._lines()])

    def _title(self) -> str:
        counts = {
            "stencil": len(self.stencils),
            "call checked": self.stencils.total(),
            "finding": len(self.findings),
        }
        told = [f"{count} {_plural(what, count)}" for what, count in counts.items()]
        return "dlfield check: " + ", ".join(told)

    def _lines(self) -> Iterator[str]:
        for one in self.findings:
            yield f"{one.file}:{one.line}: {_calls(one.calls)}: {_indented(one.text)}"
        for text, count in list(self.unchecked.items()):  # another thread may add some
            yield f"not checked: {_calls(count)}: {_indented(text)}"
        if not self.stencils and not self.unchecked:
            yield "not checked: no call of a stencil of GT4Py was made in this process"
        if self.ended_by:
            yield f"not checked: everything after the {self.ended_by} that ended the program"

    def seen(self, stencil: str, unchecked: str, *, asked: bool) -> None:
        """Count a call of which `bind` was `asked`, and what could not be checked of it."""
        with self._lock:
            if asked:
                self.stencils[stencil] += 1
            if unchecked:
                self.unchecked[f"{stencil}: {unchecked}"] += 1

    def found(self, stencil: str, place: tuple[str, int], text: str, calls: int = 1) -> Finding:
        """Count calls that would be refused, and return their finding."""
        text = text if text.startswith(f"{stencil}: ") else f"{stencil}: {text}"
        new = Finding(stencil, *place, text)
        with self._lock:
            alike = (one for one in self.findings if _identity(one) == _identity(new))
            finding = next(alike, None)
            if finding is None:
                finding = new
                self.findings.append(finding)
            finding.calls += calls
            return finding

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and findings as plain values, which another process adds to its own."""
        findings = [
            {"stencil": one.stencil, "place": (one.file, one.line), "text": one.text}
            | {"calls": one.calls}
            for one in self.findings
        ]
        counts = {"stencils": dict(self.stencils), "unchecked": dict(self.unchecked)}
        return {**counts, "findings": findings}

    def add(self, other: Mapping[str, Any]) -> None:
        """Add what a check in another process has found, as `to_dict` returns it."""
        self.stencils.update(other["stencils"])
        self.unchecked.update(other["unchecked"])
        for one in other["findings"]:
            self.found(one["stencil"], tuple(one["place"]), one["text"], one["calls"])


def _identity(finding: Finding) -> tuple[str, str, int, str]:
    """Return what two findings share that are one: numbers differ from call to call."""
    text = re.sub(r"\d+", "#", finding.text)
    return finding.stencil, finding.file, finding.line, text


def _plural(what: str, count: int) -> str:
    noun, _, rest = what.partition(" ")
    return " ".join(filter(None, [noun if count == 1 else f"{noun}s", rest]))


def _indented(text: str) -> str:
    """Set the lines of a table below their first one, which stands in a line of the summary."""
    return text.replace("\n", "\n    ")


def _calls(count: int) -> str:
    return f"{count} {_plural('call', count)}"
