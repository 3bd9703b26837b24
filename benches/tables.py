"""The rows that measurements give, and how they are printed and kept."""

import csv
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path

HEADINGS = ("", "dlfield", "", "peer", "", "ratio", "target", "")


@dataclass(frozen=True)
class Row:
    """One line of a table and of the CSV file: dlfield beside one peer."""

    area: str
    what: str
    dlfield: str
    value: float | None
    peer: str
    peer_value: float | None
    ratio: float | None
    limit: float | None = None
    note: str = ""
    nbytes: int = 0
    """How many bytes a copy reads and writes, where the rate is what tells something."""
    unit: str = "ns"

    @property
    def dlfield_ns(self) -> float | None:
        """What dlfield takes, where that is a time."""
        return self.value if self.unit == "ns" else None

    @property
    def met(self) -> bool | None:
        """Whether the target is met, judged by the two digits that are shown; None without one."""
        if self.limit is None or self.ratio is None:
            return None
        return round(self.ratio, 2) <= round(self.limit, 2)

    @property
    def verdict(self) -> str:
        """The last word of the line."""
        if self.met is None:
            return self.note
        return "met" if self.met else "missed"


@dataclass(frozen=True)
class Table:
    """What one area has to say, in words and numbers as they are shown."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    remark: str = ""
    code: Sequence[int] = ()
    """The columns that show statements."""


def table_of(title: str, rows: Iterable[Row], remark: str = "") -> Table:
    """Make a table with a line per row."""
    return Table(title, HEADINGS, list(map(_cells, rows)), remark, code=(1, 3))


def _cells(row: Row) -> list[str]:
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    target = "" if row.limit is None else f"<= {row.limit:.2f}"
    ours, theirs = _spell(row.value, row), _spell(row.peer_value, row)
    return [row.what, row.dlfield, ours, row.peer, theirs, ratio, target, row.verdict]


def _spell(value: float | None, row: Row) -> str:
    """Spell a time, a rate or a size so that numbers of one column can be compared."""
    if value is None:
        return "-"
    if row.unit == "bytes":
        return f"{value / 1e6:.2f} MB"
    if row.unit == "instructions":
        return f"{value:.0f}"
    if row.nbytes:
        return f"{row.nbytes / value:.1f} GB/s"
    if value >= 1e6:
        return f"{value / 1e6:.{1 if value >= 1e7 else 2}f} ms"
    return f"{value / 1e3:.1f} us" if value >= 1e4 else f"{value:.0f} ns"


def print_rows(rows: Sequence[Row]) -> None:
    """Print the rows of one area as a table."""
    print_table(table_of(rows[0].area, rows))


def print_table(table: Table) -> None:
    """Print a table whose columns stand below each other."""
    columns = list(zip(table.headings, *table.lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    aligned = [str.rjust if _has_numbers(column[1:]) else str.ljust for column in columns]
    print(f"\n{table.title}\n")
    above: Sequence[str] = ()
    for line in [table.headings, ["-" * width for width in widths], *table.lines]:
        shown = _without_repetition(line, above) if table.code else line
        cells = (align(*cell) for align, *cell in zip(aligned, shown, widths, strict=True))
        print("  ".join(cells).rstrip())
        above = line
    if table.remark:
        print(f"\n{textwrap.fill(table.remark, 100)}")


def _without_repetition(line: Sequence[str], above: Sequence[str]) -> list[str]:
    """Leave blank what the row above says already: a comparison has one row per peer."""
    if line[:2] == above[:2]:
        return [""] * 3 + list(line[3:])
    return list(line)


def _has_numbers(column: Iterable[str]) -> bool:
    """Whether a column has numbers alone, or units behind them, and what stands for no number."""
    return all(re.fullmatch(r"|-|-?[\d.]+( \S+)?", cell) for cell in column)


def markdown(table: Table) -> str:
    """Render a table for a page of the documentation."""
    marked = [_marked_up(line, table.code) for line in table.lines]
    lines = [table.headings, ["---"] * len(table.headings), *marked]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    remark = f"{table.remark}\n\n" if table.remark else ""
    return f"## {table.title}\n\n{remark}{text}\n"


def _marked_up(line: Sequence[str], code: Sequence[int]) -> list[str]:
    """Show statements as code; a bar would end the cell."""
    cells = [cell.replace("|", "\\|") for cell in line]
    return [f"`{cell}`" if n in code and cell else cell for n, cell in enumerate(cells)]


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write rows into one file, a column per field."""
    columns = [column.name for column in fields(Row)]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([getattr(row, column) for column in columns] for row in rows)


def read_csv(path: Path) -> list[Row]:
    """Read rows back, for a plot of what was measured before."""
    with path.open(newline="") as file:
        return [_read(line) for line in csv.DictReader(file)]


def _read(line: dict[str, str]) -> Row:
    numbers = ("value", "peer_value", "ratio", "limit")
    read: dict[str, object] = {**line, "nbytes": int(line["nbytes"])}
    read.update({name: float(line[name]) if line[name] else None for name in numbers})
    return Row(**read)


def by_comparison(rows: Iterable[Row]) -> list[list[Row]]:
    """Put together the rows of one comparison, which differ in their peers."""
    return [list(group) for _, group in groupby(rows, lambda row: (row.what, row.dlfield))]
