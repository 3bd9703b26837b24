"""The command line of the doctor: `python -m dlfield`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from dlfield.doctor.libraries import chosen
from dlfield.doctor.printing import text_of
from dlfield.doctor.report import report

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

STATUS = """
exit status:
  0  everything that was tried works
  1  an installed library fails to import, or its probe copies or fails
  2  an option is wrong
Traps in the environment do not change the status. Libraries that are not installed are not tried.

`python -m dlfield check` runs a program and checks its calls of GT4Py; see its --help.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        chosen(tuple(options.only))
    except ValueError as error:
        parser.error(str(error))
    found = report(tuple(options.only), imports=not options.no_import)
    sys.stdout.write(text_of(found, as_json=options.json))
    return 0 if found["ok"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m dlfield",
        description="Report what dlfield finds here, what works, and what gets in the way.",
        epilog=STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON; its keys are stable")
    parser.add_argument("--no-import", action="store_true", help="read versions; import nothing")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this library; repeatable"
    )
    return parser
