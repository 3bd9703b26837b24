"""The process in which libraries are tried: `python -m dlfield.doctor.child NAME...`.

It writes one line of JSON when it begins with a library, and one when it is through with it.
"""

from __future__ import annotations

import json
import os
import sys

from dlfield.doctor.libraries import chosen
from dlfield.doctor.trial import cuda, tried

__all__ = ["main"]


def main(names: list[str]) -> None:
    """Try libraries by name, and first of all the driver of CUDA."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as lines:
        os.dup2(2, 1)  # what libraries print is no part of the answer

        def tell(name: str, found: object) -> None:
            lines.write(json.dumps([name, found]) + "\n")
            lines.flush()

        for name in names:
            tell(name, None)
            tell(name, cuda() if name == "CUDA" else tried(chosen((name,))[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(0)  # what libraries do at the end, as threads and MPI, is not asked for
