"""Logs GT4Py's compilations to the logger ``dlfield``, slow ones to stderr too; failures raise."""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["compile_again", "compile_or_fail", "compiling", "say_if_slow"]

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
    """Print a line on stderr if the compilation still runs after `_PATIENCE` seconds."""

    def say() -> None:
        if is_running():
            took = f"{_PATIENCE:.0f} s so far"
            print(f"dlfield: GT4Py is compiling '{name}' for {backend}, {took}", file=sys.stderr)

    timer = threading.Timer(_PATIENCE, say)
    timer.daemon = True
    timer.start()
    return timer


def compile_or_fail(compile_inside: Callable[[Callable[[str, str], Any]], Any]) -> Any:
    """Compile; raise RuntimeError if the compiler fails, for which setuptools exits."""
    try:
        return compile_inside(compiling)
    except SystemExit as failure:  # in a thread it would be lost
        way_out = "see what the compiler has printed, and the traps in `python -m dlfield`"
        raise RuntimeError(
            f"bind: needs a compiler that works, got {str(failure)!r}; {way_out}"
        ) from failure


def compile_again(
    definition: Callable[..., Any], externals: dict[str, Any], options: dict[str, Any]
) -> Any:
    """Compile a definition of ``gt4py.cartesian``, with the keywords of ``gtscript.stencil``."""
    from gt4py.cartesian import gtscript

    def compile_inside(around: Callable[[str, str], Any]) -> Any:
        with around(definition.__name__, options["backend"]):
            return gtscript.stencil(definition=definition, externals=externals, **options)

    return compile_or_fail(compile_inside)
