"""Writes what NumPy's functions make of storages into docs/functions.md.

Run by `make pages`.
"""

from itertools import groupby
from pathlib import Path

from dlfield.functions.table import ARRAYS, REFUSED, STORAGES

DOCUMENT = Path(__file__).parents[2] / "docs" / "functions.md"
LISTS = {"storages": STORAGES, "arrays": ARRAYS, "refused": REFUSED}


def table(rows):
    refused = rows is REFUSED
    text = (
        "| about | function | use instead |\n|---|---|---|\n"
        if refused
        else "| function | returns |\n|---|---|\n"
    )
    for (about, _), alike in groupby(rows, key=lambda row: (row.about, row.gives)):
        alike = list(alike)
        cells = [about] if refused else []
        names = sorted(name for row in alike for name in row.names.split())
        cells.append(", ".join(f"`{name}`" for name in names))
        cells.append(instead(alike[0]) if refused else alike[0].gives)
        text += f"| {' | '.join(cells)} |\n"
    return text


def instead(row):
    """Return what to use, as it stands in the error, set as code."""
    parts = [part for one in row.gives.split(" or ") for part in one.split(", ")]
    return " or ".join(
        f"`{part}`" if "." in part or "[" in part else part for part in parts if part
    )


def with_tables(document):
    """Put the tables between the marks of a document."""
    for name, rows in LISTS.items():
        document = between_marks(document, name, table(rows))
    return document


def between_marks(document, name, text):
    """Put a text between the two marks of a name."""
    begin, end = (f"<!-- {name}: {which} -->\n" for which in ("begin", "end"))
    before, _, rest = document.partition(begin)
    _, _, after = rest.partition(end)
    return before + begin + text + end + after


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text("utf-8")), "utf-8")
