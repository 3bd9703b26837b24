"""Writes what NumPy's functions make of storages into docs/functions.md.

Run by `make pages`.
"""

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
    for row in rows:
        cells = [row.about] if refused else []
        cells.append(", ".join(f"`{name}`" for name in row.names.split()))
        cells.append(instead(row) if refused else row.gives)
        text += f"| {' | '.join(cells)} |\n"
    return text


def instead(row):
    """Give what to use, as it stands in the error, set as code."""
    parts = [part for one in row.gives.split(" or ") for part in one.split(", ")]
    return " or ".join(
        f"`{part}`" if "." in part or "[" in part else part for part in parts if part
    )


def with_tables(document):
    """Put the tables between the marks of a document."""
    for name, rows in LISTS.items():
        begin, end = (f"<!-- {name}: {which} -->\n" for which in ("begin", "end"))
        before, _, rest = document.partition(begin)
        _, _, after = rest.partition(end)
        document = before + begin + table(rows) + end + after
    return document


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text("utf-8")), "utf-8")
