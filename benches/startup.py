"""What `import dlfield` takes beside `import numpy`, in fresh processes."""

import os
import statistics
import subprocess
import sys

from tables import Row, Table, table_of
from timing import EFFORT

PROCESSES = 15
ALLOWED_NS = 5e6
"""How long importing dlfield may take once NumPy is imported: 5 ms."""

TIME_AN_IMPORT = """
import {before}
from time import perf_counter_ns
start = perf_counter_ns()
import {module}
print(perf_counter_ns() - start)
"""

REMARK = "Each time is that of the first import in a fresh process."


def tables() -> list[tuple[Table, list[Row]]]:
    """Compare the imports."""
    rows = _rows("import")
    return [(table_of("import", rows, REMARK), rows)]


def _rows(area: str) -> list[Row]:
    """Time all imports in turns: dlfield's by itself, and what it adds where NumPy is there."""
    imports = [("numpy", "sys"), ("dlfield", "sys"), ("dlfield", "numpy")]
    rounds = range(1 + (2 if EFFORT.quick else PROCESSES))
    times = [[_import_ns(*names) for names in imports] for _ in rounds]
    columns = zip(*times[1:], strict=True)  # the first round warms the disk
    numpy, alone, added = map(statistics.median, columns)
    ours = "import dlfield"
    beside = ("by itself", ours, alone, "import numpy", numpy, alone / numpy)
    after = ("after import numpy", ours, added, "5 ms", ALLOWED_NS, added / ALLOWED_NS)
    return [Row(area, *beside), Row(area, *after, limit=1.0)]


def _import_ns(module: str, before: str) -> int:
    command = [sys.executable, "-c", TIME_AN_IMPORT.format(module=module, before=before)]
    # Installing compiles Python files; where they may not be kept, each import would compile them.
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return int(done.stdout)
