"""Compare what dlfield takes with what its peers take, all of them in one run.

Times on one machine wander by more than the differences that matter here, so no time is compared
with one taken earlier. The candidates of a comparison take turns, round after round; each round
gives one ratio, and the median of the ratios is what the tables show.
"""

import csv
import importlib
import statistics
import timeit
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

ROUNDS = 31
SERIES_PER_ROUND = 3
SERIES_NANOSECONDS = 300_000

Samples = dict[str, list[float]]
"""Per statement, the nanoseconds of one execution: the best of each round."""


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


@dataclass(frozen=True)
class Row:
    """One line of a table and of the CSV file. Times are in nanoseconds."""

    area: str
    what: str
    dlfield: str
    dlfield_ns: float | None
    peer: str
    peer_ns: float | None
    ratio: float | None
    limit: float | None = None
    note: str = ""


class Missing:
    """Stands for a library that is not there, and says so when it is used."""

    def __init__(self, library: str) -> None:
        self.library = library

    def __getattr__(self, name: str) -> object:
        raise ModuleNotFoundError(f"{self.library} is missing")


def load(module: str) -> object:
    """Import a module, or return what stands for a missing one."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return Missing(module)


def compare_all(
    area: str,
    comparisons: Iterable[Comparison],
    names: Mapping[str, object],
    measure: Callable[[Sequence[str], dict[str, object]], Samples] | None = None,
) -> list[Row]:
    """Measure the comparisons of one area, each in its own copy of `names`: a row per peer.

    `measure` times statements in a namespace, in turns; without it the host's time is taken.
    """
    rows = []
    for comparison in comparisons:
        samples, problems = sample(
            replace(comparison, names={**names, **comparison.names}), measure
        )
        rows += [
            summarise(area, comparison.what, comparison.ours, peer, samples, problems)
            for peer in comparison.peers
        ]
    return rows


def sample(
    comparison: Comparison,
    measure: Callable[[Sequence[str], dict[str, object]], Samples] | None = None,
) -> tuple[Samples, dict[str, str]]:
    """Time the statements that work; say what is wrong with the others."""
    names = dict(comparison.names)
    statements = [comparison.ours, *(peer.statement for peer in comparison.peers)]
    problems = _prepare(comparison.setup, statements, names)
    measure = measure or _measure
    return measure([s for s in statements if s not in problems], names), problems


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


def _measure(statements: Sequence[str], names: dict[str, object]) -> Samples:
    """Time the statements in turns."""
    timers = {s: timeit.Timer(s, globals=names) for s in statements}
    counts = {s: _executions_per_series(timer) for s, timer in timers.items()}
    samples: Samples = {s: [] for s in statements}
    for _ in range(ROUNDS):
        for statement, timer in timers.items():
            count = counts[statement]
            best = min(timer.repeat(SERIES_PER_ROUND, count))
            samples[statement].append(best / count * 1e9)
    return samples


def _executions_per_series(timer: timeit.Timer) -> int:
    """Find how often a statement runs in the time that one series may take."""
    count = 1
    while (seconds := timer.timeit(count)) * 1e9 < SERIES_NANOSECONDS / 4:
        count *= 4
    return max(1, round(count * SERIES_NANOSECONDS / (seconds * 1e9)))


def summarise(
    area: str, what: str, ours: str, peer: Peer, samples: Samples, problems: Mapping[str, str]
) -> Row:
    """Summarise the rounds of dlfield and of one peer."""
    mine, theirs = samples.get(ours), samples.get(peer.statement)
    ratio = None
    if mine and theirs:
        ratio = statistics.median(m / t for m, t in zip(mine, theirs, strict=True))
    return Row(
        area,
        what,
        ours,
        statistics.median(mine) if mine else None,
        peer.statement,
        statistics.median(theirs) if theirs else None,
        ratio,
        peer.limit,
        problems.get(ours) or problems.get(peer.statement, ""),
    )


def print_rows(rows: Sequence[Row]) -> None:
    """Print the rows of one area as a table."""
    headings = ["", "dlfield", "", "peer", "", "ratio", "target", ""]
    lines = list(map(_cells, rows))
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    print(f"\n{rows[0].area}\n")
    above: list[str] = []
    for line in [headings, ["-" * width for width in widths], *lines]:
        # What the row above says already is left blank: a comparison has one row per peer.
        shown = [""] * 3 + line[3:] if line[:2] == above[:2] else line
        cells = (cell.ljust(width) for cell, width in zip(shown, widths, strict=True))
        print("  ".join(cells).rstrip())
        above = line


def _cells(row: Row) -> list[str]:
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else "-"
    target = f"<= {row.limit:.2f}" if row.limit is not None else ""
    note = row.note
    if row.limit is not None and row.ratio is not None:
        note = "met" if row.ratio <= row.limit else "missed"
    times = _spell_time(row.dlfield_ns), _spell_time(row.peer_ns)
    return [row.what, row.dlfield, times[0], row.peer, times[1], ratio, target, note]


def _spell_time(nanoseconds: float | None) -> str:
    if nanoseconds is None:
        return f"{'-':>10}"
    for factor, unit in ((1e6, "ms"), (1e3, "us")):
        if nanoseconds >= 10 * factor:
            return f"{nanoseconds / factor:7.1f} {unit}"
    return f"{nanoseconds:7.0f} ns"


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows of all areas into one file."""
    columns = [column.name for column in fields(Row)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([getattr(row, column) for column in columns] for row in rows)
