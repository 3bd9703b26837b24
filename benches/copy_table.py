"""The copies as one line per copy and number of threads, with all rates beside each other."""

from collections.abc import Iterable
from dataclasses import dataclass

from tables import Row, Table, by_comparison

COLUMNS = {
    "NumPy": "np.",
    "torch": "torch_",
    "Numba": "numba_",
    "JAX": "jax_",
    "memcpy": "memcpy(",
    "limit": "stream(",
}
"""How the statements of the candidates begin."""

RIVALS = ("NumPy", "torch", "Numba", "JAX")

REMARK = (
    "GB/s, counting what is read and what is written. The limit is a copy of as many bytes by "
    "non-temporal stores, the fastest of some ways of prefetching, with as many threads; "
    "memcpy likewise. `of limit`: dlfield's rate over "
    "it, of which 0.75 is the target; `of best peer`: over that of the fastest of NumPy, torch, "
    "Numba and JAX, of which 1 is. NumPy has one thread; JAX has all, and allocates what it copies "
    "into."
)


@dataclass(frozen=True)
class Line:
    """One copy with one number of threads."""

    what: str
    threads: int
    rows: dict[str, Row]

    def rate(self, column: str) -> float | None:
        """Give bytes per nanosecond, which are GB/s."""
        if column == "dlfield":
            row = next(iter(self.rows.values()))
            return row.nbytes / row.value if row.value else None
        row = self.rows.get(column)
        return row.nbytes / row.peer_value if row and row.peer_value else None

    @property
    def of_limit(self) -> float | None:
        """Which part of the limit dlfield reaches."""
        return _inverse(self.rows["limit"].ratio)

    @property
    def best_peer(self) -> str | None:
        """Which of the rivals leaves dlfield the furthest behind, or the least ahead."""
        measured = [name for name in RIVALS if name in self.rows and self.rows[name].ratio]
        return max(measured, key=lambda name: self.rows[name].ratio, default=None)

    @property
    def of_best_peer(self) -> float | None:
        """How many times its rate dlfield has."""
        return _inverse(self.rows[self.best_peer].ratio) if self.best_peer else None

    @property
    def verdict(self) -> str:
        """Whether both targets are met."""
        met = [row.met for row in self.rows.values() if row.met is not None]
        if not met:
            return next(iter(self.rows.values())).note
        return "met" if all(met) else "missed"


def _inverse(ratio: float | None) -> float | None:
    return 1 / ratio if ratio else None


def lines_of(rows: Iterable[Row]) -> list[Line]:
    """Put the rows of each comparison into one line."""
    lines = []
    for group in by_comparison(rows):
        what, _, threads = group[0].what.rpartition(", ")
        named = {_column(row.peer): row for row in group}
        lines.append(Line(what, int(threads.split()[0]), named))
    return lines


def _column(statement: str) -> str:
    return next(name for name, start in COLUMNS.items() if statement.startswith(start))


def table(rows: list[Row]) -> Table:
    """Return the table of the page."""
    headings = ["copy", "threads", "dlfield", *COLUMNS, "of limit", "of best peer", "", ""]
    return Table("copies", headings, [_cells(line) for line in lines_of(rows)], _remark(rows))


def _cells(line: Line) -> list[str]:
    rates = [_spell(line.rate(name), ".1f") for name in ("dlfield", *COLUMNS)]
    parts = [_spell(line.of_limit, ".2f"), _spell(line.of_best_peer, ".2f")]
    return [line.what, str(line.threads), *rates, *parts, line.best_peer or "", line.verdict]


def _spell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _remark(rows: Iterable[Row]) -> str:
    """Name what could not be measured, which the rates only leave out."""
    problems = sorted({f"{row.peer}: {row.note}" for row in rows if row.note})
    return " ".join([REMARK, *(f"Not measured: {problem}." for problem in problems)])
