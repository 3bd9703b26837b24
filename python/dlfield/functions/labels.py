"""Rules for labels: the names and the halo of a result, from those of the operands.

A halo that is None is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dlfield._core import names_are_unrelated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Names = tuple[str, ...] | None
Halo = tuple[tuple[int, int], ...] | None


class Labels(NamedTuple):
    """The labels of an operand."""

    dims: Names
    halo: Halo
    shape: tuple[int, ...]


Rule = tuple[Names, Halo] | None


def picked(of: Labels, shape: Sequence[int], given: Mapping[str, Any]) -> Rule:
    """Label elements that are picked along an axis, in whose place are one, several or no axes.

    Names stay if no axis is added. The halo is unknown if the axis had one and is not gone.
    """
    axis, new = given["axis"], len(shape) - len(of.shape) + 1
    dims = of.dims if new == 1 or of.dims is None else without(of.dims, axis) if new == 0 else None
    if of.halo is None or (new and any(of.halo[axis])):
        return dims, None
    return dims, (*of.halo[:axis], *((0, 0),) * new, *of.halo[axis + 1 :])


def gone(of: Labels, shape: Sequence[int], given: Mapping[str, Any]) -> Rule:
    """Label what is left of reduced axes: those that are kept have extent 1 and no halo."""
    given_axes = given.get("axis")
    along = range(len(of.shape)) if given_axes is None else given_axes
    kept = len(shape) == len(of.shape)
    axes = [at for at in range(len(of.shape)) if kept or at not in along]
    dims = of.dims and tuple(of.dims[at] for at in axes)
    return dims, of.halo and tuple((0, 0) if at in along else of.halo[at] for at in axes)


def chosen(of: Labels, shape: Sequence[int], _: Mapping[str, Any]) -> Rule:
    """Label elements that are picked one by one: all labels stay if the shape stays (None)."""
    return None if tuple(shape) == of.shape else (of.dims, None)


def tiled(of: Labels, shape: Sequence[int], _: Mapping[str, Any]) -> Rule:
    """Label repetitions of the whole: the halo is unknown unless there is none."""
    return of.dims, ((0, 0),) * len(shape) if is_bare(of.halo) else None


def padded(of: Labels, widths: Sequence[tuple[int, int]]) -> Halo:
    """Return the halo with points around it: the domain stays where it was.

    Data dimensions have no halo.
    """
    names = of.dims or ("",) * len(of.shape)
    pairs = zip(of.halo or (), widths, names, strict=of.halo is not None)
    grown = tuple(
        (0, 0) if name.isdecimal() else (low + below, high + above)
        for (low, high), (below, above), name in pairs
    )
    return of.halo and grown


def behind(of: Labels, widths: Sequence[tuple[int, int]]) -> Halo:
    """Return the halo behind padding that is none; it is unknown if a padded axis has one."""
    pairs = zip(of.halo or (), widths, strict=of.halo is not None)
    return None if any(any(own) and any(new) for own, new in pairs) else of.halo


def spread(of: Labels, shape: Sequence[int]) -> Halo:
    """Return the halo of a repetition along new axes in front, and along those of extent 1."""
    if of.halo is None:
        return None
    new = len(shape) - len(of.shape)
    axes = zip(of.halo, of.shape, shape[new:], strict=True)
    return ((0, 0),) * new + tuple(
        width if before == after else (0, 0) for width, before, after in axes
    )


def agreed(halos: Iterable[Halo]) -> Halo:
    """Return the halo of those that have one; it is unknown if one is, or if two differ."""
    known = set(halos)
    wide = {halo for halo in known if halo is not None and any(map(any, halo))}
    if None in known or len(wide) > 1 or not known:
        return None
    return (wide or known).pop()


def joined(halos: Sequence[Halo], extents: Sequence[int], axis: int) -> Halo:
    """Return the lower halo of the first array and the upper one of the last along an axis.

    It is unknown if there is a halo in between. Along the other axes it is the agreed one.
    """
    known = [halo for halo in halos if halo is not None]
    others = agreed(without(halo, axis) for halo in known)
    if others is None or len(known) < len(halos):
        return None
    low = inside = high = 0
    for halo, extent in zip(known, extents, strict=True):
        below, above = halo[axis]
        domain = extent - below - above
        if (below and (inside or high)) or (domain and high):
            return None
        low, inside, high = low + below, inside + domain, high + above
    return (*others[:axis], (low, high), *others[axis:])


def is_bare(halo: Halo) -> bool:
    """Return True if it is known that there is no halo."""
    return halo is not None and not any(map(any, halo))


def without(of: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    """Return a tuple without its entry of an axis."""
    return (*of[:axis], *of[axis + 1 :])


def same_names(what: str, given: Iterable[Names], *, may_differ: bool = True) -> Names:
    """Return the names on which those with names agree; None if they do not.

    Raises
    ------
    ValueError
        If the names stand for the same things and differ, or are in another order. Also if they
        are unrelated, unless `may_differ` is true.
    """
    named = [names for names in given if names is not None]
    same = most = max(named, key=len, default=None)
    for names in named:
        if most is not None and names != most[len(most) - len(names) :]:  # as shapes broadcast
            same = None
            if not (may_differ and names_are_unrelated(names, most)):
                raise ValueError(
                    f"{what}: expected arrays whose dims agree, got {most} and {names}; transpose "
                    "or rename one of them, or pass to_numpy() to go by position"
                )
    return same
