"""Divides a grid among ranks: `decompose` makes a `Block`, which allocates a rank's fields."""

from __future__ import annotations

from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from dlfield import _core
from dlfield.halo import mpi
from dlfield.halo.agreement import agree
from dlfield.halo.grid import DIVIDED, read_grid
from dlfield.halo.neighbours import OneRank

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Width = int | tuple[int, int]

__all__ = ["Block", "decompose"]


class Block:
    """The part of a grid that one rank has. Made by `decompose`.

    Attributes
    ----------
    shape : tuple of int
        Points of the whole grid.
    dims : tuple of str
        Its dimensions.
    divided : tuple of str
        The divided dimensions, those of `cart`: the `dims` of `halo_exchange`.
    cart
        The communicator for `halo_exchange`. It belongs to the block if `decompose` made it.
    region : dict of slice
        This rank's domain as a slice of the whole grid for each divided dimension, as
        ``to_zarr(region=)`` takes them.
    halo : tuple of pairs of int
        Points below and above the domain, along each dimension.

    Examples
    --------
    >>> import dlfield as dlf
    >>> block = dlf.halo.decompose((8, 6, 5), None, halo={"I": 1, "J": 1})  # or MPI.COMM_WORLD
    >>> block.region, block.halo
    ({'I': slice(0, 8, None), 'J': slice(0, 6, None)}, ((1, 1), (1, 1), (0, 0)))
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dims: tuple[str, ...],
        halo: tuple[tuple[int, int], ...],
        cart: Any,
        region: dict[str, slice],
        *,
        owned: bool,
    ) -> None:
        self.shape, self.dims, self.halo, self.cart = shape, dims, halo, cart
        self.region, self.divided, self._owned = region, tuple(region), owned

    @property
    def domain(self) -> tuple[int, ...]:
        """Points of this rank without halo, along each dimension."""
        whole = dict(zip(self.dims, self.shape, strict=True))
        own = {dim: part.stop - part.start for dim, part in self.region.items()}
        return tuple((whole | own).values())

    @property
    def local_shape(self) -> tuple[int, ...]:
        """Extents of a field of this rank, halo included."""
        pairs = zip(self.domain, self.halo, strict=True)
        return tuple(low + points + high for points, (low, high) in pairs)

    def empty(self, **options: Any) -> _core.Storage:
        """Allocate a field of this rank; its values are undefined.

        Parameters
        ----------
        **options
            Those of `dlfield.empty`. ``dims`` may be some of the block's, in any order; shape and
            halo are the block's.
        """
        made: _core.Storage = _core.empty(self._extents(options), **options)
        return made

    def zeros(self, **options: Any) -> _core.Storage:
        """Allocate a field of this rank filled with zeros. Takes the options of `empty`."""
        made: _core.Storage = _core.zeros(self._extents(options), **options)
        return made

    def gather(self, field: _core.Storage, root: int = 0) -> np.ndarray[Any, Any] | None:
        """Put the domains of all ranks together on one. Collective.

        Parameters
        ----------
        field
            A field of this rank, with some of the block's dimensions and any others. Its halo is
            left out.
        root
            The rank that gets the whole grid.

        Returns
        -------
        numpy.ndarray or None
            On `root` a copy of the points of the whole grid, in the order of the field's
            dimensions; None elsewhere.

        Raises
        ------
        TypeError
            Without MPI, if the field is not a storage with dims, or the root is not an int.
        ValueError
            On all ranks, if one has no storage with dims, another domain than its block, or an
            unknown halo; if dtypes, dimensions or roots differ; or if the root is not a rank.

        Examples
        --------
        >>> import dlfield as dlf
        >>> block = dlf.halo.decompose((8, 6, 5), None, halo={"I": 1, "J": 1})  # or MPI.COMM_WORLD
        >>> block.gather(block.zeros(dims="JI")).shape
        (6, 8)
        """
        comm = None if isinstance(self.cart, OneRank) else mpi.channel_of(self.cart).comm
        values, dims = self._agreed_points(comm, field, root)
        where = tuple(self.region.get(dim, slice(None)) for dim in dims)
        pieces = [(where, values)] if comm is None else comm.gather((where, values), root)
        if pieces is None:
            return None
        points = dict(zip(dims, values.shape, strict=True))
        points |= dict(zip(self.dims, self.shape, strict=True))
        whole = np.empty([points[dim] for dim in dims], values.dtype)
        for place, part in pieces:
            whole[place] = part
        return whole

    def _agreed_points(
        self,
        comm: Any,
        field: _core.Storage,
        root: int,
    ) -> tuple[np.ndarray[Any, Any], tuple[str, ...]]:
        """Return what `_own_points` does, or raise the same error on all ranks. Collective."""
        problem: Exception | None = None
        values, dims = np.empty(0), self.dims[:1]
        try:
            count = 1 if comm is None else comm.Get_size()
            if not hasattr(root, "__index__"):
                raise TypeError(f"root: expected an int, got {root!r}")
            root = index(root)
            if not 0 <= root < count:
                raise ValueError(f"root: expected a rank from 0 to {count - 1}, got {root}")
            values, dims = self._own_points(field)
        except Exception as error:  # raised on this rank alone, it would leave the others waiting
            problem = error
        # Undivided dimensions have the same extent everywhere.
        extents = {
            dim: extent
            for dim, extent in zip(dims, values.shape, strict=True)
            if dim not in self.divided
        }
        field_of_all = {"dims": dims, "dtype": str(values.dtype), "extents": extents, "root": root}
        agree(comm, problem, field_of_all, way_out="gather the same field")
        return values, dims

    def _own_points(self, field: _core.Storage) -> tuple[np.ndarray[Any, Any], tuple[str, ...]]:
        """Return the points of a field that are this rank's own, on the host, and its dims."""
        if not isinstance(field, _core.Storage) or field.dims is None:
            without = " without" if isinstance(field, _core.Storage) else ""
            got = f"{type(field).__name__}{without}"
            raise TypeError(f"field: expected a storage with dims, got a {got}; name them")
        domain = dict(zip(self.dims, self.domain, strict=True))
        for dim, extent in zip(field.dims, field.domain_view.shape, strict=True):
            if domain.get(dim, extent) != extent:
                raise ValueError(
                    f"field: expected {domain[dim]} points of the domain along {dim}, as its block "
                    f"has, got {extent}; make it with the block's zeros or empty"
                )
        return _core.storage(field.domain_view, device="cpu").to_numpy(), tuple(field.dims)

    def free(self) -> None:
        """Free the communicator, if `decompose` made it. Collective."""
        if self._owned:
            self._owned = False
            self.cart.Free()

    def __repr__(self) -> str:
        parts = ", ".join(f"{dim} {one.start}:{one.stop}" for dim, one in self.region.items())
        return f"<dlfield.halo.Block {parts} of {self.shape} as {self.dims}, halo {self.halo}>"

    def _extents(self, options: dict[str, Any]) -> list[int]:
        """Return the extents of a field with the dims in `options`, and put its halo there."""
        if "halo" in options:
            raise ValueError(
                f"halo: expected none, as a field has the halo of its block, {self.halo}, got "
                f"{options['halo']!r}; leave it out, or pass another one to decompose"
            )
        named = options["dims"] = _core.dim_names(options.get("dims", self.dims))
        extents = dict(zip(self.dims, self.local_shape, strict=True))
        _core.check_among("dims", named, self.dims)
        halo = dict(zip(self.dims, self.halo, strict=True))
        options["halo"] = tuple(halo[dim] for dim in named)
        return [extents[dim] for dim in named]


def decompose(
    shape: Sequence[int],
    comm: Any,  # a communicator of mpi4py
    dims: Sequence[str] = ("I", "J", "K"),
    halo: Mapping[str, Width] | Sequence[Width] = (),
    periodic: Mapping[str, bool] | Sequence[bool] | None = None,
) -> Block:
    """Divide a grid among ranks, as evenly as it can be. Collective.

    Parameters
    ----------
    shape
        Points of the grid along each dimension, without halo.
    comm
        A communicator of mpi4py: the first two of `dims` are divided so that blocks are at least as
        wide as the halo, if there is a way, and have few points at their edges. A Cartesian one is
        used as it is; its dimensions are the first of `dims`.
        None is a run of one rank without MPI.
    dims
        Names of the dimensions, or dimensions of GT4Py. No two are the same.
    halo
        Points below and above the domain of each block, by name or in the order of `dims`: an int
        for both, or a pair. Those that are missing have none.
    periodic
        Whether the grid is periodic along each divided dimension, by name or in the order of
        `dims`; False by default. A Cartesian communicator decides it itself. True is refused along
        other dimensions.

    Returns
    -------
    Block

    Raises
    ------
    TypeError
        If `comm` is not a communicator. Without MPI, also for extents and widths that are no ints.
    ValueError
        On all ranks, for a dimension with fewer points than ranks along it, and if one rank has
        other arguments than rank 0.

    Examples
    --------
    >>> import dlfield as dlf
    >>> block = dlf.halo.decompose((8, 6, 5), None, halo={"I": 1, "J": 1})  # or MPI.COMM_WORLD
    >>> block.domain, block.local_shape
    ((8, 6, 5), (10, 8, 5))
    >>> block.zeros(dims="IJ").shape
    (10, 8)
    """
    if not (comm is None or mpi.is_communicator(comm)):
        raise TypeError(
            f"comm: expected a communicator of mpi4py or None, got {type(comm).__name__}"
        )
    group = None if comm is None else mpi.channel_of(comm).comm
    problem: Exception | None = None
    parts: tuple[int, ...] = ()
    given: dict[str, Any] = {}
    try:
        given = read_grid(shape, dims, halo, periodic, comm)
        parts = _parts(given["shape"], comm, given["halo"])
        _check_points(given, parts)
    except Exception as error:
        problem = error
    agree(group, problem, given)
    return _block(given, comm, parts)


def _parts(
    shape: tuple[int, ...], comm: Any, halo: Sequence[tuple[int, int]] = ()
) -> tuple[int, ...]:
    """Return the number of blocks along each dimension that is divided.

    Each block has at least one point, and as many as its neighbours need for their halos, if a
    division allows it.
    """
    if mpi.is_cart(comm):
        return tuple(comm.dims)
    extents = shape[:DIVIDED]
    size = 1 if comm is None else comm.size
    ways = list(_factors(size, len(extents)))
    filled = [one for one in ways if _have_points(extents, one, [1] * len(extents))]
    needed = [max(1, *pair) for pair in halo] or [1] * len(extents)
    wide = [one for one in filled if _have_points(extents, one, needed)]
    unfit = [(size,) + (1,) * (len(extents) - 1)]
    return min(wide or filled or unfit, key=lambda one: _edge(extents, one))


def _have_points(extents: Sequence[int], parts: Sequence[int], needed: Sequence[int]) -> bool:
    """Return True if each block has the points needed along each dimension that is cut."""
    least = [extent // part for extent, part in zip(extents, parts, strict=True)]
    return all(
        points >= (need if part > 1 else 1)
        for points, part, need in zip(least, parts, needed, strict=False)
    )


def _factors(size: int, count: int) -> Iterator[tuple[int, ...]]:
    if count <= 1:
        yield (size,) * count
        return
    for first in range(1, size + 1):
        if size % first == 0:
            for rest in _factors(size // first, count - 1):
                yield (first, *rest)


def _edge(extents: Sequence[int], parts: Sequence[int]) -> float:
    """Return the points on the edges of a block, along the dimensions that are cut."""
    points = [extent / part for extent, part in zip(extents, parts, strict=True)]
    cut = (axis for axis, part in enumerate(parts) if part > 1)
    return sum(prod(points[:axis] + points[axis + 1 :]) for axis in cut)


def _check_points(given: Mapping[str, Any], parts: Sequence[int]) -> None:
    if not parts:
        raise ValueError(
            "dims: needs the name of at least one dimension; dims='IJ' divides along I and J"
        )
    for dim, extent, count in zip(given["dims"], given["shape"], parts, strict=False):
        if extent < count:
            raise ValueError(
                f"shape: expected at least {count} points along {dim}, one for each rank, got "
                f"{extent}"
            )


def _block(given: Mapping[str, Any], comm: Any, parts: tuple[int, ...]) -> Block:
    around = given["periodic"][: len(parts)]
    made = comm is not None and not mpi.is_cart(comm)
    if comm is None:
        cart: Any = OneRank(around)
    else:
        cart = comm.Create_cart(parts, around) if made else comm
    at = (0,) * len(parts) if comm is None else cart.coords
    region = {
        dim: slice(extent * place // count, extent * (place + 1) // count)
        for dim, extent, place, count in zip(given["dims"], given["shape"], at, parts, strict=False)
    }
    return Block(given["shape"], given["dims"], given["halo"], cart, region, owned=made)
