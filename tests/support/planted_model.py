"""A small model with three mistakes that GT4Py runs through: ``python planted_model.py [steps]``.

`run` makes them, `run_well` does the same without. Lines with a mistake end in the word planted.
"""

import sys

import gt4py.next as gtx
import numpy as np
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval
from gt4py.next import where

HALO, POINTS = 3, 12
PLACE = {"origin": (HALO, 0, 0), "domain": (POINTS, 1, 2)}

Edge = gtx.Dimension("Edge")
OnEdges = gtx.Field[gtx.Dims[Edge], gtx.float64]
Mask = gtx.Field[gtx.Dims[Edge], bool]


def stage(u_old: Field[np.float64], u_now: Field[np.float64], u_out: Field[np.float64], dt: float):
    """Advance u_old by the slope of u_now, which is of sixth order."""
    with computation(PARALLEL), interval(...):
        near = 45.0 * (u_now[1, 0, 0] - u_now[-1, 0, 0])
        far = u_now[3, 0, 0] - u_now[-3, 0, 0] - 9.0 * (u_now[2, 0, 0] - u_now[-2, 0, 0])
        u_out = u_old - dt * u_now * (near + far)  # noqa: F841 (writes the field)


def split(total: Field[np.float64], rain: Field[np.float64], snow: Field[np.float64]):
    """Split what falls."""
    with computation(PARALLEL), interval(...):
        rain = 0.75 * total  # noqa: F841 (writes the field)
        snow = 0.25 * total  # noqa: F841 (writes the field)


@gtx.field_operator
def damped(values: OnEdges, at_boundary: Mask) -> OnEdges:
    return where(at_boundary, 0.0, values)


class Model:
    """The fields, and the stencils on one backend."""

    def __init__(self, backend="numpy"):
        self.stage = gtscript.stencil(backend=backend, definition=stage)
        self.split = gtscript.stencil(backend=backend, definition=split)
        line = np.sin(np.arange(POINTS + 2 * HALO))[:, None, None]
        self.u = np.broadcast_to(line, (POINTS + 2 * HALO, 1, 2)).copy()
        self.u_new, self.rain, self.snow = self.u.copy(), self.u.copy(), self.u.copy()
        self.edges, self.damped = (gtx.as_field([Edge], self.u[:, 0, 0]) for _ in range(2))
        self.mask = gtx.as_field([Edge], (np.arange(POINTS + 2 * HALO) < HALO).astype(float))

    def run(self, steps):
        """Step, and return all values."""
        for _ in range(steps):
            self.stage(self.u, self.u, self.u_new, 0.001, **PLACE)
            self.stage(self.u, self.u_new, self.u_new, 0.002, **PLACE)  # planted
            self.split(self.u_new, self.rain, self.rain)  # planted
            damped(self.edges, self.mask, out=self.damped, offset_provider={})  # planted
        return self.values()

    def run_well(self, steps):
        """Step without mistakes."""
        mask = gtx.as_field([Edge], self.mask.asnumpy().astype(bool))
        for _ in range(steps):
            self.stage(self.u, self.u, self.u_new, 0.001, **PLACE)
            self.stage(self.u, self.u_new.copy(), self.u_new, 0.002, **PLACE)
            self.split(self.u_new, self.rain, self.snow)
            damped(self.edges, mask, out=self.damped, offset_provider={})
        return self.values()

    def values(self):
        return np.concatenate([self.u_new.ravel(), self.rain.ravel(), self.damped.asnumpy()])


def planted_lines():
    """Return the numbers of the lines that are planted."""
    with open(__file__, encoding="utf-8") as file:
        return [at for at, line in enumerate(file, 1) if line.rstrip().endswith("# planted")]


if __name__ == "__main__":
    print(Model().run(int((sys.argv[1:] or ["2"])[0])).tobytes().hex())
