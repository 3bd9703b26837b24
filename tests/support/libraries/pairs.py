"""A producer, a storage and a consumer: what a pair of libraries does, found by trying.

Same address: each side is asked by its own words. Write-through: in both directions, or refused.
Freed once: counted is how often the owner has given its memory up, while the consumer lives and
afterwards. A missing library is a skip.
"""

import gc
import sys
from dataclasses import dataclass

from support.libraries.counted import CONSUMERS, COUNTED, PRODUCERS
from support.libraries.deviations import Cell, deviation
from support.libraries.sides import Consumer, Producer
from support.optional import library

REFUSALS = (BufferError, TypeError)


class Linked:
    """The array of a producer and what a consumer has made of the storage over it."""

    def __init__(self, pair):
        pair.need()
        self.giver, self.taker = pair.producer.library, pair.consumer.library
        self.array = pair.producer.own()
        self.storage = pair.producer.storage(self.array)
        self.taken = pair.consumer.take(self.storage)

    def addresses(self):
        """Return the address on each side."""
        return self.giver.address(self.array), self.taker.address(self.taken)

    def values(self):
        """Return the element as each side reads it."""
        return self.giver.read(self.array), self.taker.read(self.taken)

    def write_as_producer(self, value):
        """Write the element; False if the producer refuses."""
        return self.giver.writes(self.array, value)

    def write_as_consumer(self, value):
        """Write the element; False if the consumer refuses."""
        return self.taker.writes(self.taken, value)


@dataclass(frozen=True)
class Pair:
    """A way from one library through a storage into another."""

    producer: Producer
    consumer: Consumer

    def __str__(self):
        return f"{self.producer.library.name} to {self.consumer.entry}"

    @property
    def deviation(self):
        """Why the pair does something else than share; None if it shares."""
        return deviation(self.producer.library.name, self.consumer.entry)

    @property
    def expected(self):
        """What the pair is known to do."""
        return self.deviation.cell if self.deviation else Cell.SHARED

    def need(self):
        for name in (*self.producer.library.modules, *self.consumer.library.modules):
            library(name)

    def measured(self):
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

    def deletions(self):
        """Count how often the memory was given up: while only the consumer lives, and after it."""
        self.need()
        gc.freeze()  # a collection then looks at the chain only
        array, deletions = COUNTED[self.producer.library.name]()
        storage = self.producer.storage(array)
        taken = self._take(storage)
        del array, storage
        gc.collect()
        meanwhile = deletions()
        del taken
        gc.collect()
        return meanwhile, deletions()

    def references(self):
        """Count the references to the producer's array before and after all that was made of it."""
        self.need()
        array = self.producer.own()
        before = sys.getrefcount(array)
        storage = self.producer.storage(array)
        taken = self._take(storage)
        del storage, taken
        gc.collect(0)
        return before, sys.getrefcount(array)

    def _take(self, storage):
        try:
            return self.consumer.take(storage)
        except REFUSALS:
            return None


PAIRS = [Pair(producer, consumer) for producer in PRODUCERS for consumer in CONSUMERS]


def pairs_that(*cells):
    """The pairs that are known to do one of these things."""
    return [pair for pair in PAIRS if pair.expected in cells]
