"""Writes what every pair of producer and consumer does into docs/protocols.md.

Run from the root of the repository: `.venv/bin/python -m interop_tests.table_of_pairs`
"""

import os
from pathlib import Path

from .known_deviations import DEVIATIONS, Cell
from .pairs import PAIRS, Pair
from .sides import CONSUMERS, PRODUCERS

DOCUMENT = Path(__file__).parents[1] / "docs" / "protocols.md"
BEGIN = "<!-- made by interop_tests/table_of_pairs.py: begin -->\n"
END = "<!-- made by interop_tests/table_of_pairs.py: end -->\n"


def note(known):
    """The number of a deviation, as it stands in a cell."""
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(DEVIATIONS.index(known) + 1))


def checked(pair):
    """Run the proofs of a pair; anything but what is known of it is an error."""
    found, deletions, references = pair.measured(), pair.deletions(), pair.references()
    kept = (1, 1) if found in (Cell.COPIES, Cell.REFUSED) else (0, 1)
    if found is not pair.expected or deletions != kept or len(set(references)) != 1:
        raise AssertionError(
            f"{pair}: expected {pair.expected}, deletions {kept} and references unchanged, "
            f"got {found}, {deletions} and {references}; a change belongs into known_deviations.py"
        )
    return found + (note(pair.deviation) if pair.deviation else "")


def row(cells):
    return f"| {' | '.join(cells)} |\n"


def table():
    """Check every pair and lay the results out, producers down, consumers across."""
    text = row(["", *(f"`{consumer.entry}`" for consumer in CONSUMERS)])
    text += row(["---"] * (len(CONSUMERS) + 1))
    for producer in PRODUCERS:
        cells = [checked(Pair(producer, consumer)) for consumer in CONSUMERS]
        text += row([f"**{producer.library.name}**", *cells])
    return text


def notes():
    """Say why the pairs with a number do what they do."""
    return "".join(
        f"{number}. {known.reason} [source]({known.link})\n"
        for number, known in enumerate(DEVIATIONS, start=1)
    )


def with_table(document):
    """Put what is found now between the marks of a document."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{notes()}\n{END}{after}"


if __name__ == "__main__":
    os.environ["JAX_ENABLE_X64"] = "1"  # as in conftest.py, before JAX is imported
    DOCUMENT.write_text(with_table(DOCUMENT.read_text("utf-8")), "utf-8")
    print(f"{DOCUMENT}: {len(PAIRS)} pairs")
