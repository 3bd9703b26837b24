"""The table of docs/protocols.md: what every pair of producer and consumer does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlfield.doctor.deviations import DEVIATIONS
from dlfield.doctor.pairs import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dlfield.doctor.deviations import Deviation
    from dlfield.doctor.sides import Consumer, Producer

__all__ = ["cell_of", "notes", "table"]


def table(
    producers: Sequence[Producer],
    consumers: Sequence[Consumer],
    cell: Callable[[Producer, Consumer], str],
) -> str:
    """Lay the results of every pair out, producers down, consumers across."""
    text = _row(["", *(f"`{consumer.entry}`" for consumer in consumers)])
    text += _row(["---"] * (len(consumers) + 1))
    for producer in producers:
        cells = [cell(producer, consumer) for consumer in consumers]
        text += _row([f"**{producer.library.name}**", *cells])
    return text


def cell_of(producer: Producer, consumer: Consumer) -> str:
    """Try a pair. What is not as it is known to be says so, with what was expected."""
    pair = Pair(producer, consumer)
    try:
        found = pair.measured()
    except Exception as error:  # a library may raise anything
        return f"failed: {type(error).__name__} (expected: {pair.expected})"
    if found is not pair.expected:
        return f"{found} (expected: {pair.expected})"
    return noted(found, pair.deviation)


def noted(found: str, known: Deviation | None) -> str:
    """Put the number of its reason behind a result."""
    if known is None:
        return found
    number = DEVIATIONS.index(known) + 1
    return found + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(number))


def notes(shown: Iterable[Deviation] = DEVIATIONS) -> str:
    """List the reasons of the numbered pairs."""
    return "".join(
        f"{DEVIATIONS.index(known) + 1}. {known.reason} [source]({known.link})\n" for known in shown
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
