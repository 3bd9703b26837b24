"""Boxes of points: for each dimension the first one, and the end behind the last one."""

import sys

#: No point along an axis.
NOWHERE = (sys.maxsize, -sys.maxsize)


def has_points(box):
    return all(low < high for low, high in box)


def hull(box, other):
    """Return the least box around two, of which the other may be None."""
    if other is None:
        return list(box)
    return [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(box, other, strict=True)]


def within(box, outer):
    """Return whether a box lies in another."""
    return all(a >= c and b <= d for (a, b), (c, d) in zip(box, outer, strict=True))


def widened(rng, box):
    """Add a few points here and there."""
    return [
        (low - rng.choice((0, 0, 0, 1, 2)), high + rng.choice((0, 0, 0, 1, 2))) for low, high in box
    ]


def shortened(rng, least, box):
    """Take one point off the least box, at one end."""
    axis = rng.randrange(len(box))
    (low, high), (first, end) = least[axis], box[axis]
    shorter = (min(low + 1, end), end) if rng.random() < 0.5 else (first, max(high - 1, first))
    return [*box[:axis], shorter, *box[axis + 1 :]]
