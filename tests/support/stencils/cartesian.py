"""Stencils whose results show every mistake with axes, and their NumPy references.

GT4Py reads the source of these functions and compiles them: they are never called from Python.
"""

import numpy as np

from support.optional import library

library("gt4py.cartesian.gtscript")

from gt4py.cartesian.gtscript import (  # noqa: E402 (after the skip)
    FORWARD,
    IJ,
    PARALLEL,
    Field,
    I,
    J,
    K,
    computation,
    function,
    horizontal,
    interval,
    region,
)

#: What `skewed` reads around its domain.
SKEWED_HALO = ((0, 1), (2, 0), 0)


def skewed(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp[1, 0, 0] + 2.0 * inp[0, -2, 0] + 3.0 * inp  # noqa: F841 (writes the field)


def skewed_reference(values):
    """Return the output of `skewed`, with -1 where it must not write."""
    out = np.full(values.shape, -1.0)
    out[:-1, 2:] = values[1:, 2:] + 2.0 * values[:-1, :-2] + 3.0 * values[:-1, 2:]
    return out


def split(inp: Field[np.float64], left: Field[np.float64], right: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        left = inp + 1.0  # noqa: F841
        right = inp - 1.0  # noqa: F841


def mixed(
    field: Field[np.float64],
    plane: Field[IJ, np.float64],
    profile: Field[K, np.float64],
    pair: Field[(np.float64, (2,))],
    spare: Field[np.float64],
    *,
    scale: np.float64,
):
    with computation(PARALLEL), interval(...):
        field = field * scale + plane * profile + 10.0 * pair[0, 0, 0][1] - pair[0, 0, 0][0]


def mixed_arguments():
    """Make the fields of `mixed`, each with other dimensions."""
    random = np.random.default_rng(seed=0)
    shapes = {"field": (4, 3, 2), "plane": (4, 3), "profile": (2,), "pair": (4, 3, 2, 2)}
    return {name: random.integers(0, 9, shape).astype("f8") for name, shape in shapes.items()}


def mixed_reference(field, plane, profile, pair, scale):
    """Return what `mixed` makes of `field`."""
    return field * scale + plane[:, :, None] * profile + 10.0 * pair[..., 1] - pair[..., 0]


def optional(
    inp: Field[np.float64],
    out: Field[np.float64],
    scale: float = 2.0,
    extra: Field[np.float64] = None,
):
    with computation(PARALLEL), interval(...):
        out = inp * scale + extra  # noqa: F841


def scaled(field: Field[np.float64], *, scale: float = 2.0):
    with computation(PARALLEL), interval(...):
        field = field * scale


def choose(steps: Field[np.int32], land: Field[bool], out: Field[np.float32], *, more: int):
    with computation(PARALLEL), interval(...):
        out = steps + more if land else out


def ahead(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp[1, 0, 0] + inp[2, 0, 1]  # noqa: F841


def cumulate(inp: Field[np.float64], out: Field[np.float64]):
    with computation(FORWARD):
        with interval(0, 1):
            out = inp
        with interval(1, None):
            out = out[0, 0, -1] + inp


def lowest(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(0, -1):
        out = inp[0, 0, 1]  # noqa: F841


def written_above(inp: Field[np.float64], out: Field[np.float64]):
    """Write the level above the one that is computed: nothing writes the lowest."""
    with computation(FORWARD):
        with interval(0, -1):
            out[0, 0, 1] = inp
        with interval(-1, None):
            out = inp


def far_above(inp: Field[np.float64], out: Field[np.float64]):
    """Read level 6 whatever the domain; GT4Py says that no level is read above it."""
    with computation(PARALLEL):
        with interval(0, 2):
            out = inp[0, 0, 5]
        with interval(2, None):
            out = inp  # noqa: F841


def far_below(inp: Field[np.float64], out: Field[np.float64]):
    """Read the seventh level from the top; GT4Py says that none is read below the domain."""
    with computation(PARALLEL):
        with interval(0, -2):
            out = inp
        with interval(-2, None):
            out = inp[0, 0, -5]  # noqa: F841


def far_above_in_temporary(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        copied = inp
    with computation(PARALLEL):
        with interval(0, 1):
            out = copied[0, 0, 4]
        with interval(1, None):
            out = copied  # noqa: F841


def gathered(inp: Field[np.float64], out: Field[np.float64], shift: Field[np.int32]):
    with computation(PARALLEL), interval(...):
        out = inp[0, 0, shift]  # noqa: F841


def gathered_ints(inp: Field[np.int32], out: Field[np.int32], shift: Field[np.int32]):
    with computation(PARALLEL), interval(...):
        out = inp[0, 0, shift]  # noqa: F841


def by_external(inp: Field[np.float64], out: Field[np.float64]):
    from __externals__ import LEVELS

    with computation(PARALLEL):
        with interval(0, 1):
            out = inp[0, 0, LEVELS]
        with interval(1, None):
            out = inp  # noqa: F841


@function
def level_of(field, index):
    return field[0, 0, index]


@function
def passed_on(field, index):
    return level_of(field, index)


def gathered_in_function(inp: Field[np.float64], out: Field[np.float64], shift: Field[np.int32]):
    with computation(PARALLEL), interval(...):
        out = passed_on(inp, shift)  # noqa: F841


def gathered_in_condition(inp: Field[np.float64], out: Field[np.float64], shift: Field[np.int32]):
    with computation(PARALLEL), interval(...):
        out = inp if inp[0, 0, shift * 1] < 0.0 else inp[0, 0, shift]  # noqa: F841


def from_level_two(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp.at(K=2)  # noqa: F841


NOWHERE = 0


def scaled_at_constants(inp: Field[np.float64], out: Field[np.float64], spare: int):
    with computation(PARALLEL), interval(...):
        out = inp[0, 0, 0] + inp[0, 0, -0] * inp[NOWHERE, 0, NOWHERE] * inp[K + 0]  # noqa: F841


def component(inp: Field[(np.float64, (2,))], out: Field[(np.float64, (2,))], which: int):
    with computation(PARALLEL), interval(...):
        out[0, 0, 0][0] = inp[0, 0, 0][which] + inp[0, 0, 0][1]


def pruned(inp: Field[np.float64], edge: Field[np.float64], out: Field[np.float64]):
    """Read `edge` in a region outside of every domain, which GT4Py leaves out."""
    with computation(PARALLEL), interval(...):
        out = inp
        with horizontal(region[I[0] - 5, :]):
            out = edge  # noqa: F841


def across_the_domain(inp: Field[np.float64], out: Field[np.float64]):
    """Read at each edge what lies three points inside, which a small domain does not have."""
    with computation(PARALLEL), interval(...):
        out = inp
        with horizontal(region[I[0], :]):
            out = inp[3, 0, 0]
        with horizontal(region[:, J[-1]]):
            out = inp[0, -3, 0]  # noqa: F841


def east_of_edge(inp: Field[np.float64], out: Field[np.float64]):
    """Treat three points differently, be there so many or not."""
    with computation(PARALLEL), interval(...):
        out = inp
        with horizontal(region[: I[0] + 3, :]):
            out = 2.0 * inp[1, 0, 0]  # noqa: F841


def doubled_edge(inp: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = inp
        with horizontal(region[I[0] : I[0] + 2, :]):
            out = 2.0 * inp  # noqa: F841


def pruned_level(inp: Field[np.float64], out: Field[np.float64]):
    """Read far above in a region outside of every domain, which GT4Py leaves out."""
    with computation(PARALLEL):
        with interval(0, 1):
            out = inp
            with horizontal(region[I[0] - 1, :]):
                out = inp[0, 0, 5]
        with interval(1, None):
            out = inp  # noqa: F841


def unused_beside(inp: Field[np.float64], out: Field[np.float64]):
    """Compute at the west edge, and beside the domain what GT4Py leaves out: nothing uses it."""
    with computation(PARALLEL), interval(...):
        half = 0.5 * inp
        with horizontal(region[I[0] : I[0] + 3, :]):
            half = 2.0 * inp
    with computation(PARALLEL), interval(...):
        unused = half[2, 0, 0]  # noqa: F841
    with computation(FORWARD), interval(...):
        out = half  # noqa: F841


def sliced_level(inp: Field[np.float64], out: Field[np.float64]):
    """Read far below in a region right behind every domain, which GT4Py keeps, without a point."""
    with computation(PARALLEL):
        with interval(0, -1):
            out = inp
        with interval(-1, None):
            out = inp
            with horizontal(region[:, J[-1] + 1]):
                out = inp[0, 0, -2]  # noqa: F841


def smoothed(inp: Field[np.float64], out: Field[np.float64]):
    """Read `inp` at the point alone, for a temporary field that is read beside it."""
    with computation(PARALLEL), interval(...):
        half = 0.5 * inp
    with computation(PARALLEL), interval(...):
        out = half[-1, 0, 0] + half[0, 2, 0]  # noqa: F841


def lowered(inp: Field[np.float64], out: Field[np.float64]):
    """Read `inp` at the point alone, for a temporary field that is read one level higher."""
    with computation(PARALLEL), interval(...):
        copied = inp
    with computation(PARALLEL), interval(0, -1):
        out = copied[0, 0, 1]  # noqa: F841


def doubled_until(inp: Field[np.float64], out: Field[np.float64], *, limit: float):
    with computation(PARALLEL), interval(...):
        out = inp
        while out < limit:
            out = 2.0 * out


def chosen_beside(inp: Field[np.float64], land: Field[np.float64], out: Field[np.float64]):
    """Read `land` at a neighbour, in a condition alone."""
    with computation(PARALLEL), interval(...):
        if land[1, 0, 0] > 0.0:  # noqa: SIM108 (another node)
            out = inp
        else:
            out = -inp  # noqa: F841


def counted(inp: Field[np.float64], total: Field[IJ, np.float64]):
    """Write a plane again for every level."""
    with computation(FORWARD), interval(...):
        total = total + inp


def highest_plane(inp: Field[np.float64], out: Field[IJ, np.float64]):
    """Write a plane at every level: the highest one stays."""
    with computation(FORWARD), interval(...):
        out = inp  # noqa: F841


def scaled_plane(inp: Field[IJ, np.float64], out: Field[IJ, np.float64]):
    """Write a plane once."""
    with computation(FORWARD), interval(0, 1):
        out = 2.0 * inp  # noqa: F841


def raised_then_doubled(
    inp: Field[np.float64], raised: Field[np.float64], doubled: Field[np.float64]
):
    """Read an input again after another field was written."""
    with computation(PARALLEL), interval(...):
        raised = inp + 100.0  # noqa: F841
    with computation(PARALLEL), interval(...):
        doubled = 2.0 * inp  # noqa: F841


def raised_below_doubled_above(
    inp: Field[np.float64], raised: Field[np.float64], doubled: Field[np.float64]
):
    """Read an input at other levels than another field was written at."""
    with computation(PARALLEL):
        with interval(0, 2):
            raised = inp + 100.0  # noqa: F841
        with interval(2, None):
            doubled = 2.0 * inp  # noqa: F841


def plane_below_and_above(
    plane: Field[IJ, np.float64], out: Field[IJ, np.float64], up: Field[np.float64]
):
    """Read a plane again at a level above."""
    with computation(FORWARD):
        with interval(0, 1):
            out = plane + up  # noqa: F841
        with interval(1, 2):
            up = 2.0 * plane
