"""Reads a stencil of ``gt4py.cartesian``, unless this GT4Py or the stencil is not understood.

The version of GT4Py is not asked: when its first stencil is bound, definitions whose footprints are
known are read first. If one comes out differently, or a node of the stencil is not known,
the stencil keeps GT4Py's own bounds, and one warning says so. Only a stencil of GT4Py's own imports
this file.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import metadata
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dlfield.stencils.cartesian import internals
from dlfield.stencils.cartesian.footprint import footprint_of
from dlfield.stencils.cartesian.nodes import Assign, NoDefinition, UnknownNode

if TYPE_CHECKING:
    from dlfield.stencils.cartesian.nodes import Stencil

__all__ = ["not_understood", "representation_of"]

#: Bounds of a field that is read where the domain is.
_HERE = SimpleNamespace(
    axes=("I", "J", "K"), boundary=((0, 0),) * 3, access=SimpleNamespace(name="READ")
)


def representation_of(stencil: Any) -> Stencil | None:
    """Read a stencil of GT4Py.

    Returns
    -------
    Stencil or None
        None if its definition cannot be had, or if this GT4Py or a node of the stencil is not
        understood, which warns once.
    """
    trouble = not_understood()
    try:
        if not trouble:
            return internals.representation_of(stencil)
    except NoDefinition:
        return None
    except Warning:  # of GT4Py's, under a filter that turns it into an error
        raise
    except Exception as error:  # whatever GT4Py raises where its internals are others
        trouble = _told(error)
    _warn(trouble)
    return None


@cache
def not_understood() -> str:
    """Return what is not understood of this GT4Py, or nothing; tried once in a process."""
    try:
        from dlfield.stencils.cartesian.known import KNOWN

        for known in KNOWN:
            found = internals.representation_of_definition(known.definition)
            infos = dict.fromkeys(known.footprint.fields, _HERE)
            values = [one.value for one in found.walk() if isinstance(one, Assign)]
            if footprint_of(found, infos, backend="numpy") != known.footprint:
                return f"the footprint of the known definition '{found.name}'"
            if known.expression not in values:
                return f"the expressions of the known definition '{found.name}'"
    except Warning:  # an error by a filter, which may change
        raise
    except Exception as error:
        return _told(error)
    return ""


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, UnknownNode) else f"{type(error).__name__}: {error}"


@cache
def _warn(trouble: str) -> None:
    warnings.warn(
        f"gt4py: expected stencils that dlfield can read, got gt4py {metadata.version('gt4py')}, "
        f"of which it does not understand {trouble}; bounds are checked as far as GT4Py tells "
        "them, and inputs must be apart from outputs",
        stacklevel=2,
    )
