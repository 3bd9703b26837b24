"""Random definitions of gt4py.cartesian, as source text.

Offsets along all axes, intervals, directions, regions, temporary fields, fields of fewer dimensions
and with data dimensions. Every field is declared, not every one is used.
"""

from dataclasses import dataclass, field

#: Spatial dimensions, data dimensions.
FIELDS = {
    "a": ("IJK", ()),
    "b": ("IJK", ()),
    "pair": ("IJK", (2,)),
    "plane": ("IJ", ()),
    "line": ("K", ()),
    "out": ("IJK", ()),
    "more": ("IJK", ()),
    "both": ("IJK", (2,)),
}
#: A line of a definition that has a region has this.
REGION = "horizontal(region["
OUTPUTS = ("out", "more", "both")

HEADER = """\
import numpy as np
from gt4py.cartesian.gtscript import (
    BACKWARD, FORWARD, IJ, PARALLEL, Field, I, J, K, computation, horizontal, interval, region,
)

Scalars, Pairs = Field[np.float64], Field[(np.float64, (2,))]


def {name}(
    a: Scalars, b: Scalars, pair: Pairs, plane: Field[IJ, np.float64], line: Field[K, np.float64],
    out: Scalars, more: Scalars, both: Pairs, *, flag: np.float64,
):
"""

#: Levels as (start, end): a number from the bottom, negative from the top; None is the top.
SPLITS = (
    ((0, None),),
    ((0, None),),
    ((0, 1), (1, None)),
    ((0, 2), (2, None)),
    ((0, -1), (-1, None)),
    ((0, -2), (-2, None)),
    ((0, 1), (1, -1), (-1, None)),
    ((0, 2), (2, -2), (-2, None)),
)
REGIONS = ("I[0], :", "I[-1], :", ":, J[0]", ":, J[-1]", "I[0], J[-1]", "I[0]:I[0] + 3, :",
           "I[-1] - 1:I[-1], :", ":, J[0] + 1:", ":I[-1], J[0]:J[0] + 2",
           ":, J[-1] - 2:", "I[0] - 1, :", ":, J[-1] + 1")  # fmt: skip


@dataclass
class _Scope:
    """What the next statement may read and write."""

    rng: object
    temporaries: list = field(default_factory=list)
    #: Written in this computation: not read at an offset, which GT4Py refuses in places.
    fresh: set = field(default_factory=set)
    written: list = field(default_factory=list)
    #: Whether there are products, functions and conditions, and no level outside of the domain.
    nonlinear: bool = False


def definition(rng, name, *, nonlinear=False):
    """Write the source of a definition of this name."""
    scope = _Scope(rng, nonlinear=nonlinear)
    lines = [HEADER.format(name=name)]
    for number in range(rng.choice((0, 0, 1, 2))):
        lines += _temporary(scope, f"t{number}")
    for _ in range(rng.choice((1, 1, 2, 3))):
        lines += _computation(scope)
    return "\n".join(lines) + "\n"


def _direction(rng):
    return rng.choice(("PARALLEL", "PARALLEL", "FORWARD", "BACKWARD"))


def _temporary(scope, name):
    """Return a temporary field a value at every level."""
    direction, split = _direction(scope.rng), scope.rng.choice(SPLITS)
    lines = _with_intervals(scope, direction, split, [name])
    scope.temporaries.append(name)
    return lines


def _computation(scope):
    rng = scope.rng
    split = rng.choice(SPLITS)
    if len(split) > 1 and rng.random() < 0.3:
        split = tuple(rng.sample(split, rng.randint(1, len(split) - 1)))
        split = tuple(sorted(split, key=lambda one: (one[0] < 0, one[0])))
    targets = [rng.choice(OUTPUTS)]
    if rng.random() < 0.5:
        targets += rng.sample(sorted({*OUTPUTS, *scope.temporaries} - {*targets}), 1)
    return _with_intervals(scope, _direction(rng), split, targets)


def _with_intervals(scope, direction, split, targets):
    lines = [f"    with computation({direction}):"]
    scope.fresh = set()
    for levels in reversed(split) if direction == "BACKWARD" else split:
        start, end = levels
        shown = "..." if levels == (0, None) else f"{start}, {end}"
        lines.append(f"        with interval({shown}):")
        for target in targets:
            lines += [f"            {one}" for one in _statement(scope, target, direction, levels)]
        if scope.rng.random() < 0.3 and targets[0] not in scope.fresh - set(targets):
            lines.append(f"            with {REGION}{scope.rng.choice(REGIONS)}]):")
            target = scope.rng.choice(targets)
            lines.append(
                f"                {_assignment(scope, target, direction, levels, in_region=True)}"
            )
    scope.written += [one for one in targets if one in OUTPUTS and one not in scope.written]
    return lines


def _statement(scope, target, direction, levels):
    """Write an assignment, which may stand under a condition."""
    again = target in scope.fresh or target in scope.written
    made = [_assignment(scope, target, direction, levels)]
    if scope.nonlinear and scope.rng.random() < 0.25:
        made = [f"if a > {scope.rng.choice(('b', 'flag'))}:", f"    {made[0]}"]
        if not again or scope.rng.random() < 0.5:
            made += ["else:", f"    {_assignment(scope, target, direction, levels)}"]
            index = [one.split(" = ")[0] for one in (made[1], made[3])]
            made[3] = made[3].replace(index[1], index[0], 1)
    return made


#: Of one or two terms; bounded, or growing no faster than these.
_NONLINEAR = (
    *("{0} * {1}", "{0} / (1.5 + {1} * {1})", "sin({0}) * {1}", "exp(-{0} * {0}) + {1}"),
    *("sqrt(1.0 + {0} * {0})", "tanh({0}) * cos({1})", "max({0}, {1})", "min({0}, 0.9)"),
    *("abs({0} - {1})", "({0} if {0} > {1} else 0.5 * {1})", "{0} ** 2 / (1.0 + {0} ** 2)"),
    *("log(1.2 + {0} * {0})", "(1.0 + {0} * {0}) ** 0.3", "atan({0} + flag)", "0.5 * {0} - {1}"),
)


def _assignment(scope, target, direction, levels, *, in_region=False):
    rng = scope.rng
    terms = [
        _term(scope, target, direction, levels, in_region) for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    index = f"[0, 0, 0][{rng.randint(0, 1)}]" if target == "both" else ""
    scope.fresh.add(target)
    value = " + ".join(f"{rng.choice(('', '2.0 * ', '-'))}{one}" for one in terms)
    if scope.nonlinear:
        value = " + ".join(
            f"0.6 * sin({rng.choice(_NONLINEAR).format(one, rng.choice(terms))})" for one in terms
        )
    if rng.random() < 0.1:
        other = _term(scope, target, direction, levels, in_region)
        value = f"{value} if flag > 0.0 else {other}"
    return f"{target}{index} = {value}"


def _term(scope, target, direction, levels, in_region):
    rng = scope.rng
    inputs = ["a", "a", "b", "pair", "plane", "line"]
    read = rng.choice([*inputs, *scope.temporaries * 2, *scope.written])
    if read == target or read in scope.fresh:
        return _again(scope, read, target, direction, levels)
    own = read in scope.temporaries
    far = (0, 0) if in_region and own else (_offset(rng), _offset(rng))
    inside = own or scope.nonlinear
    at = (*far, _level_inside(rng, levels) if inside else _level(rng))
    if read == "plane":
        return f"plane[{at[0]}, {at[1]}]"
    if read == "line":
        return f"line[{at[2]}]"
    return _indexed(rng, read, at)


def _again(scope, read, target, direction, levels):
    """Read what this computation has written: here, or at the level before."""
    before = {"FORWARD": -1, "BACKWARD": 1}.get(direction, 0)
    first = levels[0] != 0 if before < 0 else levels[1] is not None
    if read == target and (read not in scope.temporaries + list(OUTPUTS)):
        return "1.0"
    if before and first and scope.rng.random() < 0.7:
        return _indexed(scope.rng, read, (0, 0, before))
    return _indexed(scope.rng, read, (0, 0, 0)) if read in scope.fresh else "1.0"


def _indexed(rng, read, at):
    data = f"[{rng.randint(0, 1)}]" if read in ("pair", "both") else ""
    return f"{read}[{at[0]}, {at[1]}, {at[2]}]{data}"


def _offset(rng):
    return rng.choice((0, 0, 0, 0, -2, -1, 1, 3))


def _level(rng):
    return rng.choice((0, 0, 0, 0, -1, 1, -3, 5))


def _level_inside(rng, levels):
    """Draw an offset for a temporary field, which has no levels outside of the domain."""
    start, end = levels
    low = -start if start > 0 else 0 if start == 0 else start - 2
    high = -end if end is not None and end < 0 else 0 if end is None else end + 2
    return rng.choice((0, rng.randint(min(low, 0), max(high, 0))))
