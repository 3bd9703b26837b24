"""Exchanges of halos as they are written by hand with NumPy and mpi4py, or left to other libraries.

Each is made once for some arrays of one shape and layout, and then fills their halos any number of
times. The first dimensions are divided as the Cartesian communicator is; the halo is equally wide
on all sides of them.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from mpi4py import MPI

Direction = tuple[int, ...]


def directions(cart: MPI.Cartcomm) -> list[Direction]:
    """Give all directions to neighbours, corners too."""
    return [one for one in product((-1, 0, 1), repeat=cart.dim) if any(one)]


def neighbour(cart: MPI.Cartcomm, direction: Direction) -> int:
    """Return the rank in a direction of a periodic communicator."""
    place = zip(cart.coords, direction, cart.dims, strict=True)
    return cart.Get_cart_rank([(at + step) % extent for at, step, extent in place])


def opposite(direction: Direction) -> Direction:
    """Turn a direction round."""
    return tuple(-step for step in direction)


def sent(direction: Direction, halo: int) -> tuple[slice, ...]:
    """Select the points that go to the neighbour in a direction."""
    inner = {-1: slice(halo, 2 * halo), 0: slice(halo, -halo), 1: slice(-2 * halo, -halo)}
    return tuple(inner[step] for step in direction)


def received(direction: Direction, halo: int) -> tuple[slice, ...]:
    """Select the halo that the neighbour in a direction fills."""
    outer = {-1: slice(None, halo), 0: slice(halo, -halo), 1: slice(-halo, None)}
    return tuple(outer[step] for step in direction)


def in_memory_order(array: np.ndarray) -> np.ndarray:
    """View an array with its axes from the largest stride to the smallest."""
    return array.transpose(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))


class NumPyPacked:
    """Slices assigned into kept buffers, one message per neighbour for all fields."""

    def __init__(self, arrays: Sequence[np.ndarray], cart: MPI.Cartcomm, halo: int) -> None:
        self.pack, self.unpack, self.requests = [], [], []
        for tag, direction in enumerate(directions(cart)):
            back, to = opposite(direction), neighbour(cart, direction)
            out = self._message(arrays, sent(direction, halo), self.pack)
            into = self._message(arrays, received(back, halo), self.unpack)
            self.requests.append(cart.Recv_init(into, neighbour(cart, back), tag))
            self.requests.append(cart.Send_init(out, to, tag))

    @staticmethod
    def _message(arrays: Sequence[np.ndarray], where: tuple[slice, ...], pairs: list) -> np.ndarray:
        views = [in_memory_order(array[where]) for array in arrays]
        buffer = np.empty((len(arrays), *views[0].shape))
        pairs += zip(buffer, views, strict=True)
        return buffer

    def exchange(self) -> None:
        """Fill the halos."""
        for buffer, view in self.pack:
            buffer[...] = view
        MPI.Prequest.Startall(self.requests)
        MPI.Request.Waitall(self.requests)
        for buffer, view in self.unpack:
            view[...] = buffer


class Alltoallw:
    """`Neighbor_alltoallw` with a datatype of subarrays for each neighbour."""

    def __init__(self, arrays: Sequence[np.ndarray], cart: MPI.Cartcomm, halo: int) -> None:
        # One rank can be the neighbour across several edges. MPI then matches its messages by the
        # order of the edges, so both ends list them by the direction in which the sender sends.
        every = directions(cart)
        to = [neighbour(cart, direction) for direction in every]
        where_from = [neighbour(cart, opposite(direction)) for direction in every]
        # Open MPI cannot make a graph of a Cartesian communicator.
        plain = cart.Split(0, cart.rank)
        self.comm = plain.Create_dist_graph_adjacent(where_from, to)
        ones, zeros = [1] * len(every), [0] * len(every)
        out = [_struct(arrays, sent(direction, halo)) for direction in every]
        into = [_struct(arrays, received(opposite(direction), halo)) for direction in every]
        self.arrays = arrays  # datatypes have addresses, and keep nothing
        self.out = [MPI.BOTTOM, ones, zeros, out]
        self.into = [MPI.BOTTOM, ones, zeros, into]

    def exchange(self) -> None:
        """Fill the halos."""
        self.comm.Neighbor_alltoallw(self.out, self.into)


def _struct(arrays: Sequence[np.ndarray], where: tuple[slice, ...]) -> MPI.Datatype:
    """Describe one part of all arrays, by subarrays in the order of memory."""
    kinds = []
    for array in arrays:
        whole = in_memory_order(array)
        part = in_memory_order(array[where])
        at = (part.ctypes.data - whole.ctypes.data) // array.itemsize
        starts = np.unravel_index(at, whole.shape)
        kinds.append(MPI.DOUBLE.Create_subarray(whole.shape, part.shape, list(map(int, starts))))
    addresses = [array.ctypes.data for array in arrays]
    return MPI.Datatype.Create_struct([1] * len(kinds), addresses, kinds).Commit()


class Ghex:
    """GHEX, which packs and unpacks fields of a regular grid; one message per neighbour."""

    def __init__(self, arrays: Sequence[np.ndarray], cart: MPI.Cartcomm, halo: int) -> None:
        from ghex.context import make_context
        from ghex.structured.cartesian_sets import ProductSet, UnitRange
        from ghex.structured.regular import (
            DomainDescriptor,
            HaloGenerator,
            make_communication_object,
            make_field_descriptor,
            make_pattern,
        )

        own, whole, widths, periodic = [], [], [], []
        for axis, extent in enumerate(arrays[0].shape):
            divided = axis < cart.dim
            at, parts, width = (cart.coords[axis], cart.dims[axis], halo) if divided else (0, 1, 0)
            points = extent - 2 * width
            own.append(UnitRange(at * points, (at + 1) * points))
            whole.append(UnitRange(0, parts * points))
            widths.append((width, width))
            periodic.append(divided)
        domain = DomainDescriptor(cart.rank, ProductSet(*own))
        context = make_context(cart, MPI.Query_thread() == MPI.THREAD_MULTIPLE)
        halos = HaloGenerator(ProductSet(*whole), tuple(widths), tuple(periodic))
        pattern = make_pattern(context, halos, [domain])
        offsets = tuple(low for low, _ in widths)
        self.object = make_communication_object(context)
        self.fields = [
            pattern(make_field_descriptor(domain, array, offsets, array.shape)) for array in arrays
        ]
        self.kept = arrays, context, domain, pattern

    def exchange(self) -> None:
        """Fill the halos."""
        self.object.exchange(self.fields).wait()
