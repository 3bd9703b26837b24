"""Log what GT4Py compiles, to the logger ``dlfield`` at level INFO."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["compiling", "say_what_next_compiles"]

_log = logging.getLogger("dlfield")


@contextmanager
def compiling(name: str, backend: str) -> Iterator[None]:
    """Log that a stencil of ``gt4py.cartesian`` is compiled, and how long that took."""
    _log.info("compiling %s for %s", name, backend)
    started = time.perf_counter()
    yield
    _log.info("compiled %s for %s in %.1f s", name, backend, time.perf_counter() - started)


@cache
def say_what_next_compiles() -> None:
    """Have ``gt4py.next`` log what it compiles, which is at the first call of a program."""
    from gt4py.next.otf.compiled_program import compile_variant_hook

    def say(
        program_pool: Any,  # noqa: ANN401
        key: Any,  # noqa: ANN401
        backend: Any,  # noqa: ANN401
        argument_descriptors: Any,  # noqa: ANN401
        offset_provider: Any,  # noqa: ANN401
    ) -> None:
        name = program_pool.definition_stage.definition.__name__
        _log.info("compiling %s for %s", name, backend.name)

    compile_variant_hook.register(say)
