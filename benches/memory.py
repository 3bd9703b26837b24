"""How much memory a copy into another layout needs at its peak, in fresh processes.

The target: source and destination, and less than 1 MB.
"""

import subprocess
import sys

from tables import Row, Table, table_of
from timing import EFFORT

ALLOWED = 1e6
SHAPES = ((256, 256, 80), (512, 512, 128))

# A small copy goes first: what code and threads need once is no part of the copy that counts. The
# source is written: memory that is only reserved would not be in use before the copy.
BEYOND = """
import dlfield as dlf, numpy as np

def in_use(line):
    with open("/proc/self/status") as status:
        return next(int(text.split()[1]) * 1024 for text in status if text.startswith(line))

source = dlf.full((32, 32, 32), 1.0)
copy = {statement}
source = dlf.full({shape}, 1.0)
before = in_use("VmRSS")
copy = {statement}
print(in_use("VmHWM") - before - source.nbytes)
"""

OURS = "dlf.storage(source, layout=(2, 1, 0))"
THEIRS = "np.array(source.to_numpy(), order='F')"

REMARK = (
    "By how much the memory in use grows at most while the copy is made, beyond the copy itself."
)


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure copies that are allocated."""
    area = "memory of a copy"
    shapes = [(64, 64, 64)] if EFFORT.quick else SHAPES
    rows = [row for shape in shapes for row in _rows(area, shape)]
    return [(table_of(area, rows, REMARK), rows)]


def _rows(area: str, shape: tuple[int, int, int]) -> list[Row]:
    what = f"{' x '.join(map(str, shape))} float64, IJK to KJI"
    ours, theirs = _beyond(shape, OURS), _beyond(shape, THEIRS)
    return [
        Row(area, what, OURS, ours, "1 MB", ALLOWED, ours / ALLOWED, limit=1.0, unit="bytes"),
        Row(area, what, OURS, ours, THEIRS, theirs, None, unit="bytes"),
    ]


def _beyond(shape: tuple[int, int, int], statement: str) -> int:
    command = [sys.executable, "-c", BEYOND.format(shape=shape, statement=statement)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
