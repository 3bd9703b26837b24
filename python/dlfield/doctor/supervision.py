"""Tries libraries in a process of their own, so that none can end or change this one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

__all__ = ["supervised"]

#: Seconds that one library may take; the first import after an installation compiles its files.
PATIENCE = 180.0


def supervised(names: list[str], patience: float = PATIENCE) -> dict[str, dict[str, Any]]:
    """Try libraries one after another. If one ends the process, the others are tried in a new one.

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
    """Collect the answers of a child; return the library that it began last, and how it ended."""
    begun, waited, folders = None, 0.0, [one for one in sys.path if isinstance(one, str) and one]
    with subprocess.Popen(
        [sys.executable, "-m", "dlfield.doctor.trial", *names],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    ) as child:
        while child.stdout is not None:
            started, timer = time.monotonic(), threading.Timer(patience, child.kill)
            timer.daemon = True
            timer.start()
            try:
                line = child.stdout.readline()
            finally:  # also after Ctrl-C
                timer.cancel()
            waited = time.monotonic() - started
            if not line:
                break
            begun, answer = json.loads(line)
            if answer is not None:
                found[begun] = answer
    late = waited >= patience
    return begun, f"took longer than {patience:g} s" if late else _end(child.returncode)


def _end(status: int) -> str:
    if status >= 0:
        return f"ended the process with status {status}"
    try:
        return f"ended the process ({signal.Signals(-status).name})"
    except ValueError:
        return f"ended the process (signal {-status})"
