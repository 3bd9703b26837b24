"""The command line of the doctor: `python -m dlfield`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from dlfield.doctor.printing import text_of
from dlfield.doctor.report import report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield.doctor.words import Library

__all__ = ["main"]

STATUS = """
exit status:
  0  everything that was tried works
  1  an installed library fails to import, or an exchange differs from docs/protocols.md
  2  an option is wrong
Traps in the environment do not change the status. Libraries that are not installed are not tried.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report, or the table of pairs, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.what == "table":
        return _print_table()
    try:
        found = report(tuple(options.only), imports=not options.no_import)
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write(json.dumps(found, indent=2) + "\n" if options.json else text_of(found))
    return 0 if found["ok"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m dlfield",
        description="Report what dlfield finds here, what works, and what gets in the way.",
        epilog=STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        nargs="?",
        choices=("report", "table"),
        default="report",
        help="the report (default), or the table of docs/protocols.md for this machine",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, whose keys stay the same")
    parser.add_argument(
        "--no-import", action="store_true", help="read installed versions; import nothing"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this library; repeatable"
    )
    return parser


def _print_table() -> int:
    """Try every pair of the libraries that can be imported."""
    os.environ["JAX_ENABLE_X64"] = "1"  # before JAX is imported
    from dlfield.doctor.deviations import DEVIATIONS
    from dlfield.doctor.sides import CONSUMERS, PRODUCERS
    from dlfield.doctor.table import cell_of, notes, table

    producers = [side for side in PRODUCERS if _there(side.library)]
    consumers = [side for side in CONSUMERS if _there(side.library)]
    text = table(producers, consumers, cell_of)
    shown = [
        known
        for known in DEVIATIONS
        if any(
            known.concerns(one.library.name, two.entry) for one in producers for two in consumers
        )
    ]
    sys.stdout.write(f"{text}\n{notes(shown)}")
    return 1 if "(expected: " in text else 0


def _there(library: Library) -> bool:
    try:
        for module in library.modules:
            import_module(module)
    except Exception as error:
        if not isinstance(error, ModuleNotFoundError):
            sys.stderr.write(f"{library.name}: left out: {type(error).__name__}: {error}\n")
        return False
    return True
