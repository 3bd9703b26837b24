"""The doctor: what dlfield finds on this machine, what works, and what gets in the way.

Its files, each of which uses only those above it::

    libraries       libraries that are looked for
    probes          one probe for each of them: does it share memory with a storage, or copy?
    trial           the process in which they are imported and probed
    supervision     starts and watches that process
    surroundings    versions and settings
    traps           traps of the environment
    report          all of it
    printing        the report as text
    command         ``python -m dlfield``
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dlfield.doctor.printing import text_of
from dlfield.doctor.report import report

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

__all__ = ["show_versions"]


def show_versions(
    only: str | Iterable[str] = (),
    *,
    imports: bool = True,
    as_json: bool = False,
    file: TextIO | None = None,
) -> None:
    """Print what dlfield finds on this machine, as ``python -m dlfield`` does.

    Shows versions, build and settings; the CUDA driver and its devices; every installed library,
    its version, and whether it shares the memory of a storage; traps of the environment, each with
    the way out.

    Libraries are imported in another process, so that a crash does not affect this one. All of them
    take half a minute.

    Parameters
    ----------
    only
        Name of a library, or several; all of them by default.
    imports
        If False, no library is imported: their versions are those that are installed.
    as_json
        Print JSON; its keys are stable.
    file
        Where to print; by default the standard output.

    Raises
    ------
    ValueError
        For the name of an unknown library.

    Examples
    --------
    >>> show_versions("torch")
    dlfield     0.2.0
    build       python, cuda, arrow, ndarray; abi3
    ...
    """
    found = report((only,) if isinstance(only, str) else tuple(only), imports=imports)
    (file or sys.stdout).write(text_of(found, as_json=as_json))
