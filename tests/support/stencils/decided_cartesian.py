"""Decided calls of gt4py.cartesian: offsets, intervals, regions, shared memory, origin and domain.

The stencils are those of `support.stencils.cartesian`.
"""

import numpy as np

from support.stencils.decided_calls import (
    TAKEN,
    Row,
    buffer_error,
    grid,
    made,
    numbers,
    value_error,
)

PYTHON = ("numpy", "debug")
COMPILED = ("gt:cpu_kfirst", "gt:cpu_ifirst")
#: By stencil; dace compiles few of them.
BACKENDS = dict.fromkeys(("skewed", "far_above", "cumulate", "doubled_edge"), ("dace:cpu",))


def backends(row):
    return row.backends or (*PYTHON, *COMPILED, *BACKENDS.get(row.stencil, ()))


# --- references ----------------------------------------------------------------------------------


def skewed(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i + 1, j, k] + 2.0 * inp[i, j - 2, k] + 3.0 * inp[i, j, k]


def ahead(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i + 1, j, k] + inp[i + 2, j, k + 1]


def far_above(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i, j, k + 5 * (k < 2)]


def far_below(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i, j, k - 5 * (k >= len(k_s) - 2)]


def far_above_in_temporary(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i, j, 4 if k == 0 else k]


def lowest(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s[:-1]):
        out[i, j, k] = inp[i, j, k + 1]


def cumulate(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i, j, k] + (out[i, j, k - 1] if k else 0.0)


def across_the_domain(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i + 3 * (i == 0), j, k]
    for i, k in grid(i_s, k_s):
        out[i, len(j_s) - 1, k] = inp[i, len(j_s) - 4, k]


def east_of_edge(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = 2.0 * inp[i + 1, j, k] if i < 3 else inp[i, j, k]


def doubled_edge(i_s, j_s, k_s, inp, out):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = (2.0 if i < 2 else 1.0) * inp[i, j, k]


def split(i_s, j_s, k_s, inp, left, right):
    for i, j, k in grid(i_s, j_s, k_s):
        left[i, j, k], right[i, j, k] = inp[i, j, k] + 1.0, inp[i, j, k] - 1.0


def scaled(i_s, j_s, k_s, field, scale):
    for i, j, k in grid(i_s, j_s, k_s):
        field[i, j, k] = field[i, j, k] * scale


def gathered(i_s, j_s, k_s, inp, out, shift):
    for i, j, k in grid(i_s, j_s, k_s):
        out[i, j, k] = inp[i, j, k + int(shift[i, j, k])]


def mixed(i_s, j_s, k_s, field, plane, profile, pair, scale, spare):
    for i, j, k in grid(i_s, j_s, k_s):
        more = 10.0 * pair[i, j, k, 1] - pair[i, j, k, 0]
        field[i, j, k] = field[i, j, k] * scale + plane[i, j] * profile[k] + more


# --- arrays --------------------------------------------------------------------------------------


def in_place(shape, *names):
    """Return a function that makes one array for several names."""

    def make():
        return dict.fromkeys(names, numbers("memory", *shape))

    return make


def views(shape, **indices):
    """Return a function that makes views of one array."""

    def make():
        memory = numbers("memory", *shape)
        return {name: memory[at] for name, at in indices.items()}

    return make


def read_only(name, arguments):
    def make():
        found = arguments()
        found[name].flags.writeable = False
        return found

    return make


def changed(arguments, **changes):
    """Return a function that makes the arguments, and gives some of them to functions."""

    def make():
        found = arguments()
        return found | {name: change(found.get(name)) for name, change in changes.items()}

    return make


def shifts(value):
    """Return a function that makes the arguments of `gathered`, with one shift for all points."""
    arrays = made(inp=(2, 2, 5), out=(2, 2, 4))
    return changed(arrays, shift=lambda _: np.full((2, 2, 4), value, np.int32))


def repeated(array):
    return np.broadcast_to(array[:1], array.shape)


def writable_repeated(array):
    return np.lib.stride_tricks.as_strided(array, array.shape, (0, *array.strides[1:]))


MIXED = made(field=(4, 3, 2), plane=(4, 3), profile=(2,), pair=(4, 3, 2, 2))
MIXED = changed(MIXED, scale=lambda _: np.float64(2.0), spare=lambda _: None)
WIDE = made(inp=(5, 7, 2), out=(4, 5, 2))
SAME = made(inp=(5, 7, 2), out=(5, 7, 2))
OF_WIDE = {"origin": {"inp": (0, 2, 0), "out": (0, 0, 0)}, "domain": (4, 5, 2)}
OF_SAME = {"origin": (0, 2, 0), "domain": (4, 5, 2)}


# --- the table -----------------------------------------------------------------------------------

OFFSETS = [
    Row("offsets of both signs take an input of just their points", "skewed", WIDE, TAKEN, OF_WIDE),
    Row(
        "one origin counts for all fields of one shape",
        "skewed",
        SAME,
        TAKEN,
        OF_SAME,
    ),
    Row(
        "a point that is missing above along I is refused",
        "skewed",
        made(inp=(4, 7, 2), out=(4, 5, 2)),
        value_error("'inp'", "expected", "along I"),
        OF_WIDE,
    ),
    Row(
        "a point that is missing below along J is refused",
        "skewed",
        WIDE,
        value_error("'inp'", "expected", "along J"),
        {"origin": {"inp": (0, 1, 0), "out": (0, 0, 0)}, "domain": (4, 5, 2)},
    ),
    Row(
        "points that no offset reaches below are not asked for along I",
        "skewed",
        made(inp=(8, 9, 2), out=(4, 5, 2)),
        TAKEN,
        {"origin": {"inp": (3, 3, 0), "out": (0, 0, 0)}, "domain": (4, 5, 2)},
    ),
    Row(
        "an origin of the input that is one too high is refused",
        "skewed",
        WIDE,
        value_error("'inp'", "expected", "along I"),
        {"origin": {"inp": (1, 2, 0), "out": (0, 0, 0)}, "domain": (4, 5, 2)},
    ),
    Row(
        "a level that is missing above is refused",
        "ahead",
        made(inp=(6, 3, 2), out=(4, 3, 2)),
        value_error("'inp'", "expected", "along K"),
        {"domain": (4, 3, 2)},
    ),
    Row(
        "the second point above along I is asked for",
        "ahead",
        made(inp=(5, 3, 3), out=(4, 3, 2)),
        value_error("'inp'", "expected", "along I"),
        {"domain": (4, 3, 2)},
    ),
    Row(
        "offsets along I and K take an input of just their points",
        "ahead",
        made(inp=(6, 3, 3), out=(4, 3, 2)),
        TAKEN,
        {"domain": (4, 3, 2)},
    ),
]

DOMAINS = [
    Row(
        "an output that is shorter than the domain is refused",
        "skewed",
        made(inp=(5, 7, 2), out=(3, 5, 2)),
        value_error("'out'", "expected", "along I"),
        OF_WIDE,
    ),
    Row(
        "an output whose origin leaves too few points is refused",
        "skewed",
        WIDE,
        value_error("'out'", "expected", "along K"),
        {"origin": {"inp": (0, 2, 0), "out": (0, 0, 1)}, "domain": (4, 5, 2)},
    ),
    Row(
        "a domain with a level more than the fields have is refused",
        "skewed",
        SAME,
        value_error("expected", "along K"),
        {"origin": (0, 2, 0), "domain": (4, 5, 3)},
    ),
    Row(
        "a smaller domain leaves the other points of the output",
        "skewed",
        SAME,
        TAKEN,
        {"origin": (1, 3, 1), "domain": (2, 2, 1)},
    ),
    Row(
        "an origin below 0 is refused",
        "skewed",
        SAME,
        value_error("origin", "expected"),
        {"origin": (-1, 2, 0), "domain": (4, 5, 2)},
    ),
    Row(
        "a number of points below 0 is refused",
        "skewed",
        SAME,
        value_error("domain", "expected"),
        {"origin": (0, 2, 0), "domain": (4, -5, 2)},
    ),
    Row(
        "a domain with an axis too few is refused",
        "skewed",
        SAME,
        value_error("domain", "expected"),
        {"origin": (0, 2, 0), "domain": (4, 5)},
    ),
    Row(
        "an origin of a name that the stencil does not have is refused",
        "skewed",
        SAME,
        value_error("origin", "expected", "'other'"),
        {"origin": {"other": (0, 2, 0)}, "domain": (4, 5, 2)},
    ),
    *(
        Row(
            f"a domain without points along {name} writes nothing",
            "skewed",
            SAME,
            TAKEN,
            {"origin": (0, 2, 0), "domain": empty},
        )
        for name, empty in {"I": (0, 5, 2), "J": (4, 0, 2), "K": (4, 5, 0)}.items()
    ),
    Row(
        "a domain without points asks for no output",
        "skewed",
        made(inp=(1, 9, 2), out=(0, 7, 2)),
        TAKEN,
        {"origin": {"inp": (0, 2, 0), "out": (0, 0, 0)}, "domain": (0, 7, 2)},
    ),
    Row(
        "a domain that is not told is that of all levels which fit",
        "cumulate",
        made(inp=(2, 3, 4), out=(2, 3, 4)),
        TAKEN,
        points=(2, 3, 4),
    ),
    Row(
        "numbers of NumPy and lists tell an origin and a domain",
        "skewed",
        SAME,
        TAKEN,
        {"origin": [np.int32(0), np.int64(2), 0], "domain": list(np.array([4, 5, 2]))},
    ),
]

LEVELS = [
    Row(
        "levels that an interval reads far above must exist",
        "far_above",
        made(inp=(2, 2, 6), out=(2, 2, 3)),
        value_error("'inp'", "expected", "along K"),
        {"domain": (2, 2, 3)},
    ),
    Row(
        "levels that an interval reads far above may be the last ones",
        "far_above",
        made(inp=(2, 2, 7), out=(2, 2, 3)),
        TAKEN,
        {"domain": (2, 2, 3)},
    ),
    Row(
        "levels far above inside of a deep domain ask for no more",
        "far_above",
        made(inp=(2, 2, 8), out=(2, 2, 8)),
        TAKEN,
        {"domain": (2, 2, 8)},
    ),
    Row(
        "levels that an interval reads far below must exist",
        "far_below",
        made(inp=(2, 2, 6), out=(2, 2, 3)),
        value_error("'inp'", "expected", "along K"),
        {"origin": {"inp": (0, 0, 3), "out": (0, 0, 0)}, "domain": (2, 2, 3)},
    ),
    Row(
        "levels that an interval reads far below may be the first ones",
        "far_below",
        made(inp=(2, 2, 7), out=(2, 2, 3)),
        TAKEN,
        {"origin": {"inp": (0, 0, 4), "out": (0, 0, 0)}, "domain": (2, 2, 3)},
    ),
    Row(
        "levels of a temporary field outside of a shallow domain are refused",
        "far_above_in_temporary",
        made(inp=(2, 2, 4), out=(2, 2, 4)),
        value_error("domain", "expected", "along K"),
        {"domain": (2, 2, 4)},
    ),
    Row(
        "levels of a temporary field inside of the domain are taken",
        "far_above_in_temporary",
        made(inp=(2, 2, 5), out=(2, 2, 5)),
        TAKEN,
        {"domain": (2, 2, 5)},
    ),
    Row(
        "an interval that ends before the last level reads no level above",
        "lowest",
        made(inp=(2, 2, 4), out=(2, 2, 4)),
        TAKEN,
        {"domain": (2, 2, 4)},
    ),
    Row(
        "an interval that ends before the last level needs the level that it reads",
        "lowest",
        made(inp=(2, 2, 3), out=(2, 2, 4)),
        value_error("'inp'", "expected", "along K"),
        {"domain": (2, 2, 4)},
    ),
    Row(
        "a sum from the first level up reads no level below the first",
        "cumulate",
        made(inp=(2, 2, 3), out=(2, 2, 3)),
        TAKEN,
        {"domain": (2, 2, 3)},
    ),
    Row(
        "a single level is refused where the second interval needs one",
        "cumulate",
        made(inp=(2, 2, 1), out=(2, 2, 1)),
        value_error("domain", "expected", "along K"),
        {"domain": (2, 2, 1)},
    ),
    Row(
        "a sum inside of the levels of its output begins anew",
        "cumulate",
        made(inp=(2, 2, 5), out=(2, 2, 5)),
        TAKEN,
        {"origin": (0, 0, 2), "domain": (2, 2, 3)},
    ),
    Row(
        "levels that are read at indices of run time are taken apart",
        "gathered",
        shifts(1),
        TAKEN,
        {"domain": (2, 2, 4)},
    ),
]

REGIONS = [
    Row(
        "a region that reads across a domain too small along I is refused",
        "across_the_domain",
        made(inp=(3, 4, 1), out=(3, 4, 1)),
        value_error("'inp'", "along I"),
        {"domain": (3, 4, 1)},
    ),
    Row(
        "a region that reads across a domain too small along J is refused",
        "across_the_domain",
        made(inp=(4, 3, 1), out=(4, 3, 1)),
        value_error("'inp'", "along J"),
        {"domain": (4, 3, 1)},
    ),
    Row(
        "a region that reads across the domain asks for no halo",
        "across_the_domain",
        made(inp=(4, 4, 1), out=(4, 4, 1)),
        TAKEN,
        {"domain": (4, 4, 1)},
    ),
    Row(
        "a region is where the domain begins, and not the array",
        "across_the_domain",
        made(inp=(7, 6, 2), out=(7, 6, 2)),
        TAKEN,
        {"origin": (1, 2, 0), "domain": (5, 4, 2)},
    ),
    Row(
        "a region of as many points as the domain is taken",
        "east_of_edge",
        made(inp=(4, 2, 1), out=(3, 2, 1)),
        TAKEN,
        {"domain": (3, 2, 1)},
    ),
    Row(
        "a region that reads a point above the domain needs it",
        "east_of_edge",
        made(inp=(3, 2, 1), out=(3, 2, 1)),
        value_error("'inp'", "expected", "along I"),
        {"domain": (3, 2, 1)},
    ),
    Row(
        "a region that reads inside of a larger domain needs no point above it",
        "east_of_edge",
        made(inp=(4, 2, 1), out=(4, 2, 1)),
        TAKEN,
        {"domain": (4, 2, 1)},
    ),
    Row(
        "a domain smaller than its region is refused where it would be left",
        "east_of_edge",
        made(inp=(7, 1, 1), out=(7, 1, 1)),
        value_error("domain", "expected", "along I"),
        {"domain": (2, 1, 1)},
        backends=("numpy",),
    ),
    Row(
        "a domain smaller than its region cuts the region",
        "east_of_edge",
        made(inp=(3, 1, 1), out=(2, 1, 1)),
        TAKEN,
        {"domain": (2, 1, 1)},
        backends=("debug", *COMPILED),
    ),
    Row(
        "a region in place that reads where it writes is taken",
        "doubled_edge",
        in_place((3, 2, 1), "inp", "out"),
        TAKEN,
        {"domain": (3, 2, 1)},
    ),
]

SHARED = [
    Row(
        "an input at an offset must not be the output",
        "skewed",
        in_place((5, 7, 2), "inp", "out"),
        buffer_error("'inp'", "'out'", "expected"),
        OF_SAME,
    ),
    Row(
        "an input at an offset must not overlap the output",
        "skewed",
        views((6, 7, 2), inp=np.s_[:5], out=np.s_[1:]),
        buffer_error("'inp'", "'out'", "expected"),
        OF_SAME,
    ),
    Row(
        "an input and an output in halves of one array are taken",
        "skewed",
        views((10, 7, 2), inp=np.s_[:5], out=np.s_[5:]),
        TAKEN,
        OF_SAME,
    ),
    Row(
        "an input and an output of every other point of one array are taken",
        "skewed",
        views((10, 7, 2), inp=np.s_[::2], out=np.s_[1::2]),
        TAKEN,
        OF_SAME,
    ),
    Row(
        "an input and an output of every other level of one array are taken",
        "cumulate",
        views((2, 2, 6), inp=np.s_[..., ::2], out=np.s_[..., 1::2]),
        TAKEN,
        {"domain": (2, 2, 3)},
    ),
    Row(
        "an output that is read at the level below must not be the input",
        "cumulate",
        in_place((2, 2, 3), "inp", "out"),
        buffer_error("'inp'", "'out'", "expected"),
        {"domain": (2, 2, 3)},
    ),
    Row(
        "an input far above must not be the output",
        "far_above",
        in_place((2, 2, 8), "inp", "out"),
        buffer_error("'inp'", "'out'", "expected"),
        {"domain": (2, 2, 8)},
    ),
    Row(
        "an input that a region reads across the domain must not be the output",
        "across_the_domain",
        in_place((4, 4, 1), "inp", "out"),
        buffer_error("'inp'", "'out'", "expected"),
        {"domain": (4, 4, 1)},
    ),
    Row(
        "an input at indices of run time must not be the output",
        "gathered",
        lambda: in_place((2, 2, 4), "inp", "out")() | {"shift": np.zeros((2, 2, 4), np.int32)},
        buffer_error("'inp'", "'out'", "expected"),
        {"domain": (2, 2, 4)},
    ),
    Row(
        "a field that is read and written at the same points is computed in place",
        "scaled",
        lambda: {"field": numbers("field", 3, 2, 2), "scale": 3.0},
        TAKEN,
        {"domain": (3, 2, 2)},
    ),
    Row(
        "an input without offsets must not be shifted against the output",
        "doubled_edge",
        views((4, 2, 1), inp=np.s_[:3], out=np.s_[1:]),
        buffer_error("'inp'", "'out'", "expected"),
        {"domain": (3, 2, 1)},
    ),
    Row(
        "an input that is reversed must not overlap the output",
        "doubled_edge",
        views((3, 2, 1), inp=np.s_[::-1], out=np.s_[:]),
        buffer_error("'inp'", "'out'", "expected"),
        {"domain": (3, 2, 1)},
    ),
    Row(
        "two outputs must not be one array",
        "split",
        lambda: made(inp=(3, 2, 2))() | in_place((3, 2, 2), "left", "right")(),
        buffer_error("'left'", "'right'", "expected"),
        {"domain": (3, 2, 2)},
    ),
    Row(
        "two outputs must not overlap",
        "split",
        lambda: made(inp=(3, 2, 2))() | views((4, 2, 2), left=np.s_[:3], right=np.s_[1:])(),
        buffer_error("'left'", "'right'", "expected"),
        {"domain": (3, 2, 2)},
    ),
    Row(
        "two outputs may lie side by side in one array",
        "split",
        lambda: (
            made(inp=(3, 2, 2))() | views((3, 2, 4), left=np.s_[..., :2], right=np.s_[..., 2:])()
        ),
        TAKEN,
        {"domain": (3, 2, 2)},
    ),
]

MEMORY = [
    Row("an input may be read-only", "skewed", read_only("inp", WIDE), TAKEN, OF_WIDE),
    Row(
        "an output must be writable",
        "skewed",
        read_only("out", WIDE),
        buffer_error("'out'", "expected"),
        OF_WIDE,
    ),
    Row(
        "an input may be one row many times",
        "skewed",
        changed(WIDE, inp=repeated),
        TAKEN,
        OF_WIDE,
    ),
    Row(
        "an output must not be one row many times",
        "skewed",
        changed(WIDE, out=writable_repeated),
        buffer_error("'out'", "expected"),
        OF_WIDE,
    ),
    Row(
        "fields in Fortran's order are taken",
        "skewed",
        changed(WIDE, inp=np.asfortranarray, out=np.asfortranarray),
        TAKEN,
        OF_WIDE,
    ),
    Row(
        "fields whose points are in the reverse order are taken",
        "skewed",
        changed(WIDE, inp=lambda one: one[::-1], out=lambda one: one[:, ::-1, ::-1]),
        TAKEN,
        OF_WIDE,
    ),
    Row(
        "a field of another dtype is refused",
        "skewed",
        changed(WIDE, inp=lambda one: one.astype("f4")),
        value_error("'inp'", "expected", "float64", "float32"),
        OF_WIDE,
    ),
    Row(
        "a field without an axis of its own is refused",
        "skewed",
        changed(WIDE, inp=lambda one: one[..., 0]),
        value_error("'inp'", "expected"),
        OF_WIDE,
    ),
]

DIMENSIONS = [
    Row(
        "fields of fewer and of more dimensions are taken",
        "mixed",
        MIXED,
        TAKEN,
        {"domain": (4, 3, 2)},
    ),
    Row(
        "a plane that is too short is refused",
        "mixed",
        changed(MIXED, plane=lambda one: one[:, :2]),
        value_error("'plane'", "expected", "along J"),
        {"domain": (4, 3, 2)},
    ),
    Row(
        "a profile that is too short is refused",
        "mixed",
        changed(MIXED, profile=lambda one: one[:1]),
        value_error("'profile'", "expected", "along K"),
        {"domain": (4, 3, 2)},
    ),
    Row(
        "a data dimension of another extent is refused",
        "mixed",
        changed(MIXED, pair=lambda one: np.concatenate([one, one], axis=-1)),
        value_error("'pair'", "expected"),
        {"domain": (4, 3, 2)},
    ),
    Row(
        "an output of another dtype is refused",
        "mixed",
        changed(MIXED, field=lambda one: one.astype("f4")),
        value_error("'field'", "expected", "float64"),
        {"domain": (4, 3, 2)},
    ),
    Row(
        "a scalar of another type is refused",
        "mixed",
        changed(MIXED, scale=lambda _: 2),
        value_error("'scale'", "expected", "int"),
        {"domain": (4, 3, 2)},
    ),
]

ROWS = [*OFFSETS, *DOMAINS, *LEVELS, *REGIONS, *SHARED, *MEMORY, *DIMENSIONS]
REFERENCES = {
    one.__name__: one
    for one in (
        skewed,
        ahead,
        far_above,
        far_below,
        far_above_in_temporary,
        lowest,
        cumulate,
        across_the_domain,
        east_of_edge,
        doubled_edge,
        split,
        scaled,
        gathered,
        mixed,
    )
}
