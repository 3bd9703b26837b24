"""What a bound call of a gt4py.next program costs beside GT4Py's own.

The fields are so small that computing them takes next to nothing. `program(...)` is GT4Py's call of
a compiled program, with fields that are there; `compiled(...)` is that call without the check of
types, which GT4Py leaves out under `python -O`; `from arrays` makes the fields first, as a program
has to whose arrays come from elsewhere.
"""

import gt4py.next as gtx
import numpy as np
from gt4py.next import Dims, float64
from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Peer, load, sample, summarise

SHAPE = (8, 8, 8)
IDim, JDim = gtx.Dimension("I"), gtx.Dimension("J")
KDim = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Cells = gtx.Field[Dims[IDim, JDim, KDim], float64]


@gtx.field_operator
def sum_of_two(f0: Cells, f1: Cells) -> Cells:
    """Read two fields."""
    return f0 + f1


@gtx.field_operator
def sum_of_nine(
    f0: Cells,
    f1: Cells,
    f2: Cells,
    f3: Cells,
    f4: Cells,
    f5: Cells,
    f6: Cells,
    f7: Cells,
    f8: Cells,
) -> Cells:
    """Read nine fields."""
    return f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8


@gtx.program
def three(f0: Cells, f1: Cells, out: Cells) -> None:
    """Read two fields."""
    sum_of_two(f0, f1, out=out)


@gtx.program
def ten(
    f0: Cells,
    f1: Cells,
    f2: Cells,
    f3: Cells,
    f4: Cells,
    f5: Cells,
    f6: Cells,
    f7: Cells,
    f8: Cells,
    out: Cells,
) -> None:
    """Read nine fields."""
    sum_of_nine(f0, f1, f2, f3, f4, f5, f6, f7, f8, out=out)


FIELDS = {"three": 3, "ten": 10}
ARGUMENTS = {
    "NumPy": "np.zeros(SHAPE)",
    "torch": "torch.zeros(SHAPE, dtype=torch.float64)",
    "xarray": "xr.DataArray(np.zeros(SHAPE), dims=('I', 'J', 'K'))",
    "Storage": "dlf.zeros(SHAPE)",
}
"""Per kind of argument: how one is made."""

SETUP = """
run = dlf.bind(program)
fields = [{make} for _ in range({count})]
domain = gtx.domain(dict(zip((IDim, JDim, KDim), SHAPE)))
arrays = [np.asarray(field) for field in fields]
own = [gtx.as_field(domain, array) for array in arrays]
program(*own, offset_provider={{}})
compiled = program._compiled_programs
"""
OURS = "run(*fields)"
OWN = "program(*own, offset_provider={})"
COMPILED = "compiled(*own, offset_provider={}, enable_jit=True)"
FROM_ARRAYS = "program(*[gtx.as_field(domain, array) for array in arrays], offset_provider={})"
LIMITS = {"NumPy": 1.0, "Storage": 1.0}
"""How much of GT4Py's own call a call with all checks may take."""

REMARK = (
    "`program(...)` is GT4Py's call of a program that gtfn_cpu has compiled, with fields that are "
    "there; `compiled` leaves the check of types out, as GT4Py does under `python -O`; the last "
    "peer makes its fields of arrays, which copies them. Fields are 8 x 8 x 8."
)


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure both programs with every kind of argument; in a hurry nothing is compiled."""
    if EFFORT.quick:
        return []
    names = {"SHAPE": SHAPE, "IDim": IDim, "JDim": JDim, "KDim": KDim, "gtx": gtx, "np": np}
    names |= {"dlf": load("dlfield"), "torch": load("torch"), "xr": load("xarray")}
    area, found = "gt4py.next call", []
    for program in (three, ten):
        names["program"] = program.with_backend(gtx.gtfn_cpu)
        count = FIELDS[program.__name__]
        for kind, make in ARGUMENTS.items():
            what = f"gtfn_cpu, {program.__name__} fields, {kind}"
            peers = [Peer(OWN, LIMITS.get(kind)), Peer(COMPILED), Peer(FROM_ARRAYS)]
            setup = SETUP.format(make=make, count=count)
            comparison = Comparison(what, OURS, peers, setup, names)
            samples, problems = sample(comparison)
            found += [summarise(area, comparison, peer, samples, problems) for peer in peers]
    return [(table_of(area, found, REMARK), found)]
