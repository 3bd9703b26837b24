"""What filling the halos of several fields takes on two ranks of MPI, beside exchanges by hand.

Fields of 128 x 128 x 80 points with a halo of three points along I and J, periodic: eight
directions. Narrow faces are those along I alone where I is fastest in memory: rows of 3 points.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Peer, Samples, summarise

HERE = Path(__file__).parent
#: Environments with another MPI, which `make bench` makes, and with GHEX, by `make ghex`.
MPICH, GHEX = (HERE.parent / "target" / name / "bin/python" for name in ("mpich", "ghex"))
#: Everything stays on this machine.
SETTINGS = {
    "HWLOC_COMPONENTS": "-gl",
    "MPICH_INTERFACE_HOSTNAME": "127.0.0.1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,sm",
    "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_pml": "ob1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
OURS = "packed.exchange()"
PEERS = ("alltoallw", "ghex")
REMARK = (
    "Two ranks on one machine; the time is that of the slower one. Each exchange is planned once, "
    "one message per neighbour for all fields, and was seen to fill the halos with the same bits. "
    "`packed` is the engine of dlfield. `numpy_packed` assigns slices of NumPy to "
    "kept buffers, with persistent requests; `alltoallw` is `Neighbor_alltoallw` with subarrays; "
    "`ghex` is GHEX's communication object. float64, 128 x 128 x 80 points, a halo of 3 along I "
    "and J, periodic; narrow faces are those along I with I fastest."
)


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure both layouts, by each MPI that there is."""
    import mpi4py  # noqa: F401 - without it the area is not measured

    rows = []
    for name, python in mpis().items():
        for what, case in cases(name):
            samples, problems = measured(python, case)
            limit = 0.6 if case["narrow"] else 1.0
            peers = [Peer("numpy_packed.exchange()", limit), *map(Peer, _statements(PEERS))]
            comparison = Comparison(what, OURS, peers)
            rows += [summarise("halo", comparison, peer, samples, problems) for peer in peers]
    return [(table_of("halo", rows, REMARK), rows)]


def mpis() -> dict[str, Path]:
    """Return the Pythons of environments that have an MPI."""
    found = {"Open MPI": GHEX if GHEX.exists() else Path(sys.executable), "MPICH": MPICH}
    return {name: one for name, one in found.items() if one.with_name("mpiexec").exists()}


def cases(mpi: str) -> Iterator[tuple[str, dict]]:
    """Describe each row by name."""
    shape = (16, 16, 8) if EFFORT.quick else (128, 128, 80)
    kinds = [("IJK", False), ("KJI", False), ("KJI", True)]
    for (order, narrow), fields in product(kinds, (1, 4, 10)):
        faces = "narrow faces" if narrow else "all faces"
        what = f"{mpi}, {order}, {fields} field{'s' * (fields > 1)}, {faces}"
        yield what, {"order": order, "narrow": narrow, "fields": fields, "shape": shape}


def measured(python: Path, case: dict) -> tuple[Samples, dict[str, str]]:
    """Let two ranks measure a case."""
    effort = {"rounds": EFFORT.rounds, "repetitions": 2 if EFFORT.quick else 10}
    statements = [OURS, *_statements(("numpy_packed", *PEERS))]
    given = json.dumps({**case, **effort, "statements": statements})
    start = [str(python.with_name("mpiexec")), "-n", "2", str(python), "-m", "mpi4py"]
    done = subprocess.run(
        [*start, str(HERE / "halo_ranks.py"), given],
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    return found["samples"], found["problems"]


def _statements(names: tuple[str, ...]) -> list[str]:
    return [f"{name}.exchange()" for name in names]
