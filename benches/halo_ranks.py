"""One rank of `halo`: times exchanges in turns, and prints the rounds of the slowest rank as JSON.

Started by mpiexec with a case as JSON: `order`, `fields`, `shape`, `narrow`, `statements`, `rounds`
and `repetitions`.
"""

import json
import random
import sys

import dlfield as dlf
import numpy as np
from halo_peers import Alltoallw, Ghex, NumPyPacked
from mpi4py import MPI

HALO = 3
BY_HAND = {"numpy_packed": NumPyPacked, "alltoallw": Alltoallw, "ghex": Ghex}


def main(case: dict) -> None:
    """Measure what works, and tell why the others do not."""
    dims = ("I",) if case["narrow"] else ("I", "J")
    cart = MPI.COMM_WORLD.Create_cart([2, 1][: len(dims)], [True] * len(dims))
    wanted = [statement.partition(".")[0] for statement in case["statements"]]
    exchanges, problems, seen = {}, {}, None
    for name in wanted:
        try:
            storages, exchange = made(name, case, cart, dims)
        except (ImportError, AttributeError) as error:  # of a peer that is not installed
            problems[f"{name}.exchange()"] = f"{type(error).__name__}: {error}"
            continue
        exchange()
        found = [storage.to_numpy().tobytes() for storage in storages]
        seen = seen or found
        if found != seen:
            raise RuntimeError(f"{name}: the halos have other values than those of {wanted[0]}")
        exchanges[f"{name}.exchange()"] = exchange
    samples = timed(exchanges, case, cart)
    if cart.rank == 0:
        print(json.dumps({"samples": samples, "problems": problems}))


def made(name: str, case: dict, cart: MPI.Cartcomm, dims: tuple[str, ...]) -> tuple:
    """Make fields, and what exchanges their halos."""
    storages = [field(case, cart, len(dims), number) for number in range(case["fields"])]
    if name == "packed":
        return storages, dlf.halo_exchange(storages, cart, dims=dims).exchange
    by_hand = BY_HAND[name]([storage.to_numpy() for storage in storages], cart, HALO)
    return storages, by_hand.exchange


def field(case: dict, cart: MPI.Cartcomm, divided: int, number: int) -> dlf.Storage:
    """Make a field that has different numbers on each rank, and none in its halo."""
    halo = (HALO,) * divided + (0,) * (3 - divided)
    layout = tuple(case["order"].index(dim) for dim in "IJK")
    extents = [points + 2 * width for points, width in zip(case["shape"], halo, strict=True)]
    made = dlf.empty(extents, halo=halo, layout=layout, dims="IJK")
    made.to_numpy()[...] = -1.0
    numbers = np.random.default_rng((cart.rank, number))
    made.domain_view.to_numpy()[...] = numbers.random(case["shape"])
    return made


def timed(exchanges: dict, case: dict, cart: MPI.Cartcomm) -> dict[str, list[float]]:
    """Time all in turns: for each round the nanoseconds of an exchange on the slowest rank."""
    samples = {statement: [] for statement in exchanges}
    order, shuffle = list(exchanges), random.Random(0).shuffle
    for _ in range(case["rounds"]):
        shuffle(order)
        for statement in order:
            exchange, times = exchanges[statement], case["repetitions"]
            exchange()
            cart.Barrier()
            begin = MPI.Wtime()
            for _ in range(times):
                exchange()
            passed = cart.allreduce(MPI.Wtime() - begin, MPI.MAX)
            samples[statement].append(passed / times * 1e9)
    return samples


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
