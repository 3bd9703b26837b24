"""Tell what GT4Py compiles: to the logger ``dlfield`` at level INFO, later on stderr."""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["compiling", "say_if_slow"]

_log = logging.getLogger("dlfield")

#: Seconds after which a compilation is told on stderr.
_PATIENCE = 5.0


@contextmanager
def compiling(name: str, backend: str) -> Iterator[None]:
    """Log that a stencil of ``gt4py.cartesian`` is compiled, and how long that took."""
    _log.info("compiling %s for %s", name, backend)
    started = time.perf_counter()
    timer = say_if_slow(name, backend, lambda: True)
    try:
        yield
    finally:
        timer.cancel()
    _log.info("compiled %s for %s in %.1f s", name, backend, time.perf_counter() - started)


def say_if_slow(name: str, backend: str, is_running: Callable[[], bool]) -> threading.Timer:
    """Print a line on stderr unless the compilation has ended by then."""

    def say() -> None:
        if is_running():
            took = f"{_PATIENCE:.0f} s so far"
            print(f"dlfield: GT4Py is compiling '{name}' for {backend}, {took}", file=sys.stderr)

    timer = threading.Timer(_PATIENCE, say)
    timer.daemon = True
    timer.start()
    return timer
