"""The command line of the checker: `python -m dlfield check`."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
import threading
from typing import TYPE_CHECKING

from dlfield.check.session import checking

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

STATUS = """
exit status:
  0  the program ended normally, and there are no findings
  1  there are findings, or the program has ended with an exception
  2  an option is wrong
Any other status is the program's own.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, print the summary and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not (options.module or options.script):
        parser.error("needs a script, or -m and a module")
    if options.script and not options.module and not os.path.exists(options.script[0]):
        parser.error(f"expected a script that exists, got '{options.script[0]}'")
    if options.module and not _is_module(options.module[0]):
        parser.error(f"expected a module that can be imported, got '{options.module[0]}'")
    with checking(error=options.error) as report:
        try:
            _run(options.script, options.module)
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
        finally:
            _wait_for_threads()
    return 1 if report.findings else 0


def _run(script: Sequence[str], module: Sequence[str]) -> None:
    """Run it as ``python script`` or ``python -m module`` does."""
    sys.argv[:] = module or script
    if module:
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
        return
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.abspath(script[0]))
    runpy.run_path(script[0], run_name="__main__")


def _is_module(name: str) -> bool:
    """Return whether it, or the package that it is in, is there. Nothing is imported."""
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def _wait_for_threads() -> None:
    """Wait for threads that Python would wait for: what they call belongs to the program.

    Not for those of executors, which wait for work until Python ends them.
    """
    from concurrent.futures import thread

    workers = getattr(thread, "_threads_queues", {})
    own = threading.current_thread()

    def is_awaited(one: threading.Thread) -> bool:
        return not (one.daemon or one is own or one in workers)

    while left := list(filter(is_awaited, threading.enumerate())):
        for one in left:
            one.join()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m dlfield check",
        description="Run a program, and check every call of GT4Py as dlfield.bind does.",
        epilog=STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rest = argparse.REMAINDER
    parser.add_argument("--error", action="store_true", help="raise at the first finding")
    parser.add_argument(
        "-m", dest="module", nargs=rest, default=[], help="a module, and its arguments"
    )
    parser.add_argument("script", nargs=rest, help="a script, and its arguments")
    return parser
