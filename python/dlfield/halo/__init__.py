"""Fields divided among MPI ranks: which ranks are neighbours, and which points each has.

`dlfield.halo_exchange` plans the exchange. Importing this package does not import mpi4py.

Its files, each of which uses only those above it::

    edge             one edge of a block
    remembered       plans for the last few sets of fields
    mpi              messages of MPI
    agreement        all ranks go on, or all raise
    neighbours       topologies
    grid             the grid to divide: extents, names, halo, periods
    decomposition    which rank has which points
    fields           a field of a plan, and its parts at an edge
    route            what goes over each edge
    engines          two ways to move it
    transposed       the way back, for derivatives
    in_torch         an exchange that PyTorch differentiates
    in_jax           an exchange that JAX differentiates
    exchange         a planned exchange: `exchange()`, `start()`, `wait()`
    plan             `halo_exchange`
    explanation      what an exchange moves
"""

from dlfield.halo.decomposition import Block, decompose
from dlfield.halo.edge import Edge
from dlfield.halo.engines.ghex_fields import ghex_field
from dlfield.halo.exchange import HaloExchange
from dlfield.halo.explanation import ExchangeExplanation
from dlfield.halo.neighbours import Neighbours
from dlfield.halo.plan import halo_exchange

__all__ = [
    "Block",
    "Edge",
    "ExchangeExplanation",
    "HaloExchange",
    "Neighbours",
    "decompose",
    "ghex_field",
    "halo_exchange",
]
