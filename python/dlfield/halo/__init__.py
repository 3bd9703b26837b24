"""Fields that are divided among the ranks of MPI: who is beside whom, and who has which points.

`dlfield.halo_exchange` plans the exchange. Importing this imports no mpi4py.
"""

from dlfield.halo.decomposition import Block, decompose
from dlfield.halo.exchange import HaloExchange
from dlfield.halo.explanation import ExchangeExplanation
from dlfield.halo.ghex_fields import ghex_field
from dlfield.halo.neighbours import Edge, Neighbours
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
