"""What derived adjoints and tangents cost beside the stencils that they come from.

Each of seven stencils is compiled for gt:cpu_kfirst, with fields of 138 x 138 x 80 points. An
adjoint computes at more points than the stencil; here both compute on the same domain.
"""

import sys
from pathlib import Path

import dlfield as dlf
import gt4py.cartesian.gtscript as gtscript
import numpy as np
from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Peer, sample, summarise

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

BACKEND = "gt:cpu_kfirst"
HALO, SHAPE = 5, (128, 128, 80)
LIMITS = {"adjoint": 4.0, "tangent": 2.5}
REMARK = (
    "Ratios are of one call to one call of the stencil, both by GT4Py without checks of bounds."
)


def _arguments(stencil: object) -> dict[str, object]:
    """Return fields of values between 0.5 and 1.5, by name; a diagonal that dominates."""
    random, made = np.random.default_rng(0), {}
    for name, info in stencil.field_info.items():  # type: ignore[attr-defined]
        if info is not None:
            shape = (SHAPE[0] + 2 * HALO, SHAPE[1] + 2 * HALO, SHAPE[2])
            made[name] = dlf.zeros(shape, info.dtype, backend=BACKEND, dims="IJK")
            made[name][...] = random.uniform(0.5, 1.5, shape) + 4.0 * (name == "diagonal")
    numbers = stencil.parameter_info  # type: ignore[attr-defined]
    return made | {name: 0.3 for name, info in numbers.items() if info is not None}


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure all; in a hurry nothing is compiled."""
    if EFFORT.quick:
        return []
    from support.stencils.seven import SEVEN

    found = []
    where = {"origin": (HALO, HALO, 0), "domain": SHAPE}
    for definition in SEVEN:
        stencil = gtscript.stencil(backend=BACKEND, definition=definition)
        names = {"stencil": stencil, "given": _arguments(stencil), "where": where}
        for kind, derive in (("adjoint", dlf.adjoint), ("tangent", dlf.tangent)):
            derived = derive(stencil)
            own = {"derived": derived, "more": _arguments(derived)}
            peer = Peer("stencil(**given, **where)", LIMITS[kind])
            case = f"{kind} of {definition.__name__}"
            comparison = Comparison(case, "derived(**more, **where)", [peer], "", names | own)
            samples, problems = sample(comparison)
            found.append(summarise("derivatives", comparison, peer, samples, problems))
    return [(table_of("derivatives", found, REMARK), found)]
