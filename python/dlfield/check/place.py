"""The line of the user's program that makes a call."""

from __future__ import annotations

import inspect
import os
import sysconfig
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["line_of_call"]

#: Modules whose frames lie between the program and a call. NDSL makes every call from one line of
#: its own.
_BETWEEN = ("dlfield.", "gt4py.", "ndsl.dsl.")
#: Folders of installed packages: a framework calls stencils for the program that uses it.
_INSTALLED = tuple(
    os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "purelib", "platlib")
)


def line_of_call(stencil: object) -> tuple[str, int]:
    """Return file and line of the innermost frame of the user's program.

    If every frame belongs to an installed package, that of the one that calls GT4Py.
    """
    frames = [frame for frame in _frames() if not _is_between(frame, stencil)]
    own = (frame for frame in frames if not _is_installed(frame.f_code.co_filename))
    frame = next(own, frames[0] if frames else None)
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("<unknown>", 0)


def _frames() -> Iterator[FrameType]:
    """Yield the frames of this thread, the innermost first."""
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_between(frame: FrameType, stencil: object) -> bool:
    """Return True for a frame in between, and for a method that GT4Py generated for the stencil."""
    module = f"{frame.f_globals.get('__name__')}."
    # Reading f_locals keeps the locals alive as long as the frame: the program's are not read.
    may_be_generated = frame.f_code.co_name in ("__call__", "run")
    return module.startswith(_BETWEEN) or (
        may_be_generated and frame.f_locals.get("self") is stencil
    )


def _is_installed(file: str) -> bool:
    return file.startswith(("<frozen ", *_INSTALLED))
