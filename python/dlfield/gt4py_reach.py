"""How far a stencil of ``gt4py.cartesian`` reaches, read from its intermediate representation.

What GT4Py says of a field's vertical reach leaves out levels that an interval reaches past the end
of another one, and every index that is known at run time only. Both stand in GTIR, which GT4Py's
frontend makes of the stencil's definition again, in milliseconds. This file is the only one that
knows GTIR. GT4Py is imported only by a stencil of its own.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Levels", "VerticalReach", "deepest", "is_known_version", "vertical_reach"]

#: Versions of GT4Py whose GTIR is known.
_KNOWN = ("1.1.",)


@dataclass
class Levels:
    """Levels of one field that a stencil touches, beyond what GT4Py says.

    Parameters
    ----------
    below_end, above_start
        As `dlfield.declaration.DeclaredField.across` has them.
    """

    below_end: int = 0
    above_start: int = 0


@dataclass
class VerticalReach:
    """What the representation of a stencil says.

    Parameters
    ----------
    levels
        By the name of the field. Temporary fields have theirs, too.
    unknown
        Names of fields of which some level is known at run time only.
    """

    levels: dict[str, Levels] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)


_found: WeakKeyDictionary[Any, VerticalReach | None] = WeakKeyDictionary()


def vertical_reach(stencil: Any) -> VerticalReach | None:  # noqa: ANN401
    """Read the levels that a compiled stencil of GT4Py touches. Found once for each stencil.

    Returns
    -------
    VerticalReach or None
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


def _derived(stencil: Any) -> VerticalReach | None:  # noqa: ANN401
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
    from gt4py.cartesian.stencil_builder import StencilBuilder

    noted = dict(stencil.options)
    options = BuildOptions(impl_opts=noted.pop("_impl_opts"), **noted)
    definition = stencil.definition_func
    builder = StencilBuilder(definition, backend=stencil.backend, options=options)
    builder._build_data["prepared_def"] = definition
    if builder.stencil_id.version != stencil._gt_id_:
        raise LookupError(stencil)
    externals = definition._gtscript_["externals"]
    return builder.frontend.generate(definition, externals, {}, options, stencil.backend)


def _read(stencil: Any) -> VerticalReach:  # noqa: ANN401
    from gt4py.cartesian.gtc.gtir import FieldAccess

    reach = VerticalReach()
    for loop in stencil.vertical_loops:
        for access in loop.walk_values().if_isinstance(FieldAccess):
            name = str(access.name)
            level = access.offset.to_dict()["k"]
            if level is None or loop.interval.has_runtime_access():
                reach.unknown.add(name)
            else:
                _include(reach.levels.setdefault(name, Levels()), loop.interval, level)
    return reach


def _include(levels: Levels, interval: Any, offset: int) -> None:  # noqa: ANN401
    """Include the levels of an interval, which has some in every domain that is deep enough."""
    if interval.start.level.name == "END":
        levels.below_end = max(levels.below_end, -interval.start.offset - offset)
    if interval.end.level.name == "START":
        levels.above_start = max(levels.above_start, interval.end.offset + offset)


def deepest(reach: VerticalReach, fields: Mapping[str, Any]) -> int:
    """Count the fewest levels of a domain in which no temporary field is touched outside."""
    temporary = (levels for name, levels in reach.levels.items() if name not in fields)
    return max((max(one.below_end, one.above_start) for one in temporary), default=0)
