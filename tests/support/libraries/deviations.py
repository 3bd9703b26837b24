"""What a pair does; `deviations.toml` lists the pairs that do not simply share, and why."""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

LISTED = tomllib.loads(Path(__file__).with_name("deviations.toml").read_text("utf-8"))


class Cell(StrEnum):
    """What a pair of producer and consumer does."""

    SHARED = "shared"
    READ_ONLY = "shared, read-only"
    UNGUARDED = "shared, unguarded"
    COPIES = "copies"
    REFUSED = "refused"


@dataclass(frozen=True)
class Deviation:
    """Why pairs of these producers and these consumers do something else than share."""

    cell: Cell
    reason: str
    link: str
    producers: tuple[str, ...] | None = None
    """Their libraries; None for every producer."""
    consumers: tuple[str, ...] | None = None
    """Their entries; None for every consumer."""
    says: str = ""
    """What the error says if the pair is refused."""

    def concerns(self, producer, consumer):
        """Return whether a library and an entry are among its pairs."""
        if self.producers is not None and producer not in self.producers:
            return False
        return self.consumers is None or consumer in self.consumers


IMMUTABLE = set(LISTED["immutable"])
DEVIATIONS = [Deviation(**{**row, "cell": Cell(row["cell"])}) for row in LISTED["deviation"]]


def deviation(producer, consumer):
    """Find the reason why a library and an entry do not simply share, or None if they share."""
    found = [known for known in DEVIATIONS if known.concerns(producer, consumer)]
    return found[-1] if found else None
