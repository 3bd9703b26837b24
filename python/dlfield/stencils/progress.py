"""Log what GT4Py compiles, to the logger ``dlfield`` at level INFO."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["compiling"]

_log = logging.getLogger("dlfield")


@contextmanager
def compiling(name: str, backend: str) -> Iterator[None]:
    """Log that a stencil of ``gt4py.cartesian`` is compiled, and how long that took."""
    _log.info("compiling %s for %s", name, backend)
    started = time.perf_counter()
    yield
    _log.info("compiled %s for %s in %.1f s", name, backend, time.perf_counter() - started)
