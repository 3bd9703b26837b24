"""Writes what every pair of producer and consumer does into docs/protocols.md.

Run by `make pages`.
"""

import os
from pathlib import Path

from dlfield.doctor.deviations import Cell
from dlfield.doctor.table import noted, notes, table

from support.libraries.pairs import PAIRS, Pair
from support.libraries.sides import CONSUMERS, PRODUCERS

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
            f"dlfield/doctor/deviations.py"
        )
    return noted(found, pair.deviation)


def with_table(document):
    """Put what is found now between the marks of a document."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = table(PRODUCERS, CONSUMERS, checked)
    return f"{before}{BEGIN}\n{made}\n{notes()}\n{END}{after}"


if __name__ == "__main__":
    os.environ["JAX_ENABLE_X64"] = "1"  # as in conftest.py, before JAX is imported
    DOCUMENT.write_text(with_table(DOCUMENT.read_text("utf-8")), "utf-8")
    print(f"{DOCUMENT}: {len(PAIRS)} pairs")
