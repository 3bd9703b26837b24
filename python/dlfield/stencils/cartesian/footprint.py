"""How far a stencil of ``gt4py.cartesian`` reaches, read from its intermediate representation.

What GT4Py says of a field's reach leaves out points that a part of the domain reaches past the
other end of it: levels of an interval, points of a horizontal region. It also leaves out every
index that is known at run time only. All of it stands in the representations (GTIR, and OIR, which
is made of it) that GT4Py derives from the stencil's definition again, in milliseconds. This file is
the only one that knows them. GT4Py is imported only by a stencil of its own.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Across", "Reach", "deepest", "is_known_version", "reach_of"]

#: Versions of GT4Py whose representations are known.
_KNOWN = ("1.1.", "1.2.")


@dataclass
class Across:
    """Points of one field along one axis that a stencil touches, beyond what GT4Py says.

    Parameters
    ----------
    below_end, above_start
        As `dlfield.stencils.declaration.DeclaredField.across` has them.
    most_below, most_above
        As ``across_at_most`` has them.
    """

    below_end: int = 0
    above_start: int = 0
    most_below: int = 0
    most_above: int = 0

    def include(self, part: Any, offset: int, extent: tuple[int, int] = (0, 0)) -> None:  # noqa: ANN401
        """Include what a part of the axis reaches, which ends where all that is computed ends."""
        start, end = part.start, part.end
        if start is not None and start.level.name == "END":
            self.below_end = max(self.below_end, -start.offset - offset)
            self.most_below = max(self.most_below, -extent[0] - offset)
        if end is not None and end.level.name == "START":
            self.above_start = max(self.above_start, end.offset + offset)
            self.most_above = max(self.most_above, extent[1] + offset)


@dataclass
class Reach:
    """What the representation of a stencil says.

    Parameters
    ----------
    across
        By the names of the field and of the axis. Temporary fields have theirs, too.
    unknown
        Names of fields of which some level is known at run time only.
    regions
        For each axis, the points that a domain has in which no region is cut short.
    """

    across: dict[tuple[str, str], Across] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    regions: dict[str, int] = field(default_factory=dict)

    def along(self, name: str, axis: str) -> Across:
        """Give what is noted of a field along an axis."""
        return self.across.setdefault((name, axis), Across())


_found: WeakKeyDictionary[Any, Reach | None] = WeakKeyDictionary()


def reach_of(stencil: Any) -> Reach | None:  # noqa: ANN401
    """Read the points that a compiled stencil of GT4Py touches. Found once for each stencil.

    Returns
    -------
    Reach or None
        None where the representation cannot be had: of a stencil without its definition or the
        definition's source, of one whose definition was compiled again with other externals, and
        of a version of GT4Py that is not known, which warns once.
    """
    try:
        if stencil not in _found:
            _found[stencil] = _derived(stencil)
        return _found[stencil]
    except TypeError:  # no key of a dict, as a wrapper may be
        return _derived(stencil)


def _derived(stencil: Any) -> Reach | None:  # noqa: ANN401
    if not is_known_version():
        return None
    try:
        return _read(_gtir(stencil))
    except Exception:
        return None


def is_known_version() -> bool:
    """Tell whether the representations of the installed GT4Py are known; warns once if not."""
    return _is_known(_version())


def _version() -> str:
    import gt4py

    return str(gt4py.__version__)


@cache
def _is_known(version: str) -> bool:
    known = version.startswith(_KNOWN)
    if not known:
        expected = ", ".join(f"{one}*" for one in _KNOWN)
        warnings.warn(
            f"gt4py: expected one of {expected}, whose stencils say how far they reach, got "
            f"{version}; bounds are checked as far as GT4Py tells them, and inputs must be apart "
            "from outputs",
            stacklevel=2,
        )
    return known


def _gtir(stencil: Any) -> Any:  # noqa: ANN401
    """Parse the definition that was compiled, with its externals.

    Its fingerprint tells whether it is that definition still: GT4Py notes externals and types at
    the function, where the next compilation overwrites them.
    """
    from gt4py.cartesian.definitions import BuildOptions
    from gt4py.cartesian.gtc.passes.gtir_pipeline import GtirPipeline
    from gt4py.cartesian.stencil_builder import StencilBuilder

    noted = dict(stencil.options)
    options = BuildOptions(impl_opts=noted.pop("_impl_opts"), **noted)
    definition = stencil.definition_func
    builder = StencilBuilder(definition, backend=stencil.backend, options=options)
    builder._build_data["prepared_def"] = definition
    if builder.stencil_id.version != stencil._gt_id_:
        raise LookupError(stencil)
    externals = definition._gtscript_["externals"]
    parsed = builder.frontend.generate(definition, externals, {}, options, stencil.backend)
    return GtirPipeline(parsed, builder.stencil_id).full()


def _read(stencil: Any) -> Reach:  # noqa: ANN401
    from gt4py.cartesian.gtc.gtir_to_oir import GTIRToOIR
    from gt4py.cartesian.gtc.passes.oir_optimizations.utils import compute_horizontal_block_extents

    reach, lowered = Reach(), GTIRToOIR().visit(stencil)
    extents = compute_horizontal_block_extents(lowered)
    for loop in lowered.vertical_loops:
        for section in loop.sections:
            for block in section.horizontal_executions:
                _read_block(block, section.interval, extents[id(block)], reach)
    return reach


def _read_block(block: Any, interval: Any, extents: Any, reach: Reach) -> None:  # noqa: ANN401
    """Note what statements touch that are computed for levels of an interval.

    A region that lies outside of all that is computed is never entered.
    """
    from gt4py.cartesian.gtc.oir import HorizontalRestriction

    unread: set[int] = set()
    for region in block.walk_values().if_isinstance(HorizontalRestriction):
        parts = list(zip("IJ", region.mask.intervals, extents, strict=True))
        if any(_is_outside(part, extent) for _, part, extent in parts):
            unread.update(map(id, _accesses(region)))
            continue
        for axis, part, extent in parts:
            reach.regions[axis] = max(reach.regions.get(axis, 1), _width(part, extent))
        for access in _accesses(region):
            offsets = access.offset.to_dict()
            for axis, part, extent in parts:
                along = reach.along(str(access.name), axis)
                along.include(part, offsets[axis.lower()], extent)
    for access in _accesses(block):
        level = access.offset.to_dict()["k"]
        if id(access) in unread:
            continue
        if level is None or interval.has_runtime_access():
            reach.unknown.add(str(access.name))
        else:
            reach.along(str(access.name), "K").include(interval, level)


def _accesses(node: Any) -> list[Any]:  # noqa: ANN401
    from gt4py.cartesian.gtc.oir import FieldAccess

    return list(node.walk_values().if_isinstance(FieldAccess))


def _is_outside(part: Any, extent: tuple[int, int]) -> bool:  # noqa: ANN401
    """Tell whether a part of an axis has no point of a block, however large the domain is."""
    start, end = part.start, part.end
    if start is not None and start.level.name == "END":
        return bool(start.offset >= extent[1])
    return end is not None and end.level.name == "START" and bool(end.offset <= extent[0])


def _width(part: Any, extent: tuple[int, int]) -> int:  # noqa: ANN401
    """Count the points of the smallest domain in which a part of an axis is not cut short."""
    ends = (one for one in (part.start, part.end) if one is not None)
    return max(
        (
            extent[0] - one.offset if one.level.name == "END" else one.offset - extent[1]
            for one in ends
        ),
        default=1,
    )


def deepest(reach: Reach, fields: Mapping[str, Any]) -> int:
    """Count the fewest levels of a domain in which no temporary field is touched outside."""
    found = reach.across.items()
    temporary = [one for (name, axis), one in found if axis == "K" and name not in fields]
    return max((max(one.below_end, one.above_start) for one in temporary), default=0)
