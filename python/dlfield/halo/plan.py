"""`halo_exchange`: a plan that all ranks agree upon."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlfield._core import check_among, dim_names
from dlfield.halo import mpi
from dlfield.halo.agreement import agree
from dlfield.halo.decomposition import Block
from dlfield.halo.exchange import ENGINES, HaloExchange
from dlfield.halo.fields import PlannedField, planned, wire_dims
from dlfield.halo.neighbours import Neighbours, OneRank, edges_of_grid
from dlfield.halo.route import Route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlfield.halo.edge import Edge

__all__ = ["halo_exchange"]


def halo_exchange(
    fields: Mapping[str, Any] | Sequence[Any],
    comm: Any,  # a communicator of mpi4py
    *,
    dims: Sequence[str] = ("I", "J"),
    width: Mapping[str, Any] | None = None,
    shared: Mapping[str, int] | None = None,
    engine: str = "packed",
    gpu_aware: bool | None = None,
) -> HaloExchange:
    """Plan the exchange of halos between the ranks among which fields are divided. Collective.

    Each rank checks its own fields, then all ranks together: all of them raise the same error, or
    none does.

    Parameters
    ----------
    fields
        Storages with dims and halo, or arrays that `as_storage` takes so. Layouts may differ among
        ranks, and halos if `width` is given. Names of a mapping are the same on all ranks, in the
        same order; of a sequence, only the descriptions of the fields are compared.
    comm
        A Cartesian communicator of mpi4py, whose dimensions are `dims` in their order; the `cart`
        of a `dlfield.halo.decompose`; or a `dlfield.halo.Neighbours`. None is a run of one rank,
        periodic along `dims`, which needs no mpi4py.
    dims
        The dimensions along which the fields are divided: names, or dimensions of GT4Py. A field
        may lack some.
    width
        Points of the halo to fill, by name, an int for both ends or a pair: fewer than the halo
        has. By default the whole halo.
    shared
        Points at an end of the domain that both neighbours have, by name, as fields on interfaces
        do.
    engine
        "packed": one message per neighbour, packed in buffers. "ghex": GHEX exchanges fields in
        host memory, between ranks of a Cartesian communicator.
    gpu_aware
        True: MPI gets device memory directly, for fields that exist only on a GPU; refused if MPI
        does not report support. False: they go through pinned host memory. None: True if MPI
        reports support.

    Returns
    -------
    HaloExchange

    Raises
    ------
    TypeError
        For anything but a communicator.
    ValueError
        On all ranks, if one of them has a field that cannot be exchanged, or other fields than rank
        0, or than its neighbours need. The text begins with its rank.

    Notes
    -----
    Physical edges are left alone. The halo there, corners included, holds boundary conditions: set
    them after `HaloExchange.wait`. A plan that fills nothing on any rank causes a ``UserWarning``
    on rank 0, unless `width` is given.

    Examples
    --------
    >>> import dlfield as dlf
    >>> block = dlf.halo.decompose((4, 3), None, "IJ", halo={"I": 1}, periodic={"I": True})
    >>> t = block.zeros()
    >>> t.domain_view[0] = 1.0
    >>> with dlf.halo_exchange({"t": t}, block.cart, dims=block.divided) as plan:
    ...     plan.exchange()
    >>> t.to_numpy()[:, 0]  # the last point is the halo
    array([0., 1., 0., 0., 0., 1.])
    """
    if comm is None:
        dims = dim_names(dims)
        comm = OneRank((True,) * len(dims))
    channel, edges = _connected(comm)
    group = None if channel is None else channel.comm
    tags = 0 if channel is None else channel.take_tags()
    takes_gpu = group is None or mpi.takes_gpu(group)
    read: list[PlannedField] = []
    problem: Exception | None = None
    try:
        dims = dim_names(dims)
        _check_options(comm, dims, engine, gpu_aware, takes_gpu=takes_gpu)
        edges = edges_of_grid(dims, comm) if edges is None else edges
        read = planned(fields, dims, width, shared)
        for one in read:
            one.check(edges, None if group is None else ENGINES[engine].refuse)
    except Exception as error:
        problem = error
    agree(group, problem, None if problem is not None else _description(read, dims, engine))
    order = wire_dims(read[0])
    rank, order = (0, order) if group is None else (group.rank, group.bcast(order))
    route = Route(read, edges or (), order, rank)
    fills = _fills_something(group, route, width)
    made: HaloExchange | Exception | None = _problem_of_shapes(group, route, tags)
    if made is None:
        try:
            gpu_aware = takes_gpu and gpu_aware is not False
            connection = mpi.Connection(channel, tags, gpu_aware=gpu_aware)
            made = HaloExchange(connection, route, engine, named=isinstance(fields, Mapping))
            if not fills and rank == 0:  # may be an error, which all ranks raise then
                _warn_of_nothing(comm, dims, 1 if group is None else group.size)
        except Exception as error:
            made = error
    return _agreed(group, made)


def _fills_something(group: Any, route: Route, width: object) -> bool:
    """Return whether a rank has a halo to fill, or was told which not to fill. Collective."""
    own = [field.storage for field in route.fields]
    fills = width is not None or any(route.received(own, edge) for edge in route.edges)
    return fills if group is None else bool(mpi.most(group, [fills])[0])


def _warn_of_nothing(comm: Any, dims: Sequence[str], count: int) -> None:
    along = [dim for dim, has in zip(dims, _has_neighbours(comm, dims), strict=True) if has]
    if along:
        needs, way_out = f"a halo along {' or '.join(along)}", "create the fields with halo="
    elif isinstance(comm, Neighbours):
        needs, way_out = "an edge", "list those of each rank"
    else:
        needs = "a dimension that is periodic"
        way_out = "pass periodic= to dlf.halo.decompose(...)"
    ranks = "one rank" if count == 1 else f"{count} ranks"
    warnings.warn(
        f"halo_exchange: needs {needs} to fill anything on {ranks}; {way_out}",
        UserWarning,
        stacklevel=3,
    )


def _has_neighbours(comm: Any, dims: Sequence[str]) -> list[bool]:
    """Tell along which of the dims some rank has a neighbour, as far as this one sees."""
    if isinstance(comm, Neighbours):
        return [any(edge.receive.get(dim) for edge in comm.edges) for dim in dims]
    if isinstance(comm, OneRank):
        return list(comm.periodic)
    pairs = zip(comm.dims, mpi.periodic_of(comm), strict=True)
    return [parts > 1 or periodic for parts, periodic in pairs]


def _agreed(group: Any, made: HaloExchange | Exception) -> HaloExchange:
    """Return the plan if all ranks could make theirs; else raise what `agree` says."""
    if isinstance(made, Exception):
        agree(group, made)
        raise made
    try:
        agree(group, None)
    except Exception:
        made.free()
        raise
    return made


def _connected(comm: Any) -> tuple[mpi.Channel | None, Sequence[Edge] | None]:
    """Return the channel of a communicator, and the edges if they are given."""
    if isinstance(comm, OneRank):
        return None, None
    if isinstance(comm, Neighbours):
        return mpi.channel_of(comm.comm), comm.edges
    if not mpi.is_cart(comm):
        is_block = isinstance(comm, Block)
        way_out = (
            "pass its `cart`, with `dims=block.divided`" if is_block else "Create_cart makes one"
        )
        raise TypeError(
            "comm: expected a Cartesian communicator of mpi4py, Neighbours, or None for a serial "
            f"run, got {type(comm).__name__}; {way_out}"
        )
    return mpi.channel_of(comm), None


def _check_options(
    comm: Any,
    dims: Sequence[str],
    engine: str,
    gpu_aware: object,
    *,
    takes_gpu: bool,
) -> None:
    check_among("engine", [engine], tuple(ENGINES))
    if engine == "ghex" and isinstance(comm, Neighbours):
        raise ValueError(
            "engine: expected a Cartesian communicator for 'ghex', got Neighbours; use 'packed'"
        )
    if not isinstance(comm, Neighbours) and len(dims) != comm.ndim:
        raise ValueError(
            f"dims: expected a name for each of the {comm.ndim} dimensions of the communicator, "
            f"got {len(dims)}"
        )
    if gpu_aware not in (None, False, True):
        raise ValueError(f"gpu_aware: expected None, True or False, got {gpu_aware!r}")
    if gpu_aware and not takes_gpu:
        raise ValueError(
            "gpu_aware: expected an MPI that takes memory of a GPU, got one that does not say so; "
            "pass None, and messages go through the host"
        )


def _description(
    read: Sequence[PlannedField], dims: Sequence[str], engine: str
) -> dict[str, object]:
    description: dict[str, object] = {
        "engine": engine,
        "dims": tuple(dims),
        "fields": tuple(field.name for field in read),
    }
    for field in read:
        description |= field.description()
        if engine == "ghex":  # which sends points in the order of memory
            description[f"field '{field.name}': order of memory"] = tuple(wire_dims(field))
    return description


def _problem_of_shapes(group: Any, route: Route, tags: int) -> ValueError | None:
    """Compare what comes over each edge with the halo there. Collective."""
    remote = [edge for edge in route.edges if edge.rank != route.rank]
    sends = [group.isend(route.shapes(one)[0], one.rank, tags + one.tag) for one in remote]
    problems = []
    for edge in remote:
        got = group.recv(source=edge.rank, tag=tags + edge.expected_tag)
        problems.append(route.problem_of_shapes(edge, got))
    for start, end in route.within:
        problems.append(route.problem_of_shapes(end, route.shapes(start)[0]))
    for send in sends:
        send.wait()
    return next((problem for problem in problems if problem is not None), None)
