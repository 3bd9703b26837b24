"""Rules for labels: the names and the halo of a result, from those of the operands.

A halo that is None is unknown. `same_names` checks that operands have names that agree.
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


#: Names and halo of a result.
Result = tuple[Names, Halo]


def picked(of: Labels, shape: Sequence[int], given: Mapping[str, Any]) -> Result:
    """Label a result in which an axis has become one, several or no axes.

    Names stay if no axis is added. The halo is unknown if the axis had one and is still there.
    """
    axis, new = given["axis"], len(shape) - len(of.shape) + 1
    dims = of.dims
    if dims is not None and new != 1:
        dims = None if new else without(dims, axis)
    if of.halo is None or (new and any(of.halo[axis])):
        return dims, None
    return dims, (*of.halo[:axis], *((0, 0),) * new, *of.halo[axis + 1 :])


def gone(of: Labels, shape: Sequence[int], given: Mapping[str, Any]) -> Result:
    """Label the result of a reduction: axes that are kept have extent 1 and no halo."""
    given_axes = given.get("axis")
    along = range(len(of.shape)) if given_axes is None else given_axes
    kept = len(shape) == len(of.shape)
    axes = [at for at in range(len(of.shape)) if kept or at not in along]
    dims = of.dims and tuple(of.dims[at] for at in axes)
    return dims, of.halo and tuple((0, 0) if at in along else of.halo[at] for at in axes)


def chosen(of: Labels, shape: Sequence[int], _: Mapping[str, Any]) -> Result | None:
    """Label elements that are picked one by one. None if the shape stays: so do all labels."""
    return None if tuple(shape) == of.shape else (of.dims, None)


def tiled(of: Labels, shape: Sequence[int], _: Mapping[str, Any]) -> Result:
    """Label repetitions of a whole array: the halo is unknown unless the array has none."""
    return of.dims, ((0, 0),) * len(shape) if is_bare(of.halo) else None


def padded(of: Labels, widths: Sequence[tuple[int, int]]) -> Halo:
    """Return the halo after padding that is added to it: the domain stays where it was.

    Data dimensions have no halo.
    """
    if of.halo is None:
        return None
    names = of.dims or ("",) * len(of.shape)
    return tuple(
        (0, 0) if name.isdecimal() else (low + below, high + above)
        for (low, high), (below, above), name in zip(of.halo, widths, names, strict=True)
    )


def padded_inside(of: Labels, widths: Sequence[tuple[int, int]]) -> Halo:
    """Return the halo after padding that is no halo; it is unknown if a padded axis has one."""
    if of.halo is None:
        return None
    pairs = zip(of.halo, widths, strict=True)
    return None if any(any(own) and any(new) for own, new in pairs) else of.halo


def spread(of: Labels, shape: Sequence[int]) -> Halo:
    """Return the halo of a broadcast array: new and repeated axes have none."""
    if of.halo is None:
        return None
    new = len(shape) - len(of.shape)
    axes = zip(of.halo, of.shape, shape[new:], strict=True)
    return ((0, 0),) * new + tuple(
        width if before == after else (0, 0) for width, before, after in axes
    )


def agreed(halos: Iterable[Halo]) -> Halo:
    """Return the halo that arrays with one share; it is unknown if one is, or if two differ."""
    known = set(halos)
    wide = {halo for halo in known if halo is not None and any(map(any, halo))}
    if None in known or len(wide) > 1 or not known:
        return None
    return (wide or known).pop()


def joined(halos: Sequence[Halo], extents: Sequence[int], axis: int) -> Halo:
    """Return the halo of joined arrays: along the axis, that below the first and above the last.

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
    """Return True if there is known to be no halo."""
    return halo is not None and not any(map(any, halo))


def without(of: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    """Return a tuple without the entry of an axis."""
    return (*of[:axis], *of[axis + 1 :])


def same_names(what: str, given: Iterable[Names], *, may_be_unrelated: bool = True) -> Names:
    """Return the names of the longest array if all arrays with names agree, else None.

    Raises
    ------
    ValueError
        If related names differ or are in another order; for unrelated names, unless
        `may_be_unrelated`.
    """
    named = [names for names in given if names is not None]
    if not named:
        return None
    most = max(named, key=len)
    others = [names for names in named if names != most[len(most) - len(names) :]]  # as shapes
    for names in others:
        if not (may_be_unrelated and names_are_unrelated(names, most)):
            raise ValueError(
                f"{what}: expected arrays whose dims agree, got {most} and {names}; transpose or "
                "rename one of them, or pass to_numpy() to go by position"
            )
    return None if others else most
