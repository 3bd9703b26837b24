"""What `decompose` is given: the extents and the names of a grid, its halo and its periods."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield._core import check_among, dim_names
from dlfield.halo import mpi

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DIVIDED", "read_grid"]

#: How many dimensions are divided at most if the communicator has no topology, so that the levels
#: of a column stay on one rank.
DIVIDED = 2


def read_grid(
    shape: Sequence[int],
    dims: Sequence[str],
    halo: Any,
    periodic: Any,
    comm: Any,
) -> dict[str, Any]:
    """Read the arguments of `decompose`: what has to be the same on all ranks, by name.

    Raises
    ------
    TypeError, ValueError
        For what is no grid.
    """
    dims = dim_names(dims)
    if isinstance(shape, str) or not all(hasattr(extent, "__index__") for extent in shape):
        raise TypeError(f"shape: expected ints, got {shape!r}")
    shape = tuple(map(index, shape))
    _check_grid(dims, shape)
    pairs = tuple(map(_width, dims, _by_name("halo", halo, dims, 0)))
    around = _around(periodic, dims, comm)
    return {"shape": shape, "dims": dims, "halo": pairs, "periodic": around}


def _check_grid(dims: tuple[str, ...], shape: tuple[int, ...]) -> None:
    if len(dims) != len(shape):
        raise ValueError(
            f"shape: expected an extent for each of the dims {dims}, got {len(shape)} extents"
        )
    if len(set(dims)) < len(dims):
        raise ValueError(f"dims: expected a different name for each dimension, got {dims}")
    for dim, extent in zip(dims, shape, strict=True):
        if extent < 0:
            raise ValueError(f"shape: expected at least 0 points along {dim}, got {extent}")


def _around(periodic: Any, dims: tuple[str, ...], comm: Any) -> tuple[bool, ...]:
    """Tell for each dimension that is divided whether the grid is periodic along it."""
    given = () if periodic is None else periodic
    values = _by_name("periodic", given, dims, default=False)
    if named := [one for one in values if isinstance(one, str)]:
        raise TypeError(
            f"periodic: expected True or False for each dimension, got {named[0]!r}; write "
            f"{{{named[0]!r}: True}}"
        )
    around = tuple(map(bool, values))
    own = mpi.periodic_of(comm) if mpi.is_cart(comm) else None
    if own is not None and len(own) > len(dims):
        raise ValueError(
            f"dims: expected at least the {len(own)} dimensions of the communicator, got {dims}"
        )
    count = DIVIDED if own is None else len(own)
    wanted, others = around[:count], around[count:]
    if any(others):
        dim = dims[count + others.index(True)]
        raise ValueError(
            f"periodic: expected a dimension that is divided, one of {dims[:count]}, got {dim!r}; "
            "name it among the first of the dims"
        )
    if own is not None and periodic is not None and wanted != own:
        raise ValueError(
            f"periodic: expected {own}, as the communicator is, got {wanted}; leave it out"
        )
    return wanted if own is None else own


def _width(dim: str, given: Any) -> tuple[int, int]:
    """Read the points below and above: an int for both, or a pair."""
    try:
        low, high = map(index, (given, given) if np.ndim(given) == 0 else given)
    except (TypeError, ValueError):
        expected = f"halo: expected an int or a pair of ints along {dim}"
        raise TypeError(f"{expected}, got {given!r}") from None
    if low < 0 or high < 0:
        raise ValueError(f"halo: expected at least 0 points along {dim}, got {given!r}")
    return low, high


def _by_name(what: str, given: Any, dims: tuple[str, ...], default: object) -> list[Any]:
    """Read values by name or in the order of dims; those that are missing have the default."""
    if isinstance(given, Mapping):
        named = dict(zip(dim_names(tuple(given), what), given.values(), strict=True))
        check_among(what, named, dims)
        return [named.get(dim, default) for dim in dims]
    if isinstance(given, str | AbstractSet) or not hasattr(given, "__iter__"):
        raise TypeError(f"{what}: expected values by name or in the order of {dims}, got {given!r}")
    values = list(given)
    if len(values) > len(dims):
        raise ValueError(f"{what}: expected one for each of the dims {dims}, got {len(values)}")
    return values + [default] * (len(dims) - len(values))
