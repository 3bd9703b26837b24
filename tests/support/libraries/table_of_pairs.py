"""Writes what every pair of producer and consumer does into docs/protocols.md.

Run by `make pages`.
"""

import os
from pathlib import Path

from support.libraries.known_deviations import DEVIATIONS, Cell
from support.libraries.pairs import PAIRS, Pair
from support.libraries.sides import CONSUMERS, PRODUCERS

DOCUMENT = Path(__file__).parents[3] / "docs" / "protocols.md"
BEGIN = "<!-- made by support.libraries.table_of_pairs: begin -->\n"
END = "<!-- made by support.libraries.table_of_pairs: end -->\n"


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
    """List the reasons of the numbered pairs."""
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
