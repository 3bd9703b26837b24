"""Freed once, references unchanged: what the tests prove beside `dlfield.doctor.pairs`.

Counted is how often the owner has given its memory up, while the consumer lives and afterwards.
"""

import gc
import sys

from dlfield.doctor import pairs
from dlfield.doctor.pairs import REFUSALS

from support.libraries.sides import CONSUMERS, COUNTED, PRODUCERS
from support.optional import library


class Linked(pairs.Linked):
    """The two arrays; a missing library is a skip."""

    def __init__(self, pair):
        pair.need()
        super().__init__(pair)


class Pair(pairs.Pair):
    """A way from one library through a storage into another; a missing library is a skip."""

    def need(self):
        for name in self.modules:
            library(name)

    def measured(self):
        self.need()
        return super().measured()

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
