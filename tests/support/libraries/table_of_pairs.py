"""Writes what every pair of producer and consumer does into docs/protocols.md.

Run by `make pages`.
"""

import os
from pathlib import Path

from support.libraries.counted import CONSUMERS, PRODUCERS
from support.libraries.deviations import DEVIATIONS, Cell
from support.libraries.pairs import PAIRS, Pair

DOCUMENT = Path(__file__).parents[3] / "docs" / "protocols.md"
BEGIN = "<!-- made by support.libraries.table_of_pairs: begin -->\n"
END = "<!-- made by support.libraries.table_of_pairs: end -->\n"


def checked(producer, consumer):
    """Run the proofs of a pair; anything but what is known of it is an error."""
    pair = Pair(producer, consumer)
    found, deletions, references = pair.measured(), pair.deletions(), pair.references()
    kept = (1, 1) if found in (Cell.COPIES, Cell.REFUSED) else (0, 1)
    if found is not pair.expected or deletions != kept or len(set(references)) != 1:
        raise AssertionError(
            f"{pair}: expected {pair.expected}, deletions {kept} and references unchanged, "
            f"got {found}, {deletions} and {references}; a change belongs into "
            f"tests/support/libraries/deviations.toml"
        )
    return noted(found, pair.deviation)


def noted(found, known):
    """Put the number of its reason behind a result."""
    if known is None:
        return found
    number = DEVIATIONS.index(known) + 1
    return found + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(number))


def table():
    """Lay the results of every pair out, producers down, consumers across."""
    text = row(["", *(f"`{consumer.entry}`" for consumer in CONSUMERS)])
    text += row(["---"] * (len(CONSUMERS) + 1))
    for producer in PRODUCERS:
        cells = [checked(producer, consumer) for consumer in CONSUMERS]
        text += row([f"**{producer.library.name}**", *cells])
    return text


def row(cells):
    return f"| {' | '.join(cells)} |\n"


def notes():
    """List the reasons by their numbers."""
    numbered = enumerate(DEVIATIONS, start=1)
    return "".join(
        f"{number}. {known.reason} [source]({known.link})\n" for number, known in numbered
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
