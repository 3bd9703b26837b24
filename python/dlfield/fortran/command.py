"""The command line: `python -m dlfield fortran`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dlfield.fortran.writing import write_library

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

EPILOG = """
exit status:
  0  the files are written
  1  a function cannot be called from Fortran, or is not found
  2  an option is wrong
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, print their names and how to build them; return the exit status."""
    options = _parser().parse_args(arguments)
    sys.path.insert(0, "")  # modules of this folder, as for `python -m`
    try:
        written = write_library(options.functions.split(","), options.library, options.out)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    for path in written:
        print(path)
    print(f"\nbuild with: sh {options.out / 'build.sh'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m dlfield fortran",
        description="Write a Fortran module and a C header whose functions call Python.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("functions", help="package.module:function, more of them after a comma")
    parser.add_argument("--library", required=True, help="name of the module and of the library")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the files")
    return parser
