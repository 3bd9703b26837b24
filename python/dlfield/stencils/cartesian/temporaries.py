"""Memory for the temporary fields of a stencil, which GT4Py takes in every call."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dlfield.stencils.cartesian.declare import representation
from dlfield.stencils.cartesian.nodes import Assign, Block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlfield.stencils.cartesian.nodes import FieldDeclaration, Stencil

__all__ = ["Temporaries", "temporaries_of"]


class Temporaries(NamedTuple):
    """Temporary fields of a call.

    Attributes
    ----------
    number
        How many there are.
    nbytes
        Bytes of their elements. A backend that keeps a value in a register takes less.
    """

    number: int
    nbytes: int


def temporaries_of(stencil: Any, domain: Mapping[str, int]) -> Temporaries | None:
    """Return the temporaries of a call; None for a stencil whose definition is not known.

    Parameters
    ----------
    stencil
        Any callable.
    domain
        Points along each axis in which the call computes.
    """
    found = representation(stencil) if hasattr(stencil, "field_info") else None
    if found is None:
        return None
    sizes = [_nbytes(found, one, domain) for one in found.temporaries]
    return Temporaries(len(sizes), sum(sizes))


def _nbytes(found: Stencil, field: FieldDeclaration, domain: Mapping[str, int]) -> int:
    """Return the bytes of a temporary, which is as large as the blocks that write it."""
    blocks = [block for block in found.walk() if isinstance(block, Block)]
    writing = [block.extents for block in blocks if _writes(block, field.name)]
    points = dict(domain)
    for at, axis in enumerate("IJ"):
        first = min((each[at][0] for each in writing), default=0)
        last = max((each[at][1] for each in writing), default=0)
        points[axis] += last - first
    extents = [points[axis] for axis in field.axes]
    return prod((*extents, *field.data_shape)) * np.dtype(field.dtype).itemsize


def _writes(block: Block, name: str) -> bool:
    return any(isinstance(one, Assign) and one.target.name == name for one in block.walk())
