"""What copies into another layout take, beside their peers and what the memory allows.

Into every order of a field of three dimensions, from C order; and the interior of a field with a
halo, into the same order and the opposite one. All memory exists before and was written: nothing is
allocated but by JAX, whose arrays cannot be written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import dlfield as dlf
import numpy as np
import threads
from copy_peers import peers_of
from copy_table import table
from limits import limits
from tables import Row, Table
from timing import EFFORT, Comparison, Peer, Samples, compare_all, once_per_round

HALO = (3, 3, 0)
OURS = "target[...] = source"
# XLA has threads of its own, as many as there are CPUs.
JAX = Peer("jax_copy(jax_source)", limit=1.0)
LIMITS = (Peer("stream(target, source)", limit=1 / 0.75), Peer("memcpy(target, source)"))
PEERS = (
    Peer("np.copyto(np_target, np_source)", limit=1.0),
    Peer("torch_target.copy_(torch_source)", limit=1.0),
    Peer("numba_copy(np_target, np_source)", limit=1.0),
)


@dataclass(frozen=True)
class Case:
    """A copy from C order into an order of memory, which is spelt slowest dimension first."""

    shape: tuple[int, int, int]
    dtype: str
    order: str
    halo: tuple[int, int, int] = (0, 0, 0)

    @property
    def name(self) -> str:
        """How tables name it."""
        extents = " x ".join(map(str, self.shape))
        inside = "interior of " if any(self.halo) else ""
        return f"{extents} {self.dtype}, {inside}IJK to {self.order}"

    def field(self, order: str) -> dlf.Storage:
        """Allocate a field, write all of it, and give the part inside the halo."""
        layout = tuple(order.index(dim) for dim in "IJK")
        shape = tuple(n + 2 * h for n, h in zip(self.shape, self.halo, strict=True))
        return dlf.full(shape, 1, self.dtype, layout=layout, halo=self.halo).domain_view

    def values(self) -> np.ndarray:
        """Give values that differ from those of their neighbours, and fit into one byte."""
        return (np.arange(np.prod(self.shape)) % 113).reshape(self.shape)


def cases() -> Iterator[Case]:
    """List all copies; in a hurry, small ones."""
    if EFFORT.quick:
        yield from _cases_of((32, 16, 8), "float64")
        return
    for shape in ((256, 256, 80), (512, 512, 128)):
        for dtype in ("float64", "float32"):
            yield from _cases_of(shape, dtype)
    # One copy for each of the other sizes of an item.
    yield Case((512, 512, 128), "int8", "KJI")
    yield Case((512, 512, 128), "int16", "KJI")
    yield Case((256, 256, 80), "complex128", "KJI")


def _cases_of(shape: tuple[int, int, int], dtype: str) -> Iterator[Case]:
    for order in permutations("IJK"):
        yield Case(shape, dtype, "".join(order))
    yield Case(shape, dtype, "IJK", HALO)
    yield Case(shape, dtype, "KJI", HALO)


def tables() -> list[tuple[Table, list[Row]]]:
    """Measure all copies with one thread and with all."""
    rows = []
    for case in cases():
        rows += compare_all("copies", comparisons(case), {}, measure)
    return [(table(rows), rows)]


def comparisons(case: Case) -> Iterator[Comparison]:
    """Compare one copy with each number of threads, in the same memory."""
    source, target = case.field("IJK"), case.field(case.order)
    np.copyto(source.to_numpy(), case.values(), casting="unsafe")
    names = peers_of(source, target, case.order, case.halo)
    for count in threads.counts():
        threads.use(count)
        yield Comparison(
            f"{case.name}, {threads.spell(count)}",
            OURS,
            [*LIMITS, *PEERS, *([JAX] if count == threads.cpus() else [])],
            names={**names, **limits(count)},
            nbytes=2 * source.nbytes,
        )


def measure(statements: Sequence[str], names: dict[str, object]) -> Samples:
    """Look whether the candidates copy what they should; then time them in turns."""
    apart = {peer.statement for peer in (*LIMITS, JAX)}  # these leave nothing of use in the target
    for statement in statements:
        if statement not in apart:
            _check(statement, names)
    return once_per_round(statements, names)


def _check(statement: str, names: dict[str, object]) -> None:
    """Stop where a copy is wrong: then its time says nothing."""
    source, target = names["np_source"], names["np_target"]
    target.fill(127)  # no value of the source
    exec(statement, names)
    some = np.s_[::37, ::11, ::7]
    if not np.array_equal(target[some], source[some]):
        raise RuntimeError(f"{statement} has copied something else")
