"""A producer, a storage and a consumer: what a pair of libraries does, found by trying.

Same address: each side is asked by its own words. Write-through: in both directions, or refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlfield.doctor.deviations import Cell, deviation

if TYPE_CHECKING:
    from dlfield.doctor.deviations import Deviation
    from dlfield.doctor.sides import Consumer, Producer

__all__ = ["Linked", "Pair"]

REFUSALS = (BufferError, TypeError)


class Linked:
    """The array of a producer and what a consumer has made of the storage over it."""

    def __init__(self, pair: Pair) -> None:
        self.giver, self.taker = pair.producer.library, pair.consumer.library
        self.array = pair.producer.own()
        self.storage = pair.producer.storage(self.array)
        self.taken = pair.consumer.take(self.storage)

    def addresses(self) -> tuple[int, int]:
        """Give the address on each side."""
        return self.giver.address(self.array), self.taker.address(self.taken)

    def values(self) -> tuple[float, float]:
        """Give the element as each side reads it."""
        return self.giver.read(self.array), self.taker.read(self.taken)

    def write_as_producer(self, value: float) -> bool:
        """Write the element; False if the producer refuses."""
        return self.giver.writes(self.array, value)

    def write_as_consumer(self, value: float) -> bool:
        """Write the element; False if the consumer refuses."""
        return self.taker.writes(self.taken, value)


@dataclass(frozen=True)
class Pair:
    """A way from one library through a storage into another."""

    producer: Producer
    consumer: Consumer

    def __str__(self) -> str:
        return f"{self.producer.library.name} to {self.consumer.entry}"

    @property
    def modules(self) -> tuple[str, ...]:
        """What has to be installed."""
        return (*self.producer.library.modules, *self.consumer.library.modules)

    @property
    def deviation(self) -> Deviation | None:
        """Why the pair does something else than share; None if it shares."""
        return deviation(self.producer.library.name, self.consumer.entry)

    @property
    def expected(self) -> Cell:
        """What the pair is known to do."""
        return self.deviation.cell if self.deviation else Cell.SHARED

    def measured(self) -> Cell:
        """Find out what the pair does, without looking at what is known of it."""
        try:
            linked = Linked(self)
        except REFUSALS:
            return Cell.REFUSED
        given, taken = linked.addresses()
        if given != taken:
            return Cell.COPIES
        if not linked.write_as_consumer(7.0):
            return Cell.READ_ONLY
        if linked.values() != (7.0, 7.0):
            return Cell.COPIES
        return Cell.UNGUARDED if linked.storage.readonly else Cell.SHARED
