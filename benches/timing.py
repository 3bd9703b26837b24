"""Compare what dlfield takes with what its peers take, all of them in one run.

Times on one machine wander by more than the differences that matter here, so no time is compared
with one taken earlier. The candidates of a comparison take turns, round after round; each round
gives one ratio, and the median of the ratios is what the tables show.
"""

import importlib
import random
import statistics
import timeit
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter_ns

from tables import Row, print_rows, write_csv

__all__ = [
    "EFFORT",
    "Comparison",
    "Missing",
    "Peer",
    "Row",
    "Samples",
    "compare_all",
    "load",
    "once_per_round",
    "print_rows",
    "sample",
    "summarise",
    "write_csv",
]

Samples = dict[str, list[float]]
"""Per statement, the nanoseconds of one execution: the best of each round."""

Measure = Callable[[Sequence[str], dict[str, object]], Samples]
"""Times statements in a namespace, in turns."""


@dataclass
class Effort:
    """How thoroughly everything is measured."""

    rounds: int = 31
    fewest_rounds: int = 7
    """As many there are even where they take long."""
    nanoseconds: int = 3_000_000_000
    """How long all rounds of a comparison may take otherwise."""
    series_per_round: int = 3
    series_nanoseconds: int = 300_000
    quick: bool = False
    """Whether areas are to leave out what takes long."""
    only: str = ""
    """A text in the names or statements of the cases whose instructions are to be counted."""

    def hurry(self) -> None:
        """Only show that everything runs: the figures then mean little."""
        self.rounds, self.fewest_rounds, self.nanoseconds = 3, 2, 50_000_000
        self.series_per_round, self.series_nanoseconds, self.quick = 1, 30_000, True


EFFORT = Effort()
"""The effort of this run."""


@dataclass(frozen=True)
class Peer:
    """What dlfield is measured against."""

    statement: str
    limit: float | None = None
    """The largest ratio dlfield/peer that is good enough, where there is such a target."""


@dataclass(frozen=True)
class Comparison:
    """One statement of dlfield beside those of its peers, all in the same namespace."""

    what: str
    ours: str
    peers: Sequence[Peer]
    setup: str = ""
    names: Mapping[str, object] = field(default_factory=dict)
    teardown: str = ""
    """Takes back settings that the setup has made for the whole process."""
    nbytes: int = 0
    """How many bytes are read and written, where rates are to be shown."""


class Missing:
    """Stands for a library that is not there, and says so when it is used."""

    def __init__(self, library: str, reason: str = "") -> None:
        self.library, self.reason = library, reason or f"{library} is missing"

    def __getattr__(self, name: str) -> object:
        raise ModuleNotFoundError(self.reason)

    def __call__(self, *args: object, **options: object) -> object:
        """Stand for a function that is missing with its library."""
        raise ModuleNotFoundError(self.reason)


def load(module: str, name: str | None = None) -> object:
    """Import a module, or a name of one, or return what stands for a missing one."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return Missing(module)
    return getattr(found, name) if name else found


def compare_all(
    area: str,
    comparisons: Iterable[Comparison],
    names: Mapping[str, object],
    measure: Measure | None = None,
) -> list[Row]:
    """Measure the comparisons of one area, each in its own copy of `names`: a row per peer.

    `measure` times statements in a namespace, in turns; without it the host's time is taken.
    """
    rows = []
    for comparison in comparisons:
        samples, problems = sample(
            replace(comparison, names={**names, **comparison.names}), measure
        )
        rows += [summarise(area, comparison, peer, samples, problems) for peer in comparison.peers]
    return rows


def sample(
    comparison: Comparison, measure: Measure | None = None
) -> tuple[Samples, dict[str, str]]:
    """Time the statements that work; say what is wrong with the others."""
    names = dict(comparison.names)
    statements = [comparison.ours, *(peer.statement for peer in comparison.peers)]
    problems = _prepare(comparison.setup, statements, names)
    working = [statement for statement in statements if statement not in problems]
    samples = (measure or _many_per_round)(working, names)
    if working:
        exec(comparison.teardown, names)
    return samples, problems


def _prepare(setup: str, statements: Iterable[str], names: dict[str, object]) -> dict[str, str]:
    """Run the setup and every statement once; return what went wrong, per statement."""
    try:
        exec(setup, names)
    except Exception as error:
        return dict.fromkeys(statements, _first_line(error))
    problems = {}
    for statement in statements:
        try:
            exec(statement, names)
        except Exception as error:
            problems[statement] = _first_line(error)
    return problems


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _rounds() -> Iterator[int]:
    """Count rounds, as many as asked for, unless they take too long."""
    end = perf_counter_ns() + EFFORT.nanoseconds
    for finished in range(EFFORT.rounds):
        if finished >= EFFORT.fewest_rounds and perf_counter_ns() > end:
            return
        yield finished


def _many_per_round(statements: Sequence[str], names: dict[str, object]) -> Samples:
    """Time statements that are quick: each round is the best of a few series of executions."""
    timers = {s: timeit.Timer(s, globals=names) for s in statements}
    counts = {s: _executions_per_series(timer) for s, timer in timers.items()}
    samples: Samples = {s: [] for s in statements}
    for _ in _rounds():
        for statement, timer in timers.items():
            count = counts[statement]
            best = min(timer.repeat(EFFORT.series_per_round, count))
            samples[statement].append(best / count * 1e9)
    return samples


def _executions_per_series(timer: timeit.Timer) -> int:
    """Find how often a statement runs in the time that one series may take."""
    count, allowed = 1, EFFORT.series_nanoseconds
    while (seconds := timer.timeit(count)) * 1e9 < allowed / 4:
        count *= 4
    return max(1, round(count * allowed / (seconds * 1e9)))


def once_per_round(statements: Sequence[str], names: dict[str, object]) -> Samples:
    """Time statements that are slow: each runs once a round.

    The order changes from round to round, since each leaves something of its own in the caches.
    """
    codes = {statement: compile(statement, "bench", "exec") for statement in statements}
    samples: Samples = {statement: [] for statement in statements}
    order, shuffle = list(statements), random.Random(0).shuffle
    for _ in _rounds():
        shuffle(order)
        for statement in order:
            samples[statement].append(_nanoseconds(codes[statement], names))
    return samples


def _nanoseconds(code: object, names: dict[str, object]) -> float:
    start = perf_counter_ns()
    exec(code, names)
    return perf_counter_ns() - start


def summarise(
    area: str,
    comparison: Comparison,
    peer: Peer,
    samples: Samples,
    problems: Mapping[str, str],
) -> Row:
    """Summarise the rounds of dlfield and of one peer."""
    ours = comparison.ours
    mine, theirs = samples.get(ours), samples.get(peer.statement)
    ratio = None
    if mine and theirs:
        ratio = statistics.median(m / t for m, t in zip(mine, theirs, strict=True))
    return Row(
        area,
        comparison.what,
        ours,
        statistics.median(mine) if mine else None,
        peer.statement,
        statistics.median(theirs) if theirs else None,
        ratio,
        peer.limit,
        problems.get(ours) or problems.get(peer.statement, ""),
        comparison.nbytes,
    )
