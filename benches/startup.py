"""What `import dlfield` adds to `import numpy`, in fresh processes."""

import statistics
import subprocess
import sys

from timing import Row

PROCESSES = 9
ALLOWED_NS = 5e6
"""How much longer than NumPy dlfield may take to import: 5 ms."""

TIME_AN_IMPORT = """
from time import perf_counter_ns
start = perf_counter_ns()
import {module}
print(perf_counter_ns() - start)
"""


def rows(area: str) -> list[Row]:
    """Time both imports in turns; `import dlfield` includes its own import of NumPy."""
    pairs = [(_import_ns("numpy"), _import_ns("dlfield")) for _ in range(1 + PROCESSES)]
    numpy_times, dlfield_times = zip(*pairs[1:], strict=True)  # the first pair warms the disk
    theirs, ours = statistics.median(numpy_times), statistics.median(dlfield_times)
    added = statistics.median(d - n for n, d in pairs[1:])
    return [
        Row(area, "whole", "import dlfield", ours, "import numpy", theirs, ours / theirs),
        Row(
            area,
            "beyond NumPy's",
            "import dlfield",
            added,
            "5 ms",
            ALLOWED_NS,
            added / ALLOWED_NS,
            limit=1.0,
        ),
    ]


def _import_ns(module: str) -> int:
    command = [sys.executable, "-c", TIME_AN_IMPORT.format(module=module)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
