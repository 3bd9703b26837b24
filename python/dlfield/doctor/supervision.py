"""Tries libraries in a process of their own, so that none can end or change this one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import IO, Any

__all__ = ["supervised"]

#: Seconds that one library may take; the first import after an installation compiles its files.
PATIENCE = 180.0


def supervised(names: list[str], patience: float = PATIENCE) -> dict[str, dict[str, Any]]:
    """Try libraries one after the other; after one that ends its process, the others in a new one.

    Returns
    -------
    dict
        What was found, by name. Of a library that ended its process, or took too long, there is
        only ``"error"``.
    """
    found: dict[str, dict[str, Any]] = {}
    while left := [name for name in names if name not in found]:
        begun, ended = _in_one_process(left, found, patience)
        culprit = begun if begun is not None else left[0]
        if culprit not in found:
            found[culprit] = {"error": ended}
    return found


def _in_one_process(
    names: list[str], found: dict[str, dict[str, Any]], patience: float
) -> tuple[str | None, str]:
    """Collect what a child tells; give what it began with last, and how it ended."""
    command = [sys.executable, "-m", "dlfield.doctor.child", *names]
    with subprocess.Popen(
        command,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    ) as child:
        assert child.stdout is not None
        begun, late = None, threading.Event()
        for name, answer in _lines(child, child.stdout, patience, late):
            begun = name
            if answer is not None:
                found[name] = answer
    return begun, f"took longer than {patience:g} s" if late.is_set() else _end(child.returncode)


def _lines(
    child: subprocess.Popen[str], stdout: IO[str], patience: float, late: threading.Event
) -> Any:  # noqa: ANN401 - of JSON
    """Read line by line, and end a child that is silent for too long."""

    def end() -> None:
        late.set()
        child.kill()

    while True:
        timer = threading.Timer(patience, end)
        timer.start()
        try:
            line = stdout.readline()
        finally:
            timer.cancel()
        if not line:
            return
        yield json.loads(line)


def _environment() -> dict[str, str]:
    """Give a child the modules that this process finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _end(status: int) -> str:
    if status >= 0:
        return f"ended the process with status {status}"
    try:
        return f"ended the process ({signal.Signals(-status).name})"
    except ValueError:
        return f"ended the process (signal {-status})"
