"""`checking`, and all checks that are active in this process."""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from dlfield.check.asking import Answer, Asker
from dlfield.check.in_front import InFront
from dlfield.check.place import line_of_call
from dlfield.check.report import CheckReport, RefusedCallWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["checking"]

#: Reports of the checks that are active, the outermost first: each gets every call.
_active: list[CheckReport] = []
_lock = threading.Lock()
_in_front: InFront | None = None


@contextmanager
def checking(*, error: bool = False, summary: bool = True) -> Iterator[CheckReport]:
    """Check every call of GT4Py as `bind` does, in all threads of this process.

    A call that a bound stencil would refuse is shown once for each line of the program, as a
    `RefusedCallWarning` with the way out. GT4Py then makes the call as without the check: arrays
    and results are its own. Calls of bound stencils are not counted, as `bind` checks them.

    Parameters
    ----------
    error
        Raise what a bound stencil would raise, before GT4Py makes the call. If several checks are
        active, one of them is enough.
    summary
        Print the report to the standard error at the end.

    Yields
    ------
    CheckReport
        Stencils, calls, findings, and what could not be checked. Checks may be nested, also in
        several threads: each of them reports every call of the process while it is active.

    Examples
    --------
    >>> with checking() as report:
    ...     run_model()  # doctest: +SKIP
    >>> report.findings  # doctest: +SKIP
    []
    """
    report = CheckReport(error=error)
    _begin(report)
    try:
        yield report
    except BaseException as end:
        report.ended_by = type(end).__name__
        raise
    finally:
        _end(report)
        if summary:
            sys.stderr.write(f"{report}\n")


def _begin(report: CheckReport) -> None:
    global _in_front
    with _lock:
        if _in_front is None:
            asker = Asker()
            _in_front = InFront(partial(_check, asker), partial(asker.bound, keep=False))
            _in_front.install()
        _active.append(report)


def _end(report: CheckReport) -> None:
    global _in_front
    with _lock:
        _active.remove(report)
        if not _active and _in_front is not None:
            _in_front.remove()
            _in_front = None


def _check(asker: Asker, stencil: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Ask about a call, and tell all checks."""
    reports = tuple(_active)
    if not reports:
        return  # the last check has ended in another thread
    answer = asker.ask(stencil, args, keywords)
    for report in reports:
        report.seen(answer.stencil, answer.unchecked, asked=answer.asked)
    if answer.refusal is not None:
        _refuse(reports, answer, answer.refusal, line_of_call(stencil))


def _refuse(
    reports: tuple[CheckReport, ...], answer: Answer, refusal: Exception, place: tuple[str, int]
) -> None:
    findings = [report.found(answer.stencil, place, str(refusal)) for report in reports]
    if any(report.error for report in reports):
        raise refusal
    if not all(finding.warned for finding in findings):
        warnings.warn_explicit(findings[0].text, RefusedCallWarning, *place)
        for finding in findings:  # not before: a filter may make it an error, which is no end
            finding.warned = True
