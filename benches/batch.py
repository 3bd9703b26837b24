"""What packing and unpacking the halos of several fields takes, beside slices of NumPy and torch.

Fields of 128 x 128 x 80 points with a halo of three points along I and J: the strips that go to the
eight neighbours are copied into one kept buffer for each neighbour, and from there into the halo.
Every buffer has its strips in the fields' own order. Narrow strips have rows of 3 points.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import dlfield as dlf
import numpy as np
import threads
from dlfield._core import CopyBatch
from tables import Row, Table, table_of
from timing import EFFORT, Comparison, Missing, Peer, compare_all, load

HALO = 3
FIELDS = (1, 10)
PEERS = (
    Peer("copy_each(np_targets, np_sources)", limit=0.9),
    Peer("copy_each_torch(torch_targets, torch_sources)"),
    Peer("copy_each(targets, sources)"),
)
NARROW = (Peer(PEERS[0].statement, limit=0.6), *PEERS[1:])
REMARK = (
    "A batch is planned once. `copy_each` assigns one pair after the other, with `target[...] = "
    "source` of NumPy's arrays or of dlfield's storages; `copy_each_torch` likewise with "
    "`target.copy_(source)`. All views and buffers exist before. float64, 128 x 128 x 80 points, "
    "a halo of 3 along I and J; narrow strips have rows of 3 points: those along I with I fastest."
)

Pairs = list[tuple[dlf.Storage, dlf.Storage]]


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure both layouts with one thread and with all."""
    rows = []
    for count in threads.counts():
        threads.use(count)
        rows += compare_all("batch", comparisons(count), {})
    return [(table_of("batch", rows, REMARK), rows)]


def comparisons(count: int) -> Iterator[Comparison]:
    """Compare packing and unpacking for each layout and number of fields."""
    shape = (16, 16, 8) if EFFORT.quick else (128, 128, 80)
    for order, fields, narrow in product(("IJK", "KJI"), FIELDS, (False, True)):
        if narrow and order == "IJK":
            continue  # where these have long rows too
        pack, unpack = strips(shape, order, fields, narrow=narrow)
        kind = "narrow strips" if narrow else "all strips"
        for what, pairs in {"pack": pack, "unpack": unpack}.items():
            yield Comparison(
                f"{what}, {order}, {fields} fields, {kind}, {threads.spell(count)}",
                "batch.run()",
                NARROW if narrow else PEERS,
                names=names_of(pairs),
            )


def strips(shape: Sequence[int], order: str, fields: int, *, narrow: bool) -> tuple[Pairs, Pairs]:
    """Allocate fields and buffers; pair the views that are packed, and those that are unpacked."""
    h = HALO
    inner = {-1: np.s_[h : 2 * h], 0: np.s_[h:-h], 1: np.s_[-2 * h : -h]}
    outer = {-1: np.s_[:h], 0: np.s_[h:-h], 1: np.s_[-h:]}
    directions = [(-1, 0), (1, 0)] if narrow else [d for d in product(inner, outer) if any(d)]
    made = [_field(shape, order) for _ in range(fields)]
    pack, unpack = [], []
    for i, j in directions:
        sent = [field[inner[i], inner[j]] for field in made]
        buffers = _buffers(sent, order)
        pack += zip(sent, buffers, strict=True)
        unpack += zip(buffers, [field[outer[i], outer[j]] for field in made], strict=True)
    return pack, unpack


def _field(shape: Sequence[int], order: str) -> dlf.Storage:
    ni, nj, nk = shape
    layout = tuple(order.index(dim) for dim in "IJK")
    extents = (ni + 2 * HALO, nj + 2 * HALO, nk)
    field = dlf.empty(extents, halo=(HALO, HALO, 0), layout=layout, dims="IJK")
    field.to_numpy()[...] = np.random.default_rng(1).random(field.shape)
    return field


def _buffers(parts: Sequence[dlf.Storage], order: str) -> list[dlf.Storage]:
    """Lay buffers for several parts next to each other in one message."""
    message = np.ones((len(parts), *(parts[0].shape["IJK".index(dim)] for dim in order)))
    axes = [order.index(dim) for dim in "IJK"]
    return [dlf.as_storage(part.transpose(axes), dims="IJK") for part in message]


def names_of(pairs: Pairs) -> dict[str, object]:
    """Name the pairs as a batch, and as lists of arrays of every library that is there."""
    sources, targets = zip(*pairs, strict=True)
    np_sources, np_targets = ([one.to_numpy() for one in side] for side in (sources, targets))
    batch = CopyBatch(sources, targets)
    batch.run()
    if not all(map(np.array_equal, np_targets, np_sources)):
        raise RuntimeError("the batch has copied something else")
    return {
        "batch": batch,
        "copy_each": copy_each,
        "sources": sources,
        "targets": targets,
        "np_sources": np_sources,
        "np_targets": np_targets,
        **_torch(np_sources, np_targets),
    }


def copy_each(targets: Sequence[object], sources: Sequence[object]) -> None:
    """Assign one pair after the other."""
    for target, source in zip(targets, sources, strict=True):
        target[...] = source


def _torch(sources: list[np.ndarray], targets: list[np.ndarray]) -> dict[str, object]:
    torch = load("torch")
    if isinstance(torch, Missing):
        return dict.fromkeys(("copy_each_torch", "torch_sources", "torch_targets"), torch)
    return {
        "copy_each_torch": _copy_each_torch,
        "torch_sources": list(map(torch.from_numpy, sources)),
        "torch_targets": list(map(torch.from_numpy, targets)),
    }


def _copy_each_torch(targets: Sequence[object], sources: Sequence[object]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)
