"""What a bound stencil call costs beside GT4Py's own.

The fields are so small that computing them takes next to nothing. `stencil(...)` is GT4Py's call
after its first, when everything is cached; a frozen stencil takes arrays alone, at an origin and a
domain that were given once, and checks nothing; `stencil.run(...)` is what all end in. Without it
the Python side of either call is left.
"""

from dataclasses import replace

import numpy as np
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval
from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Peer, Samples, load, sample, summarise

SHAPE = (8, 8, 8)
F64 = Field[np.float64]


def two(f0: F64, out: F64) -> None:
    """Read one field."""
    with computation(PARALLEL), interval(...):
        out = f0  # noqa: F841 (assigning to a parameter writes the field)


def three(f0: F64, f1: F64, out: F64) -> None:
    """Read two fields."""
    with computation(PARALLEL), interval(...):
        out = f0 + f1  # noqa: F841


def ten(
    f0: F64, f1: F64, f2: F64, f3: F64, f4: F64, f5: F64, f6: F64, f7: F64, f8: F64, out: F64
) -> None:
    """Read nine fields."""
    with computation(PARALLEL), interval(...):
        out = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8  # noqa: F841


STENCILS = [
    ("gt:cpu_kfirst", two),
    ("gt:cpu_kfirst", three),
    ("gt:cpu_kfirst", ten),
    ("numpy", three),
    ("numpy", ten),
]

ARGUMENTS = {
    "NumPy": "np.zeros(SHAPE)",
    "torch": "torch.zeros(SHAPE, dtype=torch.float64)",
    "xarray": "xr.DataArray(np.zeros(SHAPE), dims=('I', 'J', 'K'))",
    "Storage": "dlf.zeros(SHAPE)",
}
"""Per kind of argument: how one is made."""
OF_FROZEN = {
    ("NumPy", "three"): 1.1,
    ("NumPy", "ten"): 1.3,
    ("torch", "three"): 1.4,
    ("torch", "ten"): 1.7,
    ("Storage", "three"): 1.15,
    ("Storage", "ten"): 1.2,
}
"""How much of the time of a frozen stencil a call with all checks may take."""
OF_PYTHON_SIDE = {"NumPy": 1.0, "torch": 0.5, "xarray": 0.5}
"""How much of GT4Py's Python side may be taken."""

SETUP = """
run = dlf.bind(stencil)
fields = [{make} for _ in stencil.field_info]
bare = dict(zip(stencil.field_info, map(np.asarray, fields)))
named = dict(bare)
frozen = stencil.freeze(origin=dict.fromkeys(bare, (0, 0, 0)), domain=SHAPE)
bare.update(_domain_=SHAPE, _origin_=dict.fromkeys(bare, (0, 0, 0)), exec_info=None)
"""
OURS = "run(*fields)"
THEIRS = Peer("stencil(*fields)")
BARE = Peer("stencil.run(**bare)")
FROZEN = "frozen(**named)"

REMARK = (
    "`stencil(...)` is GT4Py's call once everything is cached; `frozen` takes arrays alone and "
    "checks nothing; `stencil.run` is what all end in. Python side: without it. Fields are "
    "8 x 8 x 8."
)


def bound(backend: str) -> object:
    """Bind the stencil of three fields."""
    return load("dlfield").bind(gtscript.stencil(backend=backend, definition=three))


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure every stencil with every kind of argument."""
    names = {"SHAPE": SHAPE, "np": np}
    names |= {"dlf": load("dlfield"), "torch": load("torch"), "xr": load("xarray")}
    area, found = "stencil call", []
    for backend, definition in _stencils():
        names["stencil"] = gtscript.stencil(backend=backend, definition=definition)
        for kind, make in ARGUMENTS.items():
            what = f"{backend}, {definition.__name__} fields, {kind}"
            frozen = Peer(FROZEN, OF_FROZEN.get((kind, definition.__name__)))
            peers, setup = [frozen, THEIRS, BARE], SETUP.format(make=make)
            found += _rows_of(
                area, Comparison(what, OURS, peers, setup, names), OF_PYTHON_SIDE.get(kind)
            )
    return [(table_of(area, found, REMARK), found)]


def _stencils() -> list[tuple[str, object]]:
    """In a hurry only what needs no compiler."""
    return [stencil for stencil in STENCILS if not EFFORT.quick or stencil[0] == "numpy"]


def _rows_of(area: str, comparison: Comparison, limit: float | None) -> list[Row]:
    """Return the whole call beside those of GT4Py, then the Python sides beside each other."""
    samples, problems = sample(comparison)
    whole = [summarise(area, comparison, peer, samples, problems) for peer in comparison.peers]
    side = replace(comparison, what=f"{comparison.what}: Python side")
    peer = Peer(THEIRS.statement, limit)
    return [*whole, summarise(area, side, peer, _python_side(samples), problems)]


def _python_side(samples: Samples) -> Samples:
    """Take the bare run of each round off the calls of that round."""
    if BARE.statement not in samples:
        return {}
    bare = samples[BARE.statement]
    return {
        statement: [max(t - b, 1.0) for t, b in zip(times, bare, strict=True)]
        for statement, times in samples.items()
    }
